"""What is wrong is refused before it runs, in words; what goes wrong while it runs is reported with its place."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP, build_world
from dynaboltz.operators import boltzmann
from dynaboltz.schedules import power
from dynaboltz.summaries import Dynamic
from dynaboltz.tabular import AGENTS, DivergedError, Learning, TableAgent, agent, learn
from dynaboltz.tabular.state import Shape

GRID = build_world("grid(rows=2, cols=2)")


@pytest.mark.parametrize(("changes", "message"), [
    ({"rule": "q"}, "unknown rule 'q'"),
    ({"rule": "Q_learning"}, "did you mean 'q_learning'"),
    ({"clock": "sweep"}, "unknown clock 'sweep'"),
    ({"epsilon_clock": "visit"}, "unknown epsilon_clock"),
    ({"ties": "first"}, "unknown ties 'first'"),
    ({"discount": 1.1}, "discount must be a number from 0 to 1, got 1.1"),
    ({"discount": math.nan}, "discount must be"),
    ({"discount": True}, "discount must be"),
    ({"episodes": 0}, "episodes must be a whole number"),
    ({"episodes": 2.5}, "episodes must be a whole number"),
    ({"max_steps": "many"}, "max_steps must be a whole number"),
    ({"epsilon": 1.5}, "epsilon must be a number from 0 to 1"),
    ({"epsilon": "power"}, "power"),
    ({"epsilon": "sometimes(2)"}, "unknown schedule 'sometimes'"),
    ({"step_size": 0}, "alpha must be above 0"),
    ({"step_size": 1.5}, "alpha must be above 0 and at most 1"),
    ({"step_size": "visit"}, "did you mean 'visits'"),
    ({"step_size": None}, "step_size must be a number or a text form"),
    ({"initial": "uniform(1, 0)"}, "needs low < high"),
    ({"initial": math.inf}, "must be a finite number"),
    ({"initial": "normal(0, -1)"}, "deviation must be at least 0"),
    ({"mask_terminal": 1}, "mask_terminal must be True or False"),
    ({"summary": "softmax(5)"}, "unknown operator 'softmax'"),
    ({"summary": "boltzmann"}, "needs a beta"),
    ({"summary": "boltzmann(beta=-1)"}, "beta must be a number of at least 0"),
    ({"summary": "log_sum_exp(beta=0)"}, "infinite at beta = 0"),
    ({"summary": 5}, "summary must be"),
    ({"rule": "sarsa", "summary": "hard_max"}, "sarsa has no summary"),
    ({"rule": "double_q_learning", "summary": "mellowmax(beta=1)"}, "mellowmax is no average"),
    ({"rule": "g_learning", "summary": "boltzmann(beta=1)"}, "g_learning is mellowmax under a prior"),
    ({"prior": (0.5, 0.5)}, "a prior is for g_learning"),
    ({"rule": "g_learning", "prior": (0.5, 0)}, "finite numbers above 0"),
    ({"rule": "g_learning", "prior": 3}, "prior must be 'uniform' or"),
])  # fmt: skip
def test_wrong_agent_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Learning(**changes)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"seeds": 0}, "seeds must be a whole number of at least 1"),
    ({"seeds": -5}, "seeds must be a whole number"),
    ({"seeds": True}, "seeds must be"),
    ({"seeds": "12"}, "seeds must be"),
    ({"seeds": []}, "seeds must be at least one"),
    ({"seeds": [3, 3]}, "each once"),
    ({"seeds": [-1]}, "a seed must be a whole number of at least 0"),
    ({"root": -1}, "root must be"),
    ({"threads": 0}, "threads must be"),
    ({"progress": 5}, "progress must be callable"),
    ({"checkpoint": 5}, "checkpoint must be a folder"),
    ({"checkpoint_seconds": -1}, "checkpoint_seconds must be"),
    ({"resume": True}, "pass checkpoint=folder too"),
    ({"marks": [5]}, "belong together"),
    ({"optimum": np.zeros((4, 4))}, "belong together"),
    ({"optimum": np.zeros((3, 2)), "marks": [1]}, r"shape \(4, 4\)"),
    ({"optimum": np.full((4, 4), math.nan), "marks": [1]}, "optimum must be finite, got nan at state 0, action 0"),
    ({"optimum": np.zeros((4, 4)), "marks": [2, 2]}, "marks must rise"),
    ({"optimum": np.zeros((4, 4)), "marks": [0]}, "a mark must be"),
    ({"optimum": np.zeros((4, 4)), "marks": 7}, "marks must be a list"),
    ({"optimum": np.zeros((4, 4)), "marks": [1], "stop_error": -1}, "stop_error must be"),
    ({"stop_error": 0.1}, "stop_error must be"),
    ({"config": agent("g_learning", prior=(1, 1, 1))}, "prior has 3 numbers, and the world has 4 actions"),
    ({"config": "dbs"}, "expected a Learning"),
    ({"config": agent("dbs", summary="boltzmann(beta=linear(-1, start=3))")}, "at least 0; linear.* is -1 at t = 4"),
    ({"config": agent("soft_q", summary="log_sum_exp(beta=linear(1, start=-1))")}, "above 0; .* is 0 at t = 1"),
    ({"config": agent("q", epsilon="linear(1)", episodes=5)}, "epsilon must be from 0 to 1; .* is 2 at t = 2"),
    ({"config": agent("dbs", episodes=10**12)}, "take fewer seeds at a time"),
    ({"world": "chain"}, "world must be an MDP or a function"),
    ({"world": GRID.grid}, "world must be an MDP or a function"),
])  # fmt: skip
def test_wrong_question_is_refused(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"world": GRID, "config": agent("dbs", episodes=10), **arguments}
    with pytest.raises(UserError, match=message):
        learn(given.pop("world"), given.pop("config"), **given)


def without_start() -> MDP:
    return MDP.from_transitions([0, 0], [0, 1], [0, 0], [1.0, 1.0], [0.0, 1.0])


def with_a_terminal_start() -> MDP:
    return MDP.from_transitions([0], [0], [1], [1.0], [1.0], terminal=[1], start=[0.5, 0.5])


def with_nan() -> MDP:
    return MDP.from_transitions([0], [0], [1], [1.0], [math.nan], terminal=[1], start=0)


@pytest.mark.parametrize(("make", "message"), [
    (without_start, "where an episode starts"),
    (with_a_terminal_start, "state 1 is terminal and a first state"),
    (with_nan, "nan"),
])  # fmt: skip
def test_model_that_cannot_be_learned_is_refused(make: Callable[[], MDP], message: str) -> None:
    with pytest.raises(UserError, match=message):
        learn(make(), agent("dbs"))


def test_names_of_agents_and_fields_are_suggested() -> None:
    with pytest.raises(UserError, match="did you mean 'sarsa'"):
        agent("sarsaa")
    with pytest.raises(UserError, match="did you mean 'epsilon'"):
        agent("dbs", epsilonn=1)


@pytest.mark.parametrize("threads", [1, 2])
def test_value_that_grows_beyond_every_number_is_reported_with_its_place(threads: int, tmp_path: Path) -> None:
    config = agent("soft_q", summary="log_sum_exp(beta=1e-307)", discount=1.0, step_size=1.0)
    question: dict[str, Any] = {"seeds": [8, 9], "threads": threads, "checkpoint": tmp_path}
    with pytest.raises(DivergedError, match=r"seed [89], episode \d+, step \d+: Q\(state \d, action \d\) became inf"):
        learn(GRID, config, **question)
    assert not list(tmp_path.glob("ckpt-*"))  # what is not finite is not kept


def test_value_that_diverges_step_by_step_is_reported_too() -> None:
    stepped = TableAgent(agent("q", step_size=1.0, discount=1.0), Shape.plain(states=1, actions=4), seed=4)
    stepped.begin(0)

    def play() -> None:
        for _ in range(50):
            stepped.act()
            stepped.observe(1.7e308, 0, terminated=False)

    with pytest.raises(DivergedError, match=r"seed 4, episode 1, step \d+: Q\(state 0, action \d\) became inf"):
        play()


@pytest.mark.parametrize("name", AGENTS)
def test_agent_survives_its_text_forms(name: str) -> None:
    config = agent(name)
    assert Learning(**config.as_dict()) == config


def test_parts_may_be_objects() -> None:
    assert agent("dbs", summary=Dynamic(boltzmann, power(2))) == agent("dbs")
    assert agent("g_learning", prior=[3, 1]).parsed_prior == (3.0, 1.0)
    assert agent("dbs", epsilon="0.25").parsed_epsilon(1) == 0.25
