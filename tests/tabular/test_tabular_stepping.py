"""The same agent in Python: step for step what the compiled engine does, on any environment with Discrete spaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete, Tuple

from dynaboltz.errors import DynaboltzError, UserError
from dynaboltz.mdp import build_world, from_gymnasium, load, to_gymnasium
from dynaboltz.tabular import Learned, Shape, TableAgent, agent, learn
from dynaboltz.tabular.streams import keys

QUICK: dict[str, Any] = {"episodes": 15, "max_steps": 40, "epsilon": 0.3, "initial": "uniform(0, 0.1)"}
AGENTS = {
    "dbs": agent("dbs", **QUICK),
    "by visits": agent("dbs", **QUICK | {"clock": "visit", "step_size": "visits(0.8)"}),
    "by steps": agent("dbs", **QUICK | {
        "summary": "boltzmann(beta=linear(0.3))", "clock": "step", "epsilon": "linear(-0.001, start=1)",
        "epsilon_clock": "step",
    }),
    "double_q": agent("double_q", **QUICK),
    "sarsa": agent("sarsa", **QUICK | {"epsilon": "linear(-0.001, start=1)", "epsilon_clock": "step"}),
}  # fmt: skip


def agree(compiled: Learned, stepped: Learned) -> None:
    for name in ("steps", "returns", "q", "visits", "total_steps", "errors"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(stepped, name))


@pytest.mark.parametrize("name", AGENTS)
def test_stepped_agent_agrees_with_the_engine_to_the_last_bit(name: str) -> None:
    model = build_world("grid(rows=3, cols=4)")
    agree(learn(model, AGENTS[name], seeds=[5, 2]), learn(lambda: to_gymnasium(model), AGENTS[name], seeds=[5, 2]))


def test_stepped_agent_agrees_on_gymnasiums_own_environment() -> None:
    config = agent("dbs", **QUICK | {"initial": "zeros"})
    model = load("FrozenLake-v1(is_slippery=False)")
    made = learn(lambda: gymnasium.make("FrozenLake-v1", is_slippery=False, disable_env_checker=True), config, seeds=3)
    compiled = learn(model, config, seeds=3)
    assert compiled.steps.tolist() == made.steps.tolist()
    assert (compiled.q == made.q).all()


def test_stepped_agent_agrees_where_the_world_is_random_too() -> None:
    """Step by step, with the world's draws made here from the world's own stream."""
    model = build_world("grid(rows=3, cols=3, slip=0.3)")
    config = agent("dbs", **QUICK)
    compiled = learn(model, config, seeds=[9])
    stepped = TableAgent(config, Shape.of(model), seed=9)
    position, increment = (int(word) for word in keys(0, [9])[0, 2:])
    for steps in compiled.steps[0]:
        state, over, count = 0, False, 0
        stepped.begin(state)
        while not over:
            row = int(model.state_ptr[state]) + stepped.act()
            first, last = int(model.row_ptr[row]), int(model.row_ptr[row + 1])
            if last - first > 1:
                position = (position + increment) % 2**64
                z = (position ^ position >> 30) * 0xBF58476D1CE4E5B9 % 2**64
                z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
                sums = np.add.accumulate(model.probability[first:last])
                first += int((sums <= ((z ^ z >> 31) >> 11) * 2.0**-53 * sums[-1]).sum())
            state, count = int(model.next_state[first]), count + 1
            reward = model.reward[row] if model.transition_reward is None else model.transition_reward[first]
            over = stepped.observe(float(reward), state, terminated=bool(model.terminal[state]))
        assert count == steps
    assert (stepped.q[0] == compiled.q[0]).all()


def test_stepped_agent_notes_errors_and_ends_like_the_engine() -> None:
    model, config = build_world("grid(rows=2, cols=3)"), agent("dbs", episodes=60, epsilon=1.0, step_size=1.0)
    p, r = model.to_arrays()
    best = np.zeros(r.shape)
    for _ in range(100):
        best = r + 0.9 * p @ best.max(axis=1)
    question: dict[str, Any] = {"optimum": best, "marks": [1, 5, 25, 125, 625], "stop_error": 0.1, "seeds": 3}
    compiled = learn(model, config, **question)
    stepped = learn(lambda: to_gymnasium(model), config, **question)
    assert compiled.total_steps.tolist() == stepped.total_steps.tolist()
    np.testing.assert_array_equal(compiled.errors, stepped.errors)


def test_actions_that_a_state_does_not_have_are_never_taken_in_python_either() -> None:
    model = build_world("inventory(capacity=2, demand=1)")
    config = agent("dbs", episodes=2, max_steps=100, epsilon=1.0)
    found = learn(lambda: to_gymnasium(model), config)
    assert np.isneginf(found.q[0]).sum() == 3
    assert (found.visits[0][np.isneginf(found.q[0])] == 0).all()


class Corridor(gymnasium.Env[Any, Any]):
    """No model: spaces that begin elsewhere, and rewards that depend on the generator of the episode."""

    observation_space, action_space = Discrete(5, start=10), Discrete(4, start=-1)

    def __init__(self, fault: str = "") -> None:
        self.fault, self.at, self.taken = fault, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.at = 0
        return 10, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.taken += 1
        if self.taken == 30:
            if self.fault == "raises":
                raise RuntimeError("the lamp is broken")
            if self.fault == "reward":
                return 10, float("nan"), False, False, {}
            if self.fault == "observation":
                return 17, 0.0, False, False, {}
        self.at = min(4, max(0, self.at + (1 if action == 0 else -1)))
        return np.int64(10 + self.at), float(self.np_random.random()), self.at == 4, False, {}


def test_environment_that_is_no_model_is_learned() -> None:
    found = learn(Corridor, agent("dbs", episodes=300, epsilon=0.1, discount=0.0), seeds=2)
    assert found.q.shape == (2, 5, 4)
    assert not np.array_equal(found.returns[0], found.returns[1])
    assert abs(found.q[:, :4, 1].mean() - 0.5) < 0.2
    assert (learn(Corridor, agent("dbs", episodes=300, discount=0.0), seeds=[1]).q[0] == learn(
        Corridor, agent("dbs", episodes=300, discount=0.0), seeds=2).q[1]).all()  # fmt: skip


@pytest.mark.parametrize(("fault", "message"), [
    ("raises", r"Corridor: seed 0, episode \d+, step \d+, action -?\d: RuntimeError: the lamp is broken"),
    ("reward", "the reward is nan, not a finite number"),
    ("observation", "the observation is 17, not a whole number from 10 to 14"),
])  # fmt: skip
def test_fault_of_an_environment_is_told_with_its_place_and_leaves_a_whole_checkpoint(
    fault: str, message: str, tmp_path: Path
) -> None:
    config = agent("dbs", episodes=30)
    with pytest.raises(DynaboltzError, match=message):
        learn(lambda: Corridor(fault), config, checkpoint=tmp_path, checkpoint_seconds=0.0)
    resumed = learn(Corridor, config, checkpoint=tmp_path, resume=True)
    assert resumed.digest() == learn(Corridor, config).digest()


class Stop(Exception):  # noqa: N818
    pass


def test_interrupted_and_resumed_environment_is_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynaboltz.tabular.session.SECONDS_BETWEEN_NEWS", 0.0)
    config, left = agent("dbs", episodes=20), [7]

    def stop(_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Stop

    with pytest.raises(Stop):
        learn(Corridor, config, seeds=2, checkpoint=tmp_path, progress=stop)
    resumed = learn(Corridor, config, seeds=2, checkpoint=tmp_path, resume=True)
    assert resumed.digest() == learn(Corridor, config, seeds=2).digest()


class Wide(Corridor):
    observation_space = Box(0.0, 1.0, (3,))  # type: ignore[assignment]


class Pairs(Corridor):
    """The same corridor, seen as a pair of numbers whose first part says which half it is."""

    observation_space = Tuple((Discrete(2, start=5), Discrete(3)))  # type: ignore[assignment]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.seen(super().reset(seed=seed, options=options)[0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, *rest = super().step(action)
        return self.seen(observation), *rest

    def seen(self, observation: int) -> Any:
        half, place = divmod(int(observation) - 10, 3)
        return 5 + half, place


class Grids(Pairs):
    """The same as an array."""

    observation_space = MultiDiscrete([2, 3])  # type: ignore[assignment]

    def seen(self, observation: int) -> Any:
        return np.array(divmod(int(observation) - 10, 3))


@pytest.mark.parametrize("make", [Pairs, Grids])
def test_observation_of_several_numbers_is_learned_like_their_one_number(make: type[Corridor]) -> None:
    config = agent("dbs", episodes=40, discount=0.5)
    one, several = learn(Corridor, config, seeds=2), learn(make, config, seeds=2)
    assert several.q.shape == (2, 6, 4)
    assert (several.q[:, :5] == one.q).all()
    assert several.returns.tolist() == one.returns.tolist()


@pytest.mark.parametrize(
    "observation", [3, (1,), (0, 3), (2, 0), (0, 0.5), (0, "x"), (0, 1, 2), np.zeros((3, 1)), None]
)
def test_observation_that_has_no_number_is_told(observation: Any) -> None:
    class Lost(Grids):
        def seen(self, observation: int) -> Any:  # noqa: ARG002
            return lost

    lost = observation
    with pytest.raises(DynaboltzError, match=r"not 2 whole numbers, from \(0, 0\) to \(1, 2\)"):
        learn(Lost, agent("dbs", episodes=2))


def test_environment_without_discrete_spaces_is_refused() -> None:
    with pytest.raises(UserError, match=r"Wide: a table needs a Discrete observation space, got Box"):
        learn(Wide, agent("dbs"))


def test_table_agent_refuses_what_comes_in_the_wrong_order_or_is_out_of_range() -> None:
    learner = TableAgent(agent("dbs", episodes=1), Shape.plain(states=2, actions=2))
    with pytest.raises(UserError, match=r"from 0 to 1, got 2"):
        learner.begin(2)
    learner.begin(0)
    with pytest.raises(UserError, match="after act"):
        learner.observe(0.0, 1, terminated=False)
    assert learner.act() == learner.act()
    with pytest.raises(UserError, match="finite number, got inf"):
        learner.observe(float("inf"), 1, terminated=False)
    assert learner.observe(0.0, 1, terminated=True)
    with pytest.raises(UserError, match="1 episodes are over"):
        learner.begin(0)


def test_model_of_taxi_is_learned_compiled() -> None:
    found = learn(from_gymnasium("Taxi-v4"), agent("q", episodes=30, max_steps=50))
    assert found.q.shape == (1, 501, 6)
