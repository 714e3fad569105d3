"""The table of the network: what our network is, weight by weight, and whether it computes what the table describes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dynaboltz.deep.presets import dqn
from dynaboltz.paper.atari_runs import spec_of
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.deep_runs import make_agent

GAMES = ("Pong", "Freeway", "Seaquest")
"""Of three sizes of the action set."""
SIDE, STACK = 84, 4
CLOSE = 1e-10
INPUTS = 4
"""Random screens that are put through the network."""


class Filters(NamedTuple):
    """A convolutional layer as the table gives it."""

    filters: int
    size: int
    stride: int


CONVOLUTIONS = (Filters(32, 8, 4), Filters(64, 4, 2), Filters(64, 3, 1))
UNITS = 512
"""Of the fourth layer; the last has one for each action. All but the last are followed by ReLU."""


def shapes(actions: int) -> dict[str, tuple[int, ...]]:
    """Weight → shape, from the table and the size of the input alone: no padding, one bias a unit."""
    found: dict[str, tuple[int, ...]] = {}
    side, channels = SIDE, STACK
    for i, layer in enumerate(CONVOLUTIONS):
        found[f"convolution.{i}.weight"] = (layer.filters, layer.size, layer.size, channels)
        found[f"convolution.{i}.bias"] = (layer.filters,)
        side, channels = (side - layer.size) // layer.stride + 1, layer.filters
    names = ("hidden.0", "output")
    for name, (inputs, units) in zip(names, pairwise((side * side * channels, UNITS, actions)), strict=True):
        found[f"{name}.weight"], found[f"{name}.bias"] = (units, inputs), (units,)
    return found


def by_hand(inputs: np.ndarray, weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """Action values (n, A) of screens (n, 4, 84, 84), by the table and nothing else, in float64."""
    x = np.moveaxis(inputs, 1, -1) / 255.0
    for i, layer in enumerate(CONVOLUTIONS):
        windows = np.lib.stride_tricks.sliding_window_view(x, (layer.size, layer.size), axis=(1, 2))
        windows = windows[:, :: layer.stride, :: layer.stride]
        summed = np.einsum("nijchw,fhwc->nijf", windows, weights[f"convolution.{i}.weight"], optimize=True)
        x = np.maximum(summed + weights[f"convolution.{i}.bias"], 0)
    x = np.maximum(x.reshape(len(x), -1) @ weights["hidden.0.weight"].T + weights["hidden.0.bias"], 0)
    found: np.ndarray = x @ weights["output.weight"].T + weights["output.bias"]
    return found


def test(rng: np.random.Generator) -> Evidence:
    """Weights of the preset's network on three games, and its values on random screens."""
    specs = {game: spec_of(game) for game in GAMES}
    built: dict[str, dict[str, tuple[int, ...]]] = {}
    apart = {}
    for game, spec in specs.items():
        config = dqn("nature", dtype="float64", autocast="off", replay_start_steps=100, replay_capacity_steps=100)
        agent = make_agent(config, spec, seed=int(rng.integers(1 << 31)))
        weights = agent.weights()
        screens = rng.integers(0, 256, (INPUTS, spec.stack, *spec.shape)).astype(np.uint8)
        ours, table = agent.engine.values(screens), by_hand(screens, weights)
        agent.close()
        built[game] = {name: array.shape for name, array in weights.items()}
        apart[game] = float(np.abs(ours - table).max() / np.abs(table).max())
    counts = {game: sum(int(np.prod(shape)) for shape in found.values()) for game, found in built.items()}
    largest = GAMES[-1]
    actions = {game: spec.n_actions for game, spec in specs.items()}
    rows = [
        (name, " × ".join(map(str, shape)), " × ".join(map(str, built[largest].get(name, ()))), int(np.prod(shape)))
        for name, shape in shapes(actions[largest]).items()
    ]
    dense = built[largest]["hidden.0.weight"]
    return Evidence(
        finding=(
            f"Our network has every layer of the table and no other: {counts[largest]:,} weights with the {actions[largest]} actions of {largest}, "
            f"{np.prod(dense) / counts[largest]:.0%} of them in the fourth layer. On random screens its action values are "
            "those of the table written out as sums, so sizes, strides and the place of every ReLU are the same. Padding, the order "
            "of channels and the first values of the weights are not in the table; they are those of the code that Mnih et al. released."
        ),
        settings={"games": GAMES, "screens a game": INPUTS, "numbers": "float64", "first values": "uniform within ±1/√(inputs of a unit)"},
        checks=[
            Check(
                fact="the input is 84 × 84 × 4", true=all((*spec.shape, spec.stack) == (SIDE, SIDE, STACK) for spec in specs.values()),
                detail=", ".join(f"{game}: {' × '.join(map(str, (*spec.shape, spec.stack)))}" for game, spec in specs.items()),
            ),
            Check(
                fact="the layers are those of the table, with one output for each action of the game",
                true=all(built[game] == shapes(actions[game]) for game in GAMES),
                detail="; ".join(f"{game}: {actions[game]} actions, {counts[game]:,} weights" for game in GAMES),
            ),
            Check(
                fact="convolutions without padding, ReLU after every layer but the last: the values are those of the table",
                true=max(apart.values()) < CLOSE, detail=f"largest relative difference {max(apart.values()):.1e}",
            ),
        ],
        tables=[
            Table(
                caption=f"Weights for {largest}, outputs first", header=("weight", "of the table", "built", "entries"),
                rows=[*rows, ("all", "", "", counts[largest])],
            )
        ],
        numbers={"shapes": built, "weights": counts, "difference": apart},
    )  # fmt: skip


CLAIM = Claim(
    name="network-table", title="The network", section="atari", where="Appendix (Implementation Details), its table",
    says="The architecture of Mnih et al. (2015): input 84 × 84 × 4; convolutions of 32 filters of 8 × 8 with stride 4, 64 of 4 × 4 "
    "with stride 2 and 64 of 3 × 3 with stride 1; 512 units; one output for each action; ReLU after all but the last.",
    equations={"the layers": "dynaboltz.deep.architecture.architecture_of", "the preset": "dynaboltz.deep.presets.dqn"}, test=test,
)  # fmt: skip
