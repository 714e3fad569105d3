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
from dynaboltz.deep.backward import Differentiable, Traced, Written
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.custom import Custom
from dynaboltz.deep.device import DeviceParameters
from dynaboltz.deep.engine import Engine
from dynaboltz.deep.heads import Heads
from dynaboltz.deep.layers import Layers
from dynaboltz.deep.parameters import HostParameters, Parameters
from dynaboltz.deep.side import Side
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
        on_host = self.device.type == "cpu"
        self.side = Side(shared=config.overlap and on_host)
        self.parameters: Parameters = (
            HostParameters(config, layout, self.side) if on_host else DeviceParameters(config, layout, self.device)
        )
        if architecture is None:
            first = custom.first  # type: ignore[union-attr]
        else:
            first = layout.draw(config.initialisation, stream(seed, "weights")) | architecture.first_noise()
        self.parameters.load(first)

        dtype = getattr(torch, config.dtype)
        rounds = torch.bfloat16 if config.autocast == "bfloat16" else dtype

        def tensor(flat: Any) -> Tensor:
            return torch.from_numpy(flat) if isinstance(flat, np.ndarray) else flat

        def network(flat: Any, low: torch.dtype) -> Network:
            views = layout.views(tensor(flat))
            if custom:
                return custom.network(list(views.values()), self.device)[0]
            assert architecture is not None
            return (Heads if config.head else Layers)(architecture, spec, views, dtype, low)

        def learner(flat: Any) -> Differentiable:
            views = layout.views(tensor(flat))
            if custom:
                leaves = [view.detach().requires_grad_() for view in views.values()]
                return Traced(*custom.network(leaves, self.device))
            assert architecture is not None
            if not config.head:
                return Written(architecture, spec, views, dtype, rounds, self.side)
            heads = Heads(architecture, spec, views, dtype, rounds, learns=True)
            return Traced(heads, heads.leaves, heads.first_scale)

        p = self.parameters
        names = ("online", "target", "acting")
        self._many = {name: network(getattr(p, name), rounds) for name in names}
        self._few = {name: network(getattr(p, name), dtype) for name in names} if not custom else self._many
        self._learner = learner(p.online)
        self._gradient_rows = tensor(p.gradients)
        self._gradients = [list(layout.views(row).values()) for row in self._gradient_rows]
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

    def values(self, inputs: np.ndarray, weights: str = "online", noise: np.ndarray | None = None) -> np.ndarray:
        """Action values without gradients."""
        found = self._pass(inputs, weights, noise)
        return self._host(found if self._support is None else found.softmax(-1) @ self._support)

    def distributions(self, inputs: np.ndarray, weights: str = "online", noise: np.ndarray | None = None) -> np.ndarray:
        """Probabilities of the atoms without gradients."""
        return self._host(self._pass(inputs, weights, noise).softmax(-1))

    def forward(self, inputs: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Action values or logits, whose pass is kept for one call of :meth:`gradients`."""
        self._set_threads()
        self._inputs = self._put(inputs)
        self._noise = () if noise is None else (self._put(noise),)
        self._forwards += 1
        return self._host(self._learner.forward(self._inputs, self._forwards, *self._noise))

    def gradients(self, actions: np.ndarray, cotangents: np.ndarray, rows: tuple[int, ...]) -> None:
        """One pass backward for each row; for a row that is mostly 0, forward and backward of the others alone."""
        assert self._inputs is not None
        self._set_threads()
        some = [np.flatnonzero(row if row.ndim == 1 else row.any(axis=1)) for row in cotangents]
        whole = [not (self._compacts and 2 * len(live) <= len(actions)) for live in some]
        for i, row in enumerate(rows):
            if whole[i]:
                self._backward(self._rows, actions, cotangents[i], row, keep=any(whole[i + 1 :]))
        for i, row in enumerate(rows):
            if not whole[i]:
                live = some[i]
                if len(live):
                    inputs = self._inputs[torch.from_numpy(live).to(self.device)]
                    self._learner.forward(inputs, self._forwards, *self._noise)
                    self._backward(self._rows[: len(live)], actions[live], cotangents[i, live], row, keep=False)
                else:
                    self._gradient_rows[row].zero_()
        self._inputs = None

    def _backward(self, rows: np.ndarray, actions: np.ndarray, cotangents: np.ndarray, row: int, *, keep: bool) -> None:
        into = self._cotangents[: len(rows)].zero_()
        into.numpy()[rows, actions] = cotangents
        gradients = self._gradients[row]
        self._learner.backward(into.to(self.device), gradients, keep=keep)
        if self._learner.first_scale != 1.0:
            gradients[0] *= self._learner.first_scale

    def _pass(self, inputs: np.ndarray, weights: str, noise: np.ndarray | None) -> Tensor:
        self._set_threads()
        network = (self._few if len(inputs) < FEW else self._many)[weights]
        held = weights == "target" and self.parameters.has_target
        version = self.parameters.version if held else None
        if noise is None:
            return network(self._put(inputs), version)
        return network(self._put(inputs), version, self._put(noise))

    def _put(self, inputs: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(inputs)
        return tensor if self.device.type == "cpu" else tensor.to(self.device)

    def _host(self, values: Tensor) -> np.ndarray:
        array: np.ndarray = values.numpy() if self.device.type == "cpu" else values.cpu().numpy()
        return array

    def _set_threads(self) -> None:
        if torch.get_num_threads() != self.threads:  # the setting is the process's; another agent may have changed it
            torch.set_num_threads(self.threads)
