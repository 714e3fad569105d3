"""What a summary's sweeps are heading for, and what is proven of how far they have come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynaboltz.errors import UserError
from dynaboltz.operators import hard_max
from dynaboltz.planning.certificate import backup_rounding
from dynaboltz.planning.horizon import UNIT
from dynaboltz.scalars import as_float
from dynaboltz.summaries import Dynamic, Summary

if TYPE_CHECKING:
    from dynaboltz.planning.problem import Problem

LARGEST_BETA = 1.7e308
"""Stands for β = ∞ in compiled code, where 0·∞ would be NaN."""


def is_optimal(summary: Summary) -> bool:
    """Whether every sweep is a max backup."""
    return summary.operator == hard_max


def beta_at(summary: Summary, t: int) -> float:
    """β_t as the compiled code takes it; 0 for an operator that has none."""
    beta = summary.beta(t)
    if beta is None:
        return 0.0
    value = as_float(beta)
    if value is None or not value >= 0.0 or (value == 0.0 and not summary.operator.traits.finite_at_zero):
        allowed = "at least 0" if summary.operator.traits.finite_at_zero else "above 0"
        raise UserError(f"{summary}: β must be {allowed}, got {beta!r} at sweep {t}")
    return min(value, LARGEST_BETA)


@dataclass(frozen=True, slots=True)
class Target:
    """The constants of one summary on one problem."""

    limit: float
    """The β that the sweeps end with."""
    contraction: float
    """γ·L(m): the Lipschitz constant of the summary's backup."""
    reach: float
    """The factor from a step to the distance to the fixed point; ∞ where none is proven."""
    optimum: bool
    """Whether V* is what the sweeps are stopped for, rather than the summary's own fixed point."""
    rounding: float
    """The operator's own rounding error, as a share of the largest action value and overshoot."""

    def fixed_point_bound(self, step: float, rounding: float) -> float:
        """The distance of V_t = T_β V_{t−1} to the fixed point, ``(κ‖V_t − V_{t−1}‖ + rounding)/(1 − κ)``."""
        if math.isinf(self.reach):
            return math.inf
        return (self.reach * step + rounding * (1.0 + self.reach)) * (1 + 8 * UNIT)


def target_of(problem: Problem, summary: Summary) -> Target:
    """The target of a summary's sweeps.

    V* where β grows without bound or the operator is the maximum, and where no fixed point of the summary's own is
    proven to exist. A non-expansion has one because |op(x) − op(y)| ≤ max |x − y| carries an error no further than the
    worst policy does; boltzmann because of L(m), if γL(m) < 1.
    """
    traits, m = summary.operator.traits, problem.most_actions
    limit = 0.0
    if traits.takes_beta:
        limit = summary.schedule.limit if isinstance(summary, Dynamic) else float(summary.sharpness or 0.0)
    lipschitz = traits.lipschitz(m)
    horizon = problem.horizon
    factor = horizon.largest_row_sum * lipschitz if lipschitz > 1.0 else horizon.largest_row_sum
    reach = horizon.largest
    if lipschitz > 1.0:
        reach = factor / (1.0 - factor) * (1 + 8 * UNIT) if factor < 1.0 - 1e-9 else math.inf
    optimum = is_optimal(summary) or math.isinf(limit) or math.isinf(reach)
    return Target(limit, factor, reach, optimum, 8.0 * (m + 8) * UNIT)


def own_rounding(problem: Problem, summary: Summary, target: Target, beta: float, magnitude: float) -> float:
    """How far a computed ``T_β V`` can be from the true one: action values, then the operator's stated error."""
    traits, m = summary.operator.traits, problem.most_actions
    lipschitz = traits.lipschitz(m)
    size = problem.reward_bound + problem.horizon.largest_row_sum * magnitude
    inner = backup_rounding(problem.horizon, problem.reward_bound, magnitude)
    return lipschitz * inner + target.rounding * (size + inner + traits.overshoot(beta, m))


def step_error(problem: Problem, summary: Summary, beta: float, spread: float) -> float:
    """How far one backup of the summary can be from the maximum: Theorem 1's term, finite also at β = 0."""
    traits, m = summary.operator.traits, problem.most_actions
    gap = traits.gap(beta, m)
    if traits.bounded_by_max:
        gap = min(gap, spread)  # these operators lie between the least and the largest action value
    return max(gap, traits.overshoot(beta, m))


def describe(summary: Summary, target: Target, discount: float) -> str:
    """Why a summary without a proven fixed point is held against V*."""
    return (
        f"{summary} is not proven to have a fixed point at discount {discount:g} (γL = {target.contraction:.4g} "
        "is not below 1), so the error is the distance to V*"
    )


def spread_of(problem: Problem, size: Any) -> float:
    """A bound on max_a Q − min_a Q of every sweep, where ‖V_0‖ ≤ size."""
    values = max(float(size), problem.reward_bound * problem.horizon.steps)
    return 2.0 * (problem.reward_bound + problem.horizon.largest_row_sum * values)
