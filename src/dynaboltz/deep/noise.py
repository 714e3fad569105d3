"""The noise of noisy layers: factorised Gaussian, from a named stream (Fortunato et al. 2018, Section 3.1).

A dense layer of p inputs and q units, with noise ε = f(x)·f(y)ᵀ from p + q normal numbers and f(x) = sign(x)·√|x|, is

    y = (μ + σ ∘ ε) x + (μ_b + σ_b ∘ f(y))

where μ and σ are learned. A new set is drawn for each decision, and for each network in each update.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynaboltz.deep.architecture import architecture_of
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.streams import restore_stream, stream, stream_state
from dynaboltz.envs.spec import Spec


class Noise:
    """Sets of noise for one purpose, in the agent's dtype: f(x) for each input and unit, layer after layer."""

    def __init__(self, config: AgentConfig, spec: Spec, *, seed: int, purpose: str) -> None:
        self.size = architecture_of(config, spec).draws
        self.dtype = np.dtype(config.dtype)
        self._stream = stream(seed, f"noise of {purpose}")

    def draw(self) -> np.ndarray:
        """The next set."""
        normal = self._stream.standard_normal(self.size)
        return np.copysign(np.sqrt(np.abs(normal)), normal).astype(self.dtype)

    def state(self) -> dict[str, Any]:
        """Everything :meth:`restore` needs."""
        return stream_state(self._stream)

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a saved state."""
        restore_stream(self._stream, state)
