"""How far a residual reaches: bounds on ``Σ_{k≥1} (γP)^k 1`` over all policies, for the stored probabilities.

Below γ = 1 they follow from the row sums, which in stored numbers are 1 only up to rounding. At γ = 1 the sum is the
expected number of steps that remain after the first, finite for every policy only if no policy can avoid the terminal
states for ever. All bounds are rounded outward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP

UNIT = 2.0**-53
"""The largest relative error of one rounded operation in float64."""
MOST_STEP_SWEEPS = 100_000
ENOUGH = 0.5
"""The b at which counting steps stops; where the steps are geometric, any b gives the exact bound."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """The reach of a residual."""

    largest: float
    """No policy has a state with a larger sum."""
    smallest: float
    """No policy has a state that is not terminal with a smaller one; 0 where there are terminal states."""
    longest_row: int
    """Transitions in the longest row."""
    largest_row_sum: float
    """An upper bound on γ times a row's sum."""
    smallest_row_sum: float
    """A lower bound on γ times a row's sum."""

    @property
    def steps(self) -> float:
        """``Σ_{k≥0}``: the factor from a residual to an error, 1/(1 − γ) if the rows sum to 1."""
        return up(1.0 + self.largest)


def up(x: float) -> float:
    """The next larger number."""
    return math.nextafter(x, math.inf)


def horizon_of(mdp: MDP, model: Any, discount: float, sums: tuple[float, float, int]) -> Horizon:
    """The bounds for a discount in [0, 1]; a ``UserError`` where there are none.

    ``sums`` are the smallest and the largest computed sum of a row, and the length of the longest.
    """
    low, high, longest = sums
    slack = Fraction(longest) * Fraction(1, 2**53)  # a sum of n terms is off by less than n·2⁻⁵³ of itself
    least, most = Fraction(low) * (1 - slack), Fraction(high) * (1 + 2 * slack)
    gamma = Fraction(discount)
    if discount == 1.0:
        largest, smallest = _undiscounted(mdp, model, longest), 0.0
    elif gamma * most >= 1:
        raise UserError(
            f"a row of probabilities sums to {high!r}, and with the discount {discount!r} that gives no bound\n"
            "  use float64 probabilities (mdp.with_precision) that sum to 1, or a smaller discount"
        )
    else:
        largest = up(float(gamma * most / (1 - gamma * most)))
        smallest = math.nextafter(float(gamma * least / (1 - gamma * least)), 0.0)
    has_end = bool(mdp.terminal.any())
    lightest = math.nextafter(float(gamma * least), 0.0)
    return Horizon(largest, 0.0 if has_end else smallest, int(longest), up(float(gamma * most)), lightest)


def _undiscounted(mdp: MDP, model: Any, longest: int) -> float:
    """A bound on the expected steps after the first, under any policy, at γ = 1."""
    stays = endless_states(mdp, model)
    if stays.any():
        state = int(stays.argmax())
        raise UserError(
            f"discount 1 needs every policy to reach a terminal state, but from {mdp.state_name(state)} "
            f"a policy can go on for ever ({int(stays.sum())} of {mdp.n_states} states)\n"
            "  use a discount below 1"
        )
    return _most_steps(mdp, model, longest) - 1.0


def endless_states(mdp: MDP, model: Any) -> Any:
    """The states from which some policy never reaches a terminal state, as a mask."""
    from dynaboltz.planning import kernels

    rows = np.repeat(np.arange(mdp.n_rows, dtype=mdp.row_ptr.dtype), np.diff(mdp.row_ptr))
    order = np.argsort(mdp.next_state, kind="stable")
    into = np.zeros(mdp.n_states + 1, np.int64)
    np.cumsum(np.bincount(mdp.next_state, minlength=mdp.n_states), out=into[1:])
    return kernels.can_stay_for_ever(model, mdp.row_states(), into, rows[order])


def _most_steps(mdp: MDP, model: Any, longest: int) -> float:
    """An upper bound on the expected number of steps from any state under any policy.

    If 1 + max_a Σ p ξ(s') ≤ ξ(s) + b in every state with b < 1, then ξ/(1 − b) bounds the steps: it satisfies the
    inequality with b = 0. Value iteration from ξ = 0 lowers b to any level.
    """
    from dynaboltz.planning import kernels

    counting = model._replace(reward=np.ones(mdp.n_rows))
    steps, backup = np.zeros(mdp.n_states), np.zeros(mdp.n_states)
    choice = np.zeros(mdp.n_states, np.int32)
    for _ in range(MOST_STEP_SWEEPS):
        _, high, size = kernels.improve(counting, 0, mdp.n_states, 1.0, steps, backup, choice)
        excess = high + 4 * (longest + 4) * UNIT * (1.0 + size)
        if excess <= ENOUGH:
            return up(float(steps.max()) / (1.0 - excess)) * (1 + 4 * UNIT)
        steps, backup = backup, steps
    raise UserError(
        f"discount 1: a policy exists that takes more than {steps.max():.3g} steps on average to end; "
        "no bound was found, use a discount below 1"
    )
