"""What an agent drives: an online and a target network of one architecture, and the passes over a batch.

An engine computes; it decides nothing. Targets, the meta-gradient and every clock are the learner's, the arithmetic of
the optimiser is that of :class:`~dynaboltz.deep.parameters.Parameters`, so engines differ in how they multiply and in
nothing else.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.side import Side
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError

if TYPE_CHECKING:
    from dynaboltz.deep.parameters import Parameters

ENGINES = {"torch": "torch_engine:TorchEngine", "compiled": "compiled_engine:CompiledEngine"}
"""Every engine by its name in a configuration: a class called as ``(config, spec, seed=, device=)``."""
COMPILED_NETWORKS = ("mlp", "minatar")
"""What the compiled engine knows."""


class Engine(ABC):
    """Passes over batches of inputs ``(n, stack, *shape)`` in the environment's own dtype.

    Results are NumPy arrays in the agent's dtype that stay as they are until the same method is called again with the
    same weights and the same n. ``values(…, "acting")`` may run in one thread while all else runs in another.
    ``noise`` is a draw of :class:`~dynaboltz.deep.noise.Noise` for noisy layers; without it they have mean weights.
    """

    parameters: Parameters
    """The weights, gradients and moments; the passes read and write its flat arrays."""
    side: Side = Side(shared=False)
    """What an acting thread can do for one that updates."""

    @abstractmethod
    def values(self, inputs: np.ndarray, weights: str = "online", noise: np.ndarray | None = None) -> np.ndarray:
        """Action values (n, A) under the ``online``, ``target`` or ``acting`` weights. Keeps nothing for gradients."""

    def distributions(self, inputs: np.ndarray, weights: str = "online", noise: np.ndarray | None = None) -> np.ndarray:  # noqa: ARG002
        """Probabilities (n, A, K) of the atoms, whose means are :meth:`values`, from an engine that has atoms."""
        raise UserError(f"engine: {type(self).__name__} has no atoms; write engine='torch'")

    @abstractmethod
    def forward(self, inputs: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Action values (n, A), or logits of atoms (n, A, K), of the online weights, kept for :meth:`gradients`."""

    @abstractmethod
    def gradients(self, actions: np.ndarray, cotangents: np.ndarray, rows: tuple[int, ...]) -> None:
        """``Σ_j cotangents[i, j]·∇Q(s_j, a_j)`` of the last :meth:`forward` into ``parameters.gradients[rows[i]]``.

        Args:
            actions: (n,) int64.
            cotangents: (k, n), or of the chosen action's logits (k, n, K), in the agent's dtype; an entry is often 0.
            rows: k rows of ``parameters.gradients`` to overwrite.
        """

    def close(self) -> None:  # noqa: B027
        """Give back threads and memory; a second call does nothing."""


def engine_name(config: AgentConfig, device: str) -> str:
    """The engine that ``config.engine`` stands for."""
    if config.engine != "auto":
        return config.engine
    ours = not config.head and config.network in COMPILED_NETWORKS and config.autocast == "off" and device == "cpu"
    return "compiled" if ours and "compiled" in ENGINES else "torch"


def make_engine(config: AgentConfig, spec: Spec, *, seed: int, device: str = "cpu") -> Engine:
    """The engine of a configuration, with its first weights drawn from the seed."""
    name = engine_name(config, device)
    if name not in ENGINES:
        raise UserError(f"engine: {name} is not built in, known: {', '.join(ENGINES)}")
    if name == "compiled" and device != "cpu":
        raise UserError(f"engine: compiled runs on the cpu alone, got device {device!r}; write engine='torch'")
    module, symbol = ENGINES[name].split(":")
    engine: Engine = getattr(importlib.import_module(f"dynaboltz.deep.{module}"), symbol)(
        config, spec, seed=seed, device=device
    )
    return engine
