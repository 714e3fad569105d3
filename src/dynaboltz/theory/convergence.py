"""Theorem 1 as numbers: the error of DBS value iteration after each step, and the first step that will do.

The recursion ``e_t = γ e_{t−1} + C/β_t`` bounds ``e_t ≥ ‖V_t − V*‖_∞``. Its steps are numbered from 1, as in
the paper's proof. The paper's Eq. (dbs_vi) numbers them from 0, V_{t+1} = T_{β_t} V_t, which for β_t = t^p
makes the first backup a plain mean and its bound infinite; so step t applies β_t here, t = 1, 2, …
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from dynaboltz.errors import UserError
from dynaboltz.theory.checks import (
    check_beta,
    check_beta_or_zero,
    check_count,
    check_discount,
    check_not_negative,
    check_positive,
)
from dynaboltz.theory.gaps import Constant, per_step_constant, step_gap

Schedule = Callable[[int], float]
"""``t ↦ β_t`` for the steps t = 1, 2, …"""


def initial_error_bound(discount: float, reward_bound: float) -> float:
    """The bound ``2R/(1−γ)`` on ``‖V_0 − V*‖`` for any V_0 with ``‖V_0‖ ≤ R/(1−γ)``, R = max |r|.

    Pan et al. 2020, Theorem 2 (its assumption on V_0).

    >>> round(initial_error_bound(0.9, 1.0), 9)
    20.0
    """
    return 2.0 * check_not_negative("the reward bound R", reward_bound) / (1.0 - check_discount(discount))


def error_sequence(
    initial_error: float,
    discount: float,
    betas: Iterable[float],
    m: int,
    *,
    constant: Constant = "sharp",
    spread: float | None = None,
) -> NDArray[np.float64]:
    """The bounds ``e_0, e_1, …, e_n`` on ``‖V_t − V*‖_∞`` for the β_1, …, β_n that were used.

    e_t = γ e_{t−1} + C/β_t = γ^t e_0 + C Σ_{k=1}^t γ^{t−k}/β_k. Pan et al. 2020, Theorem 1, with C = log m;
    ours with C = W((m−1)/e). With ``initial_error`` 0 it bounds how far V_t can lag behind max value
    iteration from the same V_0, since boltz_β ≤ max: T_m^t V_0 − e_t ≤ V_t ≤ T_m^t V_0.

    Args:
        initial_error: e_0 ≥ ‖V_0 − V*‖_∞.
        discount: γ in [0, 1).
        betas: β_1, …, β_n, each in (0, ∞], or in [0, ∞] when ``spread`` is given.
        m: Number of actions.
        constant: "paper" or "sharp".
        spread: A bound on ``max_a Q(s,a) − min_a Q(s,a)`` over all states and steps, if one is known.

    >>> error_sequence(1.0, 0.5, [math.inf, math.inf], m=4).tolist()
    [1.0, 0.5, 0.25]
    """
    errors = [check_not_negative("the initial error", initial_error)]
    discount = check_discount(discount)
    for t, beta in enumerate(betas, start=1):
        beta_t = check_beta_or_zero(beta, f"β at step {t}")
        errors.append(discount * errors[-1] + step_gap(beta_t, m, constant, spread))
    return np.array(errors)


def a_posteriori_bound(residual: float, discount: float) -> float:
    """The bound ``‖T_m V − V‖_∞ / (1−γ)`` on ``‖V − V*‖_∞``, whatever produced V.

    Ours in this use, from Banach's theorem for the max operator: no β, no schedule and no number of actions
    in it.

    >>> round(a_posteriori_bound(0.1, 0.9), 9)
    1.0
    """
    return check_not_negative("the residual", residual) / (1.0 - check_discount(discount))


def beta_needed(error: float, discount: float, m: int, constant: Constant = "sharp") -> float:
    """The β that a schedule must pass for the bound to fall to ``error``: ``C/((1−γ)·error)``.

    Pan et al. 2020, the fixed-β limit of Theorem 1 (Corollary, first term) solved for β.

    >>> round(beta_needed(0.01, 0.9, m=4, constant="paper"), 2)
    1386.29
    """
    return per_step_constant(m, constant) / ((1.0 - check_discount(discount)) * check_positive("ε", error))


def steps_until(
    error: float,
    initial_error: float,
    discount: float,
    schedule: Schedule,
    m: int,
    *,
    constant: Constant = "sharp",
    spread: float | None = None,
    max_steps: int = 1_000_000,
) -> int:
    """The first step t at which Theorem 1 guarantees ``‖V_t − V*‖_∞ ≤ error``, by iterating its recursion.

    Exact for any schedule, so it replaces the step count of Pan et al. 2020, Theorem 2, which is for t^p and
    false as printed (``printed_step_count``).

    Args:
        error: ε > 0.
        initial_error: e_0 ≥ ‖V_0 − V*‖_∞.
        discount: γ in [0, 1).
        schedule: t ↦ β_t, called with t = 1, 2, …
        m: Number of actions.
        constant: "paper" or "sharp".
        spread: As in ``error_sequence``.
        max_steps: Steps after which to give up.

    Raises:
        UserError: The bound is still above ``error`` after ``max_steps`` steps: β stays too small.

    >>> steps_until(0.01, initial_error=20.0, discount=0.9, schedule=lambda t: t**2, m=4)
    75
    """
    target, bound = check_positive("ε", error), check_not_negative("the initial error", initial_error)
    discount, max_steps = check_discount(discount), check_count("max_steps", max_steps)
    per_step_constant(m, constant)  # refuses a bad m or constant even when no step is needed
    if bound <= target:
        return 0
    beta = math.nan
    for t in range(1, max_steps + 1):
        beta = check_beta_or_zero(schedule(t), f"β at step {t}")
        bound = discount * bound + step_gap(beta, m, constant, spread)
        if bound <= target:
            return t
    raise UserError(
        f"the error bound is still {bound:.6g} after {max_steps} steps, with β = {beta:.6g}; "
        f"ε = {target:.6g} asks for a β above {beta_needed(target, discount, m, constant):.6g} in the end\n"
        "  use a schedule that grows (faster), a larger ε or a larger max_steps"
    )


def vanishing_step(target: float, tail: float, tail_from: int, discount: float, smallest_beta: float) -> float:
    """The t beyond which ``Σ_{k=1}^t γ^{t−k}/β_k < ε₂``: ``K + log((ε₂(1−γ) − ε₁)·inf_k β_k) / log γ``.

    Pan et al. 2020, proof of Theorem 1, corrected: their min_{k≤t} β_k depends on the very t that is being
    chosen; inf_k β_k > 0 does not, and exists because β_k > 0 tends to infinity.

    Args:
        target: ε₂ > 0, the sum to be reached.
        tail: ε₁ in (0, ε₂(1−γ)), a bound on 1/β_k for all k > K.
        tail_from: K.
        discount: γ in (0, 1).
        smallest_beta: inf_k β_k > 0.

    >>> vanishing_step(1.0, 0.25, tail_from=4, discount=0.5, smallest_beta=1.0)
    6.0
    """
    discount, start = check_discount(discount), check_count("K", tail_from)
    room = check_positive("ε₂", target) * (1.0 - discount) - check_positive("ε₁", tail)
    if room <= 0.0:
        raise UserError(f"ε₁ must be below ε₂(1−γ) = {target * (1.0 - discount):.6g}, got {tail!r}")
    least = check_beta(smallest_beta, "the smallest β")
    if discount == 0.0 or room * least >= 1.0:
        return float(start)
    return start + math.log(room * least) / math.log(discount)
