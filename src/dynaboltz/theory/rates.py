"""Theorem 2: how fast DBS value iteration converges for β_t = t^p, as printed and as it is.

The error after t steps is at most ``γ^t e_0 + C·S_t`` with ``S_t = Σ_{k=1}^t γ^{t−k}/k^p``. The paper
replaces S_t by ``1/((1−γ)(t+1)^p)``, an equality that follows from a Θ and holds only in the limit: the
printed step count is false, while the O() statement of the theorem stands, with the constants given here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dynaboltz.errors import UserError
from dynaboltz.operators.constants import check_actions
from dynaboltz.theory.checks import check_count, check_discount, check_positive
from dynaboltz.theory.gaps import Constant, per_step_constant

_CHUNK = 4096
"""Terms of the polylogarithm's series that are summed at once."""


def step_sums(steps: int, discount: float, power: float) -> NDArray[np.float64]:
    """``S_1, …, S_steps`` with ``S_t = Σ_{k=1}^t γ^{t−k}/k^p``, by ``S_t = γ S_{t−1} + t^{−p}``.

    Pan et al. 2020, proof of Theorem 2. The recursion adds positive numbers only, so it is accurate to
    rounding; their rewriting through Li_p(1/γ) and Φ(1/γ, p, t+1) is formal, as both series diverge at 1/γ >
    1.

    >>> step_sums(3, 0.5, 1.0).round(6).tolist()
    [1.0, 1.0, 0.833333]
    """
    steps, discount, power = check_count("t", steps, 1), check_discount(discount), check_positive("p", power)
    increments = np.arange(1.0, steps + 1.0) ** -power
    sums = np.empty(steps)
    total = 0.0
    for t, increment in enumerate(increments.tolist()):
        total = discount * total + increment
        sums[t] = total
    return sums


def step_sum(t: int, discount: float, power: float) -> float:
    """``S_t = Σ_{k=1}^t γ^{t−k}/k^p``, the weight of the constant C in the error bound after t steps.

    Pan et al. 2020, proof of Theorem 2.

    >>> step_sum(2, 0.5, 1.0)
    1.0
    """
    return float(step_sums(t, discount, power)[-1])


def step_sum_printed(t: int, discount: float, power: float) -> float:
    """The paper's value for S_t, ``1/((1−γ)(t+1)^p)``; 4·10²³ times too small for γ = 0.99, p = 10, t = 1000.

    Pan et al. 2020, proof of Theorem 2, where "= Θ(x)" continues as "= x".

    >>> round(step_sum(50, 0.9, 2.0) / step_sum_printed(50, 0.9, 2.0), 2)
    4.44
    """
    t, discount, power = check_count("t", t, 1), check_discount(discount), check_positive("p", power)
    return math.pow(t + 1.0, -power) / (1.0 - discount)


def step_sum_asymptotic(t: int, discount: float, power: float) -> float:
    """The two leading terms of S_t, ``[1 + pγ/((1−γ)t)] / ((1−γ)t^p)``, with relative error O(t^−2).

    Ours: expand (t−j)^{−p} in j/t and sum the geometric series. Useful once t ≫ p/(1−γ).

    >>> round(step_sum(2000, 0.9, 2.0) / step_sum_asymptotic(2000, 0.9, 2.0), 3)
    1.0
    """
    t, discount, power = check_count("t", t, 1), check_discount(discount), check_positive("p", power)
    return (1.0 + power * discount / ((1.0 - discount) * t)) * math.pow(t, -power) / (1.0 - discount)


def step_sum_split_bound(t: int, discount: float, power: float, split: int | None = None) -> float:
    """The bound ``[γ^{t−s}(1−γ^s) + (s+1)^{−p}(1−γ^{t−s})]/(1−γ)`` on S_t for a split s.

    Ours: in the first s terms 1/k^p ≤ 1, in the others 1/k^p ≤ 1/(s+1)^p; both sums are geometric.

    Args:
        t: Steps, at least 1.
        discount: γ in [0, 1).
        power: p > 0.
        split: s in 0, …, t; ⌊t/2⌋ if not given.

    >>> step_sum_split_bound(10, 0.9, 2.0) >= step_sum(10, 0.9, 2.0)
    True
    """
    t, discount, power = check_count("t", t, 1), check_discount(discount), check_positive("p", power)
    s = t // 2 if split is None else check_count("the split", split)
    if s > t:
        raise UserError(f"the split must be at most t = {t}, got {s}")
    early = 1.0 - math.pow(discount, s)
    late = math.pow(discount, t - s)
    return (late * early + math.pow(s + 1.0, -power) * (1.0 - late)) / (1.0 - discount)


def step_sum_half_bound(t: int, discount: float, power: float) -> float:
    """The bound ``[γ^{⌈t/2⌉} + (2/(t+1))^p]/(1−γ)`` on S_t, which ``corrected_step_count`` solves for t.

    Ours: the split bound at s = ⌊t/2⌋, with s + 1 ≥ (t+1)/2.

    >>> step_sum_half_bound(10, 0.9, 2.0) >= step_sum_split_bound(10, 0.9, 2.0)
    True
    """
    t, discount, power = check_count("t", t, 1), check_discount(discount), check_positive("p", power)
    return (math.pow(discount, (t + 1) // 2) + math.pow(2.0 / (t + 1.0), power)) / (1.0 - discount)


def polylog_constant(discount: float, power: float) -> float:
    """``C(γ,p) = Σ_{j≥0} (1+j)^p γ^j = Li_{−p}(γ)/γ``, for which ``S_t ≤ C(γ,p)/t^p`` at every t.

    Ours: t/(t−j) ≤ 1 + j in S_t t^p = Σ_j γ^j (t/(t−j))^p. It is 1/(1−γ)² for p = 1, (1+γ)/(1−γ)³ for p = 2,
    and about Γ(p+1)/(1−γ)^{p+1} in general, against the paper's 1/(1−γ). ∞ where it exceeds double precision.

    >>> round(polylog_constant(0.9, 1.0), 9)
    100.0
    """
    discount, power = check_discount(discount), check_positive("p", power)
    if discount == 0.0:
        return 1.0
    rate, total, start = math.log(discount), 0.0, 0
    while math.isfinite(total):
        j = np.arange(start, start + _CHUNK, dtype=np.float64)
        with np.errstate(over="ignore"):
            terms = np.exp(power * np.log1p(j) + rate * j)
        total += float(terms.sum())
        # The ratio of neighbours falls with j, so from here on the series is below a geometric one.
        ratio = discount * (1.0 + 1.0 / (start + _CHUNK)) ** power
        if ratio < 1.0 and terms[-1] * ratio <= 1e-17 * total * (1.0 - ratio):
            break
        start += _CHUNK
    return total


def step_sum_polylog_bound(t: int, discount: float, power: float) -> float:
    """The bound ``C(γ,p)/t^p`` on S_t: the right power of t, and a constant that is large for γ near 1.

    Ours; C(γ,p) is ``polylog_constant``.

    >>> step_sum_polylog_bound(100, 0.9, 2.0) >= step_sum(100, 0.9, 2.0)
    True
    """
    t, constant = check_count("t", t, 1), polylog_constant(discount, power)
    return constant * math.pow(t, -power) if math.isfinite(constant) else math.inf


def printed_step_count(error: float, discount: float, power: float, m: int, reward_bound: float) -> float:
    """The paper's number of steps after which ``‖V_t − V*‖ ≤ ε`` for β_t = t^p. False in general.

    max{ [log(1/ε) + log(1/(1−γ)) + log R + log 4] / log(1/γ), (2 log m/((1−γ)ε))^{1/p} − 1 }. Pan et al.
    2020, last display in the proof of Theorem 2 (its ε < 1/4 is not used there). Real-valued, as printed:
    "after at most t steps" is read as the next integer. ``PRINTED_COUNT_FAILURES`` refute it.

    Args:
        error: ε > 0.
        discount: γ in [0, 1); at 0 the first entry is its limit, 0.
        power: p > 0.
        m: Number of actions.
        reward_bound: R = max |r| > 0.

    >>> round(printed_step_count(0.01, 0.9, 2.0, m=18, reward_bound=1.0), 1)
    78.7
    """
    error, discount = check_positive("ε", error), check_discount(discount)
    power, reward_bound = check_positive("p", power), check_positive("the reward bound R", reward_bound)
    scale = (1.0 - discount) * error
    first = math.log(4.0 * reward_bound / scale) / -math.log(discount) if discount > 0.0 else 0.0
    return max(first, _root(2.0 * math.log(check_actions(m)) / scale, power) - 1.0)


def corrected_step_count(
    error: float, discount: float, power: float, m: int, reward_bound: float, *, constant: Constant = "sharp"
) -> int:
    """A number of steps after which ``‖V_t − V*‖ ≤ ε`` for β_t = t^p, and for ever after.

    ⌈max{ 2 log(2(2R+C)/((1−γ)ε)) / log(1/γ), 2(2C/((1−γ)ε))^{1/p} − 1 }⌉ with C = W((m−1)/e) or log m. Ours,
    in place of Pan et al. 2020, Theorem 2: put ``step_sum_half_bound`` into Theorem 1 with ‖V_0‖ ≤ R/(1−γ)
    and make each of γ^{t/2}(2R+C)/(1−γ) and C(2/(t+1))^p/(1−γ) at most ε/2. It keeps the theorem's O().

    Args:
        error: ε > 0.
        discount: γ in [0, 1).
        power: p > 0.
        m: Number of actions.
        reward_bound: R = max |r| > 0.
        constant: "paper" or "sharp".

    >>> corrected_step_count(0.01, 0.9, 2.0, m=18, reward_bound=1.0)
    168
    """
    error, discount = check_positive("ε", error), check_discount(discount)
    power, reward_bound = check_positive("p", power), check_positive("the reward bound R", reward_bound)
    c, scale = per_step_constant(m, constant), (1.0 - discount) * error
    start = math.log(2.0 * (2.0 * reward_bound + c) / scale)
    # At γ = 0 one step forgets V_0, unless no step is needed.
    first = 2.0 * start / -math.log(discount) if discount > 0.0 else float(start > 0.0)
    steps = max(0.0, first, 2.0 * _root(2.0 * c / scale, power) - 1.0)
    if math.isinf(steps):
        raise UserError(f"the step count must be a finite float, got ∞ for p = {power:.6g} and ε = {error:.6g}")
    return math.ceil(steps)


def _root(x: float, power: float) -> float:
    """``x^{1/p}``, ∞ where it exceeds double precision."""
    try:
        return math.pow(x, 1.0 / power)
    except OverflowError:
        return math.inf
