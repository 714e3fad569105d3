"""The pass backward: written out for plain layers, by autograd for any others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from dynaboltz.deep.architecture import Architecture
from dynaboltz.deep.layers import Layers
from dynaboltz.deep.side import Side
from dynaboltz.envs.spec import Spec


class Differentiable(ABC):
    """The online network, whose last pass forward can be gone back."""

    first_scale: float
    """What the gradient by the first weight is yet to be multiplied by."""

    @abstractmethod
    def forward(self, inputs: Tensor, version: int, *noise: Tensor) -> Tensor:
        """Action values or logits; weights of the same version have been prepared before."""

    @abstractmethod
    def backward(self, cotangents: Tensor, into: list[Tensor], *, keep: bool) -> None:
        """Gradients by what is multiplied, of values times cotangents; with ``keep`` it can be called once more."""


class Traced(Differentiable):
    """Whatever autograd differentiates."""

    def __init__(self, network: Callable[..., Tensor], leaves: list[Tensor], first_scale: float = 1.0) -> None:
        self.network, self.leaves, self.first_scale = network, leaves, first_scale
        self._found: Tensor | None = None

    def forward(self, inputs: Tensor, version: int, *noise: Tensor) -> Tensor:
        """With a graph."""
        self._found = self.network(inputs, version, *noise)
        return self._found.detach()

    def backward(self, cotangents: Tensor, into: list[Tensor], *, keep: bool) -> None:
        """Through the graph."""
        assert self._found is not None
        gradients = torch.autograd.grad(self._found, self.leaves, cotangents, retain_graph=keep)
        torch._foreach_copy_(into, gradients)
        if not keep:
            self._found = None


class Written(Layers, Differentiable):
    """Plain layers.

    Only the gradient by what a layer is given is needed to go on to the one before: those by its weights, half the
    work, are left to ``side``.
    """

    def __init__(
        self, architecture: Architecture, spec: Spec, weights: Mapping[str, Tensor], dtype: torch.dtype,
        low: torch.dtype, side: Side,
    ) -> None:  # fmt: skip
        super().__init__(architecture, spec, weights, dtype, low)
        self.side = side
        self.shape = architecture.convolutions[-1].shape if self.strides else None
        self._kept: list[Tensor] = []
        self._rounded = [torch.empty_like(weight) for weight, _ in self.dense]

    def forward(self, inputs: Tensor, version: int, *noise: Tensor) -> Tensor:  # noqa: ARG002
        """What every layer is given is kept."""
        self._kept = []
        return self._values(self._features(inputs, version, self._kept), self._kept)

    def backward(self, cotangents: Tensor, into: list[Tensor], *, keep: bool) -> None:
        """From the last layer to the first."""
        g, first_dense = cotangents, 2 * len(self.strides)
        rows = self._kept[-len(self.dense) :]
        for i in reversed(range(len(self.dense))):
            x, weight = rows[i], self.dense[i][0]
            self.side.begin(self._dense, g, x.to(g.dtype), self._rounded[i], into[first_dense + 2 * i :])
            if i or self.strides:
                g = (g @ weight).to(x.dtype)
            if i:
                g = torch.ops.aten.threshold_backward(g, x, 0)
        if self.shape:
            g = g.view(len(g), *self.shape).permute(0, 3, 1, 2)
        for i in reversed(range(len(self.strides))):
            x, y = self._kept[i : i + 2]
            g = torch.ops.aten.threshold_backward(g, y, 0)
            if i:
                self.side.begin(self._convolution, i, g, x, into)
                g = self._convolved(i, g, x, [True, False, False])[0]
            else:
                self._convolution(i, g, x, into)
        self.side.end()
        if not keep:
            self._kept = []

    @staticmethod
    def _dense(g: Tensor, x: Tensor, rounded: Tensor, into: list[Tensor]) -> None:
        """Gradients by the weight and bias of a dense layer."""
        if rounded.dtype is into[0].dtype:
            torch.mm(g.t(), x, out=into[0])
        else:
            into[0].copy_(torch.mm(g.t(), x, out=rounded))
        into[1].copy_(g.sum(0))

    def _convolution(self, i: int, g: Tensor, x: Tensor, into: list[Tensor]) -> None:
        """Gradients by the weight and bias of a convolution."""
        _, weight, bias = self._convolved(i, g, x, [False, True, True])
        into[2 * i].copy_(weight.permute(0, 2, 3, 1))
        into[2 * i + 1].copy_(bias)

    def _convolved(self, i: int, g: Tensor, x: Tensor, wanted: list[bool]) -> Any:
        weight, bias = self.convolutions[i]
        stride = [self.strides[i]] * 2
        kernel, transposed, groups = weight.permute(0, 3, 1, 2), False, 1
        return torch.ops.aten.convolution_backward(
            g, x, kernel, list(bias.shape), stride, [0, 0], [1, 1], transposed, [0, 0], groups, wanted
        )
