"""Improvements that leave rows out are the same to the bit as those that read them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dynaboltz.mdp import MDP, build_world
from dynaboltz.planning import improver as improvers
from dynaboltz.planning.improver import Improver, first_choice
from dynaboltz.planning.problem import Problem


def nearly_tied(seed: int) -> MDP:
    """Few rewards, a third of them one unit in the last place off, and every second row a copy of the one before."""
    world, rng = build_world(f"garnet(states=300, actions=6, branching=3, seed={seed})"), np.random.default_rng(seed)
    reward = rng.integers(0, 3, world.n_rows).astype(np.float64)
    reward = np.where(rng.random(world.n_rows) < 0.3, np.nextafter(reward, 9.0), reward)
    next_state, probability = world.next_state.reshape(-1, 3).copy(), world.probability.reshape(-1, 3).copy()
    next_state[1::2], probability[1::2] = next_state[::2], probability[::2]
    return MDP.from_rows(
        world.row_states(), world.action, world.row_ptr, next_state.ravel(), probability.ravel(), reward
    )


def ends_in_between() -> MDP:
    """Every fifth state is terminal."""
    world = build_world("garnet(states=200, actions=4, branching=3)")
    states, ends = world.row_states(), np.arange(0, 200, 5)
    stay = states % 5 != 0
    inside = np.repeat(stay, 3)
    return MDP.from_rows(
        states[stay], world.action[stay], np.arange(0, 3 * stay.sum() + 1, 3), world.next_state[inside],
        world.probability[inside], world.reward[stay], n_states=200, terminal=ends,
    )  # fmt: skip


MODELS = {
    "garnet": build_world("garnet(states=500, actions=8, branching=5)"),
    "float32": build_world("garnet(states=500, actions=5, branching=3)").with_precision(np.float32),
    "grid": build_world("grid(rows=12, cols=12, slip=0.2)"),
    "inventory": build_world("inventory"),
    "nearly_tied": nearly_tied(3),
    "ends_in_between": ends_in_between(),
}


def drifting(mdp: MDP, seed: int) -> Iterator[Any]:
    """Values that start at 0, move less and less, stand still, and jump."""
    rng, values = np.random.default_rng(seed), np.zeros(mdp.n_states)
    for size in (0.0, 1.0, 0.3, 0.1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 0.0, 0.0, 2.0, 1e-2, 1e-8):
        values = values + size * (rng.normal(size=mdp.n_states) + rng.normal())
        values[mdp.terminal] = 0.0
        yield values


@pytest.mark.parametrize("left_out", [-1.0, 0.5, 1.0], ids=["leaving_out", "as_it_pays", "reading_all"])
@pytest.mark.parametrize("name", MODELS)
def test_planning_improver_equals_reading_every_row(
    name: str, left_out: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(improvers, "LEFT_OUT", left_out)
    mdp = MODELS[name]
    with Problem(mdp, 0.95) as problem:
        expected_choice = first_choice(problem, np.zeros(mdp.n_states, np.int32))
        choice = expected_choice.copy()
        improver = Improver(problem, choice)
        backup, expected, swept = (np.empty(mdp.n_states) for _ in range(3))
        for values in drifting(mdp, 1):
            change = improver.improve(values, backup, choice)
            assert change == problem.improve(values, expected, expected_choice)
            np.testing.assert_array_equal(choice, expected_choice)
            assert backup.tobytes() == expected.tobytes()
            span = improver.evaluate(values, swept)
            assert swept.tobytes() == backup.tobytes()
            assert span == change.high - change.low


def test_planning_improver_allows_for_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows are worth the same, added up in another order, and all values rise alike: only rounding decides."""
    monkeypatch.setattr(improvers, "LEFT_OUT", -1.0)
    rng, half, k = np.random.default_rng(2), 400, 5
    rows = []
    for s in range(2 * half):
        targets, weights = rng.choice(half, k, replace=False), rng.dirichlet(np.ones(k))
        rows += [(s, 0, t, p, 0.0) for t, p in zip(targets, weights, strict=True)]
        rows += [(s, 1, t + half * rng.integers(2), p, 0.0) for t, p in zip(targets, weights, strict=True)]
    mdp = MDP.from_transitions(*zip(*rows, strict=True))
    moves = 0
    with Problem(mdp, 0.95) as problem:
        expected_choice, choice = np.zeros(2 * half, np.int32), np.zeros(2 * half, np.int32)
        improver = Improver(problem, choice)
        backup, expected = np.empty(2 * half), np.empty(2 * half)
        values = np.tile(rng.random(half), 2)
        for _ in range(20):
            before = expected_choice.copy()
            improver.improve(values, backup, choice)
            problem.improve(values, expected, expected_choice)
            moves += int((before != expected_choice).sum())
            np.testing.assert_array_equal(choice, expected_choice)
            assert backup.tobytes() == expected.tobytes()
            values = values + rng.random() * 1e-3
    assert moves > 100


def test_planning_improver_does_not_read_rows_that_cannot_be_greedy() -> None:
    mdp = build_world("garnet(states=200, actions=8, branching=5)")
    with Problem(mdp, 0.9) as problem:
        choice = first_choice(problem, np.zeros(mdp.n_states, np.int32))
        improver = Improver(problem, choice)
        values, backup, expected = np.zeros(mdp.n_states), np.empty(mdp.n_states), np.empty(mdp.n_states)
        for _ in range(60):
            improver.improve(values, backup, choice)
            values, backup = backup, values
        assert improver.sparse
        problem.improve(values, expected, choice.copy())
        problem.model = problem.model._replace(probability=np.full_like(mdp.probability, np.nan))
        improver.improve(values, backup, choice)
        assert backup.tobytes() == expected.tobytes()


def test_planning_first_choice_is_the_first_row_of_largest_reward() -> None:
    mdp = MDP.from_transitions([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [2] * 5, np.ones(5), [1, 3, 3, -1, -2], terminal=[2])
    with Problem(mdp, 0.9) as problem:
        assert first_choice(problem, np.ones(3, np.int32)).tolist() == [1, 0, 0]


def test_planning_improver_bounds_every_row_by_its_reward_where_values_are_zero() -> None:
    mdp = MODELS["ends_in_between"]
    with Problem(mdp, 0.9) as problem:
        choice = first_choice(problem, np.zeros(mdp.n_states, np.int32))
        improver = Improver(problem, choice)
        improver.improve(np.zeros(mdp.n_states), np.empty(mdp.n_states), choice)
        np.testing.assert_array_equal(improver.bound, mdp.reward)
