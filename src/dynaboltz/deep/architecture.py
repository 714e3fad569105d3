"""What a network looks like, without any tensor library: its layers, and the names, shapes and places of its weights.

Every engine keeps the same weights under the same names in the same layout, so that what one has saved another loads:
a dense weight is (out, in), a convolution's is (out, height, width, in), and between convolutions and dense layers the
picture is flattened as (height, width, channel).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class Dense(NamedTuple):
    """A layer of weighted sums; max(0, ·) follows unless it is an output."""

    name: str
    inputs: int
    units: int

    @property
    def is_output(self) -> bool:
        """Whether its sums are action values, or parts or logits of them."""
        return self.name.endswith("output")


@dataclass(frozen=True, slots=True)
class Architecture:
    """Convolutions, then dense layers with max(0, ·) between them; the last one gives the action values.

    With ``duelling`` the last hidden layer and the output are there twice, Q = V + A − mean A; with ``noise`` a second
    weight stands beside each dense one and scales its noise; with ``atoms`` so many logits stand in place of a value.

    An input is ``(n, stack, *shape)``. uint8 is divided by 255, bool is 0 or 1, Discrete observations are one-hot.
    For convolutions the channels are those of the oldest frame first; for dense layers everything is flattened.
    """

    convolutions: tuple[Convolution, ...]
    dense: tuple[int, ...]
    """Sizes from the flattened input to the number of actions; at least one is between them."""
    channels_first: bool = False
    """Whether frames are (channels, height, width): so are those whose last axis is not the shortest."""
    duelling: bool = False
    noise: float = 0.0
    """σ₀."""
    atoms: int = 1

    def dense_layers(self) -> tuple[Dense, ...]:
        """The layers after the convolutions, in order; of two streams the value's comes first."""
        *hidden, actions = self.dense
        outputs = actions * self.atoms
        pairs = [*itertools.pairwise(hidden)]
        if not self.duelling:
            layers = [Dense(f"hidden.{i}", *pair) for i, pair in enumerate(pairs)]
            return (*layers, Dense("output", hidden[-1], outputs))
        layers = [Dense(f"hidden.{i}", *pair) for i, pair in enumerate(pairs[:-1])]
        for stream, units in (("value", self.atoms), ("advantage", outputs)):
            layers += [Dense(f"{stream}.hidden", *pairs[-1]), Dense(f"{stream}.output", hidden[-1], units)]
        return tuple(layers)

    def layout(self) -> Layout:
        """Where the weights are."""
        weights: dict[str, tuple[tuple[int, ...], int]] = {}
        for i, layer in enumerate(self.convolutions):
            fan_in = layer.channels * layer.kernel**2
            weights[f"convolution.{i}.weight"] = (layer.filters, layer.kernel, layer.kernel, layer.channels), fan_in
            weights[f"convolution.{i}.bias"] = (layer.filters,), fan_in
        for name, inputs, units in self.dense_layers():
            weights[f"{name}.weight"] = (units, inputs), inputs
            weights[f"{name}.bias"] = (units,), inputs
            if self.noise:
                weights[f"{name}.weight.noise"] = (units, inputs), 0
                weights[f"{name}.bias.noise"] = (units,), 0
        return Layout.of(weights)

    def first_noise(self) -> dict[str, np.ndarray]:
        """First values of what scales the noise: σ₀/√fan_in (Fortunato et al. 2018, Section 3.2)."""
        if not self.noise:
            return {}
        found = {}
        for name, inputs, units in self.dense_layers():
            for part, shape in (("weight", (units, inputs)), ("bias", (units,))):
                found[f"{name}.{part}.noise"] = np.full(shape, self.noise / math.sqrt(inputs))
        return found

    @property
    def draws(self) -> int:
        """Normal numbers that one set of noise takes: one for each input and each unit of a dense layer."""
        return sum(layer.inputs + layer.units for layer in self.dense_layers()) if self.noise else 0


FILTERS = {"minatar": ((16, 3, 1),), "nature": ((32, 8, 4), (64, 4, 2), (64, 3, 1))}
"""Filters, kernel and stride of each convolution: Young & Tian (2019); Mnih et al. (2015)."""
UNITS = {"minatar": (128,), "nature": (512,)}
"""Units of the dense layers before the last."""


def architecture_of(config: AgentConfig, spec: Spec) -> Architecture:
    """The layers of a network we know, for these observations."""
    head: dict[str, Any] = {"duelling": config.duelling, "noise": config.noisy, "atoms": config.atoms}
    if config.network == "mlp":
        inputs = spec.stack * (spec.n_values or math.prod(spec.shape))
        return Architecture((), (inputs, *config.hidden, spec.n_actions), **head)
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
        tuple(layers), (height * width * channels, *UNITS[config.network], spec.n_actions), channels_first, **head
    )
