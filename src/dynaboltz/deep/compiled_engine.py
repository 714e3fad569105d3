"""The engine for small networks on a CPU: every pass is one compiled call on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynaboltz.deep import compiled_passes as passes
from dynaboltz.deep.architecture import architecture_of
from dynaboltz.deep.compiled_passes import Plan
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.engine import Engine
from dynaboltz.deep.parameters import HostParameters, aligned
from dynaboltz.deep.streams import stream
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError


class Work:
    """Activations of one batch size."""

    def __init__(self, plan: Plan, n: int, n_actions: int, dtype: np.dtype[Any]) -> None:
        self.plan = plan
        self.values = aligned(plan.size, dtype)
        self.q = np.zeros((n, n_actions), dtype)


class CompiledEngine(Engine):
    """``mlp`` and ``minatar`` without any tensor library."""

    def __init__(self, config: AgentConfig, spec: Spec, *, seed: int, device: str = "cpu") -> None:
        if device != "cpu":
            raise UserError(f"engine: compiled runs on the cpu alone, got device {device!r}; write engine='torch'")
        self.spec = spec
        self.architecture = architecture_of(config, spec)
        assert len(self.architecture.convolutions) <= 1, "nothing is passed back through a convolution"
        layout = self.architecture.layout()
        self.parameters: HostParameters = HostParameters(config, layout)
        self.parameters.load(layout.draw(config.initialisation, stream(seed, "weights")))
        dtype = self.dtype = np.dtype(config.dtype)
        self.scale = dtype.type(1 / 255 if spec.dtype == "uint8" else 1.0)
        self.floors = np.array([0.0, -np.inf, 0.0], dtype)
        self._work: dict[tuple[str, int], Work] = {}
        self._last: Work | None = None
        self._slopes = self._rows = self._ones = np.zeros(0, dtype)

    def values(self, inputs: np.ndarray, weights: str = "online", noise: np.ndarray | None = None) -> np.ndarray:
        """Action values of a batch; there are no noisy layers here."""
        assert noise is None
        return self._run(inputs, weights, weights).q

    def forward(self, inputs: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Action values whose activations are kept for :meth:`gradients`."""
        assert noise is None
        self._last = self._run(inputs, "online", "forward")
        return self._last.q

    def gradients(self, actions: np.ndarray, cotangents: np.ndarray, rows: tuple[int, ...]) -> None:
        """One pass back for each row."""
        work = self._last
        assert work is not None
        plan = work.plan
        if self._ones.size != plan.lanes:
            self._slopes, self._rows = aligned(plan.size, self.dtype), aligned(plan.rows_size, self.dtype)
            self._ones = np.ones(plan.lanes, self.dtype)
        passes.backward(
            actions, cotangents, np.array(rows), plan.convolutions, plan.dense, self.parameters.online, work.values,
            self._slopes, self._rows, self.parameters.gradients, plan.lanes, self.floors, self._ones,
        )  # fmt: skip

    def _run(self, inputs: np.ndarray, weights: str, purpose: str) -> Work:
        n = len(inputs)
        work = self._work.get((purpose, n))
        if work is None:
            work = self._work[purpose, n] = Work(Plan.of(self.architecture, n), n, self.spec.n_actions, self.dtype)
        plan, flat = work.plan, getattr(self.parameters, weights)
        if self.spec.n_values is not None:
            passes.forward_one_hot(
                inputs, self.spec.n_values, plan.convolutions, plan.dense, flat, work.values, plan.lanes, self.floors,
                work.q,
            )  # fmt: skip
            return work
        passes.forward(
            self._shaped(inputs), self.scale, plan.convolutions, plan.dense, flat, work.values, plan.lanes, self.floors,
            work.q,
        )  # fmt: skip
        return work

    def _shaped(self, inputs: np.ndarray) -> np.ndarray:
        """(n, stack, cells, channels): what the order of features needs to know."""
        n, stack = inputs.shape[:2]
        if inputs.dtype == np.bool_:
            inputs = inputs.view(np.uint8)
        if not self.architecture.convolutions:
            return inputs.reshape(n, 1, -1, 1)
        if self.architecture.channels_first:
            return inputs.reshape(n, stack, inputs.shape[2], -1).transpose(0, 1, 3, 2)
        return inputs.reshape(n, stack, -1, inputs.shape[4] if inputs.ndim == 5 else 1)
