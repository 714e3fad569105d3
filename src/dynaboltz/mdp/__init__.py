"""Finite MDPs: the sparse model, worlds to try things on, files in and out, Gymnasium both ways."""

from __future__ import annotations

from dynaboltz.mdp.files import FORMATS, read, write
from dynaboltz.mdp.grid import Grid
from dynaboltz.mdp.gym import from_gymnasium, to_gymnasium
from dynaboltz.mdp.model import MDP
from dynaboltz.mdp.source import load
from dynaboltz.mdp.worlds import WORLDS, build_world

__all__ = [
    "FORMATS",
    "MDP",
    "WORLDS",
    "Grid",
    "build_world",
    "from_gymnasium",
    "load",
    "read",
    "to_gymnasium",
    "write",
]
