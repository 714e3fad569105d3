"""Intervals and effect sizes agree with SciPy, cover what they promise, and refuse what they cannot answer."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from dynaboltz.errors import UserError
from dynaboltz.reports.statistics import (
    SHARE_METHODS,
    Interval,
    bootstrap_interval,
    cohens_d,
    difference_interval,
    exchange_test,
    holm,
    mean_interval,
    share_interval,
    superiority,
)


def samples(seed: int = 0, first: int = 30, second: int = 17) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    return rng.normal(0.4, 1.0, first), rng.normal(0.0, 2.0, second)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_mean_interval_is_scipy_s(confidence: float) -> None:
    a, _ = samples()
    ours, theirs = mean_interval(a, confidence=confidence), stats.ttest_1samp(a, 0.0).confidence_interval(confidence)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_difference_interval_is_welch_s_of_scipy() -> None:
    a, b = samples()
    ours, theirs = difference_interval(a, b), stats.ttest_ind(a, b, equal_var=False)
    interval = theirs.confidence_interval(0.95)
    assert (ours.low, ours.high, ours.p_value) == pytest.approx((interval.low, interval.high, theirs.pvalue), rel=1e-12)


@pytest.mark.parametrize("method", SHARE_METHODS)
@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (1, 10), (7, 10), (10, 10), (500, 1000)])
def test_share_interval_is_scipy_s(method: str, successes: int, trials: int) -> None:
    ours = share_interval(successes, trials, method=method)
    name = {"wilson": "wilson", "clopper-pearson": "exact"}[method]
    theirs = stats.binomtest(successes, trials).proportion_ci(0.95, method=name)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-15)


def test_cohens_d_has_the_p_value_of_the_t_test() -> None:
    a, b = samples()
    assert cohens_d(a, b).p_value == pytest.approx(stats.ttest_ind(a, b).pvalue, rel=1e-10)


def test_cohens_d_ends_are_the_effects_that_make_the_observed_t_unlikely() -> None:
    a, b = samples()
    effect, scale = cohens_d(a, b, confidence=0.9), np.sqrt(1 / a.size + 1 / b.size)
    t, freedom = effect.value / scale, a.size + b.size - 2
    assert stats.nct.sf(t, freedom, effect.low / scale) == pytest.approx(0.05, abs=1e-6)
    assert stats.nct.cdf(t, freedom, effect.high / scale) == pytest.approx(0.05, abs=1e-6)


def test_cohens_d_of_constants_is_zero_or_infinite() -> None:
    assert cohens_d([1.0, 1.0], [1.0, 1.0]) == cohens_d([2.0, 2.0], [2.0, 2.0])
    assert (cohens_d([1.0, 1.0], [1.0, 1.0]).value, cohens_d([2.0, 2.0], [1.0, 1.0]).low) == (0.0, np.inf)


def test_superiority_counts_pairs_and_half_the_ties() -> None:
    a, b = np.round(samples()[0]), np.round(samples()[1])
    pairs = (a[:, None] > b).mean() + (a[:, None] == b).mean() / 2
    assert superiority(a, b).value == pytest.approx(pairs, rel=1e-12)


def test_superiority_has_the_p_value_of_brunner_and_munzel() -> None:
    a, b = samples()
    assert superiority(a, b).p_value == pytest.approx(stats.brunnermunzel(a, b).pvalue, rel=1e-9)


def test_superiority_without_overlap_is_certain_but_not_its_interval() -> None:
    effect = superiority(np.arange(10.0) + 100, np.arange(20.0))
    assert (effect.value, effect.high) == (1.0, 1.0)
    assert effect.p_value == pytest.approx(2 / special.comb(30, 10))
    assert effect.low == pytest.approx(stats.binomtest(10, 10).proportion_ci(0.95).low)


def test_superiority_of_equal_constants_is_a_half() -> None:
    effect = superiority([1.0, 1.0, 1.0], [1.0, 1.0])
    assert (effect.value, effect.low, effect.high, effect.p_value) == (0.5, 0.5, 0.5, 1.0)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    hits = {"t": 0, "bootstrap": 0, "superiority": 0}
    for _ in range(400):
        a, b = rng.exponential(1.0, 60), rng.exponential(1.0, 60)
        hits["t"] += not mean_interval(a, confidence=0.9).excludes(1.0)
        hits["bootstrap"] += not bootstrap_interval(a, rng, confidence=0.9, resamples=200).excludes(1.0)
        hits["superiority"] += not superiority(a, b, confidence=0.9).excludes(0.5)
    for name, count in hits.items():
        assert 0.85 <= count / 400 <= 0.94, name


def test_bootstrap_interval_is_scipy_s_up_to_its_draws() -> None:
    a, _ = samples()
    ours = bootstrap_interval(a, np.random.default_rng(1), statistic=np.median, resamples=9999)
    theirs = stats.bootstrap((a,), np.median, method="percentile", rng=np.random.default_rng(2)).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_bootstrap_draws_whole_rows() -> None:
    rows = np.stack([np.arange(50.0), -np.arange(50.0)], axis=1)
    summed = bootstrap_interval(rows, np.random.default_rng(0), statistic=lambda x, axis: x.mean(axis).sum(-1))
    assert summed == Interval(0.0, 0.0, 0.0)


def test_bootstrap_with_the_same_generator_is_the_same_and_with_another_it_is_not() -> None:
    a, _ = samples()
    first, again, other = (bootstrap_interval(a, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_exchange_test_is_scipy_s_permutation_test_of_pairs() -> None:
    a, b = samples(first=9, second=9)

    def difference(x: NDArray[np.float64], y: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        return np.asarray(np.mean(x, axis=axis) - np.mean(y, axis=axis))

    theirs = stats.permutation_test((a, b), difference, permutation_type="samples", n_resamples=np.inf)
    ours = exchange_test(a, b, np.random.default_rng(3), resamples=20_000)
    assert ours == pytest.approx(theirs.pvalue, abs=0.01)


def test_exchange_test_of_equal_pairs_finds_nothing() -> None:
    assert exchange_test(np.arange(5.0), np.arange(5.0), np.random.default_rng(0)) == 1.0


def test_holm_steps_down_and_never_falls() -> None:
    assert holm([0.5, 0.001, 0.02, 0.02]).tolist() == pytest.approx([0.5, 0.004, 0.06, 0.06])
    assert holm(np.full((2, 3), 0.9)).tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mean_interval([1.0]), "at least 2"),
        (lambda: mean_interval([1.0, np.nan]), "finite"),
        (lambda: mean_interval([1.0, 2.0], confidence=95), "confidence"),
        (lambda: superiority([1.0, 2.0], [[1.0, 2.0]]), "second sample"),
        (lambda: share_interval(3, 2), "successes"),
        (lambda: share_interval(0, 0), "trials"),
        (lambda: share_interval(1, 2, method="wald"), "wilson"),
        (lambda: bootstrap_interval([1.0], np.random.default_rng(0)), "2 rows"),
        (lambda: bootstrap_interval([1.0, 2.0], np.random.default_rng(0), resamples=10), "100"),
        (lambda: exchange_test([1.0, 2.0], [1.0, 2.0, 3.0], np.random.default_rng(0)), "2 and 3"),
        (lambda: exchange_test([1.0, 2.0], [1.0, 2.0], np.random.default_rng(0), resamples=10), "100"),
        (lambda: holm([0.5, 1.5]), "between 0 and 1"),
    ],
)
def test_statistics_refuse_what_they_cannot_answer(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(UserError, match=words):
        call()
