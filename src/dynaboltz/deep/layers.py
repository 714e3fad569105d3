"""The forward pass of the networks we know, as torch functions of views into the flat weights."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from dynaboltz.deep.architecture import Architecture
from dynaboltz.envs.spec import Spec

Pairs = list[tuple[Tensor, Tensor]]
"""A weight and a bias for each layer."""


class Layers:
    """The forward pass of an :class:`Architecture`."""

    def __init__(
        self, architecture: Architecture, spec: Spec, weights: list[Tensor], dtype: torch.dtype, low: torch.dtype
    ) -> None:
        self.strides = [layer.stride for layer in architecture.convolutions]
        pairs = list(zip(weights[::2], weights[1::2], strict=True))
        self.convolutions = [(weight.permute(0, 3, 1, 2), bias) for weight, bias in pairs[: len(self.strides)]]
        self.dense = pairs[len(self.strides) :]
        self.dtype, self.low = dtype, low
        self.scale = 1 / 255 if spec.dtype == "uint8" else 1.0
        self.n_values, self.channels_first = spec.n_values, architecture.channels_first
        self._ready: tuple[Pairs, Pairs] = ([], [])
        self._version: int | None = None

    def __call__(self, inputs: Tensor, version: int | None = None) -> Tensor:
        """Action values (n, A); weights of the same version have been prepared before."""
        x, dense = self._features(inputs, version)
        for weight, bias in dense[:-1]:
            x = torch.relu_(functional.linear(x, weight, bias))
        return functional.linear(x if self.low is self.dtype else x.to(self.dtype), *dense[-1])

    def _features(self, inputs: Tensor, version: int | None) -> tuple[Tensor, Pairs]:
        """What the dense layers are given, and their weights as they are multiplied."""
        if version is None or version != self._version:
            self._ready, self._version = self._prepared(), version
        convolutions, dense = self._ready
        x = self._pictures(inputs) if convolutions else self._flat(inputs)
        for (kernel, bias), stride in zip(convolutions, self.strides, strict=True):
            x = torch.relu_(functional.conv2d(x, kernel, bias, stride))
        if convolutions:
            x = x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)
        return x, dense

    def _prepared(self) -> tuple[Pairs, Pairs]:
        """Weights as they are multiplied: rounded, and the first scaled, as conv(x/255) is conv(x) with weights/255."""
        if self.low is self.dtype and (self.scale == 1.0 or not self.convolutions):
            return self.convolutions, self.dense
        convolutions = list(self.convolutions)
        if convolutions and self.scale != 1.0:
            convolutions[0] = convolutions[0][0] * self.scale, convolutions[0][1]
        if self.low is self.dtype:
            return convolutions, self.dense
        return [(weight.to(self.low), bias.to(self.low)) for weight, bias in convolutions], self._low(self.dense)

    def _low(self, dense: Pairs) -> Pairs:
        """The dense layers, all but the output rounded."""
        return [*((weight.to(self.low), bias.to(self.low)) for weight, bias in dense[:-1]), dense[-1]]

    def _pictures(self, inputs: Tensor) -> Tensor:
        """(n, channels, height, width) with the channels last in memory."""
        if inputs.ndim == 4:
            return inputs.to(self.low, memory_format=torch.channels_last)
        if self.channels_first:
            return inputs.flatten(1, 2).to(self.low, memory_format=torch.channels_last)
        n, stack, height, width, channels = inputs.shape
        if stack > 1:
            inputs = inputs.permute(0, 2, 3, 1, 4).reshape(n, 1, height, width, stack * channels)
        return inputs[:, 0].to(self.low).permute(0, 3, 1, 2)

    def _flat(self, inputs: Tensor) -> Tensor:
        if self.n_values is not None:
            return functional.one_hot(inputs, self.n_values).to(self.low).flatten(1)
        x = inputs.flatten(1).to(self.low)
        return x if self.scale == 1.0 else x * self.scale
