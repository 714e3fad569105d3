"""Agents with streams, noisy layers and atoms: the same bits again, what they explore by, and what they reach."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import numpy as np
import pytest

from dynaboltz.deep import PRESETS, Agent
from dynaboltz.envs import make
from dynaboltz.envs.probes import PROBES
from dynaboltz.envs.spec import Spec, Step

SPEC = Spec(shape=(2,), dtype="float32", n_actions=3, stack=2)
SMALL: dict[str, Any] = {
    "hidden": (8,), "batch_size": 4, "replay_capacity_steps": 60, "replay_start_steps": 10, "target_period": "8 steps",
}  # fmt: skip
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "rainbow": ("rainbow", {}),
    "dbs-rainbow": ("dbs-rainbow", {}),
    "two environments, ε": ("rainbow", {"n": 2, "epsilon": "0.3", "train_period_steps": 4}),
    "overlap": ("dbs-rainbow", {"overlap": True, "train_period_steps": 3}),
    "noisy alone": ("dqn", {"noisy": 0.5, "epsilon": "0"}),
    "noisy Munchausen": ("munchausen", {"noisy": 0.5, "duelling": True}),
    "atoms alone": ("dbs-dqn-fixed", {"atoms": 11, "value_range": (-5.0, 5.0)}),
    "duelling alone, as printed": ("dbs-dqn", {"duelling": True, "c_learning": "as_printed"}),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


class Drift:
    """``n`` environments that are a function of a counter and the actions."""

    def __init__(self, n: int, position: np.ndarray | None = None) -> None:
        self.n, self.position = n, np.zeros(n) if position is None else position.copy()

    def frames(self) -> np.ndarray:
        return np.stack([np.sin(self.position), np.cos(3 * self.position)], 1).astype(np.float32)

    def step(self, actions: np.ndarray) -> Step:
        self.position += 0.3 + 0.2 * actions + 0.1 * np.arange(self.n)
        final, over = self.frames(), np.sin(5 * self.position) > 0.9
        self.position[over] *= 1.01
        return Step(self.frames(), np.cos(self.position), over, over, final)


def start(kind: tuple[str, dict[str, Any]], seed: int = 0) -> tuple[Agent, Drift]:
    settings = dict(kind[1])
    n = settings.pop("n", 1)
    agent, world = Agent(PRESETS[kind[0]](**(SMALL | settings)), SPEC, n, seed=seed), Drift(n)
    agent.begin(world.frames())
    return agent, world


def play(agent: Agent, world: Drift, steps: int) -> None:
    for _ in range(steps):
        actions = agent.act()
        agent.observe(actions, world.step(actions))


def digest(tree: Any) -> str:
    def told(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: told(value[key]) for key in sorted(value)}
        if isinstance(value, list):
            return [told(item) for item in value]
        return f"{value.dtype}{value.shape}{value.tobytes().hex()}" if isinstance(value, np.ndarray) else repr(value)

    return hashlib.sha256(json.dumps(told(tree)).encode()).hexdigest()


def copied(tree: Any) -> Any:
    if isinstance(tree, dict):
        return type(tree)((key, copied(value)) for key, value in tree.items())
    if isinstance(tree, list):
        return [copied(item) for item in tree]
    return np.array(tree) if isinstance(tree, np.ndarray) else tree


@each_kind
@pytest.mark.parametrize("at", [5, 31])
def test_agent_with_a_larger_head_resumes_to_the_bit(kind: tuple[str, dict[str, Any]], at: int) -> None:
    agent, world = start(kind)
    play(agent, world, at)
    saved, where = copied(agent.state()), world.position.copy()
    play(agent, world, 30)
    other, again = Agent(agent.config, SPEC, agent.n_envs, seed=99), Drift(agent.n_envs, where)
    other.restore(saved)
    other.begin(again.frames())
    play(other, again, 30)
    assert digest(other.state()) == digest(agent.state())
    for each in (agent, other):
        each.close()


@each_kind
def test_agent_with_a_larger_head_cannot_tell_that_it_was_evaluated(kind: tuple[str, dict[str, Any]]) -> None:
    undisturbed, world = start(kind)
    play(undisturbed, world, 35)
    agent, world = start(kind)
    for _ in range(35):
        play(agent, world, 1)
        player, elsewhere = agent.player(3, epsilon=0.1, rng=np.random.default_rng(0)), Drift(3)
        player.begin(elsewhere.frames())
        player.observe(elsewhere.step(player.act()))
        agent.state()
        agent.weights()
    assert digest(agent.state()) == digest(undisturbed.state())
    assert digest(start(kind, seed=1)[0].state()) != digest(start(kind)[0].state())
    for each in (agent, undisturbed):
        each.close()


def test_state_without_noise_has_none() -> None:
    assert "noise" not in start(("dqn", {}))[0].state()
    assert set(start(("rainbow", {}))[0].state()["noise"]) == {"acting", "learning"}


def test_player_shows_the_means_under_mean_weights() -> None:
    agent, world = start(("dbs-rainbow", {}))
    play(agent, world, 20)
    player = agent.player(1, epsilon=0.0, rng=np.random.default_rng(0))
    player.begin(world.frames())
    shown = player.values().copy()
    assert shown.shape == (1, 3)
    inputs = np.zeros((1, 2, 2), np.float32)
    inputs[:, -1] = world.frames()
    expected = agent.engine.distributions(inputs) @ np.linspace(-100, 100, 51)
    np.testing.assert_allclose(shown, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(player.values(), shown)
    assert player.act()[0] == shown.argmax()


def test_noise_is_what_explores_where_epsilon_is_nothing() -> None:
    """In one and the same state actions differ from decision to decision, and without noise they do not."""
    for noisy, expected in ((0.5, {0, 1, 2}), (0.0, None)):
        agent, world = start(("rainbow", {"noisy": noisy, "replay_start_steps": 10}))
        play(agent, world, 10)
        found = {int(agent.act()[0]) for _ in range(300)}
        assert found == expected if expected else len(found) == 1


def test_priorities_are_those_of_the_divergence() -> None:
    agent, world = start(("rainbow", {}))
    play(agent, world, 30)
    errors, slots = agent.learner.targets.error, agent._batch.slot
    tree = agent.replay.tree
    assert tree is not None
    leaves = tree[len(tree) // 2 :][slots]
    last = dict(zip(slots.tolist(), errors.tolist(), strict=True))
    np.testing.assert_allclose(leaves, [(last[slot] + 1e-6) ** 0.5 for slot in slots.tolist()])
    assert (errors > 0).all()


PROBE: dict[str, Any] = {
    "hidden": (32,), "discount": 0.8, "batch_size": 32, "replay_capacity_steps": 600, "replay_start_steps": 200,
    "learning_rate": 5e-3, "epsilon": "1", "target_period": "20 updates", "value_range": (-6.0, 6.0),
    "n_step": 1,
}  # fmt: skip


def trained(preset: str, probe: str, steps: int, **settings: Any) -> Agent:
    envs = make(f"probe/{probe}", seed=0)
    agent = Agent(PRESETS[preset](**(PROBE | settings)), envs.spec, seed=0)
    agent.begin(envs.reset())
    for _ in range(steps):
        actions = agent.act()
        agent.observe(actions, envs.step(actions))
    return agent


WORLDS = [("rainbow", probe) for probe in PROBES] + [
    ("dbs-rainbow", probe) for probe in ("discount", "noise", "terminal", "truncation", "final", "beta")
]


@pytest.mark.parametrize(("preset", "probe"), WORLDS)
def test_rainbow_reaches_the_values_of_every_probe(preset: str, probe: str) -> None:
    """By β = t², t in target periods, boltz is the maximum here."""
    network = "minatar" if probe == "channels" else "mlp"
    agent = trained(preset, probe, 500 if probe == "channels" else 800, network=network)
    expected = np.array(PROBES[probe].targets(0.8, lambda q: float(q.max())))
    noise = 0.35 if probe == "noise" else 0.1
    np.testing.assert_allclose(agent.engine.values(PROBES[probe].inputs), expected, atol=noise)


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("summary", ["boltzmann(beta=2)", "mean", "epsilon_mixture(epsilon=0.5)"])
def test_mixture_reaches_its_own_value_of_the_beta_probe(summary: str, double: bool) -> None:
    agent = trained("rainbow", "beta", 900, summary=summary, double=double)
    chosen = agent.config.parsed_summary
    expected = np.array(PROBES["beta"].targets(0.8, lambda q: float(chosen(q, 1))))
    assert not math.isclose(expected[0][0], 0.8, abs_tol=0.05)
    np.testing.assert_allclose(agent.engine.values(PROBES["beta"].inputs), expected, atol=0.05)


def test_mixture_reaches_a_distribution_and_not_only_its_mean() -> None:
    """Before the choice between 0 and 1 at β = 2, all mass is at 0 and γ, as boltz weighs the two."""
    agent = trained("rainbow", "beta", 900, summary="boltzmann(beta=2)", atoms=31, value_range=(-3.2, 3.2), noisy=0.0)
    support = np.linspace(-3.2, 3.2, 31)
    found = agent.engine.distributions(PROBES["beta"].inputs)[0].mean(0)
    ends = found[np.abs(support) < 0.4].sum(), found[np.abs(support - 0.8) < 0.4].sum()
    high = 1 / (1 + math.exp(-2))
    np.testing.assert_allclose(ends, (1 - high, high), atol=0.06)


def test_rainbow_of_three_steps_reaches_the_values_of_the_discount_probe() -> None:
    agent = trained("rainbow", "discount", 800, n_step=3)
    np.testing.assert_allclose(agent.engine.values(PROBES["discount"].inputs), [[0.64], [0.8], [1.0]], atol=0.08)
