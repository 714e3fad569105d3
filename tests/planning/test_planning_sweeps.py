"""One compiled sweep against naive loops and against jaxdp, for every operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dynaboltz import Dynamic, Fixed, boltzmann, log_sum_exp, mellowmax, parse_summary, power
from dynaboltz.mdp import MDP, build_world
from dynaboltz.operators import OPERATORS
from dynaboltz.planning import METHODS, solve
from dynaboltz.planning import problem as problems
from dynaboltz.planning.problem import Problem

SUMMARIES = (
    "hard_max",
    "mean",
    "boltzmann(3)",
    "log_sum_exp(3)",
    "mellowmax(3)",
    "soft_mellowmax(2, beta=3)",
    "epsilon_mixture(0.3)",
)
assert {parse_summary(text).operator.name for text in SUMMARIES} == set(OPERATORS)


def random_mdp(seed: int, *, states: int = 21, dtype: Any = np.float64, terminal: int = 2) -> MDP:
    """Between one and seven actions a state, between one and five transitions a row, some states terminal."""
    rng = np.random.default_rng(seed)
    columns: list[tuple[int, int, int, float, float]] = []
    for s in range(states - terminal):
        for a in sorted(rng.choice(7, rng.integers(1, 8), replace=False)):
            targets = rng.choice(states, rng.integers(1, 6), replace=False)
            weights = rng.dirichlet(np.ones(targets.size))
            reward = float(rng.normal())
            columns += [(s, int(a), int(t), float(p), reward) for t, p in zip(targets, weights, strict=True)]
    ends = np.arange(states - terminal, states)
    mdp = MDP.from_transitions(*zip(*columns, strict=True), n_states=states, terminal=ends)
    return mdp.with_precision(dtype)


def naive_sweep(mdp: MDP, values: Any, discount: float, summary: Any, t: int) -> Any:
    new = np.zeros(mdp.n_states)
    for s in range(mdp.n_states):
        q = []
        for row in range(mdp.state_ptr[s], mdp.state_ptr[s + 1]):
            total = 0.0
            for k in range(mdp.row_ptr[row], mdp.row_ptr[row + 1]):
                total += float(mdp.probability[k]) * float(values[mdp.next_state[k]])
            q.append(float(mdp.reward[row]) + discount * total)
        if q:
            new[s] = summary(np.array(q), t).item()
    return new


@pytest.mark.parametrize("text", SUMMARIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_planning_sweep_equals_naive_loops(text: str, seed: int) -> None:
    mdp, summary = random_mdp(seed), parse_summary(text)
    initial = np.random.default_rng(seed).normal(size=mdp.n_states)
    initial[mdp.terminal] = 0.0
    found = solve(
        mdp, discount=0.9, summary=summary, method="jacobi", max_sweeps=3, initial=initial, trace="values"
    ).trace
    assert found is not None
    assert found.values is not None
    expected = initial
    for t in (1, 2, 3):
        expected = naive_sweep(mdp, expected, 0.9, summary, t)
        np.testing.assert_allclose(found.values[t], expected, rtol=0, atol=1e-13)


def test_planning_sweep_reads_float32_probabilities_as_stored() -> None:
    mdp = random_mdp(3, dtype=np.float32)
    assert mdp.probability.dtype == np.float32
    initial = np.linspace(-1, 1, mdp.n_states)
    initial[mdp.terminal] = 0.0
    solution = solve(mdp, discount=0.9, method="jacobi", max_sweeps=1, initial=initial)
    expected = naive_sweep(mdp, initial, 0.9, Fixed(parse_summary("hard_max").operator), 1)
    np.testing.assert_allclose(solution.values, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("states", [1, 2, 7, 8, 9, 16, 17])
def test_planning_sweep_is_right_for_any_number_of_states(states: int) -> None:
    mdp = build_world(f"garnet(states={states}, actions=3, branching=1)")
    summary = Fixed(boltzmann, 2.0)
    initial = np.linspace(1.0, 2.0, states)
    found = solve(mdp, discount=0.5, summary=summary, max_sweeps=1, initial=initial)
    np.testing.assert_allclose(found.values, naive_sweep(mdp, initial, 0.5, summary, 1), atol=1e-14)


def test_planning_sweep_extremes_are_those_of_the_whole_model() -> None:
    """What the certificate stands on: least and largest of T_m V − V, of T_m V − T V and of T V − V, and max |T V|."""
    mdp = random_mdp(5)
    old = np.random.default_rng(5).normal(size=mdp.n_states)
    old[mdp.terminal] = 0.0
    new = np.empty_like(old)
    with Problem(mdp, 0.9) as problem:
        found = problem.sweep(problem.parameters(boltzmann), 2.0, old, new)
    top = naive_sweep(mdp, old, 0.9, Fixed(parse_summary("hard_max").operator), 1)
    gain, lag, step = top - old, top - new, new - old
    expected = [gain.min(), gain.max(), lag.min(), lag.max(), step.min(), step.max(), np.abs(new).max()]
    np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.parametrize(
    ("method", "text"),
    [(name, "hard_max") for name in METHODS] + [("jacobi", "boltzmann(beta=power(2))"), ("jacobi", "mellowmax(3)")],
)
def test_planning_solution_has_the_same_bits_on_one_and_two_threads(
    method: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problems, "RANGE_TRANSITIONS", 500)
    monkeypatch.setattr(problems, "BLOCK_STATES", 50)
    mdp = build_world("grid(rows=20, cols=21, slip=0.1)")
    with Problem(mdp, 0.9, threads=2) as problem:
        assert problem.threads == 2
        assert len(problem.ranges) > 4
        assert len(problem.blocks) > 4
    one, two = (
        solve(mdp, discount=0.9, summary=text, method=method, error=1e-8, threads=threads) for threads in (1, 2)
    )
    assert one.values.tobytes() == two.values.tobytes()
    assert (one.sweeps, one.certificate.error_bound) == (two.sweeps, two.certificate.error_bound)


def test_planning_solution_does_not_depend_on_how_a_sweep_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = build_world("garnet(states=300, actions=3, branching=4)")
    whole = solve(mdp, discount=0.9, summary="boltzmann(beta=power(1))", max_sweeps=50)
    monkeypatch.setattr(problems, "RANGE_TRANSITIONS", 100)
    cut = solve(mdp, discount=0.9, summary="boltzmann(beta=power(1))", max_sweeps=50)
    assert whole.values.tobytes() == cut.values.tobytes()


def jax_model(mdp: MDP) -> Any:
    import jax.numpy as jnp
    import jaxdp.mdp.mdp as theirs

    probability, reward = mdp.to_arrays()
    for s in np.flatnonzero(mdp.terminal):
        probability[s, :, s] = 1.0
    return theirs.MDP(
        transition=jnp.asarray(probability.transpose(1, 2, 0)),
        reward=jnp.asarray(np.repeat(reward.T[:, :, None], mdp.n_states, axis=2)),
        initial=jnp.full(mdp.n_states, 1 / mdp.n_states),
        terminal=jnp.asarray(mdp.terminal, dtype=float),
    )


def test_planning_dbs_equals_jaxdp() -> None:
    from jaxdp.planning import DynamicBoltzmannValueIteration

    mdp = build_world("garnet(states=30, actions=4, branching=5, seed=1)")
    planner = DynamicBoltzmannValueIteration(gamma=0.9, power=2.0)
    theirs = jax_model(mdp)
    state = planner.init(theirs)
    ours = solve(mdp, discount=0.9, summary=Dynamic(boltzmann, power(2)), max_sweeps=12, trace="values").trace
    assert ours is not None
    assert ours.values is not None
    for t in range(1, 13):
        state = planner.update(theirs, state)
        np.testing.assert_allclose(ours.values[t], np.asarray(state.v_val), rtol=2e-5)


@pytest.mark.parametrize(
    ("operator", "name"),
    [(boltzmann, "BoltzmannBellmanOp"), (mellowmax, "MellowMaxBellmanOptOp"), (log_sum_exp, "SoftBellmanOptOp")],
)
def test_planning_sweep_equals_jaxdp_operator(operator: Any, name: str) -> None:
    import jax.numpy as jnp
    import jaxdp.operator

    mdp = build_world("garnet(states=30, actions=4, branching=5, seed=2)")
    values = np.random.default_rng(0).normal(size=mdp.n_states)
    theirs = getattr(jaxdp.operator, name)(temperature=0.25).v(jax_model(mdp), jnp.asarray(values, jnp.float32), 0.9)
    ours = solve(mdp, discount=0.9, summary=Fixed(operator, 4.0), max_sweeps=1, initial=values)
    np.testing.assert_allclose(ours.values, np.asarray(theirs), rtol=2e-5, atol=2e-6)


def test_planning_infinite_beta_sweeps_as_the_maximum() -> None:
    mdp = random_mdp(7)
    sharp = solve(mdp, discount=0.9, summary=Fixed(boltzmann, math.inf), max_sweeps=20, error=1e-300)
    top = solve(mdp, discount=0.9, method="jacobi", max_sweeps=20, error=1e-300)
    np.testing.assert_array_equal(sharp.values, top.values)
