"""Theorem 2: the sum S_t, what the paper takes it for, what it is, and the step counts that follow."""

from __future__ import annotations

import itertools
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynaboltz.errors import UserError
from dynaboltz.theory import (
    PRINTED_COUNT_FAILURES,
    Constant,
    PrintedCountExample,
    corrected_step_count,
    error_sequence,
    initial_error_bound,
    iterate,
    per_step_constant,
    polylog_constant,
    printed_step_count,
    step_sum,
    step_sum_asymptotic,
    step_sum_half_bound,
    step_sum_polylog_bound,
    step_sum_printed,
    step_sum_split_bound,
    step_sums,
    steps_until,
)

DISCOUNTS = (0.1, 0.5, 0.9, 0.95, 0.99, 0.995)
POWERS = (0.25, 0.5, 1.0, 2.0, 3.0, 10.0)
discounts = st.floats(0.0, 0.999)
powers = st.floats(0.05, 12.0)


@given(st.integers(1, 200), discounts, powers)
def test_step_sum_is_the_sum_of_its_definition(t: int, discount: float, power: float) -> None:
    definition = math.fsum(discount ** (t - k) * k**-power for k in range(1, t + 1))
    assert step_sum(t, discount, power) == pytest.approx(definition, rel=1e-12)


@pytest.mark.parametrize(
    ("discount", "power", "ratios"),
    [
        (0.5, 2.0, (1.84, 1.09, 1.02, 1.00)),
        (0.9, 2.0, (8.13, 4.44, 1.12, 1.02)),
        (0.95, 2.0, (6.2, 19.7, 1.44, 1.04)),
        (0.99, 1.0, (0.30, 1.57, 2.59, 1.13)),
        (0.99, 2.0, (1.73, 26.3, 92.8, 2.05)),
        (0.99, 3.0, (14.6, 978, 1.33e4, 529)),
        (0.99, 10.0, (2.37e8, 7.28e14, 1.46e20, 4.41e23)),
    ],
)
def test_printed_step_sum_is_off_by_the_known_ratios(discount: float, power: float, ratios: tuple[float, ...]) -> None:
    found = [step_sum(t, discount, power) / step_sum_printed(t, discount, power) for t in (10, 50, 200, 1000)]
    assert found == pytest.approx(ratios, rel=6e-3)


def test_printed_step_sum_is_the_limit_from_below() -> None:
    ratios = [step_sum(t, 0.9, 2.0) / step_sum_printed(t, 0.9, 2.0) for t in (10**3, 10**4, 10**5)]
    assert all(ratio > 1.0 for ratio in ratios)
    # The first-order term of the ratio is p/((1−γ)t).
    assert [(r - 1) * t for r, t in zip(ratios, (10**3, 10**4, 10**5), strict=True)] == pytest.approx(
        [20] * 3, rel=0.05
    )


@pytest.mark.parametrize(("discount", "power"), [(0.5, 1.0), (0.9, 2.0), (0.99, 0.5)])
def test_asymptotic_step_sum_has_a_second_order_error(discount: float, power: float) -> None:
    def relative_error(t: int) -> float:
        return abs(step_sum_asymptotic(t, discount, power) / step_sum(t, discount, power) - 1)

    assert relative_error(50_000) == pytest.approx(relative_error(25_000) / 4, rel=0.1)


@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("power", POWERS)
def test_no_step_sum_on_a_grid_exceeds_any_of_its_bounds(discount: float, power: float) -> None:
    sums = step_sums(3000, discount, power)
    constant = polylog_constant(discount, power)
    for t in (*range(1, 60), *range(60, 3001, 49)):
        exact = sums[t - 1] * (1 - 1e-12)
        split = step_sum_split_bound(t, discount, power)
        assert exact <= split
        assert split * (1 - 1e-12) <= step_sum_half_bound(t, discount, power)
        assert exact <= step_sum_split_bound(t, discount, power, split=t // 4)
        assert exact <= constant * float(t) ** -power


@given(st.integers(1, 60), discounts, powers, st.data())
def test_split_bound_holds_for_any_split(t: int, discount: float, power: float, data: st.DataObject) -> None:
    split = data.draw(st.integers(0, t))
    assert step_sum(t, discount, power) <= step_sum_split_bound(t, discount, power, split) * (1 + 1e-12)


@given(st.integers(1, 60), discounts, powers)
def test_polylog_bound_holds(t: int, discount: float, power: float) -> None:
    assert step_sum(t, discount, power) <= step_sum_polylog_bound(t, discount, power) * (1 + 1e-12)


@given(st.floats(0.0, 0.9995))
def test_polylog_constant_has_its_closed_forms(discount: float) -> None:
    rest = 1 - discount
    assert polylog_constant(discount, 1.0) == pytest.approx(1 / rest**2, rel=1e-10)
    assert polylog_constant(discount, 2.0) == pytest.approx((1 + discount) / rest**3, rel=1e-10)


@pytest.mark.parametrize(("discount", "power"), [(0.9, 0.5), (0.99, 2.0), (0.995, 10.0), (0.3, 7.3)])
def test_polylog_constant_is_the_polylogarithm(discount: float, power: float) -> None:
    import mpmath

    exact = float(mpmath.nsum(lambda j: (1 + j) ** power * mpmath.mpf(discount) ** j, [0, mpmath.inf]))
    assert polylog_constant(discount, power) == pytest.approx(exact, rel=1e-9)


def test_polylog_constant_is_far_above_the_papers_factor() -> None:
    assert polylog_constant(0.99, 2.0) == pytest.approx(1.99e6, rel=1e-9)


def test_polylog_constant_is_infinite_where_it_overflows() -> None:
    assert polylog_constant(0.99, 300.0) == step_sum_polylog_bound(10, 0.99, 300.0) == math.inf


def test_printed_step_count_is_the_printed_formula() -> None:
    error, discount, power, m, r = 1e-3, 0.8, 1.5, 7, 3.0
    first = (math.log(1 / error) + math.log(1 / (1 - discount)) + math.log(r) + math.log(4)) / math.log(1 / discount)
    second = (2 * math.log(m) / ((1 - discount) * error)) ** (1 / power) - 1
    assert second > first
    assert printed_step_count(error, discount, power, m, r) == pytest.approx(second)
    assert printed_step_count(error, discount, 1000.0, m, r) == pytest.approx(first)


def test_printed_step_count_fails_the_bound_of_theorem_1_at_ordinary_settings() -> None:
    count = printed_step_count(0.01, 0.9, 2.0, m=18, reward_bound=1.0)
    assert count == pytest.approx(78.7, abs=0.05)
    betas = [float(t) ** 2 for t in range(1, math.ceil(count) + 1)]
    start = initial_error_bound(0.9, 1.0)
    bound = error_sequence(start, 0.9, betas, 18, constant="paper")[-1]
    assert bound / 0.01 == pytest.approx(1.28, abs=0.005)


@pytest.mark.parametrize(
    ("example", "steps", "error", "excess"),
    list(zip(PRINTED_COUNT_FAILURES, (1, 6), (0.3388, 6.5e-8), (1.73, 3.25), strict=True)),
)
def test_printed_step_count_fails_on_a_one_state_mdp(
    example: PrintedCountExample, steps: int, error: float, excess: float
) -> None:
    assert example.error < 0.25
    assert example.printed_steps == steps
    assert example.error_after(steps) == pytest.approx(error, rel=1e-3)
    assert example.excess == pytest.approx(excess, abs=0.005)


@pytest.mark.parametrize(
    ("m", "power", "discount", "drop", "error", "excess"),
    [
        (2, 3.0, 0.04, 1.0986, 0.18311, 1.75),
        (4, 3.0, 0.3, 0.28417, 0.1467, 1.109),
        (10**6, 8.0, 0.02, 1.4634, 0.11947, 12.5),
    ],
)
def test_printed_step_count_fails_the_more_the_more_actions_and_the_larger_the_power(
    m: int, power: float, discount: float, drop: float, error: float, excess: float
) -> None:
    """Already for p = 3 and two actions; with a million actions and p = 8 by an order of magnitude."""
    example = PrintedCountExample(discount=discount, power=power, m=m, drop=drop, error=error)
    assert example.error < 0.25
    assert example.excess == pytest.approx(excess, rel=2e-3)


def test_printed_step_count_fails_for_the_square_where_epsilon_is_not_below_a_quarter() -> None:
    """The proof does not use ε < 1/4; without it, β_t = t² fails as well."""
    example = PrintedCountExample(discount=0.147, power=2.0, m=18, drop=2.457, error=1.695)
    assert example.printed_steps == 1
    assert example.excess == pytest.approx(1.11, abs=0.005)


def test_printed_step_count_holds_for_the_square_on_a_grid_of_one_state_mdps() -> None:
    """With β_t = t² and ε < 1/4, as the theorem has it, no failure of this family is known: the worst is at 0.76 ε."""
    worst = 0.0
    for m, discount, steps in itertools.product((2, 4, 18), (0.02, 0.28, 0.66, 0.9), (1, 2, 5, 16)):
        for drop in np.geomspace(0.03, 30, 25) * math.log(m + 1) / steps**2:
            first = 4 * drop * discount**steps / (1 - discount)
            error = 1.0001 * max(first, 2 * math.log(m) / ((1 - discount) * (steps + 1) ** 2))
            example = PrintedCountExample(discount=discount, power=2.0, m=m, drop=float(drop), error=error)
            if error < 0.25:
                assert example.printed_steps == steps
                worst = max(worst, example.excess)
    assert 0.7 < worst < 1.0


@pytest.mark.parametrize("example", PRINTED_COUNT_FAILURES)
def test_scalar_recursion_of_the_counterexample_is_value_iteration(example: PrintedCountExample) -> None:
    betas = [float(t) ** example.power for t in range(1, 13)]
    dense = [abs(float(v[0])) for v in iterate(example.world, betas)]
    assert dense == pytest.approx([example.error_after(t) for t in range(13)], rel=1e-12)


@pytest.mark.parametrize("example", PRINTED_COUNT_FAILURES)
def test_corrected_step_count_holds_on_the_counterexamples(example: PrintedCountExample) -> None:
    steps = corrected_step_count(example.error, example.discount, example.power, example.m, example.drop)
    assert max(example.error_after(t) for t in range(steps, steps + 50)) <= example.error


@pytest.mark.parametrize("constant", get_args(Constant))
@pytest.mark.parametrize("discount", [0.0, *DISCOUNTS])
@pytest.mark.parametrize("power", POWERS[1:])
def test_corrected_step_count_holds_at_and_after_its_step(constant: Constant, discount: float, power: float) -> None:
    for error, m, r in ((0.5, 4, 1.0), (0.1, 18, 0.3), (30.0, 2, 1.0), (1e6, 2, 1.0)):
        steps = corrected_step_count(error, discount, power, m, r, constant=constant)
        if steps > 20_000:
            continue
        t = np.arange(steps, steps + 500)
        sums = np.append(0.0, step_sums(steps + 500, discount, power))[t]
        start = initial_error_bound(discount, r)
        bound = np.power(discount, t) * start + per_step_constant(m, constant) * sums
        assert (bound <= error * (1 + 1e-12)).all()


@given(
    st.floats(0.01, 1.0),
    st.floats(0.0, 0.97),
    st.floats(1.0, 10.0),
    st.integers(1, 30),
    st.floats(0.01, 10.0),
)
def test_exact_step_count_never_exceeds_the_corrected_one(
    error: float, discount: float, power: float, m: int, r: float
) -> None:
    exact = steps_until(error, initial_error_bound(discount, r), discount, lambda t: float(t) ** power, m)
    assert exact <= corrected_step_count(error, discount, power, m, r)


@given(st.floats(1e-4, 0.2), st.floats(0.05, 0.99), st.floats(0.5, 10.0), st.integers(2, 30))
def test_corrected_step_count_keeps_the_order_of_the_theorem(
    error: float, discount: float, power: float, m: int
) -> None:
    """At most twice the printed first entry with 2(2 + log m) for 4, and 2·2^{1/p} times the second."""
    first = 2 * math.log(2 * (2 + math.log(m)) / ((1 - discount) * error)) / math.log(1 / discount)
    second = 2 * (2 * math.log(m) / ((1 - discount) * error)) ** (1 / power)
    assert corrected_step_count(error, discount, power, m, 1.0, constant="paper") <= max(first, second) + 1


def test_step_count_for_a_large_power_is_that_of_the_bellman_operator() -> None:
    for m in (2, 18):
        count = printed_step_count(1e-6, 0.9, 1e6, m, 1.0)
        assert count == pytest.approx(math.log(4 / (0.1 * 1e-6)) / math.log(1 / 0.9))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_theorem_2_refuses_a_power_error_or_reward_bound_that_is_not_positive(bad: float) -> None:
    for refuses in (
        lambda: step_sum(3, 0.5, bad),
        lambda: step_sum_printed(3, 0.5, bad),
        lambda: step_sum_asymptotic(3, 0.5, bad),
        lambda: step_sum_split_bound(3, 0.5, bad),
        lambda: step_sum_half_bound(3, 0.5, bad),
        lambda: step_sum_polylog_bound(3, 0.5, bad),
        lambda: printed_step_count(bad, 0.5, 1.0, 2, 1.0),
        lambda: printed_step_count(0.1, 0.5, bad, 2, 1.0),
        lambda: printed_step_count(0.1, 0.5, 1.0, 2, bad),
        lambda: corrected_step_count(bad, 0.5, 1.0, 2, 1.0),
        lambda: corrected_step_count(0.1, 0.5, bad, 2, 1.0),
        lambda: corrected_step_count(0.1, 0.5, 1.0, 2, bad),
    ):
        with pytest.raises(UserError, match="finite number above 0"):
            refuses()


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_step_sums_refuse_a_step_that_is_not_a_positive_integer(bad: int) -> None:
    for function in (
        step_sum,
        step_sum_printed,
        step_sum_asymptotic,
        step_sum_split_bound,
        step_sum_half_bound,
    ):
        with pytest.raises(UserError, match="t must be an integer of at least 1"):
            function(bad, 0.5, 1.0)


def test_split_bound_refuses_a_split_beyond_t() -> None:
    with pytest.raises(UserError, match="at most t = 3, got 4"):
        step_sum_split_bound(3, 0.5, 1.0, split=4)


def test_corrected_step_count_refuses_what_is_beyond_double_precision() -> None:
    with pytest.raises(UserError, match="finite float"):
        corrected_step_count(1e-3, 0.9, 1e-3, 4, 1.0)
