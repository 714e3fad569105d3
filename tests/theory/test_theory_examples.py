"""The worlds that attain or refute: each does what its docstring says. And the package as it is imported."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys

import numpy as np
import pytest

from dynaboltz import theory
from dynaboltz.errors import UserError
from dynaboltz.theory import (
    World,
    corollary_sharp,
    find_period,
    iterate,
    one_state,
    optimal_values,
    tight_bandit,
    two_cycle,
)


@pytest.mark.parametrize(("m", "beta", "discount"), [(2, 5.0, 0.9), (4, 0.3, 0.5), (18, 100.0, 0.95)])
def test_tight_bandit_attains_the_sharp_corollary(m: int, beta: float, discount: float) -> None:
    world = tight_bandit(beta, m, discount)
    assert optimal_values(world).tolist() == [0.0]
    error = -iterate(world, [beta] * 1000)[-1].item()
    reach = float(np.ptp(world.rewards))
    assert error == pytest.approx(corollary_sharp(beta, m, discount, reach), rel=1e-12)


def test_tight_bandit_has_the_known_error() -> None:
    error = -iterate(tight_bandit(5.0, 2, 0.9), [5.0] * 1000)[-1].item()
    assert error == pytest.approx(0.556929, abs=5e-7)


def test_two_cycle_alternates_for_ever_with_a_fixed_beta() -> None:
    values = iterate(two_cycle(), [3.0] * 2000)
    assert find_period(values) == 2
    assert sorted(values[-1]) == pytest.approx([18.948, 19.863], abs=5e-4)
    np.testing.assert_allclose(values[-1], values[-2][::-1], rtol=1e-12)


@pytest.mark.parametrize(
    ("beta", "period"),
    [(0.5, 1), (1.0, 1), (1.3, 1), (1.5, 2), (2.0, 2), (4.0, 2), (5.0, 2), (5.2, 1), (6.0, 1)],
)
def test_two_cycle_has_period_two_for_medium_beta_only(beta: float, period: int) -> None:
    assert find_period(iterate(two_cycle(), [beta] * 3000)) == period


def test_two_cycle_converges_to_its_optimal_values_with_a_dynamic_beta() -> None:
    np.testing.assert_allclose(optimal_values(two_cycle()), [20.0, 20.0], rtol=1e-12)
    last = iterate(two_cycle(), [float(t**2) for t in range(1, 1000)])[-1]
    np.testing.assert_allclose(last, [20.0, 20.0], rtol=1e-9)


def test_two_cycle_stays_within_the_bound_on_its_limsup() -> None:
    tail = np.array(iterate(two_cycle(), [3.0] * 2000)[-10:])
    assert np.abs(tail - 20.0).max() <= corollary_sharp(3.0, 2, 0.95, reward_range=1.0)


def test_find_period_finds_limits_cycles_and_nothing() -> None:
    assert find_period([np.array([1.0])] * 4) == 1
    assert find_period([np.array([float(t % 3)]) for t in range(12)]) == 3
    assert find_period([np.array([float(t)]) for t in range(12)]) is None
    assert find_period([np.array([0.0])]) is None


def test_iterate_is_max_value_iteration_at_infinite_beta_and_the_mean_at_zero() -> None:
    world = one_state([1.0, 3.0], 0.5, initial=4.0)
    assert [v.item() for v in iterate(world, [math.inf, 0.0])] == [4.0, 5.0, 4.5]


def test_iterate_names_the_step_with_a_bad_beta() -> None:
    with pytest.raises(UserError, match="β at step 2"):
        iterate(two_cycle(), [1.0, -1.0])


@pytest.mark.parametrize(
    ("rewards", "transitions", "initial", "words"),
    [
        (np.zeros((1, 2)), np.ones((1, 1, 1)), np.zeros(1), "shapes"),
        (np.zeros(2), np.ones((1, 2, 1)), np.zeros(1), "shapes"),
        (np.zeros((1, 2)), np.ones((1, 2, 1)), np.zeros(2), "shapes"),
        (np.zeros((1, 1)), np.full((1, 1, 1), 0.9), np.zeros(1), "distribution"),
        (np.full((1, 1), np.nan), np.ones((1, 1, 1)), np.zeros(1), "finite"),
    ],
)
def test_world_refuses_what_is_no_mdp(
    rewards: np.ndarray, transitions: np.ndarray, initial: np.ndarray, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        World(rewards, transitions, 0.5, initial)


def test_every_public_name_of_the_theory_is_there_and_documented() -> None:
    public = {name for name in vars(theory) if not name.startswith("_")}
    modules = {name for name in public if isinstance(getattr(theory, name), type(sys))}
    assert public - modules == set(theory.__all__)
    functions = {name for name in public if inspect.isfunction(getattr(theory, name))}
    assert len(functions) > 40
    assert all(inspect.getdoc(getattr(theory, name)) for name in functions)


def test_importing_the_theory_loads_nothing_heavy() -> None:
    heavy = "{'scipy.optimize', 'scipy.special', 'scipy.integrate', 'torch', 'numba', 'matplotlib'}"
    code = f"import sys, dynaboltz.theory; found = {heavy} & set(sys.modules); assert not found, found"
    subprocess.run([sys.executable, "-c", code], check=True)
