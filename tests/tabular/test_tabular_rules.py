"""Every rule against plain Python: the same words from the same streams, the same actions, the same numbers."""

# ruff: noqa: ARG001  (every value has the same signature)
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynaboltz.mdp import MDP, build_world
from dynaboltz.tabular import RULES, Learning, learn
from dynaboltz.tabular.streams import keys

Row = list[float]
Value = Callable[[Row, Row, float, int, float], float]

SLIPPERY = "grid(rows=3, cols=4, slip=0.2)"
THREE_ACTIONS = "inventory(capacity=2, demand=1)"
"""Its states have three actions, two and one."""


class Stream:
    def __init__(self, position: int, increment: int) -> None:
        self.position, self.increment = position, increment

    def word(self) -> int:
        self.position = (self.position + self.increment) % 2**64
        z = self.position
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31


def beta_at(c: Learning, t: int) -> float:
    beta = None if c.parsed_summary is None else c.parsed_summary.beta(t)
    return 0.0 if beta is None else float(beta)


def outcome(model: MDP, state: int, action: int, world: Stream) -> tuple[float, int]:
    (row,) = [i for i in range(model.state_ptr[state], model.state_ptr[state + 1]) if model.action[i] == action]
    first, last = int(model.row_ptr[row]), int(model.row_ptr[row + 1])
    share = (world.word() >> 11) * 2.0**-53 if last - first > 1 else 0.0
    sums = np.add.accumulate(model.probability[first:last])
    at = first + min(int((sums <= share * sums[-1]).sum()), last - first - 1)
    reward = model.reward[row] if model.transition_reward is None else model.transition_reward[at]
    return float(reward), int(model.next_state[at])


def reference(model: MDP, c: Learning, seed: int, value: Value, *, sarsa: bool = False) -> dict[str, Any]:
    words = [int(word) for word in keys(0, [seed])[0]]
    agent, world = Stream(*words[:2]), Stream(*words[2:])
    q = np.zeros((c.parsed_rule.tables, model.n_states, model.n_actions))
    q[:] = c.parsed_initial.draw(np.random.default_rng(np.random.SeedSequence(0, spawn_key=(seed, 1))), q.shape)
    for state in range(model.n_states):
        legal = model.action[model.state_ptr[state] : model.state_ptr[state + 1]]
        q[:, state, [a for a in range(model.n_actions) if a not in legal]] = 0.0 if model.terminal[state] else -math.inf
    visits, steps, returns, total = np.zeros(q.shape, np.int64), [], [], 0

    assert model.start is not None

    def choose(state: int, epsilon: float) -> int:
        word, row = agent.word(), q[:, state].sum(axis=0) if len(q) == 2 else q[0, state]
        explore = word >> 32 < round(epsilon * 2**32)
        among = [a for a in range(model.n_actions) if row[a] > -math.inf and (explore or row[a] == row.max())]
        return among[(word % 2**32 if explore or c.ties == "random" else 0) * len(among) >> 32]

    for episode in range(1, c.episodes + 1):
        state, n, gained, ended = int(np.flatnonzero(model.start)[0]), 0, 0.0, False
        epsilon = c.parsed_epsilon(episode)
        action = choose(state, epsilon) if sarsa else -1
        while not ended and n < c.max_steps:
            action = action if sarsa else choose(state, epsilon)
            reward, target = outcome(model, state, action, world)
            ended, n, total, gained = bool(model.terminal[target]), n + 1, total + 1, gained + reward
            following = choose(target, epsilon) if sarsa and not ended else 0
            own = agent.word() >> 63 if len(q) == 2 else 0
            visits[own, state, action] += 1
            t = {"episode": episode, "step": total, "episode_step": n, "visit": visits[:, state, action].sum()}[c.clock]
            beta = beta_at(c, t)
            rows = list(q[own, target]), list(q[len(q) - 1 - own, target])
            ahead = 0.0 if ended else value(*rows, beta, following, epsilon)
            scale, omega = c.parsed_step_size.coefficients
            alpha = scale * float(visits[own, state, action]) ** -omega if omega else scale
            old = q[own, state, action]
            q[own, state, action] = old + alpha * (reward + c.discount * ahead - old)
            state, action = target, following
        steps.append(n)
        returns.append(gained)
    return {
        "q": q.mean(axis=0) if len(q) == 2 else q[0],
        "visits": visits.sum(axis=0),
        "steps": steps,
        "returns": returns,
    }


def legal(row: Row) -> Row:
    return [x for x in row if x > -math.inf]


def maximum(row: Row, other: Row, beta: float, action: int, epsilon: float) -> float:
    return max(row)


def boltz(row: Row, other: Row, beta: float, action: int, epsilon: float) -> float:
    weights = [math.exp(beta * (x - max(row))) for x in row]
    return sum(w * x for w, x in zip(weights, row, strict=True) if w) / sum(weights)


def log_sum_exp(row: Row, other: Row, beta: float, action: int, epsilon: float) -> float:
    return max(row) + math.log(sum(math.exp(beta * (x - max(row))) for x in row)) / beta


def mellow(row: Row, other: Row, beta: float, action: int, epsilon: float) -> float:
    return log_sum_exp(row, other, beta, action, epsilon) - math.log(len(legal(row))) / beta


def of_the_action(row: Row, other: Row, beta: float, action: int, epsilon: float) -> float:
    return row[action]


def of_the_policy(row: Row, other: Row, beta: float, action: int, epsilon: float) -> float:
    there = legal(row)
    return max(there) + epsilon * (sum(x - max(there) for x in there) / len(there))


def from_the_other(row: Row, other: Row, beta: float, action: int, epsilon: float) -> float:
    best = [y for x, y in zip(row, other, strict=True) if x == max(row)]
    return sum(best) / len(best)


def from_the_other_softly(row: Row, other: Row, beta: float, action: int, epsilon: float) -> float:
    weights = [math.exp(beta * (x - max(row))) for x in row]
    return sum(w * y for w, y in zip(weights, other, strict=True) if w) / sum(weights)


def under_prior(row: Row, other: Row, beta: float, action: int, epsilon: float) -> float:
    prior = (0.1, 0.2, 0.3, 0.4)
    return max(row) + math.log(sum(p * math.exp(beta * (x - max(row))) for p, x in zip(prior, row, strict=True))) / beta


CASES: list[tuple[str, Value, dict[str, Any]]] = [
    ("q_learning", maximum, {"summary": "hard_max"}),
    ("q_learning", maximum, {"summary": "hard_max", "ties": "lowest", "initial": "zeros", "step_size": "visits(0.7)"}),
    ("q_learning", boltz, {"summary": "boltzmann(beta=power(2))"}),
    ("q_learning", boltz, {"summary": "boltzmann(beta=linear(0.1))", "clock": "step"}),
    ("q_learning", boltz, {"summary": "boltzmann(beta=power(1.5))", "clock": "visit"}),
    ("q_learning", boltz, {"summary": "boltzmann(beta=power(1))", "clock": "episode_step"}),
    ("q_learning", log_sum_exp, {"summary": "log_sum_exp(beta=20)"}),
    ("q_learning", mellow, {"summary": "mellowmax(beta=5)", "step_size": "visits(1)"}),
    ("double_q_learning", from_the_other, {"step_size": "visits(0.8)"}),
    ("double_q_learning", from_the_other_softly, {"summary": "boltzmann(beta=power(2))"}),
    ("sarsa", of_the_action, {}),
    ("sarsa", of_the_action, {"initial": "zeros", "ties": "lowest"}),
    ("expected_sarsa", of_the_policy, {"epsilon": "piecewise(((1, 1), (10, 0.1)))"}),
    ("g_learning", under_prior, {"prior": (0.1, 0.2, 0.3, 0.4), "summary": "mellowmax(beta=linear(2))"}),
    ("g_learning", mellow, {"summary": "mellowmax(beta=linear(0.5))", "clock": "step"}),
]


def compare(world: str, c: Learning, value: Value) -> None:
    model = build_world(world)
    found = learn(model, c, seeds=[3, 0], threads=1)
    for place, seed in enumerate((3, 0)):
        expected = reference(model, c, seed, value, sarsa=c.rule == "sarsa")
        assert found.steps[place].tolist() == expected["steps"]
        assert found.returns[place].tolist() == expected["returns"]
        assert (found.visits[place] == expected["visits"]).all()
        np.testing.assert_allclose(found.q[place], expected["q"], rtol=1e-12, atol=0)
        if value in (maximum, of_the_action, from_the_other):  # plain arithmetic: to the last bit
            assert (found.q[place] == expected["q"]).all()


@pytest.mark.parametrize(
    ("rule", "value", "changes"), CASES, ids=lambda part: getattr(part, "__name__", str(part))[:60]
)
def test_rule_makes_the_choices_and_the_numbers_of_ten_plain_lines(
    rule: str, value: Value, changes: dict[str, Any]
) -> None:
    base: dict[str, Any] = {"initial": "uniform(0, 0.1)", "episodes": 12, "max_steps": 60, "epsilon": 0.3}
    compare(SLIPPERY, Learning(rule=rule, **base | changes), value)


@pytest.mark.parametrize(("rule", "value", "summary"), [
    ("q_learning", boltz, "boltzmann(beta=power(1))"),
    ("double_q_learning", from_the_other, "hard_max"),
    ("sarsa", of_the_action, None),
    ("expected_sarsa", of_the_policy, None),
    ("q_learning", log_sum_exp, "log_sum_exp(beta=3)"),
    ("g_learning", mellow, "mellowmax(beta=linear(0.5))"),
])  # fmt: skip
def test_rule_is_the_same_where_a_row_fills_no_register_and_states_lack_actions(
    rule: str, value: Value, summary: str | None
) -> None:
    c = Learning(rule=rule, summary=summary, episodes=3, max_steps=150, epsilon=0.4, initial="normal(0, 1)")
    compare(THREE_ACTIONS, c, value)


def test_every_rule_is_compared() -> None:
    assert {rule for rule, _, _ in CASES} == set(RULES)
