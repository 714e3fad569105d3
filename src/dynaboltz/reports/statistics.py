"""What is real in a sample: means, shares, differences and effect sizes, each with its interval.

Every function says which interval it is. Those that resample take an explicit generator and use it; the others are
exact or asymptotic formulas, tested against SciPy. Many comparisons at once are corrected with :func:`holm`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynaboltz.errors import UnknownNameError, UserError

Array = NDArray[np.float64]

_CHUNK_NUMBERS = 1 << 22
"""Resampled numbers that are in memory at once."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval.

    >>> print(Interval(0.5, 0.25, 0.75))
    0.5 [0.25, 0.75]
    """

    value: float
    low: float
    high: float

    def excludes(self, number: float) -> bool:
        """Whether the number lies outside the interval: the evidence is against it."""
        return not self.low <= number <= self.high

    def __format__(self, spec: str) -> str:
        spec = spec or ".4g"
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)


@dataclass(frozen=True, slots=True)
class Effect(Interval):
    """An effect size with its interval and the two-sided p-value of no effect."""

    p_value: float

    __str__, __format__ = Interval.__str__, Interval.__format__


def mean_interval(values: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """The mean with Student's t interval, ``x̄ ± t_{n−1} s/√n``.

    Exact for Gaussian values, asymptotic for any with a variance.

    Args:
        values: Independent values, shape (n,), n ≥ 2.
        confidence: Probability that the interval covers the mean, in (0, 1).

    >>> print(mean_interval([1.0, 2.0, 3.0]))
    2 [-0.4841, 4.484]
    """
    from scipy.special import stdtrit

    sample = _sample("the values", values)
    reach = stdtrit(sample.size - 1, _upper(confidence)) * sample.std(ddof=1) / math.sqrt(sample.size)
    return _around(float(sample.mean()), float(reach))


def difference_interval(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95) -> Effect:
    """The mean of ``first`` minus that of ``second``, two independent samples, with Welch's t interval.

    Args:
        first: Shape (n,), n ≥ 2.
        second: Shape (m,), m ≥ 2; the variances need not be equal.
        confidence: Coverage.

    >>> effect = difference_interval([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    >>> effect.value, effect.p_value
    (0.0, 1.0)
    """
    a, b = _sample("the first sample", first), _sample("the second sample", second)
    parts = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    return _welch(float(a.mean() - b.mean()), parts, (a.size - 1, b.size - 1), confidence, null=0.0)


def bootstrap_interval(
    values: ArrayLike,
    rng: np.random.Generator,
    *,
    statistic: Callable[..., Array] = np.mean,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Interval:
    """A statistic of the rows with its percentile bootstrap interval: rows are drawn with replacement.

    Args:
        values: Shape (n, …): n independent rows, n ≥ 2.
        rng: Source of the draws.
        statistic: Called as ``statistic(values, axis=…)``, it removes the axis of the rows; what remains must be one
            number.
        confidence: Coverage.
        resamples: Number of resamples, at least 100.

    >>> print(bootstrap_interval(np.arange(100.0), np.random.default_rng(0)))
    49.5 [43.91, 55.08]
    """
    upper = _upper(confidence)
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim < 1 or rows.shape[0] < 2:
        raise UserError(f"the values must have at least 2 rows to resample, got shape {rows.shape}")
    if resamples < 100:
        raise UserError(f"resamples must be at least 100, got {resamples!r}")
    found, chunk = np.empty(resamples), max(1, _CHUNK_NUMBERS // rows.size)
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        found[start : start + size] = statistic(rows[rng.integers(0, rows.shape[0], (size, rows.shape[0]))], axis=1)
    low, high = np.quantile(found, [1.0 - upper, upper])
    return Interval(float(statistic(rows, axis=0)), float(low), float(high))


def exchange_test(
    first: ArrayLike,
    second: ArrayLike,
    rng: np.random.Generator,
    *,
    statistic: Callable[..., Array] = np.mean,
    resamples: int = 2000,
) -> float:
    """The two-sided p-value of a difference between paired values, if the two of each pair were exchangeable.

    The difference of the statistics is compared with those after each pair is exchanged with probability 1/2; the
    values as they are count as one of the resamples, so that the p-value is never 0 (Phipson and Smyth 2010).

    Args:
        first: Shape (n,), n ≥ 2.
        second: Shape (n,), paired with ``first``.
        rng: Source of the exchanges.
        statistic: Called as ``statistic(values, axis=…)``.
        resamples: Number of exchanges, at least 100.

    >>> exchange_test(np.arange(8.0) + 1, np.arange(8.0), np.random.default_rng(0)) < 0.02
    True
    """
    a, b = _sample("the first sample", first), _sample("the second sample", second)
    if a.size != b.size:
        raise UserError(f"pairs need as many values on either side, got {a.size} and {b.size}")
    if resamples < 100:
        raise UserError(f"resamples must be at least 100, got {resamples!r}")
    swapped = rng.random((resamples, a.size)) < 0.5
    found = statistic(np.where(swapped, b, a), axis=1) - statistic(np.where(swapped, a, b), axis=1)
    here = abs(float(statistic(a, axis=0) - statistic(b, axis=0)))
    return float((1 + (np.abs(found) >= here * (1 - 1e-12)).sum()) / (1 + resamples))


SHARE_METHODS = ("wilson", "clopper-pearson")
"""Intervals of a share: Wilson's is close to its coverage on average, Clopper's and Pearson's never below it."""


def share_interval(successes: int, trials: int, *, confidence: float = 0.95, method: str = "wilson") -> Interval:
    """The share of successes with the interval of Wilson (1927) or of Clopper and Pearson (1934).

    Args:
        successes: From 0 to ``trials``.
        trials: At least 1.
        confidence: Coverage.
        method: One of ``SHARE_METHODS``.

    >>> print(share_interval(0, 10))
    0 [0, 0.2775]
    >>> print(share_interval(0, 10, method="clopper-pearson"))
    0 [0, 0.3085]
    """
    upper = _upper(confidence)
    if not (trials >= 1 and 0 <= successes <= trials):
        raise UserError(f"successes must be from 0 to trials ≥ 1, got {successes!r} of {trials!r}")
    share = successes / trials
    if method == "wilson":
        z = NormalDist().inv_cdf(upper)
        middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
        reach = z * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2) / (1 + z * z / trials)
        low, high = middle - reach, middle + reach
    elif method == "clopper-pearson":
        from scipy.special import betaincinv

        low = betaincinv(successes, trials - successes + 1, 1 - upper) if successes else 0.0
        high = betaincinv(successes + 1, trials - successes, upper) if successes < trials else 1.0
    else:
        raise UnknownNameError("method", method, SHARE_METHODS)
    return Interval(share, float(low) if successes else 0.0, float(high) if successes < trials else 1.0)


def cohens_d(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95) -> Effect:
    """The difference of two means in pooled standard deviations, with the exact interval for Gaussian values.

    Cohen (1988). The interval inverts the noncentral t distribution: the ends are the effects under which the t
    observed is just too large or too small. 0 if both samples are one and the same constant, and ±∞ if two others.

    >>> print(cohens_d([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]))
    1 [-0.7847, 2.684]
    """
    from scipy.special import nctdtrinc, stdtr

    upper = _upper(confidence)
    a, b = _sample("the first sample", first), _sample("the second sample", second)
    difference, freedom = float(a.mean() - b.mean()), a.size + b.size - 2
    pooled = math.sqrt(((a.size - 1) * a.var(ddof=1) + (b.size - 1) * b.var(ddof=1)) / freedom)
    if pooled == 0.0:
        certain = math.copysign(math.inf, difference) if difference else 0.0
        return Effect(certain, certain, certain, 0.0 if difference else 1.0)
    scale = math.sqrt(1 / a.size + 1 / b.size)
    t = difference / pooled / scale
    low, high = (float(nctdtrinc(freedom, level, t)) * scale for level in (upper, 1 - upper))
    return Effect(difference / pooled, low, high, float(2 * stdtr(freedom, -abs(t))))


def superiority(first: ArrayLike, second: ArrayLike, *, confidence: float = 0.95) -> Effect:
    """The probability that a value of ``first`` exceeds one of ``second``, ties counted half, with its interval.

    P(X > Y) + P(X = Y)/2, 1/2 without effect; of any distributions, ties and unequal variances included. Variance and
    p-value after Brunner and Munzel (2000). Samples that do not overlap have no such variance: their interval is that
    of Clopper and Pearson for the smaller one, and their p-value that of a permutation test, 2 / C(n + m, n).

    >>> superiority([3.0, 4.0, 5.0, 9.0], [1.0, 2.0, 3.0, 4.0]).value
    0.875
    """
    from scipy.stats import rankdata

    upper = _upper(confidence)
    a, b = _sample("the first sample", first), _sample("the second sample", second)
    both = rankdata(np.concatenate([a, b]))
    among = rankdata(a), rankdata(b)
    ranks = both[: a.size], both[a.size :]
    value = float((ranks[0].mean() - (a.size + 1) / 2) / b.size)
    spread = [float((all_ - own).var(ddof=1)) for all_, own in zip(ranks, among, strict=True)]
    parts = spread[0] / b.size**2 / a.size, spread[1] / a.size**2 / b.size
    if value in (0.0, 1.0):
        size = min(a.size, b.size)
        sure = share_interval(size if value else 0, size, confidence=2 * upper - 1, method="clopper-pearson")
        return Effect(value, sure.low, sure.high, float(2 / math.comb(a.size + b.size, a.size)))
    effect = _welch(value, parts, (a.size - 1, b.size - 1), confidence, null=0.5)
    return Effect(value, max(effect.low, 0.0), min(effect.high, 1.0), effect.p_value)


def holm(p_values: ArrayLike) -> Array:
    """The p-values adjusted for their number, after Holm (1979); of the same shape.

    Rejecting where the adjusted value is at most α errs anywhere with probability at most α, however the tests depend.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given = np.asarray(p_values, dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise UserError("p-values must lie between 0 and 1")
    flat = given.ravel()
    order = np.argsort(flat, kind="stable")
    stepped = np.maximum.accumulate(flat[order] * np.arange(flat.size, 0, -1))
    adjusted = np.empty_like(flat)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted.reshape(given.shape)


def _welch(
    value: float, parts: tuple[float, float], freedoms: tuple[int, int], confidence: float, *, null: float
) -> Effect:
    """An estimate whose variance is the sum of two estimated parts, by the t of Welch and Satterthwaite."""
    from scipy.special import stdtr, stdtrit

    upper = _upper(confidence)
    variance = sum(parts)
    if variance == 0.0:
        return Effect(value, value, value, 1.0 if value == null else 0.0)
    freedom = variance**2 / sum(part**2 / own for part, own in zip(parts, freedoms, strict=True))
    reach = float(stdtrit(freedom, upper)) * math.sqrt(variance)
    p_value = 2 * float(stdtr(freedom, -abs(value - null) / math.sqrt(variance)))
    return Effect(value, value - reach, value + reach, p_value)


def _around(value: float, reach: float) -> Interval:
    return Interval(value, value - reach, value + reach)


def _upper(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise UserError(f"the confidence must be a number in (0, 1), got {confidence!r}")
    return 0.5 + confidence / 2.0


def _sample(name: str, values: ArrayLike) -> Array:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or sample.size < 2:
        raise UserError(f"{name} must be at least 2 numbers in one row, got shape {sample.shape}")
    if not np.isfinite(sample).all():
        raise UserError(f"{name} must be finite, got {float(sample[~np.isfinite(sample)][0])}")
    return sample
