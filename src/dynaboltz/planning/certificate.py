"""What is proven of a value function, whatever produced it.

With d = T_m V − V, a the least and b the largest entry of d, and for any policies ``S = Σ_{k≥1} (γP)^k 1``,

    T_m V + a·S ≤ V^μ ≤ V* ≤ T_m V + b·S,   μ greedy for V   (MacQueen 1966, Porteus 1971),

where S = γ/(1−γ) if the rows of P sum to 1 and nothing ends. Here S is bounded from the side that makes the
inequality true, for the probabilities as they are stored (:mod:`~dynaboltz.planning.horizon`).

Rounding. Let n be the length of the longest row, u = 2⁻⁵³ and R = max |r|. One action value is n products, n − 1
additions, a product with γ and an addition, in any order and with or without fused multiply-adds; so its computed
value is off by at most ε = (n+2)u/(1 − (n+2)u)·(R + γσ‖V‖), σ the largest row sum (Higham 2002, Section 3.1). The
maximum adds nothing. d is off by ε and one more rounding, and so both sides widen by ε·(1 + S) and a few u of the
numbers that are added up. Underflow adds less than the smallest normal number, which is added too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.planning.horizon import UNIT, Horizon

if TYPE_CHECKING:
    from dynaboltz.planning.improver import Improver
    from dynaboltz.planning.problem import Change, Choice, Floats, Problem

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A two-sided bound on V*, and what follows from it."""

    error_bound: float
    """‖V − V*‖_∞ of the values in the solution is at most this."""
    policy_loss_bound: float
    """The greedy policy's value is nowhere further below V* than this."""
    rounding_allowance: float
    """What of the error bound is there for rounding; no iteration gets below it."""
    low: float
    """``V* ≥ backup + low`` wherever the state is not terminal, and so is the greedy policy's value."""
    high: float
    """``V* ≤ backup + high`` wherever the state is not terminal."""
    backup: Floats
    """T_m V."""
    terminal: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """Where V* = 0 is known."""
    fixed_point_bound: float = math.inf
    """The distance to the summary's own fixed point, if it is proven to have one (γL < 1); else ∞."""
    contraction: float = math.inf
    """γL, the factor by which the summary's backup is proven to contract; 1 or more proves nothing."""
    a_priori_bound: float = math.inf
    """Theorem 1's bound on ‖V_t − V*‖ from the schedule alone; ∞ if no iteration led here."""

    def __repr__(self) -> str:
        return (
            f"Certificate(error_bound={self.error_bound:.3g}, policy_loss_bound={self.policy_loss_bound:.3g}, "
            f"fixed_point_bound={self.fixed_point_bound:.3g}, a_priori_bound={self.a_priori_bound:.3g})"
        )

    @property
    def lower(self) -> Floats:
        """Below V* in every state."""
        return self._shifted(self.low, -math.inf)

    @property
    def upper(self) -> Floats:
        """Above V* in every state."""
        return self._shifted(self.high, math.inf)

    def _shifted(self, shift: float, outward: float) -> Floats:
        shifted: Floats = np.nextafter(self.backup + shift, outward)
        shifted[self.terminal] = 0.0
        return shifted


@dataclass(frozen=True, slots=True)
class Shifts:
    """The two numbers added to T_m V, and the part of each that is for rounding."""

    low: float
    high: float
    allowance: float

    @property
    def half_width(self) -> float:
        """The distance of the midpoint from either side."""
        return 0.5 * (self.high - self.low) * (1 + 2 * UNIT)


def backup_rounding(horizon: Horizon, reward_bound: float, magnitude: float) -> float:
    """ε: how far a computed action value can be off, where ‖V‖ ≤ magnitude."""
    n = (horizon.longest_row + 2) * UNIT
    return n / (1.0 - n) * (reward_bound + horizon.largest_row_sum * magnitude) * (1 + 8 * UNIT) + TINY


def shifts_of(horizon: Horizon, reward_bound: float, change: Change) -> Shifts:
    """The bounds that a max backup with this change proves."""
    error = backup_rounding(horizon, reward_bound, change.magnitude)
    biggest = max(-change.low, change.high, 0.0)
    reach = horizon.largest
    low = change.low * (reach if change.low < 0 else horizon.smallest)
    high = change.high * (reach if change.high > 0 else horizon.smallest)
    # d may have the other sign once it is corrected, where the wider reach applies: it does to the correction anyway.
    step = error + UNIT * biggest
    allowance = (error + step * reach + 4 * UNIT * (biggest * reach + change.magnitude)) * (1 + 8 * UNIT)
    return Shifts(low - allowance, high + allowance, allowance)


def certify(
    problem: Problem, values: Floats, choice: Choice, *, midpoint: bool, improver: Improver | None = None
) -> tuple[Certificate, Floats]:
    """The certificate of ``values`` or of the middle of its own two sides, and the values it is about.

    ``choice`` receives the greedy rows. ``improver`` does what ``problem.improve`` does, and knows ``choice``.
    """
    backup = np.empty_like(values)
    change = (improver or problem).improve(values, backup, choice)
    shifts = shifts_of(problem.horizon, problem.reward_bound, change)
    terminal = problem.mdp.terminal
    error = shifts.half_width if midpoint else error_of(change, shifts)
    if midpoint:
        values = backup + 0.5 * (shifts.low + shifts.high)
        values[terminal] = 0.0
    loss = 2.0 * shifts.half_width
    return Certificate(error, loss, shifts.allowance, shifts.low, shifts.high, backup, terminal), values


def error_of(change: Change, shifts: Shifts) -> float:
    """The bound on ``‖V − V*‖``, V before the backup: V* − V lies between d + low and d + high."""
    slack = 4 * UNIT * (max(-change.low, change.high) + max(abs(shifts.low), abs(shifts.high)))
    return max(change.high + shifts.high, -(change.low + shifts.low), 0.0) + slack
