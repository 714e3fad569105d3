"""Real processes on this machine: killed, hung, wrong, stopped; and what the study comes to all the same."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.cli import main
from dynaboltz.errors import UserError
from dynaboltz.runs import RunConfig, home_of, read_rows, train
from dynaboltz.storage import Store, locked
from dynaboltz.studies import Driver, Place, Task, make_executor, read_ledger
from dynaboltz.studies.executors import Executor
from dynaboltz.studies.place import stood_in_line

Grid = Callable[..., tuple[RunConfig, ...]]

Process = Callable[..., subprocess.Popen[str]]
Until = Callable[..., None]
Lives = Callable[[int], bool]

LONG = {"steps": 10_000_000}
"""Of a run that only ends when it is ended."""

STEADY = {"steps": 500, "saving": {"period_seconds": 0, "period_steps": 100}}
"""Of runs that are interrupted, and come to their end."""


def local(place: Place) -> Callable[[], Executor]:
    return lambda: make_executor("local", place.folder, jobs=2, options={})


def drive(configs: Sequence[RunConfig], place: Place, **more: Any) -> list[Task]:
    return Driver(configs, place, local(place), jobs=2, **more).run()


def rows(config: RunConfig, root: Path) -> bytes:
    return home_of(config, root).rows.read_bytes()


def events(place: Place) -> list[str]:
    return [entry["event"] for entry in read_ledger(place.ledger)]


def once(number: int) -> Callable[[Sequence[Task], str], None]:
    """Sends a signal to the process of the first task when it has come to step 200, the first time."""
    sent: list[int] = []

    def look(tasks: Sequence[Task], _: str) -> None:
        if not sent and tasks[0].step >= 200 and tasks[0].state == "running":
            sent.append(int(tasks[0].beat["pid"]))
            os.kill(sent[0], number)

    return look


def test_killed_worker_goes_on_from_its_checkpoint_to_the_same_rows(grid: Grid, place: Place, tmp_path: Path) -> None:
    (config,) = grid(settings=STEADY)
    (task,) = drive([config], place, look=once(signal.SIGKILL))
    train(config, tmp_path / "undisturbed")
    assert (task.state, task.begun) == ("done", 2)
    assert events(place) == ["submitted", "killed", "submitted", "done"]
    assert [entry["event"] for entry in read_rows(home_of(config, place.root).journal)].count("resume") == 1
    assert rows(config, place.root) == rows(config, tmp_path / "undisturbed")


def test_hung_worker_is_killed_and_begun_again(grid: Grid, place: Place) -> None:
    told: list[str] = []
    stop = once(signal.SIGSTOP)

    def look(tasks: Sequence[Task], event: str) -> None:
        stop(tasks, event)
        told.append(event)

    (task,) = drive(grid(settings=STEADY), place, look=look, silent_seconds=3.0)
    assert (task.state, task.begun) == ("done", 2)
    assert any("said nothing for 3 s and was ended" in one for one in told)


def test_worker_that_waits_for_a_core_is_silent_and_does_not_hang(
    grid: Grid, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    monkeypatch.setattr("dynaboltz.studies.drive.stood_in_line", lambda _: time.monotonic() - began)
    (task,) = drive(grid(settings=STEADY), place, silent_seconds=0.01)
    assert (task.state, task.begun) == ("done", 1)


def test_time_in_line_is_that_of_the_process_and_of_this_machine_alone() -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this system does not say how long a process waits for a core")
    own = {"host": socket.gethostname(), "pid": os.getpid()}
    assert 0 < stood_in_line(own) < time.monotonic()
    assert stood_in_line(own | {"host": "another"}) == 0
    assert stood_in_line(own | {"pid": 2**22 + 1}) == 0
    assert stood_in_line({}) == 0


def test_worker_that_comes_no_further_is_given_up(grid: Grid, place: Place) -> None:
    def look(tasks: Sequence[Task], _: str) -> None:
        if tasks[0].state == "running" and tasks[0].beat.get("phase") == "starting":
            os.kill(int(tasks[0].beat["pid"]), signal.SIGKILL)

    (task,) = drive(grid(settings=LONG), place, look=look, tries=2)
    assert (task.state, task.begun, task.code) == ("failed", 2, 1)
    assert "was ended by SIGKILL, 2 times at step 0 or before" in task.fault


def test_killed_driver_leaves_no_process_and_the_next_one_does_what_is_left(
    grid: Grid, place: Place, tmp_path: Path, study_process: Process, until: Until, lives: Lives
) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(
        'name = "tiny"\npreset = "dqn"\nseeds = [0, 1]\n[settings]\nenv = "probe/beta"\nsteps = 500\n'
        "log_period_steps = 100\n[settings.agent]\nreplay_start_steps = 50\nreplay_capacity_steps = 500\nhidden = [8]\n"
        "[settings.evaluation]\nepisodes = 2\nperiod_steps = 100\n"
        "[settings.saving]\nperiod_seconds = 0\nperiod_steps = 100\n"
    )
    configs = grid(settings=STEADY, seeds=[0, 1])
    driver = study_process(file, place.root, "--jobs", "2")
    beats = [place.beat(config) for config in configs]
    until(lambda: all(beat.exists() for beat in beats))
    pids = [int(json.loads(beat.read_text())["pid"]) for beat in beats]
    driver.kill()
    driver.communicate()
    until(lambda: not any(map(lives, pids)))
    tasks = drive(configs, place)
    assert [task.state for task in tasks] == ["done", "done"]
    for config in configs:
        train(config, tmp_path / "undisturbed")
        assert rows(config, place.root) == rows(config, tmp_path / "undisturbed")
    assert place.results.read_text().count("\n") == 3


def test_driver_that_is_asked_to_stop_has_its_runs_saved(
    grid: Grid, place: Place, tmp_path: Path, study_process: Process, until: Until, lives: Lives
) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(
        'name = "tiny"\npreset = "dqn"\n[settings]\nenv = "probe/beta"\nsteps = 10000000\nlog_period_steps = 100\n'
        "[settings.agent]\nreplay_start_steps = 50\nreplay_capacity_steps = 500\nhidden = [8]\n"
        "[settings.evaluation]\nepisodes = 2\nperiod_steps = 100\n[settings.saving]\nperiod_seconds = 0\n"
    )
    (config,) = grid(settings=LONG)
    driver = study_process(file, place.root)
    until(lambda: place.beat(config).exists() and json.loads(place.beat(config).read_text()).get("step", 0) > 100)
    pid = int(json.loads(place.beat(config).read_text())["pid"])
    driver.send_signal(signal.SIGTERM)
    driver.communicate(timeout=30)
    assert driver.returncode == 128 + signal.SIGTERM
    assert not lives(pid)
    found = Store(home_of(config, place.root).checkpoints, run=config.identity).load()
    assert found is not None
    assert found.step > 100


def test_run_that_is_wrong_fails_alone_and_the_command_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mixed.toml"
    file.write_text(
        'preset = "dqn"\n[settings]\nsteps = 100\n[settings.agent]\nreplay_start_steps = 50\n'
        '[settings.evaluation]\nepisodes = 0\n[axes]\nenv = ["probe/beta", "probe/betta"]\n'
    )
    assert main(["study", str(file), "--out", str(tmp_path / "runs"), "--jobs", "2"]) == 1
    said = capsys.readouterr()
    assert "1 of 2 runs are done (0 were before), 1 failed" in said.out
    assert "error: probe/betta dqn seed 0: unknown probe" in said.err
    assert main(["study", str(file), "--out", str(tmp_path / "runs"), "--only", "env=probe/beta", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["state"] == "done"


def test_second_driver_of_a_study_is_told_of_the_first(grid: Grid, place: Place) -> None:
    with locked(place.folder), pytest.raises(UserError, match=rf"study-tiny is in use by process {os.getpid()}"):
        drive(grid(), place)


def test_finished_study_starts_nothing(grid: Grid, place: Place) -> None:
    (config,) = grid()
    train(config, place.root)

    def make() -> Executor:
        raise AssertionError("an executor was made")

    (task,) = Driver([config], place, make).run()
    assert (task.state, task.found, task.record is not None) == ("done", True, True)
    assert events(place) == ["done"]


def test_worker_prints_nothing_where_nothing_is_wrong(grid: Grid, place: Place) -> None:
    (config,) = grid()
    place.prepare()
    request = place.ask(config)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "dynaboltz.studies.worker", str(request)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("", "")
    assert json.loads(place.beat(config).read_text())["phase"] == "done"
