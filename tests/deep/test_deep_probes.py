"""Every agent reaches the action values that the probe worlds say, and every summary its own."""

from __future__ import annotations

import math
import sys
import types
from typing import Any

import numpy as np
import pytest

from dynaboltz.deep import Agent, AgentConfig
from dynaboltz.envs import make
from dynaboltz.envs.probes import PROBES
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError

SETTINGS: dict[str, Any] = {
    "hidden": (32,), "discount": 0.8, "batch_size": 32, "replay_capacity_steps": 600, "replay_start_steps": 200,
    "learning_rate": 5e-3, "epsilon": "1", "target_period": "20 updates", "engine": "torch",
}  # fmt: skip


def trained(probe: str, steps: int, **settings: Any) -> Agent:
    config = AgentConfig(**(SETTINGS | settings))
    envs = make(f"probe/{probe}", seed=0)
    agent = Agent(config, envs.spec, seed=0)
    agent.begin(envs.reset())
    for _ in range(steps):
        actions = agent.act()
        agent.observe(actions, envs.step(actions))
    return agent


@pytest.mark.parametrize("probe", PROBES)
def test_agent_reaches_the_values_of_every_probe(probe: str) -> None:
    network = "minatar" if probe == "channels" else "mlp"
    agent = trained(probe, 400 if probe == "channels" else 700, network=network)
    found = agent.engine.values(PROBES[probe].inputs)
    expected = np.array(PROBES[probe].targets(0.8, lambda q: float(q.max())))
    noise = 0.35 if probe == "noise" else 0.06
    np.testing.assert_allclose(found, expected, atol=noise)


SUMMARIES: dict[str, dict[str, Any]] = {
    "max": {},
    "double": {"double": True},
    "S-DQN": {"summary": "boltzmann(beta=2)"},
    "S-DDQN": {"summary": "boltzmann(beta=2)", "double": True},
    "soft": {"summary": "log_sum_exp(beta=2)"},
    "mellowmax": {"summary": "mellowmax(beta=5)"},
    "mellowmax, no target network": {
        "summary": "mellowmax(beta=5)", "target_period": "none", "learning_rate": 2e-3,
    },
    "soft mellowmax": {"summary": "soft_mellowmax(alpha=1, beta=2)"},
    "mixture": {"summary": "epsilon_mixture(epsilon=0.5)"},
    "mean": {"summary": "mean"},
    "DBS": {"summary": "boltzmann(beta=power(2, c=0.01))", "beta_clock": "episode"},
    "DBS, double": {"summary": "boltzmann(beta=capped(power(2), 3))", "double": True},
    "DBS, c learned": {"summary": "boltzmann(beta=capped(power(2), 3))", "c_learning": "corrected"},
}  # fmt: skip


@pytest.mark.parametrize("settings", SUMMARIES.values(), ids=SUMMARIES)
def test_every_summary_reaches_its_own_value_of_the_beta_probe(settings: dict[str, Any]) -> None:
    """γ·op_β((0, 1)), and not γ: by the end β has grown to its cap, or far enough to be the maximum."""
    agent = trained("beta", 800, **settings)
    summary = agent.config.parsed_summary

    def value(q: np.ndarray) -> float:
        return float(summary(q, 300))

    expected = np.array(PROBES["beta"].targets(0.8, value))
    np.testing.assert_allclose(agent.engine.values(PROBES["beta"].inputs), expected, atol=0.03)


def test_summaries_of_the_beta_probe_are_told_apart_by_it() -> None:
    values = {
        round(float(AgentConfig(**(SETTINGS | s)).parsed_summary(np.array([0.0, 1.0]), 300)) * 0.8, 1)
        for s in SUMMARIES.values()
    }
    assert len(values) >= 5


def test_munchausen_reaches_its_fixed_point() -> None:
    """Iterated by hand: q(b, a) = r_a + α[τ log π(a|b)], q(a, ·) = γ L(q(b, ·)) + α[τ log ½]."""
    tau, alpha = 0.5, 0.5
    agent = trained("beta", 1000, summary="log_sum_exp(beta=2)", munchausen=alpha)
    q = np.zeros(2)
    for _ in range(1000):
        soft = tau * math.log(np.exp(q / tau).sum())
        q = np.array([0.0, 1.0]) + alpha * np.maximum(q - soft, -1.0)
    first = 0.8 * tau * math.log(np.exp(q / tau).sum()) + alpha * tau * math.log(0.5)
    np.testing.assert_allclose(agent.engine.values(PROBES["beta"].inputs), [[first, first], q.tolist()], atol=0.04)


@pytest.mark.parametrize(("n_step", "prioritised"), [(3, False), (1, True), (3, True)])
def test_n_step_and_prioritised_agents_reach_the_values_of_the_discount_probe(n_step: int, prioritised: bool) -> None:
    agent = trained("discount", 700, n_step=n_step, prioritised=prioritised)
    np.testing.assert_allclose(agent.engine.values(PROBES["discount"].inputs), [[0.64], [0.8], [1.0]], atol=0.05)


def factory(spec: Spec, n_actions: int) -> Any:
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(spec.shape), 16), nn.Tanh(), nn.Linear(16, n_actions))


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    made = types.ModuleType("networks_of_a_user")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_network_of_the_users_own_learns(module: types.ModuleType) -> None:
    module.tanh = factory  # type: ignore[attr-defined]
    agent = trained("match", 500, network="networks_of_a_user:tanh", learning_rate=2e-2)
    np.testing.assert_allclose(agent.engine.values(PROBES["match"].inputs), [[1, -1], [-1, 1]], atol=0.1)
    assert set(agent.weights()) == {"1.weight", "1.bias", "3.weight", "3.bias"}


def test_network_of_the_users_own_starts_from_the_seed_alone(module: types.ModuleType) -> None:
    import torch

    module.tanh = factory  # type: ignore[attr-defined]
    spec, config = PROBES["match"].spec, AgentConfig(network="networks_of_a_user:tanh")
    found: list[bytes] = []
    for seed in (0, 0, 1):
        torch.manual_seed(len(found))
        before = torch.random.get_rng_state()
        found.append(Agent(config, spec, seed=seed).weights()["1.weight"].tobytes())
        assert torch.equal(before, torch.random.get_rng_state())
    assert found[0] == found[1] != found[2]


def test_network_that_is_wrong_is_refused_with_what_it_gave(module: types.ModuleType) -> None:
    from torch import nn

    spec = PROBES["match"].spec
    wrong: dict[str, tuple[Any, str]] = {
        "shape": (lambda _, __: nn.Linear(1, 5), "(3, 5)"),
        "kind": (lambda _, __: 7, "Module, got int"),
        "raises": (lambda _, __: 1 / 0, "ZeroDivisionError"),
        "width": (lambda _, __: nn.Linear(9, 2), "an input of shape (3, 1)"),
        "empty": (lambda _, __: nn.Flatten(), "without weights"),
    }
    for name, (make_network, says) in wrong.items():
        setattr(module, name, make_network)
        with pytest.raises(UserError) as caught:
            Agent(AgentConfig(network=f"networks_of_a_user:{name}"), spec, seed=0)
        assert says in str(caught.value)
    for missing in ("networks_of_a_user:nothing", "no_such_module:factory"):
        with pytest.raises(UserError, match="network"):
            Agent(AgentConfig(network=missing), spec, seed=0)
