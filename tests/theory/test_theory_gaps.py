"""One backup: Proposition 1, the sharp gap, and the scales that follow from it."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynaboltz.errors import UserError
from dynaboltz.theory import (
    Constant,
    beta_for_gap,
    boltzmann_log_slope_bound,
    boltzmann_slope_bound,
    entropy_gap,
    entropy_gap_bound,
    per_step_constant,
    sharp_gap,
    sharp_gap_row,
    sharp_gap_with_spread,
    slope_constant,
    step_gap,
)

ACTIONS = (2, 3, 4, 6, 9, 18)
rows = st.lists(st.floats(-50, 50), min_size=1, max_size=18).map(np.array)
betas = st.floats(1e-3, 1e3)


def weights(q: np.ndarray, beta: float) -> np.ndarray:
    w = np.exp(beta * (q - q.max()))
    return np.asarray(w / w.sum())


def boltzmann(q: np.ndarray, beta: float) -> float:
    return float(weights(q, beta) @ q)


def max_gap(q: np.ndarray, beta: float) -> float:
    return float(weights(q, beta) @ (q.max() - q))


@given(rows, betas)
def test_entropy_gap_is_log_sum_exp_minus_boltzmann(q: np.ndarray, beta: float) -> None:
    log_sum_exp = q.max() + math.log(np.exp(beta * (q - q.max())).sum()) / beta
    assert entropy_gap(q, beta) == pytest.approx(log_sum_exp - boltzmann(q, beta), abs=1e-11, rel=1e-9)


@given(rows, betas)
def test_entropy_gap_is_the_entropy_over_beta(q: np.ndarray, beta: float) -> None:
    p = weights(q, beta)
    entropy = -float(np.where(p > 0, p * np.log(np.maximum(p, 1e-300)), 0.0).sum())
    assert entropy_gap(q, beta) == pytest.approx(entropy / beta, abs=1e-13 / beta, rel=1e-9)


@given(rows, betas)
def test_entropy_gap_lies_between_zero_and_its_bound(q: np.ndarray, beta: float) -> None:
    assert 0.0 <= entropy_gap(q, beta) <= entropy_gap_bound(beta, q.size) * (1 + 1e-12)


def test_entropy_gap_keeps_its_digits_when_one_action_dominates() -> None:
    # H ≈ (1 + x) e^{−x} for the row (0, −x); the naive difference of two logs would give 0.
    assert entropy_gap([0.0, -60.0], 1.0) == pytest.approx(61 * math.exp(-60), rel=1e-12)


def test_entropy_gap_works_row_by_row_and_vanishes_at_infinite_beta() -> None:
    q = np.array([[0.0, 1.0], [2.0, 2.0]])
    assert entropy_gap(q, 2.0).tolist() == [float(entropy_gap(row, 2.0)) for row in q]
    assert entropy_gap(q, math.inf).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("m", "value"),
    [
        (2, 0.278465),
        (3, 0.463056),
        (4, 0.603546),
        (6, 0.814553),
        (9, 1.040113),
        (18, 1.456901),
        (100, 2.62865),
    ],
)
def test_sharp_constant_has_the_known_values(m: int, value: float) -> None:
    assert per_step_constant(m, "sharp") == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize("m", ACTIONS)
@pytest.mark.parametrize("beta", [0.1, 5.0, 300.0])
def test_sharp_gap_row_attains_the_sharp_gap(m: int, beta: float) -> None:
    assert max_gap(sharp_gap_row(beta, m), beta) == pytest.approx(sharp_gap(beta, m), rel=1e-12)


@given(rows, betas)
def test_no_row_exceeds_the_sharp_gap(q: np.ndarray, beta: float) -> None:
    assert max_gap(q, beta) <= sharp_gap(beta, q.size) * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize("m", ACTIONS)
def test_sharp_gap_is_what_a_numeric_search_finds(m: int) -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(m)
    best = max(
        -minimize(lambda y: -max_gap(np.append(0.0, -np.abs(y)), 1.0), rng.uniform(0.5, 3.0, m - 1)).fun
        for _ in range(3)
    )
    assert best == pytest.approx(sharp_gap(1.0, m), abs=1e-8)


@pytest.mark.parametrize("m", ACTIONS)
def test_sharp_constant_is_about_half_of_the_papers(m: int) -> None:
    assert 1.98 < per_step_constant(m, "paper") / per_step_constant(m, "sharp") < 2.5


@given(rows, st.floats(0, 100))
def test_no_row_exceeds_the_gap_for_its_spread(q: np.ndarray, beta: float) -> None:
    bound = sharp_gap_with_spread(beta, q.size, float(np.ptp(q)))
    assert max_gap(q, beta) <= bound * (1 + 1e-9) + 1e-13


@given(st.integers(2, 30), st.floats(0, 50), st.floats(0.01, 10))
def test_gap_for_a_spread_is_attained_within_that_spread(m: int, beta: float, spread: float) -> None:
    drop = spread if beta == 0 else min(spread, (1 + per_step_constant(m)) / beta)
    row = np.append(0.0, np.full(m - 1, -drop))
    assert max_gap(row, beta) == pytest.approx(sharp_gap_with_spread(beta, m, spread), rel=1e-9)


@given(st.integers(2, 30), st.floats(0, 50), st.floats(0, 10))
def test_gap_for_a_spread_is_below_its_mean_at_beta_zero(m: int, beta: float, spread: float) -> None:
    at_zero = sharp_gap_with_spread(0.0, m, spread)
    assert at_zero == pytest.approx((m - 1) / m * spread)
    assert sharp_gap_with_spread(beta, m, spread) <= at_zero * (1 + 1e-12)


@pytest.mark.parametrize("m", ACTIONS)
def test_gap_for_a_spread_is_continuous_where_it_meets_the_sharp_gap(m: int) -> None:
    spread = 1 + per_step_constant(m)
    assert sharp_gap_with_spread(1 - 1e-9, m, spread) == pytest.approx(sharp_gap(1.0, m), rel=1e-8)


@pytest.mark.parametrize("constant", get_args(Constant))
def test_step_gap_without_a_spread_is_the_constant_over_beta(constant: Constant) -> None:
    assert step_gap(4.0, 3, constant) == per_step_constant(3, constant) / 4.0


def test_step_gap_of_the_paper_never_exceeds_the_spread() -> None:
    assert step_gap(1e-3, 3, "paper", spread=0.5) == 0.5
    assert step_gap(1e3, 3, "paper", spread=0.5) == math.log(3) / 1e3


def test_step_gap_at_beta_zero_needs_a_spread() -> None:
    with pytest.raises(UserError, match="infinite at β = 0"):
        step_gap(0.0, 3)


@pytest.mark.parametrize(
    ("m", "value"),
    [(2, 0.43923), (3, 0.76180), (4, 1.02349), (6, 1.44213), (9, 1.92284), (18, 2.89883)],
)
def test_slope_constant_has_the_known_values(m: int, value: float) -> None:
    assert slope_constant(m) == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize("m", ACTIONS)
def test_slope_constant_is_the_largest_scaled_variance_of_two_level_rows(m: int) -> None:
    u = np.linspace(0.0, 10.0, 200_001)[:, None]
    # k entries on top, m − k entries lower by u: all stationary points of the variance are of this form.
    k = np.arange(1, m)
    low = (m - k) / (m - k + k * np.exp(u))
    assert (low * (1 - low) * u**2).max() == pytest.approx(slope_constant(m), rel=1e-8)


@given(rows, betas)
def test_slope_in_beta_lies_between_zero_and_its_bound(q: np.ndarray, beta: float) -> None:
    p = weights(q, beta)
    variance = float(p @ (q - p @ q) ** 2)
    assert 0.0 <= variance <= boltzmann_slope_bound(beta, q.size) * (1 + 1e-12) + 1e-24
    assert beta * variance <= boltzmann_log_slope_bound(beta, q.size) * (1 + 1e-12) + 1e-24


@pytest.mark.parametrize(
    ("delta", "beta", "steps"),
    [(0.5, 19.5, (4.4, 44, 441)), (0.1, 97.4, (9.9, 98.7, 987)), (0.01, 974, (31.2, 312, 3121))],
)
def test_beta_for_a_permille_of_the_action_gap_has_the_known_values(
    delta: float, beta: float, steps: tuple[float, float, float]
) -> None:
    found = beta_for_gap(delta, 0.001, m=18)
    assert found == pytest.approx(beta, rel=2e-3)
    assert [math.sqrt(found / c) for c in (1, 1e-2, 1e-4)] == pytest.approx(steps, rel=5e-3)


@given(st.integers(2, 30), st.floats(0.01, 10), st.floats(1e-4, 0.9))
def test_beta_for_a_gap_is_enough_and_no_smaller_beta_is(m: int, delta: float, fraction: float) -> None:
    def worst(beta: float) -> float:
        drop = max(delta, (1 + per_step_constant(m)) / beta)
        return max_gap(np.append(0.0, np.full(m - 1, -drop)), beta)

    beta = beta_for_gap(delta, fraction, m)
    assert worst(beta) == pytest.approx(fraction * delta, rel=1e-9)
    assert worst(beta * 0.999) > fraction * delta


@given(st.lists(st.floats(1.0, 30.0), min_size=1, max_size=10), st.floats(1e-3, 0.9))
def test_no_row_with_the_action_gap_misses_the_fraction(lower: list[float], fraction: float) -> None:
    q = np.append(0.0, -np.array(lower))
    assert max_gap(q, beta_for_gap(1.0, fraction, q.size)) <= fraction * (1 + 1e-9)


def test_one_action_has_no_gap() -> None:
    assert sharp_gap(1.0, 1) == entropy_gap_bound(1.0, 1) == sharp_gap_with_spread(0.0, 1, 5.0) == 0.0
    assert boltzmann_slope_bound(1.0, 1) == beta_for_gap(1.0, 0.1, 1) == 0.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, "1", True, None])
def test_gaps_refuse_a_beta_that_is_not_positive(bad: float) -> None:
    for refuses in (
        lambda: entropy_gap([0.0, 1.0], bad),
        lambda: entropy_gap_bound(bad, 2),
        lambda: sharp_gap(bad, 2),
        lambda: sharp_gap_row(bad, 2),
        lambda: boltzmann_slope_bound(bad, 2),
        lambda: boltzmann_log_slope_bound(bad, 2),
    ):
        with pytest.raises(UserError, match="must be"):
            refuses()


@pytest.mark.parametrize("bad", [0, -3, 2.0, True, "4"])
def test_gaps_refuse_a_bad_number_of_actions(bad: int) -> None:
    for refuses in (
        lambda: per_step_constant(bad),
        lambda: per_step_constant(bad, "paper"),
        lambda: sharp_gap_row(1.0, bad),
        lambda: sharp_gap_with_spread(1.0, bad, 1.0),
        lambda: slope_constant(bad),
        lambda: beta_for_gap(1.0, 0.1, bad),
    ):
        with pytest.raises(UserError, match="number of actions"):
            refuses()


@pytest.mark.parametrize("bad", [[], 3.0, [[]], [0.0, math.nan], [0.0, math.inf]])
def test_entropy_gap_refuses_rows_that_are_empty_or_not_finite(bad: list[float]) -> None:
    with pytest.raises(UserError, match="the action values must"):
        entropy_gap(bad, 1.0)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_spread_must_be_finite_and_not_negative(bad: float) -> None:
    with pytest.raises(UserError, match="spread"):
        sharp_gap_with_spread(1.0, 2, bad)
    with pytest.raises(UserError, match="spread"):
        step_gap(1.0, 2, "paper", spread=bad)


def test_an_unknown_constant_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="known: paper, sharp"):
        per_step_constant(2, "shrap")  # type: ignore[arg-type]
