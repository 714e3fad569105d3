"""How far one Boltzmann backup stays below the maximum: Proposition 1, its sharp form, and what β costs.

Notation: q is a row of m action values, L_β(q) = (1/β) log Σ e^{β q_a}, p = softmax(β q), H the entropy in
nats, W the principal branch of Lambert's function. β = ∞ is the maximum, where every gap is 0.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.operators import boltzmann
from dynaboltz.operators.constants import check_actions, gap_constant, lipschitz_constant
from dynaboltz.theory.checks import (
    check_beta,
    check_beta_or_zero,
    check_not_negative,
    check_positive,
    check_rows,
)

Constant = Literal["paper", "sharp"]
"""Which constant C bounds max − boltz_β by C/β: the paper's log m, or the attained W((m−1)/e)."""


def per_step_constant(m: int, constant: Constant = "sharp") -> float:
    """The C in ``max q − boltz_β(q) ≤ C/β``: log m ("paper") or W((m−1)/e) ("sharp").

    Pan et al. 2020, Ineq. (boltz_lse_1) for log m; ours for W((m−1)/e), see ``sharp_gap``.

    >>> round(per_step_constant(4, "paper") / per_step_constant(4, "sharp"), 2)
    2.3
    """
    if constant == "sharp":
        return gap_constant(check_actions(m))
    if constant == "paper":
        return math.log(check_actions(m))
    raise UnknownNameError("constant", str(constant), ("paper", "sharp"))


def entropy_gap(q: ArrayLike, beta: float) -> NDArray[np.float64]:
    """The distance ``L_β(q) − boltz_β(q) = H(p)/β`` of each row.

    Pan et al. 2020, Proposition 1 (whose "entropy" at the end of the proof is the entropy divided by β).

    Args:
        q: Action values, shape (..., m), finite.
        beta: Inverse temperature in (0, ∞], per unit of value.

    Returns:
        Shape (...): a 0-d array for a single row.

    >>> float(entropy_gap([2.0, 2.0], beta=4.0)) == math.log(2) / 4
    True
    """
    rows, beta = check_rows("the action values", q), check_beta(beta)
    d = rows - rows.max(axis=-1, keepdims=True)
    p = boltzmann.weights(d, beta)
    top = p.max(axis=-1)
    np.put_along_axis(p, d.argmax(axis=-1)[..., None], 0.0, axis=-1)
    # L − max is −log(p_top)/β; through the sum of the others it keeps the digits that 1 − p_top would lose.
    return np.asarray(np.log1p(p.sum(axis=-1) / top) / beta - boltzmann(d, beta))


def entropy_gap_bound(beta: float, m: int) -> float:
    """The bound ``log(m)/β`` on ``L_β − boltz_β``, attained when all m values are equal.

    Pan et al. 2020, Proposition 1. Also their bound on max − boltz_β, where it is attained only for m = 1.

    >>> round(entropy_gap_bound(2.0, 4), 6)
    0.693147
    """
    return per_step_constant(m, "paper") / check_beta(beta)


def sharp_gap(beta: float, m: int) -> float:
    """The maximum over all rows of ``max q − boltz_β(q)``, which is ``W((m−1)/e)/β``.

    Ours. With y_a = β(max q − q_a) the gap is G/β, G = Σ y e^{−y} / Σ e^{−y}, and ∂G/∂y_a has the sign of 1 +
    G − y_a: all entries below the top agree, y = 1 + G, which gives G e^G = (m−1)/e for a single top entry.

    >>> round(sharp_gap(5.0, 2), 7)
    0.0556929
    """
    return per_step_constant(m, "sharp") / check_beta(beta)


def sharp_gap_row(beta: float, m: int) -> NDArray[np.float64]:
    """The row of m values at which ``sharp_gap`` is attained: a 0, and m − 1 times −(1 + W((m−1)/e))/β.

    Ours; unique up to order and a common shift.

    >>> sharp_gap_row(1.0, 3).round(4).tolist()
    [0.0, -1.4631, -1.4631]
    """
    beta = check_positive("β", beta)
    row = np.full(check_actions(m), -(1.0 + gap_constant(m)) / beta)
    row[0] = 0.0
    return row


def sharp_gap_with_spread(beta: float, m: int, spread: float) -> float:
    """The maximum of ``max q − boltz_β(q)`` over rows with ``max q − min q ≤ D``; finite at β = 0.

    (m−1) D e^{−βD} / (1 + (m−1) e^{−βD}) while βD ≤ 1 + W((m−1)/e), and W((m−1)/e)/β beyond. Ours: the gap of
    ``sharp_gap`` rises in every y_a up to the free optimum, so a shorter leash is pulled tight. At β = 0 it
    is (m−1)/m · D, which repairs Theorem 1 for schedules that contain a zero (t^p does, at t = 0).

    Args:
        beta: Inverse temperature in [0, ∞].
        m: Number of actions.
        spread: D, the largest difference between two values of one row.

    >>> sharp_gap_with_spread(0.0, 4, spread=1.0)
    0.75
    """
    beta, spread = check_beta_or_zero(beta), check_not_negative("the spread of a row", spread)
    top = 1.0 + gap_constant(check_actions(m))
    if spread == 0.0:
        return 0.0
    if beta * spread >= top:
        return sharp_gap(beta, m)
    others = (m - 1) * math.exp(-beta * spread)
    return others * spread / (1.0 + others)


def step_gap(beta: float, m: int, constant: Constant = "sharp", spread: float | None = None) -> float:
    """What one backup adds to the error bound: C/β, or the finite gap of rows of a known spread.

    Pan et al. 2020, Theorem 1, term (A). With ``spread`` D: "paper" gives min(log m/β, D), the two bounds in
    the proofs of Theorem 1 and of the Corollary; "sharp" gives ``sharp_gap_with_spread``.

    >>> step_gap(0.0, 4, "paper", spread=1.0)
    1.0
    """
    beta, c = check_beta_or_zero(beta), per_step_constant(m, constant)
    if spread is not None:
        if constant == "sharp":
            return sharp_gap_with_spread(beta, m, spread)
        spread = check_not_negative("the spread of a row", spread)
        return min(c / beta, spread) if beta > 0.0 else spread
    if beta == 0.0:
        raise UserError(
            "C/β is infinite at β = 0, got no spread of the action values\n"
            "  pass spread=… (its gap is finite), or a schedule that is above 0 from its first step"
        )
    return c / beta


def slope_constant(m: int) -> float:
    """The supremum of ``β² Var_p(q)`` over all rows of m values, ``L(m)² − 1``.

    Ours; L(m) is the sup-norm Lipschitz constant of boltz_β. The variance is d boltz_β/dβ.

    >>> round(slope_constant(2), 5)
    0.43923
    """
    return lipschitz_constant(check_actions(m)) ** 2 - 1.0


def boltzmann_slope_bound(beta: float, m: int) -> float:
    """The maximum over rows of ``d boltz_β(q)/dβ = Var_p(q)``, which is ``(L(m)² − 1)/β²``.

    Ours. The slope is never negative.

    >>> boltzmann_slope_bound(10.0, 2) == slope_constant(2) / 100
    True
    """
    return slope_constant(m) / check_beta(beta) ** 2


def boltzmann_log_slope_bound(beta: float, m: int) -> float:
    """The maximum over rows of ``d boltz_β(q)/d log β = β Var_p(q)``, which is ``(L(m)² − 1)/β``.

    Ours. For β = c·t^p it is also the slope in log c: of the order of the values' own gap, whereas the slope
    in c carries a factor t^p and is badly scaled.

    >>> boltzmann_log_slope_bound(10.0, 2) == slope_constant(2) / 10
    True
    """
    return slope_constant(m) / check_beta(beta)


def beta_for_gap(action_gap: float, fraction: float, m: int) -> float:
    """The smallest β at which ``max q − boltz_β(q) ≤ f·δ`` for every row whose action gap is at least δ.

    log((m−1)(1−f)/f)/δ if f ≤ W/(1+W), else W/(fδ), with W = W((m−1)/e). Ours: beyond βδ = 1 + W the worst
    row has all others exactly δ lower; before it the worst row is that of ``sharp_gap``.

    Args:
        action_gap: δ > 0, the lead of the best action, in units of value.
        fraction: f > 0, the gap that is tolerated, as a fraction of δ.
        m: Number of actions.

    >>> round(beta_for_gap(0.1, 0.001, m=18), 1)
    97.4
    """
    delta, f = check_positive("the action gap", action_gap), check_positive("the fraction", fraction)
    c = gap_constant(check_actions(m))
    if m == 1:
        return 0.0
    if f >= c / (1.0 + c):
        return c / (f * delta)
    return math.log((m - 1) * (1.0 - f) / f) / delta
