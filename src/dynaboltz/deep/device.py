"""The parameters of a network on an accelerator: flat torch tensors, and the rules as elementwise torch operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dynaboltz.deep.architecture import Layout
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.parameters import CHANGE, GRADIENT, Parameters


class DeviceParameters(Parameters):
    """Flat tensors on a device."""

    def __init__(self, config: AgentConfig, layout: Layout, device: torch.device) -> None:
        super().__init__(config, layout)

        def zeros(*shape: int) -> torch.Tensor:
            return torch.zeros(shape, dtype=getattr(torch, config.dtype), device=device)

        self.online = zeros(layout.size)
        self.target = zeros(layout.size) if self.has_target else self.online
        self.acting = zeros(layout.size) if self.overlaps else self.online
        self.first, self.second = zeros(layout.size), zeros(layout.size)
        self.gradients = zeros(self.rows, layout.size)
        self.trace = zeros(layout.size) if self.learns and not self.prints else None
        self.previous, self.spare = (zeros(layout.size) if self.prints else None for _ in range(2))

    def copy(self, source: Any, into: Any) -> None:
        """One copy on the device."""
        into.copy_(source)

    def host(self, flat: Any) -> np.ndarray:
        """A copy in host memory."""
        array: np.ndarray = flat.detach().cpu().numpy()
        return array

    def fill(self, flat: Any, values: np.ndarray) -> None:
        """One copy to the device."""
        flat.copy_(torch.from_numpy(values))

    def dot(self, a: Any, b: Any) -> float:
        """Σ a·b in float64."""
        return float(torch.dot(a.double(), b.double()))

    def _step(self, factor: float) -> bool:
        return self._move(factor)[2]

    def _step_and_trace(self, factor: float, share: float, decay: float) -> bool:
        change = (self.gradients[CHANGE] - self.gradients[GRADIENT] * share) * factor
        direct, through, finite = self._move(factor)
        self.trace.mul_(decay).add_(change * (direct - through * self.exact), alpha=self.rate)
        return finite

    def _move(self, factor: float) -> tuple[torch.Tensor, torch.Tensor, bool]:
        move, first, second, direct, through = self.rule.entry(
            self.gradients[GRADIENT] * factor, self.first, self.second, self.rule.constants(self.updates)
        )
        self.first.copy_(first)
        self.second.copy_(second)
        self.online.sub_(move, alpha=self.rate)
        return direct, through, bool(torch.isfinite(self.online).all())
