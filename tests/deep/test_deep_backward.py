"""The pass backward that is written out, against autograd's to the last bit, alone and with a second thread beside."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from dynaboltz.deep import torch_engine
from dynaboltz.deep.agent import Agent
from dynaboltz.deep.architecture import architecture_of
from dynaboltz.deep.backward import Traced, Written
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.layers import Layers
from dynaboltz.deep.side import Side
from dynaboltz.envs import make
from dynaboltz.envs.spec import Spec

NETWORKS = {
    "nature": Spec(shape=(84, 84), dtype="uint8", n_actions=4, stack=4),
    "minatar": Spec(shape=(10, 10, 4), dtype="bool", n_actions=6),
    "mlp": Spec(shape=(5,), dtype="float32", n_actions=3),
}
TYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("network", NETWORKS)
def test_written_pass_gives_the_bits_of_autograd(network: str, kind: str, *, shared: bool) -> None:
    spec, dtype = NETWORKS[network], TYPES[kind]
    architecture, rng = architecture_of(AgentConfig(network=network, hidden=(9, 8)), spec), np.random.default_rng(0)
    layout = architecture.layout()
    drawn = {name: torch.from_numpy(w).to(dtype) for name, w in layout.draw("torch", rng).items()}
    low = torch.bfloat16 if kind == "bfloat16" else dtype
    traced = Layers(architecture, spec, drawn, dtype, low, learns=True)
    networks = (
        Traced(traced, traced.leaves, traced.first_scale),
        Written(architecture, spec, drawn, dtype, low, Side(shared=shared)),
    )
    shape = (16, spec.stack, *spec.shape)
    inputs = torch.from_numpy(rng.integers(0, 2 if spec.dtype == "bool" else 200, shape).astype(spec.dtype))
    found = []
    for each in networks:
        into = [[torch.zeros_like(weight) for weight in drawn.values()] for _ in range(2)]
        values = each.forward(inputs, 1)
        for row, scale in enumerate((1.0, -3.0)):
            each.backward(scale * torch.ones((16, spec.n_actions), dtype=dtype), into[row], keep=row == 0)
        found.append([values, *into[0], *into[1]])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
        assert one.any()


def test_side_without_a_second_thread_makes_calls_at_once() -> None:
    made: list[int] = []
    side = Side(shared=False)
    wait = side.begin(made.append, 1)
    assert made == [1]
    assert wait() is None


def test_side_calls_are_made_once_by_either_thread_and_all_before_the_end() -> None:
    side, makers = Side(shared=True), set()
    both = threading.Barrier(2, timeout=30)

    def call(i: int) -> int:
        if i < 2:
            both.wait()  # two threads are in calls at the same time
        makers.add(threading.get_ident())
        return i * i

    def work() -> list[int]:
        waits = [side.begin(call, i) for i in range(200)]
        side.end()
        return [wait() for wait in waits]

    with ThreadPoolExecutor(1) as pool:
        running: Future[list[int]] = pool.submit(work)
        side.help_until(running)
        assert running.result() == [i * i for i in range(200)]
    assert len(makers) == 2


def test_interrupt_on_the_side_reaches_both_threads() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    side = Side(shared=True)
    side.begin(interrupted)
    with pytest.raises(KeyboardInterrupt):
        side.help()
    with pytest.raises(KeyboardInterrupt):
        side.end()


@pytest.mark.parametrize("waits", [True, False])
def test_fault_on_the_side_is_raised_where_it_is_waited_for(*, waits: bool) -> None:
    side = Side(shared=True)
    wait = side.begin(lambda: 1 // 0)
    side.help()
    with pytest.raises(ZeroDivisionError):
        wait() if waits else side.end()


AGENTS: dict[str, dict[str, Any]] = {
    "double": {"double": True},
    "c learned": {"summary": "boltzmann(beta=power(2))", "c_learning": "corrected"},
    "c learned as printed": {"summary": "boltzmann(beta=power(2))", "c_learning": "as_printed"},
    "munchausen": {"summary": "log_sum_exp(33.333)", "munchausen": 0.9},
}


@pytest.mark.parametrize("settings", AGENTS.values(), ids=list(AGENTS))
def test_agent_that_helps_its_update_learns_the_same_bits(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(*, shared: bool) -> list[np.ndarray]:
        monkeypatch.setattr(torch_engine, "Side", lambda **given: Side(shared=shared and given["shared"]))
        config = AgentConfig(
            engine="torch", overlap=True, epsilon="0.2", replay_start_steps=40, target_period="7 updates",
            train_period_steps=2, **settings,
        )  # fmt: skip
        with make("CartPole-v1", seed=0) as envs:
            agent = Agent(config, envs.spec, seed=0)
            assert agent.engine.side.shared is shared
            agent.begin(envs.reset())
            for _ in range(300):
                action = agent.act()
                agent.observe(action, envs.step(action))
            weights = [*agent.weights().values()]
            agent.close()
            return weights

    alone, helped = trained(shared=False), trained(shared=True)
    for one, other in zip(alone, helped, strict=True):
        np.testing.assert_array_equal(one, other)
