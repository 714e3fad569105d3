"""The forward pass of the networks we know, as torch functions of views into the flat weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dynaboltz.deep.architecture import Architecture
from dynaboltz.deep.pictures import AT_ONCE, interleave
from dynaboltz.envs.spec import Spec


class Layers:
    """The forward pass of an :class:`Architecture`.

    Weights that are not multiplied as they are, but rounded or scaled, have copies that stay in one place: to make 1.7
    million numbers anew for every pass, forward and backward, costs more than the products.
    """

    def __init__(
        self, architecture: Architecture, spec: Spec, weights: Mapping[str, Tensor], dtype: torch.dtype,
        low: torch.dtype, *, learns: bool = False,
    ) -> None:  # fmt: skip
        self.strides = [layer.stride for layer in architecture.convolutions]
        self.dtype, self.low = dtype, low
        self.n_values, self.channels_first = spec.n_values, architecture.channels_first
        self.scale = 1 / 255 if spec.dtype == "uint8" else 1.0
        self.first_scale = self.scale if self.strides else 1.0
        """Of the first weight: conv(x/255) is conv(x) with weights/255, whose gradient is 1/255 of that of its copy."""
        self.leaves: list[Tensor] = []
        """What is multiplied, and differentiated by, in the order of the weights."""
        self._copied: list[tuple[Tensor, Tensor, float]] = []
        for place, (name, weight) in enumerate(weights.items()):
            kind = dtype if "output." in name else low
            scale = self.first_scale if place == 0 else 1.0
            own = kind is not weight.dtype or scale != 1.0
            leaf = torch.empty_like(weight, dtype=kind) if own else weight
            self.leaves.append(leaf.detach().requires_grad_() if learns else leaf)
            if own:
                self._copied.append((weight, self.leaves[-1], scale))
        pairs = list(zip(self.leaves[::2], self.leaves[1::2], strict=True))
        self.convolutions = pairs[: len(self.strides)]
        self.dense = pairs[len(self.strides) :]
        self._version: int | None = None
        on_host = all(weight.device.type == "cpu" for weight in weights.values())
        self._interleaves = on_host and spec.dtype == "uint8" and low is torch.bfloat16
        self._room = torch.empty(0)

    def __call__(self, inputs: Tensor, version: int | None = None) -> Tensor:
        """Action values (n, A); weights of the same version have been prepared before."""
        return self._values(self._features(inputs, version, []), [])

    def _values(self, x: Tensor, kept: list[Tensor]) -> Tensor:
        """What the dense layers make of it; ``kept`` takes what each is given."""
        for weight, bias in self.dense[:-1]:
            kept.append(x)
            x = torch.relu_(functional.linear(x, weight, bias))
        kept.append(x)
        return functional.linear(x.to(self.dtype), *self.dense[-1])

    def _features(self, inputs: Tensor, version: int | None, kept: list[Tensor]) -> Tensor:
        """What the dense layers are given; ``kept`` takes what each convolution is given, and what the last gives."""
        if version is None or version != self._version:
            self._prepare()
            self._version = version
        if not self.strides:
            return self._flat(inputs)
        x = self._pictures(inputs)
        kept.append(x)
        for (weight, bias), stride in zip(self.convolutions, self.strides, strict=True):
            x = torch.relu_(functional.conv2d(x, weight.permute(0, 3, 1, 2), bias, stride))
            kept.append(x)
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)

    @torch.no_grad()
    def _prepare(self) -> None:
        """Round and scale what is not multiplied as it is."""
        for weight, copy, scale in self._copied:
            copy.copy_(weight if scale == 1.0 else weight * scale)

    def _pictures(self, inputs: Tensor) -> Tensor:
        """(n, channels, height, width) with the channels last in memory."""
        if inputs.ndim == 4 or self.channels_first:
            inputs = inputs if inputs.ndim == 4 else inputs.flatten(1, 2)
            if self._interleaves and inputs.shape[1] % AT_ONCE == 0:
                return self._interleaved(inputs)
            return inputs.to(self.low, memory_format=torch.channels_last)
        n, stack, height, width, channels = inputs.shape
        if stack > 1:
            inputs = inputs.permute(0, 2, 3, 1, 4).reshape(n, 1, height, width, stack * channels)
        return inputs[:, 0].to(self.low).permute(0, 3, 1, 2)

    def _interleaved(self, inputs: Tensor) -> Tensor:
        """The same from bytes, by compiled code and without a new array: torch takes twenty times as long."""
        n, channels, height, width = inputs.shape
        if len(self._room) < n:
            self._room = torch.empty((n, height, width, channels), dtype=self.low)
        pictures = self._room[:n]
        words = pictures.view(torch.int64).numpy().view(np.uint64).reshape(n, -1, channels // AT_ONCE)
        interleave(inputs.reshape(n, channels, -1).numpy(), words)
        return pictures.permute(0, 3, 1, 2)

    def _flat(self, inputs: Tensor) -> Tensor:
        if self.n_values is not None:
            return functional.one_hot(inputs, self.n_values).to(self.low).flatten(1)
        x = inputs.flatten(1).to(self.low)
        return x if self.scale == 1.0 else x * self.scale
