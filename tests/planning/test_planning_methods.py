"""Every method finds the optimal values and policy, says when it did not, and tells what it is doing."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dynaboltz.mdp import MDP, build_world
from dynaboltz.planning import METHODS, Progress, solve
from dynaboltz.planning import problem as problems
from dynaboltz.planning.methods import parse_method
from dynaboltz.summaries import parse_summary

WORLDS = {
    "chain(states=30, slip=0.2)": 0.95,
    "paper_grid(slip=0.1)": 0.9,
    "garnet(states=50, actions=4, branching=6, seed=3)": 0.97,
    "inventory(capacity=8)": 0.9,
    "maintenance()": 0.95,
    "two_cycle()": 0.95,
    "bandit()": 0.5,
}
SPECS = ["jacobi", "gauss_seidel", "gauss_seidel(order='natural')", "mpi", "mpi(evaluations=3)", "auto"]
assert {spec.split("(")[0] for spec in SPECS} == set(METHODS)


def policy_iteration(mdp: MDP, discount: float) -> tuple[Any, Any]:
    """Dense policy iteration; the values of all rows besides V*."""
    probability, reward = mdp.to_arrays()
    available = np.zeros(reward.shape, bool)
    available[mdp.row_states(), mdp.action] = True
    policy = available.argmax(axis=1)
    while True:
        states = np.arange(mdp.n_states)
        p, r = probability[states, policy], reward[states, policy]
        values = np.linalg.solve(np.eye(mdp.n_states) - discount * p, r)
        q = np.where(available, reward + discount * probability @ values, -np.inf)
        better = q.max(axis=1) > q[states, policy] + 1e-10
        better &= ~mdp.terminal
        if not better.any():
            return values, q
        policy = np.where(better, q.argmax(axis=1), policy)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("spec", SPECS)
def test_planning_method_finds_what_policy_iteration_finds(spec: str, world: str) -> None:
    mdp, discount = build_world(world), WORLDS[world]
    expected, q = policy_iteration(mdp, discount)
    solution = solve(mdp, discount=discount, method=spec, error=1e-9)
    assert solution.converged
    assert solution.certificate.error_bound <= 1e-9
    np.testing.assert_allclose(solution.values, expected, rtol=0, atol=1.1e-9)
    acting = np.flatnonzero(~mdp.terminal)
    np.testing.assert_allclose(q[acting, solution.policy[acting]], q[acting].max(axis=1), atol=1e-8)
    assert (solution.policy[mdp.terminal] == -1).all()


@pytest.mark.parametrize("spec", SPECS)
def test_planning_method_reads_back_from_its_text(spec: str) -> None:
    summary = parse_summary("hard_max")
    method = parse_method(spec, summary)
    assert parse_method(str(method), summary) == method


@pytest.mark.parametrize("spec", SPECS)
def test_planning_max_sweeps_is_kept_and_reported(spec: str) -> None:
    mdp = build_world("chain(states=200, slip=0.3)")
    solution = solve(mdp, discount=0.999, method=spec, error=1e-9, max_sweeps=7)
    assert not solution.converged
    assert solution.sweeps == 7
    assert "max_sweeps = 7" in solution.reason
    assert f"within {solution.certificate.error_bound:.3g}" in solution.reason
    expected, _ = policy_iteration(mdp, 0.999)
    assert np.abs(solution.values - expected).max() <= solution.certificate.error_bound


def test_planning_error_below_rounding_is_refused_with_the_bound_reached() -> None:
    mdp = build_world("garnet(states=40, actions=3, branching=5)")
    solution = solve(mdp, discount=0.999, error=1e-13)
    assert not solution.converged
    assert "rounding" in solution.reason
    assert 1e-13 < solution.certificate.error_bound < 1e-7


def test_planning_mpi_needs_far_fewer_sweeps_than_jacobi_where_states_mix() -> None:
    mdp = build_world("garnet(states=200, actions=4, branching=10)")
    sweeps = {m: solve(mdp, discount=0.99, method=m, error=1e-8).sweeps for m in ("mpi", "jacobi")}
    assert 10 * sweeps["mpi"] < sweeps["jacobi"]


@pytest.mark.parametrize("discount", [0.9, 0.99, 0.999])
def test_planning_auto_keeps_to_plain_sweeps_where_states_mix(discount: float) -> None:
    mdp = build_world("garnet(states=2000, actions=4, branching=2)")
    auto, plain = (solve(mdp, discount=discount, method=method, error=1e-8) for method in ("auto", "mpi"))
    assert auto.converged
    assert auto.sweeps <= 1.5 * plain.sweeps


@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_planning_auto_sweeps_in_place_where_values_flow(discount: float) -> None:
    mdp = build_world("grid(rows=60, cols=60, slip=0.2)")
    auto, plain = (solve(mdp, discount=discount, method=method, error=1e-8) for method in ("auto", "mpi"))
    assert auto.converged
    assert auto.sweeps < plain.sweeps / 3


def test_planning_alternating_order_carries_news_both_ways() -> None:
    """The reward is at the end of the chain: sweeping backward finds it at once, sweeping forward one state a sweep."""
    mdp = build_world("chain(states=100)")
    sweeps = {
        o: solve(mdp, discount=0.9, method=f"gauss_seidel(order='{o}')").sweeps for o in ("natural", "alternating")
    }
    assert sweeps["alternating"] <= 4
    assert sweeps["natural"] > 90


def test_planning_blocks_read_each_other_as_before_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = build_world("chain(states=64)")
    monkeypatch.setattr(problems, "BLOCK_STATES", 16)
    with problems.Problem(mdp, 0.5) as problem:
        assert len(problem.blocks) == 4
        values, old = np.zeros(64), np.zeros(64)
        problem.relax(values, old, forward=False)
    first_of_last = problem.blocks[-1][0]
    assert values[first_of_last] > 0
    assert values[first_of_last - 1] == 0


def test_planning_auto_sweeps_other_summaries_by_jacobi() -> None:
    solution = solve(build_world("chain(states=5)"), discount=0.5, summary="boltzmann(beta=power(2))")
    assert solution.method.name == "jacobi"


def test_planning_progress_closes_on_the_error_asked_for() -> None:
    seen: list[Progress] = []
    mdp = build_world("chain(states=100, slip=0.3)")
    solution = solve(mdp, discount=0.99, method="gauss_seidel", error=1e-8, progress=seen.append)
    assert [p.sweep for p in seen] == list(range(1, solution.sweeps + 1))
    assert all(p.target == 1e-8 for p in seen)
    assert seen[0].bound == math.inf
    assert seen[-1].bound <= 1e-8
    assert all(a.seconds <= b.seconds for a, b in itertools.pairwise(seen))
    late = [p.remaining_seconds for p in seen[len(seen) // 2 : -1]]
    assert all(math.isfinite(left) and left >= 0 for left in late)


def test_planning_initial_values_are_where_sweeps_begin() -> None:
    mdp = build_world("paper_grid")
    first = solve(mdp, discount=0.9, method="jacobi", error=1e-10)
    again = solve(mdp, discount=0.9, method="jacobi", error=1e-9, initial=first.values)
    assert first.sweeps > 20
    assert again.sweeps == 1


def test_planning_leaves_the_initial_array_alone() -> None:
    initial = np.ones(100)
    solve(build_world("grid"), discount=0.9, initial=initial, method="gauss_seidel")
    assert (initial == 1.0).all()


def test_planning_import_does_not_bring_in_numba() -> None:
    code = "import dynaboltz.planning, sys; print('numba' in sys.modules, 'scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
