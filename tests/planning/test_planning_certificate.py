"""Certificates against exact rational arithmetic on the stored numbers, and questions that have no answer."""

from __future__ import annotations

import importlib.util
import math
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP, build_world
from dynaboltz.planning import METHODS, Solution, solve

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults_planning.py"


def _load_faults() -> Any:
    spec = importlib.util.spec_from_file_location("faults_planning", FAULTS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["faults_planning"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


faults = _load_faults()


def assert_contains(mdp: MDP, discount: float, solution: Solution, error: float = math.inf) -> None:
    exact = faults.optimum(mdp, discount)
    assert faults.violations(mdp, discount, solution, exact, error) == []


def test_planning_exact_reference_solves_a_model_done_by_hand() -> None:
    """From 0 to 1 to the end: V(1) = max(1, 3) and V(0) = max(2, γ·3), γ = 3/4."""
    mdp = MDP.from_transitions([0, 0, 1, 1], [0, 1, 0, 1], [2, 1, 2, 2], np.ones(4), [2.0, 0.0, 1.0, 3.0], terminal=[2])
    assert faults.optimum(mdp, 0.75) == [Fraction(9, 4), 3, 0]
    assert faults.policy_values(mdp, 0.75, [0, 2, None]) == [2, 1, 0]


def test_planning_checker_sees_a_bound_that_is_too_small() -> None:
    mdp = build_world("garnet(states=5, actions=2, branching=2)")
    solution = solve(mdp, discount=0.9, method="jacobi", error=1e-300, max_sweeps=5)
    claims = solution.certificate
    tight = replace(claims, error_bound=claims.error_bound / 1.5, low=0.0, high=0.0)
    found = faults.violations(mdp, 0.9, replace(solution, certificate=tight), faults.optimum(mdp, 0.9), 1.0)
    assert found == ["V* outside of lower and upper", "error above error_bound"]


def test_planning_certificate_contains_the_exact_optimum_of_hostile_models() -> None:
    """The small version of the benchmark, with another seed: every kind of model, method, precision and summary."""
    tally = faults.run(60, 11, lambda *_: None)
    assert tally.failures == []
    assert set(tally.kinds) == {"random", "chain", "ties", "scales", "undiscounted"}
    assert tally.converged.total() > 40


@pytest.mark.parametrize("sweeps", [1, 2, 3, 10])
@pytest.mark.parametrize("summary", ["hard_max", "boltzmann(beta=power(2))", "mean", "log_sum_exp(2)"])
def test_planning_certificate_holds_for_values_far_from_converged(summary: str, sweeps: int) -> None:
    rng = np.random.default_rng(5)
    for _ in range(3):
        _, mdp, _ = faults.random_model(rng)
        initial = rng.normal(size=mdp.n_states) * 100
        solution = solve(
            mdp, discount=0.9, summary=summary, method="jacobi", error=1e-300, max_sweeps=sweeps, initial=initial
        )
        assert_contains(mdp, 0.9, solution)


def test_planning_certificate_counts_row_sums_that_are_not_one() -> None:
    """Single-precision thirds sum to 1 + 3e-8: over the 10⁴ steps of γ = 0.9999 that moves V* by 3, not by rounding."""
    mdp = MDP.from_transitions(
        [0, 0, 0, 1, 1, 1, 2, 2, 2], [0] * 9, [0, 1, 2] * 3, np.full(9, 1 / 3, np.float32), np.ones(9)
    )
    assert mdp.probability.dtype == np.float32
    assert abs(faults.optimum(mdp, 0.9999)[0] - 10_000) > 2
    solution = solve(mdp, discount=0.9999, error=1e-2)
    assert solution.converged
    assert_contains(mdp, 0.9999, solution, 1e-2)


def test_planning_long_chain_is_within_its_bound_where_a_step_size_rule_is_not() -> None:
    """γ = 0.9999: successive values differ by less than 1e-4 although they are still wrong by almost 1."""
    mdp = MDP.from_transitions([0], [0], [0], [1.0], [1e-4])
    solution = solve(mdp, discount=0.9999, method="jacobi", error=1e-3)
    assert solution.converged
    assert abs(solution.values[0] - 1.0) <= solution.certificate.error_bound <= 1e-3
    early = solve(mdp, discount=0.9999, method="jacobi", error=1e-3, max_sweeps=100)
    assert not early.converged
    assert early.certificate.error_bound > 0.9


def test_planning_bounds_are_two_sided_and_zero_at_terminal_states() -> None:
    mdp = build_world("paper_grid(slip=0.1)")
    solution = solve(mdp, discount=0.9, error=1e-3)
    lower, upper = solution.certificate.lower, solution.certificate.upper
    exact = solve(mdp, discount=0.9, error=1e-12).values
    assert (lower <= exact).all()
    assert (exact <= upper).all()
    assert (upper - lower)[~mdp.terminal].max() <= 2 * solution.certificate.error_bound + 1e-15
    assert lower[mdp.terminal].item() == upper[mdp.terminal].item() == 0.0


def test_planning_rewards_scaled_scale_the_certificate() -> None:
    """Scaling by a power of two is exact, so nothing in the certificate may depend on the unit of the rewards."""
    small = build_world("garnet(states=20, actions=3, branching=4)")
    large = MDP.from_rows(
        small.row_states(), small.action, small.row_ptr, small.next_state, small.probability, small.reward * 2.0**40
    )
    a, b = (solve(m, discount=0.9, error=e) for m, e in ((small, 1e-6), (large, 1e-6 * 2.0**40)))
    np.testing.assert_array_equal(a.values * 2.0**40, b.values)
    assert b.certificate.error_bound == pytest.approx(a.certificate.error_bound * 2.0**40, rel=1e-9)


def test_planning_undiscounted_shortest_path_is_solved_exactly() -> None:
    """Three steps to the end at −1 each; both actions go on, so every policy ends."""
    mdp = MDP.from_transitions([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [1, 2, 2, 3, 3], np.ones(5), -np.ones(5), terminal=[3])
    for method in METHODS:
        solution = solve(mdp, discount=1, method=method, error=1e-9)
        assert solution.converged
        np.testing.assert_allclose(solution.values, [-2.0, -1.0, -1.0, 0.0], atol=1e-9)


def test_planning_undiscounted_certificate_contains_the_exact_optimum() -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        n = 5
        columns = []
        for s in range(n):
            for a in range(2):
                weights = rng.dirichlet(np.ones(n + 1))
                columns += [(s, a, t, float(p), float(rng.normal())) for t, p in enumerate(weights)]
        mdp = MDP.from_transitions(*zip(*columns, strict=True), terminal=[n])
        solution = solve(mdp, discount=1.0, error=1e-3)
        assert solution.converged
        assert_contains(mdp, 1.0, solution, 1e-3)


@pytest.mark.parametrize(
    ("world", "state"), [("chain(states=5)", "state 0"), ("two_cycle", "state 0"), ("map(text='S.#.G')", "state 0")]
)
def test_planning_undiscounted_endless_policy_is_refused_by_name(world: str, state: str) -> None:
    with pytest.raises(UserError, match="every policy to reach a terminal state") as refused:
        solve(build_world(world), discount=1.0)
    assert state in str(refused.value)


def test_planning_discount_too_close_to_one_for_the_row_sums_is_refused() -> None:
    mdp = MDP.from_transitions([0] * 3, [0] * 3, [0, 1, 2], np.full(3, 1 / 3, np.float32), np.ones(3), terminal=[1, 2])
    with pytest.raises(UserError, match=r"sums to 1\.00000002"):
        solve(mdp, discount=1 - 1e-9)


def test_planning_rewards_beyond_the_range_are_refused() -> None:
    with pytest.raises(UserError, match="rescale the rewards"):
        solve(MDP.from_transitions([0], [0], [0], [1.0], [1e289]), discount=0.99)


def test_planning_fixed_point_bound_contains_the_fixed_point_of_a_non_expansion() -> None:
    mdp = build_world("garnet(states=20, actions=3, branching=4)")
    for text in ("mean", "mellowmax(2)", "log_sum_exp(2)", "epsilon_mixture(0.2)"):
        rough = solve(mdp, discount=0.95, summary=text, error=1e-3)
        exact = solve(mdp, discount=0.95, summary=text, error=1e-11).values
        assert rough.converged
        assert 1e-8 < np.abs(rough.values - exact).max() <= rough.certificate.fixed_point_bound <= 1e-3


def test_planning_mean_is_the_value_of_the_uniform_policy() -> None:
    mdp = build_world("garnet(states=20, actions=3, branching=4)")
    probability, reward = mdp.to_arrays()
    expected = np.linalg.solve(np.eye(20) - 0.9 * probability.mean(axis=1), reward.mean(axis=1))
    np.testing.assert_allclose(solve(mdp, discount=0.9, summary="mean", error=1e-9).values, expected, atol=1e-9)


def test_planning_certificate_of_plain_sweeps_has_no_slack_to_speak_of() -> None:
    """One state, reward 1: after t sweeps V = (1 − γ^t)/(1 − γ), so the true error is γ^t/(1 − γ)."""
    mdp = MDP.from_transitions([0], [0], [0], [1.0], [1.0])
    solution = solve(mdp, discount=0.5, method="jacobi", error=1e-300, max_sweeps=10)
    assert solution.certificate.error_bound == pytest.approx(0.5**10 / 0.5, rel=1e-9)
    assert math.isclose(solution.values[0], 2 - 2 * 0.5**10)
