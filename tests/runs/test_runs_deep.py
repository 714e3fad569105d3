"""The real agent in real runs: stopped, killed and resumed to the same bits, alone and beside others."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.deep import NonFinite
from dynaboltz.deep.learner import Learner
from dynaboltz.envs.world import Worlds
from dynaboltz.runs import (
    Given,
    RunConfig,
    RunWarning,
    digest,
    home_of,
    read_rows,
    resolve,
    resume,
    session,
    several,
    train,
)
from dynaboltz.runs.settings import flat, written
from dynaboltz.runs.several import train_several
from dynaboltz.storage import Store

Stop = Callable[[int], None]

TINY: dict[str, Any] = {
    "env": "CartPole-v1", "steps": 400, "log_period_steps": 50, "evaluation.period_steps": 150,
    "evaluation.episodes": 2, "evaluation.max_steps": 20, "saving.period_seconds": 0, "agent.hidden": (8, 8),
    "agent.batch_size": 8, "agent.replay_start_steps": 60, "agent.replay_capacity_steps": 200,
    "agent.target_period": "40 steps",
}  # fmt: skip


def config_of(preset: str = "dqn", **changes: Any) -> RunConfig:
    values = TINY | {key.replace("__", "."): value for key, value in changes.items()}
    return resolve(preset, None, {key: Given(value, "a test") for key, value in values.items()})


def state_of(config: RunConfig, root: Path) -> str:
    home = home_of(config, root)
    found = Store(home.checkpoints, run=config.identity).load()
    assert found is not None
    return digest([found.tree, home.rows.read_bytes()])


@pytest.fixture
def stop_at(monkeypatch: pytest.MonkeyPatch) -> Stop:
    """SIGTERM at that step of the training."""

    def stop(step: int) -> None:
        original, count = Worlds.step, [0]

        def counted(self: Worlds, actions: np.ndarray) -> Any:
            count[0] += self.n if self.stream == 0 else 0
            if count[0] >= step:
                monkeypatch.setattr(Worlds, "step", original)
                os.kill(os.getpid(), signal.SIGTERM)
            return original(self, actions)

        monkeypatch.setattr(Worlds, "step", counted)

    return stop


CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "before the first update": ("dqn", {}, 30),
    "at a sync": ("dqn", {}, 160),
    "c is learned": ("dbs-dqn", {}, 275),
    "in the evaluation's step": ("dbs-dqn", {}, 150),
    "prioritised, 3 steps, 3 environments": (
        "ddqn", {"n_envs": 3, "agent__prioritised": True, "agent__n_step": 3}, 232,
    ),
    "an update beside acting": ("dbs-dqn", {"agent__overlap": True}, 203),
    "MinAtar": ("dbs-dqn", {"env": "minatar/breakout", "steps": 150, "evaluation__period_steps": 0}, 101),
}  # fmt: skip


@pytest.mark.parametrize(("preset", "changes", "step"), CASES.values(), ids=list(CASES))
def test_stopped_run_resumes_to_the_same_bits(
    preset: str, changes: dict[str, Any], step: int, tmp_path: Path, stop_at: Stop
) -> None:
    config = config_of(preset, **changes)
    train(config, tmp_path / "whole")
    stop_at(step)
    with pytest.raises(SystemExit):
        train(config, tmp_path / "parts")
    resume(home_of(config, tmp_path / "parts").folder)
    assert state_of(config, tmp_path / "parts") == state_of(config, tmp_path / "whole")


def test_learner_does_not_notice_evaluations_or_logs(tmp_path: Path) -> None:
    plain = train(config_of(evaluation__episodes=0, log_period_steps=400), tmp_path)
    watched = train(config_of(evaluation__period_steps=20, log_period_steps=3), tmp_path, watch=lambda _: None)
    assert plain.weights == watched.weights


def test_nan_in_the_weights_ends_the_run_and_the_last_good_checkpoint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Learner.update

    def poisoned(self: Learner, batch: Any, now: Any) -> None:
        if now.update == 200:
            self.parameters.online[3] = float("nan")
        original(self, batch, now)

    monkeypatch.setattr(Learner, "update", poisoned)
    config = config_of(saving__period_steps=100)
    with pytest.raises(NonFinite, match="update 200"):
        train(config, tmp_path)
    found = Store(home_of(config, tmp_path).checkpoints, run=config.identity).load()
    assert found is not None
    assert found.step == 200
    assert list(read_rows(home_of(config, tmp_path).rows))[-1]["kind"] == "error"


def command(config: RunConfig, root: Path, *more: str) -> list[str]:
    """The command line of a run."""
    settings = [f"--set={key}={written(value)}" for key, value in flat(config).items() if key not in ("env", "seed")]
    return [sys.executable, "-m", "dynaboltz", "train", config.env, *settings, "--out", str(root), "--json", *more]


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def lives(pid: str) -> bool:
    """Whether there is such a process, and not only what is left of it for a parent that does not ask."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_killed_process_loses_no_checkpoint_and_comes_to_the_same(tmp_path: Path) -> None:
    config = config_of(steps=3000, saving__period_steps=100, evaluation__episodes=0)
    home = home_of(config, tmp_path / "parts")
    process = subprocess.Popen(command(config, tmp_path / "parts"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: len(list(home.checkpoints.glob("ckpt-*"))) >= 2 or process.poll() is not None)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    committed = [row["step"] for row in read_rows(home.journal) if row["event"] == "checkpoint"]
    resume(home.folder)
    (came_from,) = [row["step"] for row in read_rows(home.journal) if row["event"] == "resume"]
    assert came_from >= committed[-1]
    train(config, tmp_path / "whole")
    assert state_of(config, tmp_path / "parts") == state_of(config, tmp_path / "whole")


BREAKING = """\
import os, pathlib, time
import gymnasium

class Breaking(gymnasium.Wrapper):
    def __init__(self, how, memory):
        super().__init__(gymnasium.make("CartPole-v1"))
        self.how, self.memory, self.count = how, pathlib.Path(memory), 0

    def step(self, action):
        self.count += 1
        if self.count == 250 and not self.memory.exists():
            self.memory.touch()
            os.kill(os.getpid(), 9) if self.how == "die" else time.sleep(1000)
        return super().step(action)
"""


def test_worker_that_dies_or_hangs_is_begun_again_and_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "breaking.py").write_text(BREAKING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(several, "SILENT_SECONDS", 3.0)

    def breaking(how: str) -> RunConfig:
        env = f"breaking:Breaking(how='{how}', memory='{tmp_path / how}')"
        return config_of(env=env, saving__period_steps=100, evaluation__episodes=0)

    configs = [breaking("die"), breaking("hang"), replace(config_of(), env="breaking:Nothing")]
    with pytest.warns(RunWarning) as caught:
        *broken, refused = train_several(configs, tmp_path / "parts", jobs=2)
    told = "\n".join(sorted(str(warning.message) for warning in caught))
    assert "seed 0, was ended by SIGKILL; it is begun again from its checkpoint" in told
    assert re.search(r"said nothing for 3 s and was ended at File .*breaking\.py.*; it is begun again", told)
    assert (refused.result, refused.code) == (None, 2)
    assert "unknown factory 'Nothing'" in refused.fault
    for config, outcome in zip(configs, broken, strict=False):
        assert outcome.result is not None
        assert outcome.restarts == 1
        train(config, tmp_path / "whole")
        assert state_of(config, tmp_path / "parts") == state_of(config, tmp_path / "whole")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_do_not_outlive_their_parent_and_leave_whole_runs(tmp_path: Path) -> None:
    config = config_of(steps=1_000_000, evaluation__episodes=0, saving__period_steps=200)
    line = command(config, tmp_path, "--seeds", "0..1", "--jobs", "2")
    parent = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: len(list(tmp_path.glob("**/ckpt-*"))) >= 2)
    workers = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    parent.kill()
    parent.wait()
    assert len(workers) == 2
    until(lambda: not any(lives(worker) for worker in workers))


def test_signal_to_the_parent_saves_its_worker(tmp_path: Path) -> None:
    config = config_of(steps=1_000_000, evaluation__episodes=0)
    line = command(config, tmp_path, "--seeds", "0")
    parent = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    home = home_of(config, tmp_path)
    until(lambda: home.rows.exists() and home.rows.stat().st_size > 2000)
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(20) == 128 + signal.SIGTERM
    assert list(home.checkpoints.glob("ckpt-*"))


def test_more_threads_than_cores_beside_acting_are_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "cores", lambda: 2)
    with pytest.warns(RunWarning, match=r"write agent\.threads=1"):
        train(config_of(steps=20, agent__overlap=True, agent__threads=2), tmp_path)
    train(config_of(steps=20, agent__overlap=True), tmp_path)  # a warning would be an error
