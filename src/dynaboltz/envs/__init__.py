"""Worlds to act in: n environments in step, from Gymnasium, MinAtar, our own MDPs, probes, or ``module:factory``."""

from dynaboltz.envs.faults import WorldError
from dynaboltz.envs.make import make
from dynaboltz.envs.spec import Environments, Episode, Spec, Step

__all__ = ["Environments", "Episode", "Spec", "Step", "WorldError", "make"]
