"""The agent: the same bits again, resumed or evaluated or not; clocks; what is not finite."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynaboltz.deep import PRESETS, Agent, AgentConfig, NonFinite, memory
from dynaboltz.deep.engine import ENGINES
from dynaboltz.envs.spec import Spec, Step
from dynaboltz.errors import UserError
from dynaboltz.summaries import Dynamic

SPEC = Spec(shape=(2,), dtype="float32", n_actions=3, stack=2)
SMALL: dict[str, Any] = {
    "hidden": (8,), "batch_size": 4, "replay_capacity_steps": 60, "replay_start_steps": 10, "target_period": "8 steps",
    "epsilon": "0.2", "engine": "torch",
}  # fmt: skip
OURS = [name for name in ENGINES if name != "torch"]


class Drift:
    """``n`` environments that are a function of a counter and the actions: enough to tell any two runs apart."""

    def __init__(self, n: int, state: Any = None) -> None:
        self.n = n
        self.position: np.ndarray = np.zeros(n) if state is None else state[0].copy()
        self.age: np.ndarray = np.zeros(n, np.int64) if state is None else state[1].copy()

    def frames(self) -> np.ndarray:
        return np.stack([np.sin(self.position), np.cos(3 * self.position)], 1).astype(np.float32)

    def step(self, actions: np.ndarray) -> Step:
        self.position += 0.3 + 0.2 * actions + 0.1 * np.arange(self.n)
        self.age += 1
        final = self.frames()
        terminal, over = np.sin(5 * self.position) > 0.95, self.age >= 7
        over = over | terminal
        reward = np.cos(self.position)
        self.age[over] = 0
        self.position[over] *= 1.01
        return Step(self.frames(), reward, terminal, over, final)


def play(agent: Agent, world: Drift, steps: int) -> None:
    for _ in range(steps):
        actions = agent.act()
        agent.observe(actions, world.step(actions))


def start(n: int = 1, seed: int = 0, **settings: Any) -> tuple[Agent, Drift]:
    agent, world = Agent(AgentConfig(**(SMALL | settings)), SPEC, n, seed=seed), Drift(n)
    agent.begin(world.frames())
    return agent, world


def digest(tree: Any) -> str:
    """Of every leaf of a state, its type and its bits."""
    found = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                found.update(str(key).encode())
                add(value[key])
        elif isinstance(value, list):
            for item in value:
                add(item)
        elif isinstance(value, np.ndarray):
            found.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
        else:
            found.update(repr(value).encode())

    add(tree)
    return found.hexdigest()


def copied(tree: Any) -> Any:
    if isinstance(tree, dict):
        return type(tree)((key, copied(value)) for key, value in tree.items())
    if isinstance(tree, list):
        return [copied(item) for item in tree]
    return np.array(tree) if isinstance(tree, np.ndarray) else tree


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "two environments": {"n": 2, "train_period_steps": 4},
    "prioritised, n-step": {"prioritised": True, "n_step": 3, "double": True},
    "c learned": {
        "summary": "boltzmann(beta=power(2))", "c_learning": "corrected", "c_bar": "infinity", "c_trace": 0.5,
    },
    "c learned as printed": {"summary": "boltzmann(beta=power(2))", "c_learning": "as_printed"},
    "c learned from one update in 3": {
        "summary": "boltzmann(beta=power(2))", "c_learning": "corrected", "c_trace": 0.5, "c_period_updates": 3,
    },
    "c learned as printed, from one update in 3": {
        "summary": "boltzmann(beta=power(2))", "c_learning": "as_printed", "c_period_updates": 3,
    },
    "overlap": {"overlap": True, "train_period_steps": 3, "prioritised": True},
    "overlap, c learned": {
        "overlap": True, "summary": "boltzmann(beta=power(2))", "c_learning": "corrected",
        "target_period": "5 updates",
    },
    "bfloat16": {"autocast": "bfloat16", "optimiser": "deepmind_rmsprop"},
}  # fmt: skip
KINDS |= {
    f"{name}, {engine}": kind | {"engine": engine}
    for engine in OURS
    for name, kind in KINDS.items()
    if name != "bfloat16"
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@each_kind
@pytest.mark.parametrize("at", [5, 31])
def test_agent_resumed_mid_episode_is_the_same_to_the_bit(kind: dict[str, Any], at: int) -> None:
    agent, world = start(**kind)
    play(agent, world, at)
    saved, where = copied(agent.state()), (world.position.copy(), world.age.copy())
    play(agent, world, 40)
    other = Agent(agent.config, SPEC, agent.n_envs, seed=99)
    other.restore(saved)
    again = Drift(agent.n_envs, where)
    other.begin(again.frames())
    play(other, again, 40)
    assert digest(other.state()) == digest(agent.state())
    assert other.measurements() == agent.measurements()
    for each in (agent, other):
        each.close()


@pytest.mark.parametrize("c_learning", ["corrected", "as_printed"])
@pytest.mark.parametrize("at", [30, 31, 32])
def test_agent_that_learns_c_seldom_is_the_same_interrupted_after_any_update_of_a_period(
    c_learning: str, at: int
) -> None:
    """At step 30 between the update that depends on c, the 21st, and the one that judges it."""
    kind = KINDS["c learned from one update in 3"] | {"c_learning": c_learning}
    agent, world = start(**kind)
    play(agent, world, at)
    assert agent.updates % 3 == {30: 0, 31: 1, 32: 2}[at]
    test_agent_resumed_mid_episode_is_the_same_to_the_bit(kind, at)


@each_kind
def test_agent_with_the_same_seed_is_the_same_and_with_another_is_not(kind: dict[str, Any]) -> None:
    found = []
    for seed in (0, 0, 1):
        agent, world = start(seed=seed, **kind)
        play(agent, world, 40)
        found.append(digest(agent.state()))
        agent.close()
    assert found[0] == found[1] != found[2]


@each_kind
def test_agent_cannot_tell_that_it_was_evaluated_read_or_saved(kind: dict[str, Any]) -> None:
    undisturbed, world = start(**kind)
    play(undisturbed, world, 40)
    agent, world = start(**kind)
    for _ in range(40):
        play(agent, world, 1)
        player, elsewhere = agent.player(3, epsilon=0.1, rng=np.random.default_rng(0)), Drift(3)
        player.begin(elsewhere.frames())
        for _ in range(2):
            assert player.values().shape == (3, 3)
            player.observe(elsewhere.step(player.act()))
        agent.state()
        agent.settle()
        agent.weights()
    assert digest(agent.state()) == digest(undisturbed.state())


def test_overlap_acts_with_the_weights_of_before_the_update() -> None:
    agent, world = start(overlap=True, train_period_steps=5, epsilon="0")
    play(agent, world, 15)
    agent.settle()
    acting, online = (np.array(flat) for flat in (agent.engine.parameters.acting, agent.engine.parameters.online))
    assert (acting != online).any()
    assert agent.updates == 2
    values = agent.engine.values(agent.stacker.inputs, "acting")
    assert agent.act()[0] == values.argmax()
    play(agent, world, 5)
    np.testing.assert_array_equal(agent.engine.parameters.acting, online)
    agent.close()


def test_agent_updates_and_syncs_when_they_are_due() -> None:
    """From step 10 on every second step; the target network every 8 steps after something was learned."""
    agent, world = start(train_period_steps=2)
    for expected in ((9, 0, 0), (10, 1, 0), (15, 3, 0), (16, 4, 1), (23, 7, 1), (24, 8, 2)):
        play(agent, world, expected[0] - agent.steps)
        assert (agent.steps, agent.updates, agent.syncs) == expected


def test_agent_with_several_environments_counts_their_steps_together() -> None:
    agent, world = start(n=4, train_period_steps=2, train_updates=3, target_period="7 updates")
    play(agent, world, 2)
    assert (agent.steps, agent.updates) == (8, 0)
    play(agent, world, 1)
    assert (agent.steps, agent.updates, agent.syncs) == (12, 6, 0)
    play(agent, world, 1)
    assert (agent.steps, agent.updates, agent.syncs) == (16, 12, 1)


@pytest.mark.parametrize(
    ("clock", "expected"), [("target_sync", 1 + 2), ("update", 15), ("step", 24), ("episode", None)]
)
def test_beta_clock_counts_what_it_says_from_one(clock: str, expected: int | None) -> None:
    """At step 24: 15 updates, two syncs (at 16 and, after the update, at 24), so the update saw one."""
    agent, world = start(summary="boltzmann(beta=linear(1))", beta_clock=clock)
    play(agent, world, 24)
    assert agent.updates == 15
    assert agent.syncs == 2
    play(agent, world, 1 if clock == "target_sync" else 0)
    assert agent.episodes >= 2
    assert agent.measurements()["beta"] == (agent.episodes + 1 if expected is None else expected)


def test_agent_is_random_until_replay_starts_and_then_greedy_with_epsilon() -> None:
    agent, world = start(epsilon="0.5", replay_start_steps=50, replay_capacity_steps=2000)
    early = []
    while agent.steps < 50:
        early.append(int(agent.act()[0]))
        agent.observe(np.array(early[-1:]), world.step(np.array(early[-1:])))
    assert len(set(early)) == 3
    assert agent.measurements()["epsilon"] == 1.0
    greedy = 0
    for _ in range(1000):
        best = agent.engine.values(agent.stacker.inputs).argmax()
        greedy += int(agent.act()[0] == best)
    assert greedy / 1000 == pytest.approx(0.5 + 0.5 / 3, abs=0.05)


def test_reward_clip_bounds_what_is_learned_from() -> None:
    agent, _ = start(reward_clip=1.0)
    frames = Drift(1).frames()
    for reward in (5.0, -7.0, 0.5):
        flags = np.array([False])
        agent.observe(np.array([0]), Step(frames, np.array([reward]), flags, flags, frames))
    assert agent.replay.reward[0, :3].tolist() == [1.0, -1.0, 0.5]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["reward", "observation", "final", "weight", "target"])
def test_number_that_is_not_finite_stops_the_next_update_and_is_named(where: str, wrong: float) -> None:
    agent, world = start()
    play(agent, world, 20)
    actions = agent.act()
    step = world.step(actions)
    step = replace(step, final=step.final.copy())
    if where == "reward":
        step.reward[0] = wrong
    elif where in ("observation", "final"):
        getattr(step, where)[0, 1] = wrong
    else:
        network = {"weight": "online", "target": "target"}[where]
        getattr(agent.engine.parameters, network)[:] = wrong
    with pytest.raises(NonFinite) as caught:
        agent.observe(actions, step)
    named = {"weight": "online network", "target": "target network", "final": "observation"}.get(where, where)
    assert named in str(caught.value)
    assert f"at update {caught.value.update}, agent step {caught.value.step}" in str(caught.value)


def test_loss_and_gradient_that_overflow_are_named() -> None:
    agent, world = start(learning_rate=1e3, loss="squared", optimiser="sgd")
    with pytest.raises(NonFinite, match=r"gradient of|weight|action value|loss"):
        play(agent, world, 400)


def test_beta_that_becomes_no_number_is_named_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, world = start(summary="boltzmann(beta=power(2))", beta_clock="update")
    play(agent, world, 20)
    weights = agent.engine.parameters.online.copy()
    monkeypatch.setattr(Dynamic, "beta", lambda *_: math.nan)
    with pytest.raises(NonFinite, match="β is nan at update"):
        play(agent, world, 1)
    assert (agent.engine.parameters.online == weights).all()


def test_fault_beside_acting_is_raised_by_the_next_call() -> None:
    agent, world = start(overlap=True)
    play(agent, world, 20)
    agent.settle()
    agent.engine.parameters.online[:] = np.nan
    with pytest.raises(NonFinite, match="online network"):
        play(agent, world, 2)
    agent.close()


def test_measurements_are_means_since_the_last_call() -> None:
    agent, world = start(summary="boltzmann(beta=power(2))", c_learning="corrected")
    assert agent.measurements() == {"epsilon": 1.0}
    play(agent, world, 30)
    found = agent.measurements()
    assert {"loss", "q_mean", "td_error", "beta", "gap", "variance", "entropy", "saturated", "epsilon", "c"} <= set(
        found
    )
    assert {"meta_gradient", "meta_sign"} <= set(found)
    assert set(agent.measurements()) == {"epsilon"}


def test_weights_of_one_agent_load_into_another() -> None:
    agent, world = start()
    play(agent, world, 30)
    other, _ = start(seed=5)
    other.load_weights(agent.weights())
    np.testing.assert_array_equal(other.engine.parameters.online, agent.engine.parameters.online)
    np.testing.assert_array_equal(other.engine.parameters.target, agent.engine.parameters.online)
    with pytest.raises(UserError, match="shape"):
        Agent(AgentConfig(**(SMALL | {"hidden": (9,)})), SPEC, seed=0).load_weights(agent.weights())


def test_observation_of_another_shape_is_refused() -> None:
    agent = Agent(AgentConfig(**SMALL), SPEC, seed=0)
    with pytest.raises(UserError, match=r"\(1, 2\), got \(2,\)"):
        agent.begin(np.zeros(2, np.float32))
    with pytest.raises(UserError, match="begin"):
        agent.act()


@pytest.mark.parametrize("preset", [name for name in PRESETS if not name.endswith("-nature")])
def test_every_preset_makes_an_agent_that_updates(preset: str) -> None:
    spec = Spec(shape=(4, 10, 10), dtype="bool", n_actions=3) if preset.endswith("minatar") else SPEC
    sizes: dict[str, Any] = {"replay_start_steps": 32, "replay_capacity_steps": 64, "train_period_steps": 1}
    config = replace(PRESETS[preset](), **sizes, engine="torch")
    agent = Agent(config, spec, seed=0)
    frames = np.zeros((1, *spec.shape), spec.dtype)
    agent.begin(frames)
    flags = np.array([False])
    for _ in range(34):
        agent.observe(agent.act(), Step(frames, np.ones(1), flags, flags, frames))
    assert agent.updates == 3
    assert math.isfinite(agent.measurements()["loss"])


def test_memory_is_what_the_arrays_hold() -> None:
    config = AgentConfig(**(SMALL | {"prioritised": True, "replay_capacity_steps": 1000}))
    agent = Agent(config, SPEC, 2, seed=0)
    expected = memory(config, SPEC, 2)
    r = agent.replay
    assert r.tree is not None
    held = sum(a.nbytes for a in (r.frames, r.action, r.reward, r.flags, r.age, r.tree))
    assert expected["replay"] == held
    p = agent.engine.parameters
    assert expected["networks"] == p.online.nbytes + p.target.nbytes
    assert expected["optimiser"] == p.first.nbytes + p.second.nbytes + p.gradients.nbytes
