"""Aggregates of runs × tasks: by hand, against SciPy, against published numbers, and whether intervals cover."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from dynaboltz.errors import UserError
from dynaboltz.reports.aggregates import (
    AGGREGATES,
    improvement,
    interquartile_mean,
    mean,
    median,
    optimality_gap,
    profile,
    stratified_band,
    stratified_interval,
    stratified_test,
)
from dynaboltz.reports.scores import human_normalised, paper_scores

Array = NDArray[np.float64]
DIAMOND = Path(__file__).with_name("data") / "diamond_atari_100k.csv"
"""Returns of 5 runs on 26 games, from the repository of Alonso et al. (2024), ``results/data/DIAMOND.json`` (MIT)."""
SCORES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 9)), elements=st.integers(-20, 20))


def published() -> Array:
    """DIAMOND's human-normalised scores, 5 runs × 26 games."""
    table = paper_scores()
    with DIAMOND.open(encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    at = [table.games.index(row[0]) for row in rows]
    raw = np.array([[float(score) for score in row[1:]] for row in rows]).T
    return human_normalised(raw, table.random[at], table.human[at]) / 100.0


def test_aggregates_of_a_published_study_are_the_printed_ones() -> None:
    """Alonso et al. (2024), Table 1 and Appendix: mean 1.459, interquartile mean 0.641, 11 games above human."""
    scores = published()
    assert scores.shape == (5, 26)
    assert (round(float(mean(scores)), 3), round(float(interquartile_mean(scores)), 3)) == (1.459, 0.641)
    assert int((scores.mean(axis=0) > 1).sum()) == 11


def test_aggregates_of_a_small_table_are_those_done_by_hand() -> None:
    scores = [[1.0, 2.0, 9.0], [3.0, 2.0, 0.0]]
    assert float(mean(scores)) == pytest.approx(17 / 6)
    assert float(median(scores)) == 2.0
    assert float(interquartile_mean(scores)) == 2.0  # 0 and 9 are left out
    assert float(optimality_gap(scores, target=2.0)) == pytest.approx(2 - (1 + 2 + 2 + 2 + 2 + 0) / 6)


def test_improvement_has_rliable_s_value_in_its_own_example() -> None:
    """The example of rliable's tests, where 1/3 is the published answer."""
    assert float(improvement([[1, 2], [2, 2], [1, 1], [2, 1]], [[1, 1], [2, 2], [3, 3]])) == pytest.approx(1 / 3)


@given(SCORES)
def test_interquartile_mean_is_scipy_s_trimmed_mean(scores: Array) -> None:
    assert float(interquartile_mean(scores)) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None), abs=1e-12)


@given(SCORES, st.integers(1, 5), st.integers(0, 99))
def test_improvement_is_the_mann_whitney_count_of_each_task(scores: Array, runs: int, seed: int) -> None:
    others = np.random.default_rng(seed).integers(-20, 20, (runs, scores.shape[1])).astype(np.float64)
    counts = [stats.mannwhitneyu(a, b, method="asymptotic").statistic for a, b in zip(scores.T, others.T, strict=True)]
    assert float(improvement(scores, others)) == pytest.approx(np.mean(counts) / (scores.shape[0] * runs))
    assert float(improvement(scores, others) + improvement(others, scores)) == pytest.approx(1.0)


@given(SCORES)
def test_profile_is_the_share_above_and_its_area_is_the_mean(scores: Array) -> None:
    levels = np.arange(-20.5, 21)
    shares = profile(scores, levels)
    assert shares.tolist() == pytest.approx([(scores > level).mean() for level in levels])
    assert -20.5 + shares.sum() == pytest.approx(scores.mean() + 0.5)


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_takes_leading_axes(name: str) -> None:
    many = np.random.default_rng(0).normal(size=(3, 2, 5, 4))
    one_by_one = [[float(AGGREGATES[name](many[i, j])) for j in range(2)] for i in range(3)]
    assert AGGREGATES[name](many).tolist() == [pytest.approx(row) for row in one_by_one]


def test_bootstrap_draws_runs_within_tasks_and_never_across_them() -> None:
    scores = np.arange(5.0) * np.ones((4, 1))  # runs of a task agree, tasks differ
    band = stratified_band(lambda x: x.mean(axis=-2), scores, rng=np.random.default_rng(0))
    assert band.low.tolist() == band.high.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_bootstrap_draws_the_runs_of_each_task_on_their_own() -> None:
    """Runs of two tasks that cancel in a row would never vary if whole rows were drawn."""
    scores = np.stack([np.arange(8.0), -np.arange(8.0)], axis=1)
    found = stratified_interval(mean, scores, rng=np.random.default_rng(0))
    assert found.low < -0.5 < 0.5 < found.high


def test_percentile_interval_of_one_task_is_scipy_s() -> None:
    scores = np.random.default_rng(3).exponential(size=(20, 1))
    ours = stratified_interval(
        interquartile_mean, scores, rng=np.random.default_rng(1), resamples=20_000, method="percentile"
    )
    theirs = stats.bootstrap(
        (scores[:, 0],), lambda x, axis: stats.trim_mean(x, 0.25, axis=axis), method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval  # fmt: skip
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_expanded_interval_of_many_runs_is_the_percentile_one_and_of_few_is_wider() -> None:
    def width(runs: int, method: str) -> float:
        scores = np.random.default_rng(4).normal(size=(runs, 3))
        found = stratified_interval(mean, scores, rng=np.random.default_rng(5), method=method)
        return found.high - found.low

    assert width(2000, "expanded") == pytest.approx(width(2000, "percentile"), rel=0.01)
    assert width(3, "expanded") > 1.3 * width(3, "percentile")


def test_same_generator_gives_the_same_interval_and_another_does_not() -> None:
    scores = published()
    first, again, other = (stratified_interval(mean, scores, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(("runs", "tasks"), [(5, 10), (12, 2)])
def test_intervals_cover_the_truth_about_as_often_as_they_say(runs: int, tasks: int) -> None:
    """300 worlds: a standard error of 1.3 %. Every size and shape: benchmarks/interval_coverage.py."""
    rng = np.random.default_rng(7)
    centres = np.linspace(0.2, 1.2, tasks)
    truth = float(interquartile_mean(rng.normal(centres, 0.3, (100_000, tasks))))
    hits = {"expanded": 0, "percentile": 0}
    for _ in range(300):
        scores = rng.normal(centres, 0.3, (runs, tasks))
        for method in hits:
            found = stratified_interval(interquartile_mean, scores, rng=rng, resamples=200, method=method)
            hits[method] += not found.excludes(truth)
    assert 0.91 <= hits["expanded"] / 300 <= 0.985
    assert hits["percentile"] < hits["expanded"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda _: mean([1.0, 2.0]), "runs × tasks"),
        (lambda _: mean([[1.0, np.nan]]), "finite"),
        (lambda _: improvement([[1.0]], [[1.0, 2.0]]), "1 and 2 tasks"),
        (lambda rng: stratified_interval(mean, [[1.0, 2.0]], rng=rng), "at least 2 runs"),
        (lambda rng: stratified_interval(mean, [[1.0], [2.0]], rng=rng, resamples=99), "100"),
        (lambda rng: stratified_interval(mean, [[1.0], [2.0]], rng=rng, confidence=95), "confidence"),
        (lambda rng: stratified_interval(mean, [[1.0], [2.0]], rng=rng, method="percentil"), "mean 'percentile'"),
        (lambda rng: stratified_interval(lambda x: x.mean(-2), [[1.0], [2.0]], rng=rng), "stratified_band"),
    ],
)
def test_aggregates_refuse_what_they_cannot_answer(call: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        call(np.random.default_rng(0))


def test_stratified_test_of_one_task_is_scipy_s_permutation_test() -> None:
    rng = np.random.default_rng(6)
    first, second = rng.normal(0.9, 1, (6, 1)), rng.normal(0, 1, (5, 1))

    def difference(a: Array, b: Array) -> Array:
        found: Array = a.mean(axis=(-2, -1)) - b.mean(axis=(-2, -1))
        return found

    ours = stratified_test(difference, first, second, rng=np.random.default_rng(7), resamples=40_000)
    theirs = stats.permutation_test(
        (first[:, 0], second[:, 0]), lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis), vectorized=True
    ).pvalue
    assert 0.02 < theirs < 0.6
    assert ours == pytest.approx(theirs, abs=0.01)


def test_stratified_test_errs_as_often_as_it_says_where_tasks_differ_and_agents_do_not() -> None:
    rng, levels = np.random.default_rng(8), np.array([0.0, 5.0, 50.0])
    p_values = [
        stratified_test(
            improvement, rng.normal(levels, 1, (4, 3)), rng.normal(levels, 1, (5, 3)), rng=rng, null=0.5, resamples=199
        )
        for _ in range(400)
    ]
    assert 0.02 < np.mean(np.array(p_values) <= 0.05) < 0.08
    assert 0.42 < np.mean(np.array(p_values) <= 0.5) < 0.58


def test_stratified_test_shuffles_within_tasks_and_never_across_them() -> None:
    scores = np.array([0.0, 9.0]) * np.ones((4, 1))  # runs of a task agree, tasks differ
    assert stratified_test(improvement, scores, scores, rng=np.random.default_rng(0), null=0.5, resamples=100) == 1.0
    ahead = stratified_test(improvement, scores + 1, scores, rng=np.random.default_rng(0), null=0.5, resamples=999)
    assert ahead < 0.005  # each task has 2 of 70 ways to be so uneven


def test_stratified_test_of_other_tasks_is_refused() -> None:
    with pytest.raises(UserError, match="same tasks"):
        stratified_test(improvement, np.ones((3, 2)), np.ones((3, 1)), rng=np.random.default_rng(0))
