"""The one target function: whatever the summary, with single or double weights, with Munchausen's term or without.

With x = Q(s′, ·; θ⁻), x° = Q(s′, ·; θ) where double and x itself where not, and w the operator's weights at x°:

    y = r + α·[τ log π(a|s)]_{l₀} + γⁿ·( op_β(x°) + Σ_a w_a (x_a − x°_a) )

which is r + γ·op_β(x) for single weights, and r + γ Σ w_a x_a (double DQN, S-DDQN) for every operator that is the mean
under its weights. The bootstrap is cut by termination and never by truncation.
"""

from __future__ import annotations

import math

import numpy as np

from dynaboltz.deep.batch import Batch
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.target_rows import STATISTICS, Loss, Weighting, backup, reference
from dynaboltz.operators import Operator, boltzmann, hard_max, log_sum_exp, mean, mellowmax
from dynaboltz.operators.averages import EpsilonMixture
from dynaboltz.operators.compiled import batch as summarise_rows
from dynaboltz.operators.compiled import parameters
from dynaboltz.operators.logarithms import SoftMellowmax

LARGEST = float(np.finfo(np.float64).max)


def mixture(operator: Operator) -> tuple[float, float, float, float]:
    """Shares of an operator's weights over the maximisers, all actions, and e^{rate·q}; and the rate at β = 0."""
    if operator == hard_max:
        return 1.0, 0.0, 0.0, 0.0
    if operator == mean:
        return 0.0, 1.0, 0.0, 0.0
    if isinstance(operator, EpsilonMixture):
        return 1.0 - operator.epsilon, operator.epsilon, 0.0, 0.0
    if isinstance(operator, SoftMellowmax):
        return 0.0, 0.0, 1.0, operator.alpha
    assert operator in (boltzmann, log_sum_exp, mellowmax), f"the weights of {operator} are missing here"
    return 0.0, 0.0, 1.0, 0.0


class Targets:
    """Errors, cotangents and statistics of one batch after another, in arrays made once."""

    def __init__(self, config: AgentConfig, n_actions: int) -> None:
        self.operator = config.parsed_summary.operator
        self.double = config.double
        self._parameters, self._mixture = parameters(self.operator), mixture(self.operator)
        bound = config.huber_bound if config.loss == "huber" else math.inf
        size = config.batch_size
        self._loss = Loss(
            bound,
            1.0 / size if config.loss_reduction == "mean" else 1.0,
            config.munchausen_lowest,
            config.munchausen,
            1.0 / size if config.c_learning == "as_printed" else 0.0,
        )
        rows = 1 if config.c_learning == "off" else 3
        self._own, self._other, self._here = (np.zeros((size, n_actions)) for _ in range(3))
        self._values, self._here_values, self._bars = np.zeros(size), np.zeros(size), np.zeros(size)
        self._weights = np.zeros(n_actions)
        self.target, self.error = np.zeros(size), np.zeros(size)
        self.cotangents = np.zeros((rows, size), config.dtype)
        """∂loss/∂Q, and where c is learned ∂²loss/∂Q∂ψ with the sign changed and ∂(meta-objective)/∂Q."""
        self.counts = np.zeros(len(STATISTICS))
        """Sums named by ``STATISTICS``."""

    def __call__(
        self, batch: Batch, q: np.ndarray, following: np.ndarray, *, beta: float | None,
        online: np.ndarray | None = None, here: np.ndarray | None = None, slope: float = 0.0, bar: float | None = None,
    ) -> None:  # fmt: skip
        """Fill ``target``, ``error``, ``cotangents`` and ``counts``.

        Args:
            batch: the transitions.
            q: (B, A) online action values of the states.
            following: (B, A) action values of the next states, of the target network.
            beta: β of the summary, None if it has none.
            online: (B, A) online action values of the next states, for double weights.
            here: (B, A) the target network's action values of the states, for Munchausen.
            slope: dβ/dψ, 0 where c is not learned or β is capped.
            bar: β under c̄, where the meta-objective is not the loss itself.
        """
        sharpness = 0.0 if beta is None else min(beta, LARGEST)
        own, other = self._own, self._own
        own[...] = following
        if self.double:
            assert online is not None
            other = self._other
            other[...] = following
            own[...] = online
        self._summarise(own, sharpness, self._values)
        if self._loss.munchausen:
            self._here[...] = here
            self._summarise(self._here, sharpness, self._here_values)
        weighting = self._weighting(sharpness)
        backup(
            batch.action, batch.reward, batch.discount, batch.importance, q, self._values, own, other, self.double,
            self._here, self._here_values, weighting, self._loss, slope, self._weights, self.target, self.error,
            self.cotangents, self.counts,
        )  # fmt: skip
        if bar is not None:
            bar = min(bar, LARGEST)
            self._summarise(own, bar, self._bars)
            reference(
                batch.discount, batch.importance, self._bars, self._values, own, other, self.double, weighting,
                self._weighting(bar), self._loss, slope, self._weights, self.error, self.cotangents,
            )  # fmt: skip

    def _weighting(self, beta: float) -> Weighting:
        greedy, uniform, soft, rate = self._mixture
        return Weighting(greedy, uniform, soft, min(rate + beta, LARGEST))

    def _summarise(self, rows: np.ndarray, beta: float, out: np.ndarray) -> None:
        summarise_rows(self._parameters, rows.reshape(-1), rows.shape[1], beta, out)
