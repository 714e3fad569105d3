"""Fixed β: the Corollary, the bound of Song et al. that it is compared with, and where which is tighter.

All bounds are on ``limsup_t ‖V_t − V*‖_∞``; the paper writes lim, which need not exist
(``examples.two_cycle``). R = max |r|; m is the number of actions. With one action every bound is 0 and a
comparison says nothing.
"""

from __future__ import annotations

import math

from dynaboltz.operators.constants import check_actions, gap_constant
from dynaboltz.theory.checks import (
    check_at_least_two,
    check_beta,
    check_beta_or_zero,
    check_count,
    check_discount,
    check_not_negative,
    check_positive,
)
from dynaboltz.theory.gaps import Constant, per_step_constant

Interval = tuple[float, float]
"""A closed range of β, except that 0 and ∞ are never in it."""


def corollary_first_term(beta: float, m: int, discount: float) -> float:
    """The Corollary's first term, ``log(m)/(β(1−γ))``.

    Pan et al. 2020, Corollary.

    >>> round(corollary_first_term(5.0, 2, 0.9), 3)
    1.386
    """
    return per_step_constant(m, "paper") / (check_beta(beta) * (1.0 - check_discount(discount)))


def corollary_second_term(discount: float, reward_bound: float) -> float:
    """The Corollary's second term, ``2R/(1−γ)²``.

    Pan et al. 2020, Corollary. Vacuous: values of a Boltzmann backup are convex combinations of action
    values, so the error never exceeds (r_max − r_min)/(1−γ) ≤ 2R/(1−γ) in the limit.

    >>> round(corollary_second_term(0.9, 1.0), 6)
    200.0
    """
    return 2.0 * check_not_negative("the reward bound R", reward_bound) / (1.0 - check_discount(discount)) ** 2


def corollary_printed(beta: float, m: int, discount: float, reward_bound: float) -> float:
    """The Corollary's bound, ``min{ log(m)/(β(1−γ)), 2R/(1−γ)² }``.

    Pan et al. 2020, Corollary, with limsup for lim.

    >>> round(corollary_printed(0.01, 2, 0.9, 1.0), 6)
    200.0
    """
    return min(corollary_first_term(beta, m, discount), corollary_second_term(discount, reward_bound))


def corollary_sharp(beta: float, m: int, discount: float, reward_range: float) -> float:
    """The bound ``min{ W((m−1)/e)/(β(1−γ)), (r_max − r_min)/(1−γ) }``, below the Corollary's in both terms.

    Ours: ``sharp_gap`` in Theorem 1, and values that stay between r_min/(1−γ) and V* in the limit. The first
    term is attained (``examples.tight_bandit``). γ times it bounds limsup ‖Q_t − Q*‖.

    Args:
        beta: Inverse temperature in [0, ∞].
        m: Number of actions.
        discount: γ in [0, 1).
        reward_range: r_max − r_min over all states and actions.

    >>> round(corollary_sharp(5.0, 2, 0.9, reward_range=1.0), 6)
    0.556929
    """
    beta, trivial = check_beta_or_zero(beta), check_not_negative("the range of the rewards", reward_range)
    per_step = min(gap_constant(check_actions(m)) / beta, trivial) if beta > 0.0 else trivial
    return per_step / (1.0 - check_discount(discount))


def informative_beta(m: int, reward_range: float, constant: Constant = "sharp") -> float:
    """The β above which the bound on the error beats the trivial one: ``C/(r_max − r_min)``.

    Ours: C/(β(1−γ)) against (r_max − r_min)/(1−γ), whatever γ is.

    >>> round(informative_beta(18, reward_range=2.0, constant="paper"), 3)
    1.445
    """
    return per_step_constant(m, constant) / check_positive("the range of the rewards", reward_range)


def value_span_bound(t: int, discount: float, reward_range: float, initial_span: float = 0.0) -> float:
    """The bound ``(r_max − r_min)(1−γ^t)/(1−γ) + γ^t (max V_0 − min V_0)`` on ``max V_t − min V_t``.

    Pan et al. 2020, Ineq. (fix_eq_3), with r_max − r_min where they write 2R. It also bounds the spread of
    Q_t(s,·), the ``spread`` of ``error_sequence``.

    >>> value_span_bound(2, 0.5, reward_range=1.0)
    1.5
    """
    discount, decay = check_discount(discount), check_discount(discount) ** check_count("t", t)
    total = check_not_negative("the range of the rewards", reward_range) * (1.0 - decay) / (1.0 - discount)
    return total + decay * check_not_negative("the span of V_0", initial_span)


def song_bound(beta: float, m: int, discount: float, reward_bound: float) -> float:
    """The bound ``γ(m−1)/(1−γ) · max{ 1/(β+2), 2Q/(1+e^β) }`` with ``Q = R/(1−γ)``, on the error of Q.

    Song et al. 2019, Theorem 3. The maximum comes from splitting action gaps at 1, so the bound depends on
    the units of the rewards, unlike C/β.

    Args:
        beta: Inverse temperature in [0, ∞].
        m: Number of actions.
        discount: γ in [0, 1).
        reward_bound: R = max |r|.

    >>> round(song_bound(5.0, 2, 0.9, 1.0), 3)
    1.286
    """
    beta, discount = check_beta_or_zero(beta), check_discount(discount)
    largest_value = check_not_negative("the reward bound R", reward_bound) / (1.0 - discount)
    decay = math.exp(-beta)
    per_action = max(1.0 / (beta + 2.0), 2.0 * largest_value * decay / (1.0 + decay))
    return discount * (check_actions(m) - 1) / (1.0 - discount) * per_action


def beta_range_printed(m: int, discount: float, reward_bound: float = 1.0) -> float:
    """The β from which, it is printed, the Corollary beats Song et al.; ∞ where the bracket is not positive.

    2 / ( max{ γ(m−1)/log m, 2γ(m−1)R/(1−γ) } − 1 ). Pan et al. 2020, Eq. (beta_range). The first entry of the
    maximum is right; the second misses a division by log m and takes 1/(1+e^β) for at least 1/(β+2), which is
    false, so the true set is ``beta_range_true``.

    >>> round(beta_range_printed(3, 0.9), 4)
    0.0571
    """
    m, discount = check_at_least_two(m), check_discount(discount)
    reward_bound = check_positive("the reward bound R", reward_bound)
    weight = discount * (m - 1)
    bracket = max(weight / math.log(m), 2.0 * weight * reward_bound / (1.0 - discount)) - 1.0
    return 2.0 / bracket if bracket > 0.0 else math.inf


def beta_range_true(
    m: int,
    discount: float,
    reward_bound: float = 1.0,
    *,
    like_for_like: bool = False,
    with_min: bool = False,
) -> list[Interval]:
    """All β at which the Corollary's bound is at most Song et al.'s, as disjoint intervals in rising order.

    Ours, in place of Pan et al. 2020, Eq. (beta_range). min{a, b} ≤ k·max{x, y} holds where one of four
    simpler comparisons does, and each of those is an interval with known or bracketed ends: log m/β against
    k/(β+2) a half line; against 2kR/((1−γ)(1+e^β)) an interval around β = 1 + W(1/e), since (1+e^β)/β has its
    single minimum there; 2R/(1−γ)² against either an interval that begins at 0.

    Args:
        m: Number of actions, at least 2.
        discount: γ in [0, 1).
        reward_bound: R = max |r| > 0.
        like_for_like: Bound Q by Q: multiply the Corollary, a bound on V, by γ (then k has no γ).
        with_min: Keep the Corollary's second term; else compare the first term alone, as the paper does.

    >>> [(round(low, 3), round(high, 3)) for low, high in beta_range_true(2, 0.9)]
    [(0.08, 4.822), (6.702, inf)]
    """
    m, discount = check_at_least_two(m), check_discount(discount)
    reward_bound = check_positive("the reward bound R", reward_bound)
    weight = (m - 1) * (1.0 if like_for_like else discount)
    found: list[Interval] = []
    if (ratio := weight / math.log(m)) > 1.0:
        found.append((2.0 / (ratio - 1.0), math.inf))
    found.extend(_where_exponential_is_below(2.0 * ratio * reward_bound / (1.0 - discount)))
    if with_min:
        found.append((0.0, weight * (1.0 - discount) / (2.0 * reward_bound) - 2.0))
        found.append((0.0, math.log(weight - 1.0) if weight > 2.0 else 0.0))
    return _union([(low, high) for low, high in found if low < high])


def _where_exponential_is_below(level: float) -> list[Interval]:
    """The β with ``(1 + e^β)/β ≤ level``: none, or one interval around the minimum."""
    bottom = 1.0 + gap_constant(2)  # (β−1)e^β = 1, where (1+e^β)/β equals e^β
    if level <= math.exp(bottom):
        return []
    from scipy.optimize import brentq

    def excess(beta: float) -> float:
        return beta + math.log1p(math.exp(-beta)) - math.log(beta) - math.log(level)

    # At 1/level the left side exceeds 2·level; at b = 2 log(level) + 2 it exceeds e²·level²/b > level.
    low = brentq(excess, 1.0 / level, bottom, xtol=1e-14)
    high = brentq(excess, bottom, 2.0 * math.log(level) + 2.0, xtol=1e-14)
    return [(float(low), float(high))]


def _union(intervals: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def improvement_ratio(beta: float, m: int, discount: float, reward_bound: float = 1.0) -> float:
    """How much tighter the Corollary is than Song et al., in percent: ``(theirs − ours)/theirs × 100``.

    Pan et al. 2020, Figure "Error bound comparison" (b). Negative where the Corollary is the looser one. β, γ
    > 0 and m ≥ 2, or Song et al.'s bound is 0.

    >>> round(improvement_ratio(1.0, 4, 0.9))
    90
    """
    discount = check_positive("the discount γ", check_discount(discount))
    beta = check_positive("β", beta)
    theirs = song_bound(beta, check_at_least_two(m), discount, reward_bound)
    return 100.0 * (1.0 - corollary_printed(beta, m, discount, reward_bound) / theirs)


def improvement_limit(m: int, discount: float) -> float:
    """The limit of ``improvement_ratio`` as β → ∞, in percent: ``100·(1 − log(m)/(γ(m−1)))``.

    Ours: 1/(β+2) is the larger entry of Song et al.'s maximum from some β on.

    >>> round(improvement_limit(18, 0.99), 1)
    82.8
    """
    discount = check_positive("the discount γ", check_discount(discount))
    return 100.0 * (1.0 - math.log(check_at_least_two(m)) / (discount * (m - 1)))
