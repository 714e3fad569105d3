"""Weighted means of the action values: hard_max, mean, boltzmann and the ε-mixture.

In the formulas m is the number of legal actions, p = softmax(βq), and d = q − max q. ``Rows`` has done the centring
and the masks, so that an entry is the equation and nothing else; ``finish`` is the same equation for one compiled row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

from dynaboltz.operators.arrays import Values
from dynaboltz.operators.constants import lipschitz_constant
from dynaboltz.operators.gaps import none, one, sharp
from dynaboltz.operators.operator import Moments, Operator, Traits, check_parameter
from dynaboltz.operators.rows import Rows


@final
class HardMax(Operator):
    """The maximum, ``max_a q_a``: the Bellman optimality operator's summary (Pan et al. 2020, Eq. 4).

    Its weights are uniform over the maximisers.

    >>> hard_max([0.0, 3.0, 1.0]).item()
    3.0
    """

    name: ClassVar[str] = "hard_max"
    uses: ClassVar[str] = "top"

    @property
    def traits(self) -> Traits:
        return Traits(
            takes_beta=False, bounded_by_max=True, non_expansion=True,
            gap=none, gap_is_attained=True, overshoot=none, lipschitz=one,
        )  # fmt: skip

    def _value(self, rows: Rows) -> Values:
        return rows.top

    def _weights(self, rows: Rows) -> Values:
        return rows.best()

    _gradient = _weights

    def _beta_derivative(self, rows: Rows) -> Values:
        return rows.zeros()

    @staticmethod
    def finish(parameters: Any, row: Moments, beta: float) -> float:  # noqa: ARG004
        return row.top


@final
class Mean(Operator):
    """The mean of the legal actions: every operator with a β has it as its value at β = 0.

    >>> mean([0.0, 3.0, 3.0]).item()
    2.0
    """

    name: ClassVar[str] = "mean"
    uses: ClassVar[str] = "base"

    @property
    def traits(self) -> Traits:
        return Traits(
            takes_beta=False, bounded_by_max=True, non_expansion=True,
            gap=lambda _beta, m: 0.0 if m == 1 else math.inf, gap_is_attained=True, overshoot=none, lipschitz=one,
        )  # fmt: skip

    def _value(self, rows: Rows) -> Values:
        return rows.top + rows.sum(self._weights(rows) * rows.below)

    def _weights(self, rows: Rows) -> Values:
        return rows.uniform()

    _gradient = _weights

    def _beta_derivative(self, rows: Rows) -> Values:
        return rows.zeros()

    @staticmethod
    def finish(parameters: Any, row: Moments, beta: float) -> float:  # noqa: ARG004
        return row.top + row.below / row.base


@final
class Boltzmann(Operator):
    """Boltzmann softmax of the action values, ``Σ_a q_a e^{β q_a} / Σ_a e^{β q_a}`` (Pan et al. 2020, Section 2).

    Lies in ``[mean(q), max(q)]``, rises with ``beta`` at the rate of the variance under its weights, and is within
    ``W((m−1)/e)/β`` of the maximum. Not a non-expansion for fixed ``beta``: its Lipschitz constant is L(m) > 1.

    >>> round(boltzmann([0.0, 1.0], 1.0).item(), 6)
    0.731059
    """

    name: ClassVar[str] = "boltzmann"
    uses: ClassVar[str] = "tilt"

    @property
    def traits(self) -> Traits:
        return Traits(
            takes_beta=True, bounded_by_max=True, non_expansion=False,
            gap=sharp, gap_is_attained=True, overshoot=none, lipschitz=lipschitz_constant,
        )  # fmt: skip

    def _value(self, rows: Rows) -> Values:
        e = rows.exp(rows.beta)
        return rows.top + rows.sum(e * rows.below) / rows.sum(e)

    def _weights(self, rows: Rows) -> Values:
        return rows.softmax(rows.beta)

    def _gradient(self, rows: Rows) -> Values:
        """``p_i (1 + β (q_i − boltz))``: sums to 1, may be negative."""
        return _boltzmann_gradient(rows, rows.beta)

    def _beta_derivative(self, rows: Rows) -> Values:
        """``Var_p(q)``, in the two-pass form."""
        p = rows.softmax(rows.beta)
        return rows.sum(p * (rows.below - rows.sum(p * rows.below)) ** 2)

    @staticmethod
    def finish(parameters: Any, row: Moments, beta: float) -> float:  # noqa: ARG004
        return row.top + row.weighted / row.mass


def _boltzmann_gradient(rows: Rows, rate: Any) -> Values:
    p = rows.softmax(rate)
    # p·(d − b) before β: at huge β one of the two is 0, and β·0 is 0 where (β·d)·0 would be −∞·0.
    return p + p * (rows.below - rows.sum(p * rows.below)) * rate


@final
@dataclass(frozen=True, repr=False)
class EpsilonMixture(Operator):
    """``(1 − ε) max_a q_a + ε mean_a q_a``: the value of the ε-greedy policy, expected SARSA's summary.

    A non-expansion, below the maximum by ε·(1 − 1/m)·spread, for which no bound without the spread exists.

    >>> epsilon_mixture(epsilon=0.5)([0.0, 1.0]).item()
    0.75
    """

    epsilon: float
    """Share of the mean, in [0, 1]."""

    name: ClassVar[str] = "epsilon_mixture"
    uses: ClassVar[str] = "base"

    def __post_init__(self) -> None:
        check_parameter(self, "epsilon", self.epsilon, 1.0)

    @property
    def traits(self) -> Traits:
        return Traits(
            takes_beta=False, bounded_by_max=True, non_expansion=True,
            gap=lambda _beta, m: 0.0 if m == 1 or self.epsilon == 0 else math.inf, gap_is_attained=True,
            overshoot=none, lipschitz=one,
        )  # fmt: skip

    def _value(self, rows: Rows) -> Values:
        return rows.top + self.epsilon * rows.sum(rows.uniform() * rows.below)

    def _weights(self, rows: Rows) -> Values:
        return (1.0 - self.epsilon) * rows.best() + self.epsilon * rows.uniform()

    _gradient = _weights

    def _beta_derivative(self, rows: Rows) -> Values:
        return rows.zeros()

    @staticmethod
    def finish(parameters: Any, row: Moments, beta: float) -> float:  # noqa: ARG004
        value: float = row.top + parameters.epsilon * (row.below / row.base)
        return value


hard_max, mean, boltzmann, epsilon_mixture = HardMax(), Mean(), Boltzmann(), EpsilonMixture
