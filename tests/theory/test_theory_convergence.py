"""Theorem 1: its recursion holds on random MDPs, with either constant, and tells when to stop."""

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
    Constant,
    World,
    a_posteriori_bound,
    beta_needed,
    error_sequence,
    initial_error_bound,
    iterate,
    optimal_values,
    steps_until,
    tight_bandit,
    value_span_bound,
    vanishing_step,
)

CONSTANTS = get_args(Constant)


def random_world(rng: np.random.Generator) -> World:
    states, actions = int(rng.integers(1, 7)), int(rng.integers(2, 10))
    transitions = rng.dirichlet(np.full(states, 0.3), size=(states, actions))
    rewards = rng.normal(size=(states, actions)) * 10.0 ** rng.uniform(-2, 1)
    return World(rewards, transitions, float(rng.uniform(0.1, 0.98)), rng.normal(size=states))


def random_worlds(count: int, seed: int) -> list[World]:
    rng = np.random.default_rng(seed)
    return [random_world(rng) for _ in range(count)]


def errors(world: World, betas: list[float]) -> np.ndarray:
    best = optimal_values(world)
    return np.array([np.abs(v - best).max() for v in iterate(world, betas)])


def power_betas(rng: np.random.Generator, steps: int) -> list[float]:
    scale, power = 10.0 ** rng.uniform(-2, 1), rng.uniform(0.25, 3.0)
    return [scale * t**power for t in range(1, steps + 1)]


def test_optimal_values_solve_the_bellman_equation() -> None:
    for world in random_worlds(100, seed=0):
        best = optimal_values(world)
        np.testing.assert_allclose(world.action_values(best).max(axis=-1), best, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("constant", CONSTANTS)
def test_error_of_dbs_value_iteration_never_exceeds_theorem_1(constant: Constant) -> None:
    rng = np.random.default_rng(1)
    for world in random_worlds(150, seed=2):
        betas = power_betas(rng, 100)
        found = errors(world, betas)
        bound = error_sequence(found[0], world.discount, betas, world.rewards.shape[1], constant=constant)
        assert (found <= bound * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("constant", CONSTANTS)
def test_each_step_of_the_recursion_holds_from_the_true_error(constant: Constant) -> None:
    rng = np.random.default_rng(3)
    for world in random_worlds(60, seed=4):
        betas = power_betas(rng, 40)
        found = errors(world, betas)
        m = world.rewards.shape[1]
        for before, after, beta in zip(found, found[1:], betas, strict=False):
            bound = error_sequence(before, world.discount, [beta], m, constant=constant)[-1]
            assert after <= bound * (1 + 1e-9) + 1e-12


def test_sharp_recursion_is_attained_on_the_tight_bandit() -> None:
    beta, m, discount = 5.0, 4, 0.9
    betas = [beta] * 50
    found = errors(tight_bandit(beta, m, discount), betas)
    np.testing.assert_allclose(found, error_sequence(0.0, discount, betas, m), rtol=1e-12)


def test_a_known_spread_bounds_the_error_through_a_backup_with_beta_zero() -> None:
    for world in random_worlds(60, seed=5):
        betas = [float(t**2) for t in range(50)]  # begins with β_0 = 0, as the paper's indices have it
        found = errors(world, betas)
        reach, span = float(np.ptp(world.rewards)), float(np.ptp(world.initial))
        spread = max(value_span_bound(t, world.discount, reach, span) for t in range(1, 51))
        for constant in CONSTANTS:
            m = world.rewards.shape[1]
            bound = error_sequence(found[0], world.discount, betas, m, constant=constant, spread=spread)
            assert np.isfinite(bound).all()
            assert (found <= bound * (1 + 1e-9) + 1e-12).all()


def test_dbs_values_lie_between_max_values_and_those_minus_the_recursion() -> None:
    rng = np.random.default_rng(6)
    for world in random_worlds(60, seed=7):
        betas = power_betas(rng, 50)
        dbs = np.array(iterate(world, betas))
        top = np.array(iterate(world, [math.inf] * 50))
        lag = error_sequence(0.0, world.discount, betas, world.rewards.shape[1])[:, None]
        slack = 1e-10 * (1 + np.abs(top).max())
        assert (dbs <= top + slack).all()
        assert (dbs >= top - lag - slack).all()


def test_dbs_value_iteration_converges_to_the_optimal_values() -> None:
    for world in random_worlds(20, seed=8):
        found = errors(world, [t**4 * 1e3 for t in range(1, 1500)])
        assert found[-1] <= 1e-9 * (1 + found[0])


@given(
    st.floats(0, 100),
    st.floats(0, 0.999),
    st.lists(st.floats(0.01, 1e6), min_size=1, max_size=30),
    st.integers(1, 20),
)
def test_recursion_equals_the_closed_sum_of_theorem_1(
    start: float, discount: float, betas: list[float], m: int
) -> None:
    t = len(betas)
    closed = discount**t * start + math.log(m) * sum(
        discount ** (t - k) / beta for k, beta in enumerate(betas, start=1)
    )
    found = error_sequence(start, discount, betas, m, constant="paper")
    assert found.shape == (t + 1,)
    assert found[-1] == pytest.approx(closed, rel=1e-9, abs=1e-300)


def test_residual_bounds_the_error_whatever_the_values_are() -> None:
    for world in random_worlds(100, seed=9):
        residual = np.abs(world.action_values(world.initial).max(axis=-1) - world.initial).max()
        error = np.abs(world.initial - optimal_values(world)).max()
        assert error <= a_posteriori_bound(float(residual), world.discount) * (1 + 1e-12)


def test_initial_error_bound_holds_for_values_in_the_range_of_the_rewards() -> None:
    rng = np.random.default_rng(10)
    for world in random_worlds(100, seed=11):
        bound = float(np.abs(world.rewards).max())
        v = rng.uniform(-1, 1, world.initial.shape) * bound / (1 - world.discount)
        error = np.abs(v - optimal_values(world)).max()
        assert error <= initial_error_bound(world.discount, bound) * (1 + 1e-12)


@given(st.floats(1e-3, 10), st.floats(0, 0.95), st.floats(1, 4), st.integers(1, 18), st.sampled_from(CONSTANTS))
def test_steps_until_is_the_first_step_within_the_error(
    error: float, discount: float, power: float, m: int, constant: Constant
) -> None:
    start = 20.0

    def schedule(t: int) -> float:
        return 100.0 * math.pow(t, power)

    t = steps_until(error, start, discount, schedule, m, constant=constant)
    betas = itertools.islice(map(schedule, itertools.count(1)), t)
    bounds = error_sequence(start, discount, betas, m, constant=constant)
    assert bounds[-1] <= error
    assert (bounds[:-1] > error).all()


def test_steps_until_calls_the_schedule_from_step_1() -> None:
    seen: list[int] = []

    def schedule(t: int) -> float:
        seen.append(t)
        return float(t)

    assert steps_until(0.3, 1.0, 0.5, schedule, m=1) == 2
    assert seen == [1, 2]


def test_steps_until_is_zero_when_the_start_is_good_enough() -> None:
    assert steps_until(1.0, 1.0, 0.9, lambda _: math.nan, m=4) == 0


def test_steps_until_refuses_a_schedule_that_cannot_get_there() -> None:
    limit = beta_needed(0.01, 0.9, m=4)
    assert steps_until(0.01, 1.0, 0.9, lambda _: limit * 1.001, m=4) > 0
    with pytest.raises(UserError, match=rf"still .* after 5000 steps.* above {limit:.6g}"):
        steps_until(0.01, 1.0, 0.9, lambda _: limit * 0.999, m=4, max_steps=5000)


def test_steps_until_counts_exactly_up_to_its_cap() -> None:
    steps = steps_until(0.01, 1.0, 0.5, lambda _: math.inf, m=2)
    assert steps == 7
    assert steps_until(0.01, 1.0, 0.5, lambda _: math.inf, m=2, max_steps=steps) == steps
    with pytest.raises(UserError, match="after 6 steps"):
        steps_until(0.01, 1.0, 0.5, lambda _: math.inf, m=2, max_steps=steps - 1)


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_the_sum_stays_below_its_target_after_the_vanishing_step(power: float) -> None:
    target, discount = 0.5, 0.9
    tail = target * (1 - discount) / 2
    start = math.ceil((1 / tail) ** (1 / power))
    step = vanishing_step(target, tail, tail_from=start, discount=discount, smallest_beta=1.0)
    last = math.ceil(step) + 500
    sums = error_sequence(0.0, discount, (float(k) ** power for k in range(1, last)), 2, constant="paper")
    assert (sums[math.floor(step) + 1 :] / math.log(2) < target).all()


def test_vanishing_step_refuses_a_tail_that_fills_the_target() -> None:
    with pytest.raises(UserError, match="must be below ε₂"):
        vanishing_step(1.0, 0.5, tail_from=3, discount=0.5, smallest_beta=1.0)


@pytest.mark.parametrize("bad", [-0.1, 1.0, math.nan, math.inf, "0.9", True])
def test_theorem_1_refuses_a_discount_outside_its_range(bad: float) -> None:
    for refuses in (
        lambda: error_sequence(1.0, bad, [1.0], 2),
        lambda: a_posteriori_bound(1.0, bad),
        lambda: beta_needed(1.0, bad, 2),
        lambda: initial_error_bound(bad, 1.0),
        lambda: steps_until(1.0, 1.0, bad, float, 2),
        lambda: vanishing_step(1.0, 0.1, 3, bad, 1.0),
    ):
        with pytest.raises(UserError, match="discount"):
            refuses()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_theorem_1_names_the_step_whose_beta_is_bad(bad: float) -> None:
    with pytest.raises(UserError, match="β"):
        error_sequence(1.0, 0.5, [1.0, bad], 2)
    if bad != 0.0:
        with pytest.raises(UserError, match="β at step 2"):
            steps_until(0.1, 1.0, 0.5, lambda t: 1.0 if t == 1 else bad, 2)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_steps_until_refuses_an_error_that_is_not_positive(bad: float) -> None:
    with pytest.raises(UserError, match="ε must be"):
        steps_until(bad, 1.0, 0.5, float, 2)
