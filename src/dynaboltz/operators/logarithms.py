"""Logarithms of exponential sums: log_sum_exp, mellowmax and soft mellowmax.

The notation is that of ``averages.py``. Mellowmax and its soft form are one quantity, the log-mean of e^{βd} under base
weights; what it takes to keep that exact as β → 0 is in :class:`~dynaboltz.operators.tilted.TiltedLogMean`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

from dynaboltz.operators.arrays import Values
from dynaboltz.operators.gaps import log_over_beta, none, one, sharp
from dynaboltz.operators.operator import Moments, Operator, Traits, check_parameter
from dynaboltz.operators.rows import Rows
from dynaboltz.operators.tilted import finish_tilted, tilted_log_mean


@final
class LogSumExp(Operator):
    """``(1/β) log Σ_a e^{β q_a}``: soft Q-learning's summary (Pan et al. 2020, Eq. 5; Haarnoja et al. 2017).

    A non-expansion, above the maximum by up to ``log(m)/β``, so infinite at β = 0. Exceeds boltzmann by
    H(p)/β (Proposition 1).

    >>> round(log_sum_exp([0.0, 0.0], 2.0).item(), 6)
    0.346574
    """

    name: ClassVar[str] = "log_sum_exp"
    uses: ClassVar[str] = "tilt"

    @property
    def traits(self) -> Traits:
        return Traits(
            takes_beta=True, bounded_by_max=False, non_expansion=True, finite_at_zero=False,
            gap=none, gap_is_attained=True, overshoot=log_over_beta, lipschitz=one,
        )  # fmt: skip

    def _value(self, rows: Rows) -> Values:
        return rows.top + rows.xp.log(rows.sum(rows.exp(rows.beta))) / rows.beta

    def _weights(self, rows: Rows) -> Values:
        return rows.softmax(rows.beta)

    _gradient = _weights

    def _beta_derivative(self, rows: Rows) -> Values:
        """``(boltz − L)/β = −H(p)/β²``."""
        e = rows.exp(rows.beta)
        mass = rows.sum(e)
        return (rows.sum(e * rows.below) / mass - rows.xp.log(mass) / rows.beta) / rows.beta

    @staticmethod
    def finish(parameters: Any, row: Moments, beta: float) -> float:  # noqa: ARG004
        return row.top + math.log(row.mass) / beta


@final
class Mellowmax(Operator):
    """``(1/β) log( (1/m) Σ_a e^{β q_a} )`` (Asadi & Littman 2017, where β is written ω).

    A non-expansion for every β, between the mean and boltzmann, within ``log(m)/β`` of the maximum. With a uniform
    prior it is G-learning's backup (Fox et al. 2016).

    >>> round(mellowmax([0.0, 1.0], 1.0).item(), 6)
    0.620115
    """

    name: ClassVar[str] = "mellowmax"
    uses: ClassVar[str] = "all"

    @property
    def traits(self) -> Traits:
        return Traits(
            takes_beta=True, bounded_by_max=True, non_expansion=True,
            gap=log_over_beta, gap_is_attained=True, overshoot=none, lipschitz=one,
        )  # fmt: skip

    def _value(self, rows: Rows) -> Values:
        return rows.top + tilted_log_mean(rows, rows.uniform()).value

    def _weights(self, rows: Rows) -> Values:
        return rows.softmax(rows.beta)

    _gradient = _weights

    def _beta_derivative(self, rows: Rows) -> Values:
        """``(boltz − mm)/β``, which is Var/2 at β = 0."""
        return tilted_log_mean(rows, rows.uniform()).slope(rows.softmax(rows.beta))

    @staticmethod
    def finish(parameters: Any, row: Moments, beta: float) -> float:  # noqa: ARG004
        return row.top + finish_tilted(row.base, row.below, row.mass, row.relative, beta)


@final
@dataclass(frozen=True, repr=False)
class SoftMellowmax(Operator):
    """``(1/β) log Σ_a softmax(αq)_a e^{β q_a}`` (Gan, Zhang & Tan 2021), mellowmax that prefers good actions.

    α = 0 is mellowmax. Between boltzmann at β = α and the maximum, hence within both gaps; not proven to be a
    non-expansion.

    >>> round(soft_mellowmax(alpha=1.0)([0.0, 1.0], 1.0).item(), 6)
    0.813666
    """

    alpha: float
    """Inverse temperature of the base weights, at least 0."""

    name: ClassVar[str] = "soft_mellowmax"
    uses: ClassVar[str] = "all"

    def __post_init__(self) -> None:
        check_parameter(self, "alpha", self.alpha, math.inf)

    @property
    def traits(self) -> Traits:
        return Traits(
            takes_beta=True, bounded_by_max=True, non_expansion=False,
            gap=lambda beta, m: min(sharp(self.alpha, m), log_over_beta(beta, m)), gap_is_attained=False,
            overshoot=none, lipschitz=lambda m: 1.0 if m == 1 else math.inf,
        )  # fmt: skip

    def _value(self, rows: Rows) -> Values:
        return rows.top + tilted_log_mean(rows, rows.softmax(self.alpha)).value

    def _weights(self, rows: Rows) -> Values:
        return rows.softmax(self.alpha + rows.beta)

    def _gradient(self, rows: Rows) -> Values:
        """``r + α (r − p)/β`` with p = softmax(αq), r = softmax((α + β)q); at β = 0 boltzmann's gradient at α."""
        base = rows.softmax(self.alpha)
        return self._weights(rows) + self.alpha * tilted_log_mean(rows, base).shift()

    def _beta_derivative(self, rows: Rows) -> Values:
        return tilted_log_mean(rows, rows.softmax(self.alpha)).slope(self._weights(rows))

    @staticmethod
    def finish(parameters: Any, row: Moments, beta: float) -> float:  # noqa: ARG004
        return row.top + finish_tilted(row.base, row.below, row.mass, row.relative, beta)


log_sum_exp, mellowmax, soft_mellowmax = LogSumExp(), Mellowmax(), SoftMellowmax
