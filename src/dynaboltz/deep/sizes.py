"""How much memory an agent will hold, before it is made."""

from __future__ import annotations

import math

import numpy as np

from dynaboltz.deep.architecture import Architecture, Layout, architecture_of
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.replay import bytes_per_slot, slots_per_environment, tree_size
from dynaboltz.deep.rules import parse_rule
from dynaboltz.envs.spec import Spec


def memory(config: AgentConfig, spec: Spec, n_envs: int = 1) -> dict[str, int]:
    """Bytes of a full replay memory, the networks, the optimiser with its gradients, and the work arrays of an update.

    >>> from dynaboltz.deep import PRESETS
    >>> from dynaboltz.envs.spec import Spec
    >>> found = memory(PRESETS["dqn-nature"](), Spec(shape=(84, 84), dtype="uint8", n_actions=6, stack=4), 1)
    >>> {part: f"{size / 2**20:.0f} MB" for part, size in found.items()}
    {'replay': '6743 MB', 'networks': '13 MB', 'optimiser': '19 MB', 'work': '21 MB'}
    """
    slots = n_envs * slots_per_environment(config, spec, n_envs)
    replay = slots * bytes_per_slot(spec)
    if config.prioritised:
        replay += 8 * tree_size(slots)
    layout, activations = _network(config, spec)
    flat = layout.size * np.dtype(config.dtype).itemsize
    networks = 1 + (config.parsed_target_period is not None) + config.overlap
    gradients = 1 if config.c_learning == "off" else 3
    kept = {"off": 0, "corrected": 1, "as_printed": 2}[config.c_learning]
    moments = 2 if parse_rule(config.optimiser).moments else 0
    inputs = config.batch_size * spec.stack * spec.bytes_per_frame
    width = np.dtype(config.dtype).itemsize if config.autocast == "off" else 2
    work = 2 * inputs + flat + 2 * config.batch_size * activations * width
    if config.atoms > 1:  # at the next states probabilities and logits, here logits, their cotangents and projections
        atoms = config.batch_size * config.atoms
        work += 3 * atoms * spec.n_actions * np.dtype(config.dtype).itemsize + atoms * (8 + gradients * 8)
    if config.autocast != "off":
        work += layout.size * width * 2
    if config.c_learning == "as_printed":
        work += inputs
    return {
        "replay": replay, "networks": networks * flat, "optimiser": (moments + gradients + kept) * flat, "work": work,
    }  # fmt: skip


def _network(config: AgentConfig, spec: Spec) -> tuple[Layout, int]:
    """The weights, and the numbers that one input leaves behind for the pass backward."""
    if ":" in config.network:
        from dynaboltz.deep.custom import Custom

        custom = Custom(config, spec, seed=0)
        return custom.layout, custom.activations
    architecture = architecture_of(config, spec)
    return architecture.layout(), _activations(architecture, spec)


def _activations(architecture: Architecture, spec: Spec) -> int:
    shapes = [layer.shape for layer in architecture.convolutions]
    inputs = spec.stack * (spec.n_values or math.prod(spec.shape))
    kept = inputs + sum(math.prod(shape) for shape in shapes)
    for layer in architecture.dense_layers():
        kept += layer.units + (architecture.noise > 0) * (layer.inputs + 2 * layer.units)
    return kept
