"""A network of the user's own: ``package.module:factory``, called as ``factory(spec, n_actions)``."""

from __future__ import annotations

import copy
import importlib
import zlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dynaboltz.deep.architecture import Layout
from dynaboltz.deep.config import AgentConfig
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError


class Custom:
    """A module, taken apart into named weights, and put together again around any others.

    It is called with floats of shape ``(n, *shape)``, or ``(n, stack, *shape)`` where frames are stacked: uint8 divided
    by 255, bool as 0 or 1, Discrete observations one-hot; and gives ``(n, n_actions)``. It runs in evaluation mode.
    """

    def __init__(self, config: AgentConfig, spec: Spec, seed: int) -> None:
        self.spec, self.name = spec, config.network
        self.dtype = getattr(torch, config.dtype)
        self.low = config.autocast == "bfloat16"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(zlib.crc32(f"{seed} weights".encode()))
            self.module = self._make(_load(config.network))
        named = dict(self.module.named_parameters())
        if not named:
            raise UserError(f"network: {self.name} made a module without weights: {self.module!r}")
        self.layout = Layout.of({name: (tuple(weight.shape), 0) for name, weight in named.items()})
        self.first = {name: weight.detach().double().numpy() for name, weight in named.items()}
        self._try()

    def network(self, weights: list[Tensor], device: torch.device) -> tuple[Callable[..., Tensor], list[Tensor]]:
        """The module with these tensors, whose memory it shares, for weights; and the leaves of its graphs."""
        module = copy.deepcopy(self.module).to(device)
        owners = dict(module.named_modules())
        leaves = [nn.Parameter(weight.detach(), requires_grad=weight.requires_grad) for weight in weights]
        for name, leaf in zip(dict(module.named_parameters()), leaves, strict=True):
            path, _, attribute = name.rpartition(".")
            setattr(owners[path], attribute, leaf)

        def forward(inputs: Tensor, _version: int | None = None) -> Tensor:
            with torch.autocast(inputs.device.type, torch.bfloat16, enabled=self.low):
                values: Tensor = module(self._prepare(inputs))
            return values.to(self.dtype)

        return forward, [*leaves]

    def _make(self, factory: Any) -> nn.Module:
        try:
            module = factory(self.spec, self.spec.n_actions)
        except Exception as fault:
            raise UserError(
                f"network: {self.name}(spec, {self.spec.n_actions}) raised {type(fault).__name__}: {fault}"
            ) from fault
        if not isinstance(module, nn.Module):
            raise UserError(f"network: {self.name} must return a torch.nn.Module, got {type(module).__name__}")
        return module.to(self.dtype).eval()

    def _prepare(self, inputs: Tensor) -> Tensor:
        spec = self.spec
        if spec.n_values is not None:
            x = functional.one_hot(inputs, spec.n_values).to(self.dtype)
        else:
            x = inputs.to(self.dtype)
            x = x / 255 if spec.dtype == "uint8" else x
        return x[:, 0] if spec.stack == 1 else x

    def _try(self) -> None:
        """Refuse a module that does not give a row of action values for each input."""
        inputs = torch.zeros((3, self.spec.stack, *self.spec.shape), dtype=getattr(torch, self.spec.dtype))
        x = self._prepare(inputs)
        weights = {weight.data_ptr() for weight in self.module.parameters()}
        kept: list[int] = []

        def keep(tensor: Tensor) -> Tensor:
            kept.append(0 if tensor.data_ptr() in weights else tensor.numel())
            return tensor

        try:
            with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
                values = self.module(x)
        except Exception as fault:
            raise UserError(
                f"network: {self.name} raised {type(fault).__name__} for an input of shape {tuple(x.shape)}: {fault}"
            ) from fault
        expected = (3, self.spec.n_actions)
        found = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        if found != expected:
            raise UserError(f"network: {self.name} must give {expected} for an input of {tuple(x.shape)}, got {found}")
        self.activations = sum(kept) // 3
        """Numbers that one input leaves behind for the pass backward."""


def _load(name: str) -> Callable[..., Any]:
    module, symbol = name.split(":")
    try:
        found: Any = importlib.import_module(module)
    except ImportError as fault:
        raise UserError(f"network: cannot import {module!r} of {name!r}: {fault}") from fault
    factory = getattr(found, symbol, None)
    if not callable(factory):
        raise UserError(f"network: {module!r} has no function {symbol!r}")
    return factory  # type: ignore[no-any-return]
