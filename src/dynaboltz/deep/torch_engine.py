"""The engine that any network runs on: torch with autograd, on any device.

Convolutions keep their channels last, bfloat16 is cast to where it is used, and the optimiser is ours. For the networks
we know, the layers are applied to views of the flat weights, without modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dynaboltz.deep.architecture import Architecture, Layout, architecture_of
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.custom import Custom
from dynaboltz.deep.device import DeviceParameters
from dynaboltz.deep.engine import Engine
from dynaboltz.deep.parameters import HostParameters, Parameters
from dynaboltz.deep.streams import stream
from dynaboltz.envs.spec import Spec

Network = Callable[..., Tensor]
Pairs = list[tuple[Tensor, Tensor]]

FEW = 16
"""Below this many inputs the weights are not rounded to bfloat16, which would cost more than it saves."""


class TorchEngine(Engine):
    """Networks as torch functions over the flat arrays of ``parameters``."""

    def __init__(self, config: AgentConfig, spec: Spec, *, seed: int, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self.threads = config.threads
        torch.set_num_threads(self.threads)
        custom = Custom(config, spec, seed) if ":" in config.network else None
        architecture = None if custom else architecture_of(config, spec)
        layout: Layout = custom.layout if custom else architecture.layout()  # type: ignore[union-attr]
        kind = HostParameters if self.device.type == "cpu" else DeviceParameters
        self.parameters: Parameters = (
            kind(config, layout) if kind is HostParameters else DeviceParameters(config, layout, self.device)
        )
        first = custom.first if custom else layout.draw(config.initialisation, stream(seed, "weights"))
        self.parameters.load(first)

        dtype = getattr(torch, config.dtype)
        rounds = torch.bfloat16 if config.autocast == "bfloat16" else dtype

        def network(flat: Any, low: torch.dtype, *, learns: bool = False) -> tuple[Network, list[Tensor]]:
            tensor = torch.from_numpy(flat) if isinstance(flat, np.ndarray) else flat
            views = layout.views(tensor)
            leaves = [view.detach().requires_grad_(learns) for view in views.values()]
            if custom:
                return custom.network(leaves, self.device)
            assert architecture is not None
            return Layers(architecture, spec, leaves, dtype, low), leaves

        p = self.parameters
        names = ("online", "target", "acting")
        self._many = {name: network(getattr(p, name), rounds)[0] for name in names}
        self._few = {name: network(getattr(p, name), dtype)[0] for name in names} if not custom else self._many
        self._learner, self._leaves = network(p.online, rounds, learns=True)
        gradients = torch.from_numpy(p.gradients) if isinstance(p.gradients, np.ndarray) else p.gradients
        self._gradient_rows = gradients
        self._gradients = [list(layout.views(row).values()) for row in gradients]
        self._cotangents = torch.zeros((config.batch_size, spec.n_actions), dtype=dtype)
        self._rows = np.arange(config.batch_size)
        self._compacts = custom is not None or bool(architecture and architecture.convolutions)
        self._inputs: Tensor | None = None
        self._q: Tensor | None = None

    def values(self, inputs: np.ndarray, weights: str = "online") -> np.ndarray:
        """Action values without gradients."""
        self._set_threads()
        network = (self._few if len(inputs) < FEW else self._many)[weights]
        held = weights == "target" and self.parameters.has_target
        return self._host(network(self._put(inputs), self.parameters.version if held else None))

    def forward(self, inputs: np.ndarray) -> np.ndarray:
        """Action values, whose graph is kept for one call of :meth:`gradients`."""
        self._set_threads()
        self._inputs = self._put(inputs)
        self._q = self._learner(self._inputs)
        return self._host(self._q.detach())

    def gradients(self, actions: np.ndarray, cotangents: np.ndarray, rows: tuple[int, ...]) -> None:
        """One pass backward for each row; for a row that is mostly 0, forward and backward of the others alone."""
        assert self._q is not None
        self._set_threads()
        some = [np.flatnonzero(row) for row in cotangents]
        whole = [not (self._compacts and 2 * len(live) <= len(actions)) for live in some]
        for i, row in enumerate(rows):
            if whole[i]:
                self._backward(self._q, self._rows, actions, cotangents[i], row, keep=any(whole[i + 1 :]))
        for i, row in enumerate(rows):
            if not whole[i]:
                assert self._inputs is not None
                live = some[i]
                if len(live):
                    q = self._learner(self._inputs[torch.from_numpy(live).to(self.device)])
                    self._backward(q, self._rows[: len(live)], actions[live], cotangents[i, live], row, keep=False)
                else:
                    self._gradient_rows[row].zero_()
        self._q = self._inputs = None

    def _backward(
        self, q: Tensor, rows: np.ndarray, actions: np.ndarray, cotangents: np.ndarray, row: int, *, keep: bool
    ) -> None:
        into = self._cotangents[: len(q)].zero_()
        into.numpy()[rows, actions] = cotangents
        found = torch.autograd.grad(q, self._leaves, into.to(self.device), retain_graph=keep)
        torch._foreach_copy_(self._gradients[row], found)

    def _put(self, inputs: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(inputs)
        return tensor if self.device.type == "cpu" else tensor.to(self.device)

    def _host(self, values: Tensor) -> np.ndarray:
        array: np.ndarray = values.numpy() if self.device.type == "cpu" else values.cpu().numpy()
        return array

    def _set_threads(self) -> None:
        if torch.get_num_threads() != self.threads:  # the setting is the process's; another agent may have changed it
            torch.set_num_threads(self.threads)


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
        if version is None or version != self._version:
            self._ready, self._version = self._prepared(), version
        convolutions, dense = self._ready
        x = self._pictures(inputs) if convolutions else self._flat(inputs)
        for (kernel, bias), stride in zip(convolutions, self.strides, strict=True):
            x = torch.relu_(functional.conv2d(x, kernel, bias, stride))
        if convolutions:
            x = x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)
        for weight, bias in dense[:-1]:
            x = torch.relu_(functional.linear(x, weight, bias))
        return functional.linear(x if self.low is self.dtype else x.to(self.dtype), *dense[-1])

    def _prepared(self) -> tuple[Pairs, Pairs]:
        """Weights as they are multiplied: rounded, and the first scaled, as conv(x/255) is conv(x) with weights/255."""
        if self.low is self.dtype and (self.scale == 1.0 or not self.convolutions):
            return self.convolutions, self.dense
        convolutions = list(self.convolutions)
        if convolutions and self.scale != 1.0:
            convolutions[0] = convolutions[0][0] * self.scale, convolutions[0][1]
        if self.low is self.dtype:
            return convolutions, self.dense
        rounded = [
            [(weight.to(self.low), bias.to(self.low)) for weight, bias in part]
            for part in (convolutions, self.dense[:-1])
        ]
        return rounded[0], [*rounded[1], self.dense[-1]]

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
