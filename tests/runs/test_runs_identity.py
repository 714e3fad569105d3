"""The identity of runs that were made before a setting existed: it stays what it was, to the last digit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.deep.config import AgentConfig
from dynaboltz.runs import toml
from dynaboltz.runs.config import LATER, SETTINGS, RunConfig, resolve
from dynaboltz.runs.settings import Given, flat

PLACE = "a test"


def run(preset: str, env: str, **changes: Any) -> RunConfig:
    given = {"env": env} | {key.replace("__", "."): value for key, value in changes.items()}
    return resolve(preset, None, {key: Given(value, PLACE) for key, value in given.items()})


PINNED: dict[str, tuple[RunConfig, str]] = {
    "defaults": (
        RunConfig(env="CartPole-v1"), "cc937c3d8071b171e222af61aa940795b3acebcb1146e3cd070ef95959c7fd05",
    ),
    "dqn": (
        run("dqn", "CartPole-v1", seed=3), "e5921e81e284772376ee71aa57ccadc5ef92a1617fc1434183e1acc1447dc5e1",
    ),
    "dbs-dqn on MinAtar": (
        run("dbs-dqn", "minatar/breakout", seed=3), "0d8e677eb8948f41656e174d565881eeefc1a8e7a058f1edf835b8710e216942",
    ),
    "dbs-dqn-fixed on Atari": (
        run("dbs-dqn-fixed", "ALE/Breakout-v5", seed=3),
        "e8dec7cba2216953da1063065cc122c7c0c338b1571562d39359826010d11975",
    ),
    "dbs-dqn on Atari, c learned from every update": (
        run("dbs-dqn", "ALE/Breakout-v5", seed=3, agent__c_period_updates=1),
        "9badfbb069694e74e7a311c779bd8ea6daf86552c485405d0f60f9ac95c3d3e8",
    ),
    "munchausen on MinAtar": (
        run("munchausen", "minatar/seaquest", seed=3),
        "c966cc0a4c293b861376bf5c6be7a2783939b508814a3095a14b340dcafa27c5",
    ),
    "dbs-ddqn": (
        run("dbs-ddqn", "CartPole-v1", seed=3), "18a87116961b7c912c0107424d6a9d7869f3e997ef481157b50ca434ff5d5af8",
    ),
    "prioritised, three steps": (
        run("dqn", "CartPole-v1", agent__prioritised=True, agent__n_step=3),
        "9cc739c7f01c0e673ddace6dbb1a50e6d9c7b1b8a6eed23d4b6a12af3fe76a16",
    ),
}  # fmt: skip
"""Digests computed when the settings of ``LATER`` did not exist."""


@pytest.mark.parametrize("name", PINNED)
def test_identity_is_what_it_was_before_later_settings_came(name: str) -> None:
    config, digest = PINNED[name]
    assert config.identity == digest


ON: dict[str, dict[str, Any]] = {
    "agent.duelling": {"duelling": True},
    "agent.noisy": {"noisy": 0.5},
    "agent.atoms": {"atoms": 51},
    "agent.value_range": {"atoms": 51, "value_range": (-1.0, 1.0)},
    "agent.c_period_updates": {"c_period_updates": 2},
}


def test_every_later_setting_is_a_setting_and_off_by_default() -> None:
    assert {key: SETTINGS[key].default for key in LATER} == LATER
    assert set(ON) == set(LATER)


def test_identity_differs_where_later_settings_are_on() -> None:
    base = RunConfig(env="CartPole-v1")
    found = {replace(base, agent=AgentConfig(**settings)).identity for settings in ON.values()}
    assert len(found | {base.identity}) == len(ON) + 1


def test_file_without_later_settings_reads_back_with_its_identity(tmp_path: Path) -> None:
    config, digest = PINNED["dbs-dqn on MinAtar"]
    path = tmp_path / "config.toml"
    path.write_text(toml.write({key: value for key, value in flat(config).items() if key not in LATER}))
    assert "duelling" not in path.read_text()
    again = resolve(None, path, {})
    assert again == config
    assert again.identity == digest


def test_file_of_a_rainbow_reads_back_equal(tmp_path: Path) -> None:
    config = run("dbs-rainbow", "minatar/breakout")
    path = tmp_path / "config.toml"
    path.write_text(toml.write(flat(config)))
    assert resolve(None, path, {}) == config
    assert config.name == "dbs-rainbow-minatar"
