"""Forward and backward passes of small networks, each one compiled call over flat arrays.

A network is two tables of whole numbers: its convolutions and its dense layers, with the places of weights, inputs and
outputs in flat arrays. Activations are ``[feature, batch]``, the batch padded to whole registers; padding stays without
influence, as its cotangents are 0.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from dynaboltz.deep.architecture import ALIGNMENT, Architecture
from dynaboltz.deep.compiled_products import COMPILED, correlation, product
from dynaboltz.operators import lanes, tiles
from dynaboltz.operators.compiled import SOURCES

_HERE = Path(__file__).parent
_OWN = (_HERE / "compiled_products.py").read_bytes() + (_HERE / "compiled_passes.py").read_bytes()
_SOURCES = SOURCES + hashlib.sha256(_OWN).hexdigest()

PADDING = 16
"""Batches are padded to a multiple of this: whole registers of either float type."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Where everything is, for one batch size. Offsets count entries."""

    convolutions: np.ndarray
    """(layers, 10): height, width, channels, filters, kernel, stride, weight, bias, input, output."""
    dense: np.ndarray
    """(layers, 8): inputs, units, weight, bias, input, output, samples by row, their stride."""
    size: int
    """Entries of the activations."""
    rows_size: int
    """Entries of the activations of dense inputs, sample by sample."""
    lanes: int
    """The padded batch."""

    @classmethod
    def of(cls, architecture: Architecture, n: int) -> Plan:
        """The plan for batches of n."""
        batch = -(-n // PADDING) * PADDING
        pieces = [piece.start for piece in architecture.layout().pieces]
        places = iter(zip(pieces[::2], pieces[1::2], strict=True))
        at, rows_at = 0, 0
        convolutions, dense = [], []
        if architecture.convolutions:
            first = architecture.convolutions[0]
            features = first.height * first.width * first.channels
        else:
            features = architecture.dense[0]
        for layer in architecture.convolutions:
            following = at + features * batch
            convolutions.append(
                (layer.height, layer.width, layer.channels, layer.filters, layer.kernel, layer.stride,
                 *next(places), at, following)
            )  # fmt: skip
            at, features = following, math.prod(layer.shape)
        for units in architecture.dense[1:]:
            following = at + features * batch
            stride = -(-features // PADDING) * PADDING + PADDING  # an odd number of lines: rows do not share cache sets
            dense.append((features, units, *next(places), at, following, rows_at, stride))
            rows_at += stride * batch
            at, features = following, units
        size = -(-(at + features * batch) // ALIGNMENT) * ALIGNMENT + PADDING * batch  # transposes read past the end
        return cls(
            np.array(convolutions, np.intp).reshape(-1, 10), np.array(dense, np.intp), size, rows_at, batch
        )  # fmt: skip


@njit(**COMPILED)
def _put(inputs: Any, scale: Any, values: Any, batch: Any) -> None:
    """Inputs (n, stack, cells, channels) as features in the order (cell, stack, channel)."""
    n, stack, cells, channels = inputs.shape
    for cell in range(cells):
        for frame in range(stack):
            for channel in range(channels):
                at = ((cell * stack + frame) * channels + channel) * batch
                for sample in range(n):
                    values[at + sample] = inputs[sample, frame, cell, channel] * scale


@njit(**COMPILED)
def _put_one_hot(inputs: Any, n_values: Any, values: Any, batch: Any) -> None:
    """Discrete inputs (n, stack) as one-hot features."""
    n, stack = inputs.shape
    values[: stack * n_values * batch] = 0
    for sample in range(n):
        for frame in range(stack):
            values[(frame * n_values + inputs[sample, frame]) * batch + sample] = 1


@njit(**COMPILED)
def _layers(convolutions: Any, dense: Any, weights: Any, values: Any, batch: Any, floors: Any) -> None:
    for i in range(convolutions.shape[0]):
        _, width, channels, filters, kernel, stride, weight, bias, source, target = convolutions[i]
        high, wide = (convolutions[i, 0] - kernel) // stride + 1, (width - kernel) // stride + 1
        run = kernel * channels
        for y in range(high):
            for x in range(wide):
                product(
                    weights, weight, kernel * run, run, 1,
                    values, source + (y * stride * width + x * stride) * channels * batch, width * channels * batch,
                    batch, weights, bias, 1,
                    values, target + (y * wide + x) * filters * batch, batch, filters, batch, kernel, run, floors[0],
                )  # fmt: skip
    last = dense.shape[0] - 1
    for i in range(last + 1):
        inputs, units, weight, bias, source, target = dense[i, :6]
        product(
            weights, weight, inputs, 0, 1, values, source, 0, batch, weights, bias, 1,
            values, target, batch, units, batch, 1, inputs, floors[1 if i == last else 0],
        )  # fmt: skip


@njit(**COMPILED)
def _read(dense: Any, values: Any, batch: Any, q: Any) -> None:
    at = dense[-1, 5]
    for sample in range(q.shape[0]):
        for action in range(q.shape[1]):
            q[sample, action] = values[at + action * batch + sample]


@njit(**COMPILED)
def _by_sample(dense: Any, values: Any, rows: Any, batch: Any) -> None:
    """What goes into each dense layer, sample by sample: the gradient of its weights runs along the features."""
    like = lanes.wide(values)
    width = np.intp(lanes.width(like))
    for i in range(dense.shape[0]):
        inputs, source, target, stride = dense[i, 0], dense[i, 4], dense[i, 6], dense[i, 7]
        for feature in range(0, inputs, width):
            for sample in range(0, batch, width):
                tiles.transpose(
                    values, source + feature * batch + sample, batch, rows, target + sample * stride + feature, stride,
                    like,
                )  # fmt: skip


@njit(**COMPILED)
def _dense_backward(
    layer,
    below,
    weights,
    values,
    slopes,
    rows,
    gradient,
    batch,
    floors,
    ones,
):
    inputs, units, weight, bias, source, target, by_sample, stride = layer
    width = np.intp(lanes.width(lanes.wide(values)))
    whole = inputs // width * width
    product(
        slopes, target, batch, 0, 1, rows, by_sample, 0, stride, floors, 2, 0,
        gradient, weight, inputs, units, whole, 1, batch, floors[1],
    )  # fmt: skip
    correlation(
        slopes, target, batch, 0, 0, values, source + whole * batch, batch, 0, 0,
        gradient, weight + whole, inputs, units, inputs - whole, 1, 1, batch,
    )  # fmt: skip
    correlation(slopes, target, batch, 0, 0, ones, 0, 0, 0, 0, gradient, bias, 1, units, 1, 1, 1, batch)
    if below:
        product(
            weights, weight, 1, 0, inputs, slopes, target, 0, batch, floors, 2, 0,
            slopes, source, batch, inputs, batch, 1, units, floors[1],
        )  # fmt: skip
        for entry in range(source, source + inputs * batch):
            if not values[entry] > 0:
                slopes[entry] = 0


@njit(**COMPILED)
def _convolution_backward(layer, values, slopes, gradient, batch, ones):
    height, width, channels, filters, kernel, stride, weight, bias, source, target = layer
    high, wide = (height - kernel) // stride + 1, (width - kernel) // stride + 1
    run = kernel * channels
    for y in range(kernel):
        correlation(
            slopes, target, batch, wide * filters * batch, filters * batch,
            values, source + y * width * channels * batch, batch, stride * width * channels * batch,
            stride * channels * batch, gradient, weight + y * run, kernel * run, filters, run, high, wide, batch,
        )  # fmt: skip
    correlation(
        slopes, target, batch, wide * filters * batch, filters * batch, ones, 0, 0, 0, 0,
        gradient, bias, 1, filters, 1, high, wide, batch,
    )  # fmt: skip


def _build(sources: str) -> tuple[Any, Any, Any]:
    @njit(cache=True, **COMPILED)
    def forward(inputs, scale, convolutions, dense, weights, values, batch, floors, q):
        sources  # noqa: B018  (in the cache key)
        _put(inputs, scale, values, batch)
        _layers(convolutions, dense, weights, values, batch, floors)
        _read(dense, values, batch, q)

    @njit(cache=True, **COMPILED)
    def forward_one_hot(inputs, n_values, convolutions, dense, weights, values, batch, floors, q):
        sources  # noqa: B018
        _put_one_hot(inputs, n_values, values, batch)
        _layers(convolutions, dense, weights, values, batch, floors)
        _read(dense, values, batch, q)

    @njit(cache=True, **COMPILED)
    def backward(
        actions,
        cotangents,
        chosen,
        convolutions,
        dense,
        weights,
        values,
        slopes,
        rows,
        gradients,
        batch,
        floors,
        ones,
    ):
        sources  # noqa: B018
        _by_sample(dense, values, rows, batch)
        last, units = dense[-1, 5], dense[-1, 1]
        layers = dense.shape[0]
        for k in range(chosen.size):
            slopes[last : last + units * batch] = 0
            for sample in range(actions.size):
                slopes[last + actions[sample] * batch + sample] = cotangents[k, sample]
            gradient = gradients[chosen[k]]
            for i in range(layers - 1, -1, -1):
                below = i > 0 or convolutions.shape[0] > 0
                _dense_backward(dense[i], below, weights, values, slopes, rows, gradient, batch, floors, ones)
            for i in range(convolutions.shape[0]):
                _convolution_backward(convolutions[i], values, slopes, gradient, batch, ones)

    return forward, forward_one_hot, backward


forward, forward_one_hot, backward = _build(_SOURCES)
"""Action values of a batch; the same for Discrete inputs; and gradients of weighted sums of chosen action values."""
