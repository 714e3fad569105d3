"""The probes' targets against their own tables, and against what is played."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

import numpy as np
import pytest

from dynaboltz import boltzmann, hard_max, mellowmax
from dynaboltz.envs import make
from dynaboltz.envs.probes import PROBES, Value

SUMMARIES: dict[str, Value] = {
    "max": lambda q: float(hard_max(q)),
    "boltzmann": lambda q: float(boltzmann(q, 1.5)),
    "mellowmax": lambda q: float(mellowmax(q, 2.0)),
}


Followed = dict[tuple[bytes, int], list[tuple[float, bytes | None]]]


@cache
def played(name: str) -> Followed:
    """History and action → each reward that followed and the next history, None where the episode terminated."""
    spec, found = PROBES[name].spec, defaultdict(list)
    blank = np.zeros((spec.stack - 1, *spec.shape), spec.dtype)
    with make(f"probe/{name}", n=1, seed=1) as envs:
        rng, stack = np.random.default_rng(0), np.concatenate([blank, envs.reset()])
        for _ in range(1500):
            action = int(rng.integers(spec.n_actions))
            step = envs.step(np.array([action]))
            after = np.concatenate([stack[1:], step.final])
            found[stack.tobytes(), action].append(
                (float(step.reward[0]), None if step.terminal[0] else after.tobytes())
            )
            stack = np.concatenate([blank, step.observation]) if step.over[0] else after
    return found


@pytest.mark.parametrize("summary", SUMMARIES)
@pytest.mark.parametrize("name", PROBES)
def test_probe_targets_are_the_fixed_point_of_what_is_played(name: str, summary: str) -> None:
    probe, discount, followed = PROBES[name], 0.8, played(name)
    n_actions, value = probe.spec.n_actions, SUMMARIES[summary]
    q = dict.fromkeys(followed, 0.0)
    for _ in range(120):
        values = {
            state: value(np.array([q.get((state, action), 0.0) for action in range(n_actions)])) for state, _ in q
        }
        q = {
            key: float(
                np.mean([reward + (discount * values.get(after, 0.0) if after else 0.0) for reward, after in seen])
            )
            for key, seen in followed.items()
        }
    targets = np.array(probe.targets(discount, value))
    found = [[q[given.tobytes(), action] for action in range(n_actions)] for given in probe.inputs]
    assert np.allclose(found, targets, atol=0.12 if name == "noise" else 1e-9)


@pytest.mark.parametrize("name", PROBES)
def test_probe_inputs_have_the_shape_that_an_agent_stacks(name: str) -> None:
    probe = PROBES[name]
    assert probe.inputs.shape == (len(probe.histories), probe.spec.stack, *probe.spec.shape)
    assert np.shape(probe.targets(0.9, SUMMARIES["max"])) == (len(probe.histories), probe.spec.n_actions)


def test_beta_probe_is_the_summary_of_zero_and_one() -> None:
    targets = PROBES["beta"].targets(0.9, SUMMARIES["boltzmann"])
    assert targets[0] == pytest.approx([0.9 * np.e**1.5 / (1 + np.e**1.5)] * 2)
    assert list(targets[1]) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("terminal", [[1.0 + 0.9 * 4.0], [4.0 + 0.9 * 1.0]]),
        ("truncation", [[(1 - 0.9**3) / (1 - 0.9)]]),
        ("discount", [[1.0], [1.0], [1.0]]),
    ],
)
def test_probe_tells_a_wrong_agent_from_a_right_one(name: str, wrong: list[list[float]]) -> None:
    right = np.array(PROBES[name].targets(0.9, SUMMARIES["max"]))
    assert np.abs(right - np.array(wrong)).max() > 0.1
