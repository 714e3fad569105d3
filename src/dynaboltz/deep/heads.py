"""Dense layers beyond the plain ones, on torch: two streams, noise, and logits of atoms in place of a value."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from dynaboltz.deep.architecture import Architecture
from dynaboltz.deep.layers import Layers
from dynaboltz.envs.spec import Spec


class Heads(Layers):
    """The forward pass of an :class:`Architecture` with any of ``duelling``, ``noise`` and ``atoms``."""

    def __init__(
        self, architecture: Architecture, spec: Spec, weights: Mapping[str, Tensor], dtype: torch.dtype,
        low: torch.dtype, *, learns: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(architecture, spec, weights, dtype, low, learns=learns)
        self.layers = architecture.dense_layers()
        self.duelling, self.noisy, self.atoms = architecture.duelling, architecture.noise > 0, architecture.atoms
        self.actions = architecture.dense[-1]
        self.places = [2 * i if self.noisy else i for i in range(len(self.layers))]
        self.splits = [size for layer in self.layers for size in (layer.inputs, layer.units)]

    def __call__(self, inputs: Tensor, version: int | None = None, noise: Tensor | None = None) -> Tensor:
        """Action values (n, A) or logits (n, A, K), under one set of noise or under mean weights."""
        x = self._features(inputs, version, [])
        sets = None if noise is None else torch.split(noise, self.splits)
        n, shared = len(x), len(self.layers) - (4 if self.duelling else 2)
        for i in range(shared):
            x = self._apply(i, x, sets)
        found = self._stream(shared, x, sets)
        if self.duelling:
            advantage = self._stream(shared + 2, x, sets).view(n, self.actions, self.atoms)
            found = found.view(n, 1, self.atoms) + advantage - advantage.mean(1, keepdim=True)
        return found.view((n, self.actions, self.atoms) if self.atoms > 1 else (n, self.actions))

    def _stream(self, i: int, x: Tensor, sets: tuple[Tensor, ...] | None) -> Tensor:
        return self._apply(i + 1, self._apply(i, x, sets), sets)

    def _apply(self, i: int, x: Tensor, sets: tuple[Tensor, ...] | None) -> Tensor:
        """One layer; ``(σ ∘ f fᵀ) x`` is ``f ∘ σ(f ∘ x)``, so that no noisy weights are ever made."""
        dense, place, is_output = self.dense, self.places[i], self.layers[i].is_output
        x = x.to(dense[place][0].dtype)
        y = functional.linear(x, *dense[place])
        if sets is not None and self.noisy:
            into, out = sets[2 * i].to(x.dtype), sets[2 * i + 1].to(x.dtype)
            y = y + out * functional.linear(x * into, *dense[place + 1])
        return y if is_output else torch.relu(y)
