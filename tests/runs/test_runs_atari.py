"""Atari runs by a named protocol: the published settings, evaluation by another protocol, and the memory they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dynaboltz.envs.protocols import protocol
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.runs import Given, RunConfig, evaluate, read_rows, resolve, train
from dynaboltz.runs.estimate import Estimate, estimate_of
from dynaboltz.runs.settings import flat

TABLE_1: dict[str, tuple[dict[str, Any], str]] = {
    "minibatch size: 32": ({"agent.batch_size": 32}, ""),
    "replay memory size: 1,000,000": ({"agent.replay_capacity_steps": 1_000_000}, ""),
    "agent history length: 4": ({}, "stack=4"),
    "target network update frequency: 10,000 updates": ({"agent.target_period": "10000 updates"}, ""),
    "discount factor: 0.99": ({"agent.discount": 0.99}, ""),
    "action repeat: 4 frames": ({}, "frames_per_action=4"),
    "update frequency: 4 actions": ({"agent.train_period_steps": 4, "agent.train_updates": 1}, ""),
    "learning rate: 0.00025": ({"agent.learning_rate": 0.00025}, ""),
    "gradient and squared gradient momentum: 0.95, min squared gradient: 0.01": (
        {"agent.optimiser": "deepmind_rmsprop(decay=0.95, epsilon=0.01)"},
        "",
    ),
    "exploration: 1 to 0.1 within 1,000,000": ({"agent.epsilon": "piecewise(((0, 1), (1000000, 0.1)))"}, ""),
    "replay start size: 50,000": ({"agent.replay_start_steps": 50_000}, ""),
    "no-op max: 30": ({}, "noops_most=30"),
    "Methods: errors clipped to ±1": ({"agent.loss": "huber", "agent.huber_bound": 1.0}, ""),
    "Methods: rewards clipped to ±1": ({"agent.reward_clip": 1.0}, ""),
    "Methods: 50 million actions": ({"steps": 50_000_000}, ""),
    "evaluation: ε 0.05, 30 games, five minutes": (
        {"evaluation.epsilon": 0.05, "evaluation.episodes": 30, "evaluation.max_steps": 4_500},
        "cap_frames=18000",
    ),
}
"""Extended Data Table 1 and the Methods of Mnih et al. (2015): settings of a run, and fields of the protocol."""


def given(**values: Any) -> dict[str, Given]:
    return {key.replace("__", "."): Given(value, "here") for key, value in values.items()}


def small(**changes: Any) -> RunConfig:
    values: dict[str, Any] = {
        "env": "atari/Breakout", "steps": 60, "agent__replay_start_steps": 40, "agent__replay_capacity_steps": 100,
        "agent__threads": 1, "evaluation__period_steps": 30, "evaluation__episodes": 1, "evaluation__max_steps": 5,
    }  # fmt: skip
    return resolve("dqn", None, given(**values | changes))


@pytest.mark.parametrize("row", TABLE_1)
def test_run_by_the_protocol_of_the_paper_has_every_published_setting(row: str) -> None:
    settings, field = TABLE_1[row]
    found = flat(resolve("dqn", None, given(env="atari/Breakout", protocol="nature2015")))
    assert {key: found[key] for key in settings} == settings
    if field:
        name, _, value = field.partition("=")
        assert protocol("nature2015").fields[name] == int(value)


def test_protocol_of_a_run_changes_world_and_settings_and_what_is_given_comes_over_it() -> None:
    found = resolve("dqn", None, given(env="atari/Pong", protocol="dqn_zoo", evaluation__episodes=3))
    assert found.env == "atari/Pong(protocol='dqn_zoo')"
    assert found.agent.target_period == "10000 steps"
    assert (found.evaluation.max_steps, found.evaluation.episodes) == (27_000, 3)


def test_protocol_by_default_is_that_of_the_paper_and_no_other_run() -> None:
    asked = {key: Given(value, "here") for key, value in protocol("nature2015").run}
    plain = resolve("dqn", None, given(env="atari/Pong") | asked)
    assert resolve("dqn", None, given(env="atari/Pong", protocol="nature2015")).identity == plain.identity


@pytest.mark.parametrize(
    ("env", "name", "message"),
    [
        ("CartPole-v1", "nature2015", "protocols are of Atari games"),
        ("atari/Pong", "nature2014", "did you mean 'nature2015'"),
        ("atari/Pong(protocol='dqn_zoo')", "nature2015", "names a protocol itself"),
    ],
)
def test_protocol_that_cannot_be_is_refused(env: str, name: str, message: str) -> None:
    with pytest.raises((UserError, UnknownNameError), match=message):
        resolve("dqn", None, given(env=env, protocol=name))


def test_run_is_evaluated_by_another_protocol_that_is_asked_for(tmp_path: Path) -> None:
    folder = Path(train(small(), tmp_path).folder)
    assert {row["best"] for row in read_rows(folder / "rows.jsonl", "evaluation")} >= {True}
    found = evaluate(folder, episodes=2, max_steps=20, protocol="dqn_zoo")
    assert (found.env, found.epsilon) == ("atari/Breakout(protocol='dqn_zoo')", 0.05)
    assert found.row()["env"] == found.env
    assert evaluate(folder, episodes=1, max_steps=5, protocol="dopamine", which="best").epsilon == 0.001
    with pytest.raises(UserError, match="has n_actions 18, and the run was trained with 4"):
        evaluate(folder, episodes=1, max_steps=5, protocol="machado2018")
    with pytest.raises(UserError, match="machado2018 takes the returns of the training"):
        evaluate(folder, protocol="machado2018")


def test_device_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"device: torch has no 'nowhere' here .*write device='cpu'"):
        train(small(device="nowhere"), tmp_path)


def test_a_million_frames_are_estimated_at_seven_gigabytes_and_refused_where_they_do_not_fit() -> None:
    config = resolve("dqn", None, given(env="atari/Pong", memory_limit_gb=6.0))
    found: Estimate = estimate_of(config)
    assert 7.0e9 < found.parts["replay"] < 7.2e9
    assert found.total < 1.05 * found.parts["replay"]
    with pytest.raises(UserError, match=r"the run needs .*replay 7\.\d+ GB.*memory_limit_gb allows"):
        found.check(config)
