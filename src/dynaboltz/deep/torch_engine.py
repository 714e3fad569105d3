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

from dynaboltz.deep.architecture import Layout, architecture_of
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.custom import Custom
from dynaboltz.deep.device import DeviceParameters
from dynaboltz.deep.engine import Engine
from dynaboltz.deep.heads import Heads
from dynaboltz.deep.layers import Layers
from dynaboltz.deep.parameters import HostParameters, Parameters
from dynaboltz.deep.streams import stream
from dynaboltz.envs.spec import Spec

Network = Callable[..., Tensor]

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
        if architecture is None:
            first = custom.first  # type: ignore[union-attr]
        else:
            first = layout.draw(config.initialisation, stream(seed, "weights")) | architecture.first_noise()
        self.parameters.load(first)

        dtype = getattr(torch, config.dtype)
        rounds = torch.bfloat16 if config.autocast == "bfloat16" else dtype

        def network(flat: Any, low: torch.dtype, *, learns: bool = False) -> tuple[Network, list[Tensor], float]:
            tensor = torch.from_numpy(flat) if isinstance(flat, np.ndarray) else flat
            views = layout.views(tensor)
            if custom:
                leaves = [view.detach().requires_grad_(learns) for view in views.values()]
                return *custom.network(leaves, self.device), 1.0
            assert architecture is not None
            layers = (Heads if config.head else Layers)(architecture, spec, views, dtype, low, learns=learns)
            return layers, layers.leaves, layers.first_scale

        p = self.parameters
        names = ("online", "target", "acting")
        self._many = {name: network(getattr(p, name), rounds)[0] for name in names}
        self._few = {name: network(getattr(p, name), dtype)[0] for name in names} if not custom else self._many
        self._learner, self._leaves, self._first_scale = network(p.online, rounds, learns=True)
        gradients = torch.from_numpy(p.gradients) if isinstance(p.gradients, np.ndarray) else p.gradients
        self._gradient_rows = gradients
        self._gradients = [list(layout.views(row).values()) for row in gradients]
        atoms = (config.atoms,) if config.atoms > 1 else ()
        self._cotangents = torch.zeros((config.batch_size, spec.n_actions, *atoms), dtype=dtype)
        self._support = (
            torch.linspace(*config.value_range, config.atoms, dtype=torch.float64).to(self.device, dtype)
            if atoms
            else None
        )
        self._rows = np.arange(config.batch_size)
        self._compacts = custom is not None or bool(architecture and architecture.convolutions)
        self._inputs: Tensor | None = None
        self._noise: tuple[Any, ...] = ()
        self._forwards = 0
        self._q: Tensor | None = None

    def values(self, inputs: np.ndarray, weights: str = "online", noise: np.ndarray | None = None) -> np.ndarray:
        """Action values without gradients."""
        found = self._pass(inputs, weights, noise)
        return self._host(found if self._support is None else found.softmax(-1) @ self._support)

    def distributions(self, inputs: np.ndarray, weights: str = "online", noise: np.ndarray | None = None) -> np.ndarray:
        """Probabilities of the atoms without gradients."""
        return self._host(self._pass(inputs, weights, noise).softmax(-1))

    def forward(self, inputs: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Action values or logits, whose graph is kept for one call of :meth:`gradients`."""
        self._set_threads()
        self._inputs = self._put(inputs)
        self._noise = () if noise is None else (self._put(noise),)
        self._forwards += 1
        self._q = self._learner(self._inputs, self._forwards, *self._noise)
        return self._host(self._q.detach())

    def _pass(self, inputs: np.ndarray, weights: str, noise: np.ndarray | None) -> Tensor:
        self._set_threads()
        network = (self._few if len(inputs) < FEW else self._many)[weights]
        held = weights == "target" and self.parameters.has_target
        version = self.parameters.version if held else None
        if noise is None:
            return network(self._put(inputs), version)
        return network(self._put(inputs), version, self._put(noise))

    def gradients(self, actions: np.ndarray, cotangents: np.ndarray, rows: tuple[int, ...]) -> None:
        """One pass backward for each row; for a row that is mostly 0, forward and backward of the others alone."""
        assert self._q is not None
        self._set_threads()
        some = [np.flatnonzero(row if row.ndim == 1 else row.any(axis=1)) for row in cotangents]
        whole = [not (self._compacts and 2 * len(live) <= len(actions)) for live in some]
        for i, row in enumerate(rows):
            if whole[i]:
                self._backward(self._q, self._rows, actions, cotangents[i], row, keep=any(whole[i + 1 :]))
        for i, row in enumerate(rows):
            if not whole[i]:
                assert self._inputs is not None
                live = some[i]
                if len(live):
                    q = self._learner(
                        self._inputs[torch.from_numpy(live).to(self.device)], self._forwards, *self._noise
                    )
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
        if self._first_scale != 1.0:
            self._gradients[row][0] *= self._first_scale

    def _put(self, inputs: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(inputs)
        return tensor if self.device.type == "cpu" else tensor.to(self.device)

    def _host(self, values: Tensor) -> np.ndarray:
        array: np.ndarray = values.numpy() if self.device.type == "cpu" else values.cpu().numpy()
        return array

    def _set_threads(self) -> None:
        if torch.get_num_threads() != self.threads:  # the setting is the process's; another agent may have changed it
            torch.set_num_threads(self.threads)
