"""Theorem 4: the bias of an operator applied to noisy estimates of the action values.

The estimates are independent Gaussians with the true values as means; the bias of an operator is its expected
value minus the largest mean. Pan et al. 2020 order the signed biases, boltz ≤ max ≤ log-sum-exp for β > 0;
that says nothing of their size, and mellowmax (log-sum-exp with a uniform prior) lies below boltz. Exact
values come from quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.operators import boltzmann, hard_max, log_sum_exp, mellowmax
from dynaboltz.theory.checks import check_count, check_positive, check_rows

Array = NDArray[np.float64]

_SUMMARIES: dict[str, Callable[[Array, float], Array]] = {
    "boltzmann": boltzmann,
    "log_sum_exp": log_sum_exp,
    "max": lambda q, _beta: np.asarray(hard_max(q)),
    "mellowmax": mellowmax,
}

BIAS_OPERATORS = tuple(_SUMMARIES)
"""The operators whose bias is computed, by name."""

_REACH = 9
"""Standard deviations to each side of a mean that quadrature covers; the rest weighs less than 1e-18."""

_CHUNK = 1 << 16
"""Samples that are drawn and summarised at once."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over independent samples, with its normal confidence interval."""

    value: float
    """The signed estimate."""

    low: float
    """Lower end of the confidence interval."""

    high: float
    """Upper end of the confidence interval."""

    standard_error: float
    """Standard error of ``value``."""

    samples: int
    """Number of independent samples."""

    @property
    def absolute(self) -> float:
        """The size of the bias, |value|."""
        return abs(self.value)


def noise_free_biases(means: ArrayLike, beta: float) -> dict[str, float]:
    """The exact bias of each operator when the estimates equal the means: ``op(μ) − max μ``.

    Ours. boltz then has a negative bias and max none, so "reduces overestimation" does not mean "is less
    biased".

    >>> biases = noise_free_biases([0.0, -1.0], beta=1.0)
    >>> round(biases["boltzmann"], 3), biases["max"]
    (-0.269, 0.0)
    """
    row, beta = _check_means(means), check_positive("β", beta)
    return {name: float(summary(row, beta) - row.max()) for name, summary in _SUMMARIES.items()}


def monte_carlo_biases(
    means: ArrayLike,
    sds: ArrayLike,
    beta: float,
    samples: int,
    rng: np.random.Generator,
    *,
    confidence: float = 0.99,
) -> dict[str, Estimate]:
    """The estimated bias of each operator, all from the same draws.

    Pan et al. 2020, Theorem 4: E[op(μ̂)] − max μ. Common draws keep the ordering exact in any sample, because
    mellowmax ≤ boltz ≤ max ≤ log-sum-exp holds draw by draw.

    Args:
        means: True action values, shape (m,).
        sds: Standard deviation of the estimates, one for all or shape (m,).
        beta: Inverse temperature, above 0 and finite.
        samples: Number of independent draws of all m estimates, at least 2.
        rng: Source of the draws.
        confidence: Probability that the interval covers the bias, in (0, 1).

    >>> found = monte_carlo_biases([0.0, 0.0], 1.0, 1.0, samples=1000, rng=np.random.default_rng(0))
    >>> found["boltzmann"].value < found["max"].value < found["log_sum_exp"].value
    True
    """
    row, beta = _check_means(means), check_positive("β", beta)
    drawn = _summaries(row, _check_sds(sds, row), beta, samples, rng, names=BIAS_OPERATORS)
    return {name: _estimate(values - row.max(), confidence) for name, values in drawn.items()}


def monte_carlo_bias_difference(
    first: str,
    second: str,
    means: ArrayLike,
    sds: ArrayLike,
    beta: float,
    *,
    samples: int,
    rng: np.random.Generator,
    confidence: float = 0.99,
) -> Estimate:
    """The estimated bias of ``first`` minus that of ``second``, paired draw by draw.

    Pairing removes the noise that both share, so the interval is far shorter than the two intervals suggest.

    Args:
        first: A name in ``BIAS_OPERATORS``.
        second: Another one.
        means: As in ``monte_carlo_biases``, and so are the rest.
        sds: Standard deviations.
        beta: Inverse temperature.
        samples: Number of draws.
        rng: Source of the draws.
        confidence: Coverage of the interval.

    >>> rng = np.random.default_rng(0)
    >>> paired = monte_carlo_bias_difference("boltzmann", "max", [0.0, 0.0], 1.0, 1.0, samples=1000, rng=rng)
    >>> paired.high < 0.0
    True
    """
    for name in (first, second):
        if name not in _SUMMARIES:
            raise UnknownNameError("operator", name, BIAS_OPERATORS)
    row, beta = _check_means(means), check_positive("β", beta)
    drawn = _summaries(row, _check_sds(sds, row), beta, samples, rng, names=(first, second))
    return _estimate(drawn[first] - drawn[second], confidence)


def max_bias(means: ArrayLike, sds: ArrayLike) -> float:
    """The exact bias of the maximum, ``E max μ̂ − max μ``, by quadrature of its distribution ``Π_a F_a``.

    E max μ̂ − c = ∫_c^∞ (1 − Π F_a) dx − ∫_{−∞}^c Π F_a dx with c = max μ. Never negative (Jensen).

    Args:
        means: True action values, shape (m,).
        sds: Standard deviations, one for all or shape (m,).

    >>> abs(max_bias([0.0, 0.0], 1.0) - 1 / math.sqrt(math.pi)) < 1e-12
    True
    """
    from scipy.special import ndtr

    row = _check_means(means)
    spread, top = _check_sds(sds, row), row.max()
    steps = np.arange(-_REACH, _REACH + 1.0)
    nodes, node_weights = _panels(np.append((row[:, None] + spread[:, None] * steps).ravel(), top))
    away = nodes[:, None] - row
    step = np.where(away < 0.0, -math.inf, math.inf)  # what F_a is without noise
    with np.errstate(over="ignore"):
        below = ndtr(np.divide(away, spread, out=step, where=spread > 0.0)).prod(axis=-1)
    return float((node_weights * np.where(nodes > top, 1.0 - below, -below)).sum())


def two_arm_biases(means: Sequence[float], sds: ArrayLike, beta: float) -> dict[str, float]:
    """The exact bias of each operator for two actions, by quadrature over the difference D of the estimates.

    Ours: with M the mean of both, boltz = M + (D/2) tanh(βD/2), log-sum-exp = M + |D|/2 + log(1 +
    e^{−β|D|})/β, and D is Gaussian. Mellowmax is log-sum-exp − log(2)/β.

    Args:
        means: The two true action values.
        sds: Standard deviations, one for both or one each.
        beta: Inverse temperature, above 0 and finite.

    >>> biases = two_arm_biases([0.0, 0.0], 1.0, beta=1.0)
    >>> biases["boltzmann"] < biases["max"] < biases["log_sum_exp"]
    True
    """
    row, beta = _check_means(means), check_positive("β", beta)
    if row.size != 2:
        raise UserError(f"two means are needed, got {row.size}")
    sd = float(np.hypot(*_check_sds(sds, row)))
    offset, centre = float(row[0] - row[1]), float(row.mean() - row.max())
    if sd == 0.0:
        return noise_free_biases(row, beta)
    # The integrands bend at D = 0 on the scale 1/β, however wide D itself is.
    steps = np.arange(-_REACH, _REACH + 1.0)
    bends = np.concatenate([-(2.0 ** np.arange(7.0)), [0.0], 2.0 ** np.arange(7.0)]) / beta
    bends = bends[np.abs(bends - offset) <= _REACH * sd]
    z, node_weights = _panels(np.append(steps, (bends - offset) / sd))
    d = offset + sd * z
    density = node_weights * np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)

    def expected(half: Array) -> float:
        return centre + float((density * half).sum())

    log_sum_exp = expected(np.abs(d) / 2.0 + np.log1p(np.exp(-beta * np.abs(d))) / beta)
    return {
        "boltzmann": expected(d / 2.0 * np.tanh(beta * d / 2.0)),
        "log_sum_exp": log_sum_exp,
        "max": expected(np.abs(d) / 2.0),
        "mellowmax": log_sum_exp - math.log(2.0) / beta,
    }


def _panels(breaks: Array) -> tuple[Array, Array]:
    """Gauss–Legendre nodes and weights on every interval between two neighbouring breaks."""
    nodes, node_weights = np.polynomial.legendre.leggauss(20)
    edges = np.unique(breaks)
    half = np.diff(edges)[:, None] / 2.0
    middle = (edges[1:] + edges[:-1])[:, None] / 2.0
    return (middle + half * nodes).ravel(), (half * node_weights).ravel()


def _check_means(means: ArrayLike) -> Array:
    row = check_rows("the means", means)
    if row.ndim != 1:
        raise UserError(f"the means must have shape (m,), got {row.shape}")
    return row


def _check_sds(sds: ArrayLike, means: Array) -> Array:
    spread = np.asarray(sds, dtype=np.float64)
    if spread.shape not in ((), means.shape):
        raise UserError(f"the standard deviations must be one or {means.size} numbers, got shape {spread.shape}")
    if not (np.isfinite(spread).all() and (spread >= 0.0).all()):
        raise UserError(f"the standard deviations must be finite and at least 0, got {sds!r}")
    return np.broadcast_to(spread, means.shape)


def _summaries(
    means: Array, sds: Array, beta: float, samples: int, rng: np.random.Generator, *, names: Sequence[str]
) -> dict[str, Array]:
    samples = check_count("the number of samples", samples, 2)
    values = {name: np.empty(samples) for name in names}
    for start in range(0, samples, _CHUNK):
        stop = min(start + _CHUNK, samples)
        draws = means + sds * rng.standard_normal((stop - start, means.size))
        for name, column in values.items():
            column[start:stop] = _SUMMARIES[name](draws, beta)
    return values


def _estimate(values: Array, confidence: float) -> Estimate:
    if not 0.0 < confidence < 1.0:
        raise UserError(f"the confidence must be a number in (0, 1), got {confidence!r}")
    value = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(values.size)
    reach = NormalDist().inv_cdf(0.5 + confidence / 2.0) * error
    return Estimate(value, value - reach, value + reach, error, values.size)
