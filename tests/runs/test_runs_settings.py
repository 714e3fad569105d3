"""Settings: defaults under a preset under a file under the command line, written as TOML and read back as they were."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.presets import PRESETS
from dynaboltz.errors import UserError
from dynaboltz.runs import toml
from dynaboltz.runs.config import OUTSIDE_IDENTITY, SETTINGS, Evaluation, RunConfig, Saving, resolve
from dynaboltz.runs.settings import Given, Setting, flat, read, written

LINE = "the command line"


def typed(**values: str) -> dict[str, Given]:
    """Settings as a command line has them; ``__`` stands for the dot."""
    return {key.replace("__", "."): Given(value, LINE, written=True) for key, value in values.items()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my.toml"
    path.write_text('env = "CartPole-v1"\nsteps = 2e5\nseed = 3\n[agent]\nlearning_rate = 0.5\nhidden = [8, 8]\n')
    return path


def test_resolve_puts_the_command_line_over_the_file_over_the_preset_over_the_defaults(file: Path) -> None:
    config = resolve("ddqn", file, typed(seed="4", agent__hidden="16,16"))
    assert (config.seed, config.steps, config.agent.hidden) == (4, 200_000, (16, 16))
    assert (config.agent.double, config.agent.learning_rate) == (True, 0.5)
    assert (config.n_envs, config.agent.batch_size) == (1, 32)


def test_resolve_takes_the_preset_of_the_file_unless_one_is_named(file: Path) -> None:
    file.write_text('preset = "ddqn"\n' + file.read_text())
    assert resolve(None, file, {}).name == "ddqn"
    assert resolve("dqn", file, {}).agent.double is False
    assert resolve(None, file, typed(preset="s-dqn")).name == "s-dqn"


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_run_s_agent(name: str) -> None:
    config = resolve(name, None, typed(env="CartPole-v1"))
    assert config.agent == PRESETS[name]()
    assert config.name == name


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ("CartPole-v1", "dqn"), ("minatar/breakout", "dqn-minatar"),
        ("atari/pong", "dqn-nature"), ("ALE/Pong-v5", "dqn-nature"),
    ],
)  # fmt: skip
def test_preset_without_a_scale_takes_that_of_the_environment(env: str, name: str) -> None:
    assert resolve("dqn", None, typed(env=env)).name == name


def test_preset_with_a_scale_keeps_it() -> None:
    assert resolve("dqn-nature", None, typed(env="minatar/breakout")).agent.network == "nature"


def agent_of(values: dict[str, Any]) -> AgentConfig:
    return AgentConfig(**values)


def run_of(values: dict[str, Any]) -> RunConfig:
    return RunConfig(**values)


AGENTS: dict[str, st.SearchStrategy[Any]] = {
    "summary": st.sampled_from(["hard_max", "boltzmann(beta=power(2, c=0.5))", "mellowmax(30)"]),
    "hidden": st.lists(st.integers(1, 65536), min_size=1, max_size=16).map(tuple),
    "double": st.booleans(),
    "discount": st.floats(0, 1),
    "gradient_clip": st.one_of(st.just(math.inf), st.floats(1e-9, 1e9)),
    "target_period": st.sampled_from(["17 updates", "1_000 steps"]),
}
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "name": st.text(),
    "steps": st.integers(1, 2**53),
    "seed": st.integers(0, 2**63 - 1),
    "sinks": st.lists(st.sampled_from(["console", "tensorboard", "wandb"])).map(tuple),
    "memory_limit_gb": st.none() | st.floats(1e-3, 1e6),
    "evaluation": st.builds(Evaluation, episodes=st.integers(0, 1000), epsilon=st.floats(0, 1)),
    "saving": st.builds(Saving, period_seconds=st.floats(0, 1e9), keep=st.integers(1, 99)),
}
NEEDED: dict[str, st.SearchStrategy[Any]] = {
    "env": st.text(min_size=1).filter(str.strip),
    "agent": st.fixed_dictionaries({}, optional=AGENTS).map(agent_of),
}
RUNS = st.fixed_dictionaries(NEEDED, optional=OPTIONS).map(run_of)


@settings(max_examples=200, deadline=None)
@given(config=RUNS)
def test_config_written_as_toml_reads_back_equal(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "again.toml"
    path.write_text(toml.write(flat(config), "A comment."), encoding="utf-8")
    again = resolve(None, path, {})
    assert again == config
    assert again.identity == config.identity


@settings(max_examples=100, deadline=None)
@given(config=RUNS)
def test_config_written_as_a_command_line_reads_back_equal(config: RunConfig) -> None:
    text = {key: written(value) for key, value in flat(config).items()}
    again = resolve(None, None, {key: Given(value, LINE, written=True) for key, value in text.items()})
    plain = {"env", "name"}  # texts such as "none" or "1e5" mean something else on a command line only for other kinds
    for key, value in flat(config).items():
        assert flat(again)[key] == value or key in plain, key


OTHER: dict[str, Any] = {
    "env": "Acrobot-v1", "name": "mine", "steps": 5, "n_envs": 2, "seed": 7, "log_period_steps": 7,
    "agent.discount": 0.5, "agent.summary": "mean", "agent.engine": "torch",
    "evaluation.period_steps": 7, "evaluation.episodes": 7,
}  # fmt: skip


@pytest.mark.parametrize("key", OTHER)
def test_identity_differs_where_a_setting_of_the_outcome_does(key: str) -> None:
    base = resolve("dqn", None, typed(env="CartPole-v1"))
    changed = resolve("dqn", None, typed(env="CartPole-v1") | {key: Given(OTHER[key], LINE)})
    assert changed.identity != base.identity


def test_identity_does_not_depend_on_how_a_run_is_done() -> None:
    base = RunConfig(env="CartPole-v1")
    how = RunConfig(
        env="CartPole-v1", sinks=("console",), device="cuda", memory_limit_gb=3.0, saving=Saving(keep=5),
        agent=AgentConfig(threads=2),
    )  # fmt: skip
    changed = [key for key, value in flat(how).items() if flat(base)[key] != value]
    assert all(key.startswith(OUTSIDE_IDENTITY) for key in changed)
    assert len(changed) == 5
    assert how.identity == base.identity


def test_identity_is_that_of_the_summary_however_it_is_spelt() -> None:
    one, other = "boltzmann(beta=power(2))", "boltzmann( power(p=2.0) )"
    base = RunConfig(env="x", agent=AgentConfig(summary=one))
    assert replace(base, agent=AgentConfig(summary=other)).identity == base.identity


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=list(SETTINGS))
def test_every_setting_has_a_help_line(setting: Setting) -> None:
    assert len(setting.help) > 10
    assert setting.help.endswith((".", "`."))


def test_values_of_another_spelling_are_repaired_so_that_equal_settings_are_equal() -> None:
    loose: Any = {"steps": 1e5, "sinks": ["console"], "memory_limit_gb": 2}
    assert RunConfig(env="x", **loose) == RunConfig(env="x", steps=100_000, sinks=("console",), memory_limit_gb=2.0)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (bool, "yes", True), (bool, "off", False), (int, "1e5", 100_000), (float, "inf", math.inf), (float, "3", 3.0),
        (str, "3", "3"), (tuple[int, ...], "[4, 5]", (4, 5)), (tuple[int, ...], "", ()), (float | None, "none", None),
    ],
)  # fmt: skip
def test_text_is_read_as_the_setting_has_it(kind: Any, text: str, value: Any) -> None:
    found = read(kind, Given(text, LINE, written=True), "key")
    assert found == value
    assert type(found) is type(value)


def test_setting_of_another_class_is_refused() -> None:
    wrong: Any = {"discount": 1}
    with pytest.raises(UserError, match="agent must be of the class AgentConfig"):
        RunConfig(env="x", agent=wrong)
