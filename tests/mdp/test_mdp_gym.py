"""Gymnasium both ways, against the table and the environments themselves."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from gymnasium.spaces import Discrete
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP, build_world, from_gymnasium, to_gymnasium

IDS = ["FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "Taxi-v4"]


def table_values(table: Any, gamma: float, sweeps: int) -> npt.NDArray[np.float64]:
    """Value iteration on P as Gymnasium means it: what is done has no future, wherever it points."""
    v = np.zeros(len(table))
    for _ in range(sweeps):
        v = np.array(
            [
                max(sum(p * (r + (0 if done else gamma * v[t])) for p, t, r, done in rows) for rows in actions.values())
                for actions in (table[s] for s in range(len(table)))
            ]
        )
    return v


def model_values(mdp: MDP, gamma: float, sweeps: int) -> npt.NDArray[np.float64]:
    v, matrix = np.zeros(mdp.n_states), mdp.to_scipy()
    going = ~mdp.terminal
    for _ in range(sweeps):
        q = mdp.reward + gamma * (matrix @ v)
        v[going] = np.maximum.reduceat(q, mdp.state_ptr[:-1][going])
    return v


class Toy(gymnasium.Env[Any, Any]):
    """Whatever table it is given."""

    def __init__(self, table: Any, states: int = 2, actions: int = 1) -> None:
        self.P, self.observation_space, self.action_space = table, Discrete(states), Discrete(actions)


@pytest.mark.parametrize("gamma", [0.5, 0.99])
@pytest.mark.parametrize("name", IDS)
def test_mdp_gym_values_equal_those_of_the_table_in_every_state(name: str, gamma: float) -> None:
    table: Any = gymnasium.make(name).unwrapped
    expected = table_values(table.P, gamma, 40)
    found = model_values(from_gymnasium(name), gamma, 40)
    assert np.allclose(found[: len(expected)], expected, atol=1e-12)
    assert np.abs(expected).max() > 0.01


def test_mdp_gym_frozen_lake_holes_and_goal_are_terminal_in_place() -> None:
    lake = from_gymnasium("FrozenLake-v1")
    assert lake.n_states == 16
    assert np.flatnonzero(lake.terminal).tolist() == [5, 7, 11, 12, 15]
    assert lake.grid is not None
    assert lake.grid.text == "SFFF\nFHFH\nFFFH\nHFFG"


@pytest.mark.parametrize(("name", "states"), [("CliffWalking-v1", 48), ("Taxi-v4", 500)])
def test_mdp_gym_done_towards_a_state_with_a_future_ends_in_an_added_state(name: str, states: int) -> None:
    model = from_gymnasium(name)
    assert np.flatnonzero(model.terminal).tolist() == [states]


def test_mdp_gym_takes_an_environment_or_its_id_with_keywords() -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    assert from_gymnasium(env).equals(from_gymnasium("FrozenLake-v1", is_slippery=False))
    assert not from_gymnasium(env).equals(from_gymnasium("FrozenLake-v1"))


def test_mdp_gym_frozen_lake_equals_our_map_with_slip_two_thirds() -> None:
    ours = MDP.from_text("SFFF/FHFH/FFFH/HFFG", slip=2 / 3)
    p, r = ours.to_arrays()
    theirs_p, theirs_r = from_gymnasium("FrozenLake-v1").to_arrays()
    order = [3, 2, 1, 0]  # theirs: left, down, right, up
    assert np.allclose(p[:, order], theirs_p, atol=1e-15)
    assert np.allclose(r[:, order], theirs_r, atol=1e-15)


def test_mdp_gym_done_loop_with_a_reward_pays_once() -> None:
    model = from_gymnasium(Toy({0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 1, 5.0, True)]}}))
    assert model_values(model, 0.9, 50).tolist() == [4.5, 5.0, 0.0]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({0: {0: [(1.0, 2, 0.0, False)]}, 1: {0: [(1.0, 1, 1.0, False)]}}, r"P\[0\]\[0\] leads to state 2"),
        ({0: {0: [(1.0, 1, 0.0, False)]}}, "no actions for state 1"),
        ({0: {3: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 1, 0.0, True)]}}, r"P\[0\] has the action 3"),
        ({0: {0: [(1.0, 1, 0.0)]}, 1: {0: [(1.0, 1, 0.0, True)]}}, r"P\[0\]\[0\] has \(1.0, 1, 0.0\)"),
        ({0: {0: [(0.5, 1, 0.0, False)]}, 1: {0: [(1.0, 1, 0.0, True)]}}, "state 0, action 0: .* sum to 0.5"),
        ({0: {0: [(1.0, 1, np.nan, False)]}, 1: {0: [(1.0, 1, 0.0, True)]}}, "state 0, action 0, .* reward is nan"),
        (7, "no transition table P"),
    ],
)
def test_mdp_gym_bad_table_is_refused_by_its_place(table: Any, says: str) -> None:
    with pytest.raises(UserError, match=says):
        from_gymnasium(Toy(table))


@pytest.mark.parametrize("name", ["CartPole-v1", "NoSuchLake-v1", "FrozenLake-v99"])
def test_mdp_gym_environment_without_a_table_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=name.split("-", maxsplit=1)[0]):
        from_gymnasium(name)


@pytest.mark.parametrize("text", ["paper_grid", "grid(slip=0.3)", "chain(slip=0.2)", "garnet", "two_cycle"])
def test_mdp_gym_round_trip_through_the_table_keeps_every_bit(text: str) -> None:
    world = build_world(text)
    back = from_gymnasium(to_gymnasium(world))
    assert np.array_equal(back.next_state, world.next_state)
    assert np.array_equal(back.probability, world.probability)
    assert np.array_equal(back.terminal, world.terminal)
    assert np.allclose(back.reward, world.reward, atol=1e-15)


def test_mdp_gym_environment_passes_gymnasiums_own_checker() -> None:
    env = to_gymnasium(build_world("grid(rows=3, cols=3, slip=0.2)"))
    env.spec = gymnasium.envs.registration.EnvSpec("dynaboltz/Test-v0", entry_point="dynaboltz.mdp.gym_env:MDPEnv")
    check_env(env, skip_render_check=True, skip_close_check=True)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**31 - 1))
def test_mdp_gym_environment_follows_its_seed(seed: int) -> None:
    def episode() -> list[Any]:
        env = to_gymnasium(build_world("garnet(states=20)"))
        first, _ = env.reset(seed=seed)
        return [first, *(env.step(step % 4)[0] for step in range(30))]

    assert episode() == episode()


def test_mdp_gym_environment_steps_with_the_models_chances_and_rewards() -> None:
    fork = MDP.from_transitions([0, 0, 1], [0, 0, 0], [0, 1, 0], [0.25, 0.75, 1.0], [3.0, -1.0, 0.0], start=0)
    env = to_gymnasium(fork)
    env.reset(seed=1)
    seen: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(4000):
        state, reward, *_ = env.step(0)
        seen[state].append(reward)
        if state == 1:
            env.step(0)
    assert set(seen[0]) == {3.0}
    assert set(seen[1]) == {-1.0}
    assert abs(len(seen[1]) / 4000 - 0.75) < 5 * (0.75 * 0.25 / 4000) ** 0.5


def test_mdp_gym_environment_terminates_at_a_terminal_state_only() -> None:
    env = to_gymnasium(build_world("chain(states=4)"), max_steps=3)
    env.reset(seed=0)
    flags = [env.step(1)[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (True, False)]


def test_mdp_gym_environment_truncates_after_max_steps() -> None:
    env = to_gymnasium(build_world("chain(states=9)"), max_steps=3)
    env.reset(seed=0)
    assert [env.step(1)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_mdp_gym_environment_refuses_a_step_after_the_end() -> None:
    env = to_gymnasium(build_world("chain(states=2)"))
    with pytest.raises(UserError, match="call reset"):
        env.step(1)
    env.reset()
    assert env.step(1)[2]
    with pytest.raises(UserError, match="call reset"):
        env.step(1)


def test_mdp_gym_environment_refuses_an_action_that_the_state_lacks() -> None:
    env = to_gymnasium(build_world("inventory(capacity=2)"))
    _, info = env.reset()
    assert info["action_mask"].tolist() == [1, 1, 1]
    while env.step(2 if info["action_mask"][2] else 0)[0] == 0:
        pass
    state = int(np.flatnonzero(env.action_mask()).size)
    assert state < 3
    with pytest.raises(UserError, match=r"state \d 'stock_\d' has no action 2"):
        env.step(2)


def test_mdp_gym_environment_needs_a_start_that_goes_on() -> None:
    with pytest.raises(UserError, match="start distribution"):
        to_gymnasium(MDP.from_text("..G"))
    ended = MDP.from_transitions([0], [0], [1], [1.0], [0.0], terminal=[1], start=1)
    with pytest.raises(UserError, match="state 1 is terminal and a first state"):
        to_gymnasium(ended)
