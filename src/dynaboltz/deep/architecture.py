"""What a network looks like, without any tensor library: its layers, and the names, shapes and places of its weights.

Every engine keeps the same weights under the same names in the same layout, so that what one has saved another loads:
a dense weight is (out, in), a convolution's is (out, height, width, in), and between convolutions and dense layers the
picture is flattened as (height, width, channel).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynaboltz.deep.config import AgentConfig
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError

ALIGNMENT = 64
"""Every weight begins at a multiple of this many entries of the flat array; what lies between is 0 and stays 0."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One named weight in a flat array."""

    name: str
    shape: tuple[int, ...]
    fan_in: int
    """Inputs of each unit; 0 where the initial values are the network's own."""
    start: int

    @property
    def stop(self) -> int:
        """Where it ends."""
        return self.start + math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Layout:
    """Named weights side by side in one flat array."""

    pieces: tuple[Piece, ...]

    @classmethod
    def of(cls, weights: Mapping[str, tuple[tuple[int, ...], int]]) -> Layout:
        """The layout of weights given as name → (shape, fan-in)."""
        pieces: list[Piece] = []
        at = 0
        for name, (shape, fan_in) in weights.items():
            pieces.append(Piece(name, tuple(shape), fan_in, at))
            at = -(-pieces[-1].stop // ALIGNMENT) * ALIGNMENT
        return cls(tuple(pieces))

    @property
    def size(self) -> int:
        """Entries of the flat array."""
        return -(-self.pieces[-1].stop // ALIGNMENT) * ALIGNMENT

    @property
    def count(self) -> int:
        """Entries that are weights."""
        return sum(piece.stop - piece.start for piece in self.pieces)

    def views(self, flat: Any) -> dict[str, Any]:
        """The weights as views into a flat array or tensor."""
        return {piece.name: flat[piece.start : piece.stop].reshape(piece.shape) for piece in self.pieces}

    def draw(self, initialisation: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """First values of the weights that have a fan-in, as float64."""
        drawn = {}
        for piece in self.pieces:
            if not piece.fan_in:
                continue
            bias = len(piece.shape) == 1
            he = initialisation == "he"
            bound = math.sqrt((6.0 if he else 1.0) / piece.fan_in)
            drawn[piece.name] = np.zeros(piece.shape) if he and bias else rng.uniform(-bound, bound, piece.shape)
        return drawn


@dataclass(frozen=True, slots=True)
class Convolution:
    """A layer of square filters without padding, followed by max(0, ·)."""

    height: int
    width: int
    channels: int
    filters: int
    kernel: int
    stride: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of what comes out."""
        return (
            (self.height - self.kernel) // self.stride + 1, (self.width - self.kernel) // self.stride + 1, self.filters,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Architecture:
    """Convolutions, then dense layers with max(0, ·) between them; the last one gives the action values.

    An input is ``(n, stack, *shape)``. uint8 is divided by 255, bool is 0 or 1, Discrete observations are one-hot.
    For convolutions the channels are those of the oldest frame first; for dense layers everything is flattened.
    """

    convolutions: tuple[Convolution, ...]
    dense: tuple[int, ...]
    """Sizes from the flattened input to the number of actions."""
    channels_first: bool = False
    """Whether frames are (channels, height, width): so are those whose last axis is not the shortest."""

    def layout(self) -> Layout:
        """Where the weights are."""
        weights: dict[str, tuple[tuple[int, ...], int]] = {}
        for i, layer in enumerate(self.convolutions):
            fan_in = layer.channels * layer.kernel**2
            weights[f"convolution.{i}.weight"] = (layer.filters, layer.kernel, layer.kernel, layer.channels), fan_in
            weights[f"convolution.{i}.bias"] = (layer.filters,), fan_in
        for i, (inputs, units) in enumerate(zip(self.dense, self.dense[1:], strict=False)):
            name = f"hidden.{i}" if i < len(self.dense) - 2 else "output"
            weights[f"{name}.weight"] = (units, inputs), inputs
            weights[f"{name}.bias"] = (units,), inputs
        return Layout.of(weights)


FILTERS = {"minatar": ((16, 3, 1),), "nature": ((32, 8, 4), (64, 4, 2), (64, 3, 1))}
"""Filters, kernel and stride of each convolution: Young & Tian (2019); Mnih et al. (2015)."""
UNITS = {"minatar": (128,), "nature": (512,)}
"""Units of the dense layers before the last."""


def architecture_of(config: AgentConfig, spec: Spec) -> Architecture:
    """The layers of a network we know, for these observations."""
    if config.network == "mlp":
        inputs = spec.stack * (spec.n_values or math.prod(spec.shape))
        return Architecture((), (inputs, *config.hidden, spec.n_actions))
    if len(spec.shape) not in (2, 3):
        raise UserError(
            f"network: {config.network} needs frames of height × width, with channels as the first or last axis, "
            f"got observations of shape {spec.shape}\n  write network='mlp', or a network of your own as "
            "'package.module:factory'"
        )
    channels_first = len(spec.shape) == 3 and spec.shape[2] >= spec.shape[0]
    sides = (*spec.shape, 1)[:3]
    height, width, channels = (*sides[1:], sides[0]) if channels_first else sides
    channels *= spec.stack
    frame = f"{height} × {width}"
    layers: list[Convolution] = []
    for filters, kernel, stride in FILTERS[config.network]:
        if min(height, width) < kernel:
            raise UserError(
                f"network: frames of {frame} are too small for {config.network}, whose "
                f"filters of {kernel} × {kernel} meet {height} × {width} in layer {len(layers) + 1}"
            )
        layers.append(Convolution(height, width, channels, filters, kernel, stride))
        height, width, channels = layers[-1].shape
    return Architecture(
        tuple(layers), (height * width * channels, *UNITS[config.network], spec.n_actions), channels_first
    )
