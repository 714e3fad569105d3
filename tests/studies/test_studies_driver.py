"""What a driver does about whatever an executor says: by an executor that says what a test wants."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.cli import main
from dynaboltz.errors import UserError
from dynaboltz.runs import RunConfig, home_of
from dynaboltz.studies import Driver, Ledger, Place, Task, label, make_executor, read_ledger
from dynaboltz.studies import drive as drive_module
from dynaboltz.studies.board import Lines, Table, standing
from dynaboltz.studies.cost import BASE_BYTES, costs, tried_rate
from dynaboltz.studies.executors import Ended, Job
from dynaboltz.studies.executors.local import Local
from dynaboltz.studies.place import IN_USE, write_beat

Grid = Callable[..., tuple[RunConfig, ...]]


class Scripted:
    """Ends the jobs as it is told, one after the other; ``"done"`` leaves a result first."""

    outlives, prompt, cores = True, False, math.inf

    def __init__(self, place: Place, config: RunConfig, *script: Any) -> None:
        self.place, self.config, self.script = place, config, list(script)
        self.submitted: list[str] = []
        self.adopted: list[str] = []
        self.most = 0
        self.running = 0

    def room(self, job: Job, left: int) -> bool:
        assert job.size > BASE_BYTES
        return left >= 0

    def submit(self, job: Job) -> str:
        self.submitted.append(job.name)
        self.running += 1
        self.most = max(self.most, self.running)
        return str(len(self.submitted))

    def poll(self, handle: str) -> Ended | None:
        del handle
        what = self.script.pop(0)
        if what is None:
            return None
        self.running -= 1
        if what == "done":
            home = home_of(self.config, self.place.root)
            home.folder.mkdir(parents=True, exist_ok=True)
            home.result.write_text('{"evaluation": 1.0, "rows": "abc"}')
            return Ended(0)
        if isinstance(what, dict):
            write_beat(self.place.beat(self.config), {"count": len(self.script) + 1, "pid": 1} | what)
            return Ended(what.get("exit", 1))
        assert isinstance(what, Ended)
        return what

    def cancel(self, handle: str) -> None:
        raise AssertionError(handle)

    def adopt(self, handle: str) -> bool:
        self.adopted.append(handle)
        return True

    def close(self) -> None:
        return


def driven(place: Place, config: RunConfig, *script: Any, **more: Any) -> tuple[Task, Scripted]:
    executor = Scripted(place, config, *script)
    (task,) = Driver([config], place, lambda: executor, **more).run()
    return task, executor


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive_module, "BUSY_SECONDS", 0.0)
    monkeypatch.setattr(drive_module, "LOOK_SECONDS", 0.0)


def test_run_that_another_process_holds_is_asked_again_and_that_is_no_try(grid: Grid, place: Place) -> None:
    (config,) = grid()
    task, executor = driven(place, config, *[Ended(IN_USE)] * 9, "done", tries=1)
    assert (task.state, len(executor.submitted)) == ("done", 10)


def test_run_that_waits_in_a_queue_does_not_hang(grid: Grid, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drive_module, "START_SECONDS", 0.0)
    (config,) = grid()
    task, _ = driven(place, config, *[None] * 20, "done", silent_seconds=0.0)
    assert task.state == "done"


def test_job_of_an_earlier_driver_is_taken_up_and_not_submitted_again(grid: Grid, place: Place) -> None:
    (config,) = grid()
    place.prepare()
    with Ledger(place.ledger) as ledger:
        ledger.write("submitted", config.identity, job="4711")
    task, executor = driven(place, config, None, "done")
    assert (task.state, executor.adopted, executor.submitted) == ("done", ["4711"], [])


def test_error_of_ours_is_not_tried_again(grid: Grid, place: Place) -> None:
    (config,) = grid()
    task, executor = driven(place, config, {"phase": "failed", "fault": "the loss is nan", "code": 1})
    assert (task.state, task.fault, task.code, len(executor.submitted)) == ("failed", "the loss is nan", 1, 1)


def test_error_that_is_not_ours_is_told_by_its_last_line(grid: Grid, place: Place) -> None:
    (config,) = grid()
    place.prepare()
    place.log(config).write_text("Traceback …\nZeroDivisionError: division by zero\n\n")
    task, executor = driven(place, config, Ended(1))
    assert task.fault.startswith("ZeroDivisionError: division by zero\n  see ")
    assert len(executor.submitted) == 1


def test_tries_count_from_where_the_run_last_came_further(grid: Grid, place: Place) -> None:
    (config,) = grid()
    killed = [{"phase": "training", "step": step, "exit": -9} for step in (50, 50, 100, 100, 150, 150, 150)]
    task, executor = driven(place, config, *killed, tries=3)
    assert (task.state, task.tries, len(executor.submitted)) == ("failed", 3, 7)
    assert "was ended by SIGKILL, 3 times at step 150 or before" in task.fault


def test_no_more_runs_are_begun_than_jobs_allow(grid: Grid, place: Place) -> None:
    configs = grid(seeds=[0, 1, 2])
    executor = Scripted(place, configs[0], *[None] * 6, *[{"phase": "failed", "fault": "x"}] * 3)
    Driver(configs, place, lambda: executor, jobs=2).run()
    assert (executor.most, len(executor.submitted)) == (2, 3)


def test_result_that_is_torn_is_none_and_the_run_is_done_again(grid: Grid, place: Place) -> None:
    (config,) = grid()
    home = home_of(config, place.root)
    home.folder.mkdir(parents=True)
    home.result.write_text('{"evaluation"')
    task, executor = driven(place, config, "done")
    assert (task.state, len(executor.submitted)) == ("done", 1)


def test_run_is_begun_beside_others_only_if_the_memory_holds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = Local(tmp_path, 4, {})
    job = Job(name="x", request=tmp_path, log=tmp_path, threads=1, size=400)
    monkeypatch.setattr("dynaboltz.studies.executors.local.available_bytes", lambda: 1000)
    assert executor.room(job, 5000)  # alone, the run itself checks
    executor._processes["1"] = None  # type: ignore[assignment]
    assert executor.room(job, 600)
    assert not executor.room(job, 601)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lokal", {}, "unknown executor 'lokal' in --on\n  did you mean 'local'?"),
        ("local", {"address": "x"}, "unknown option of the executor local: 'address'"),
        ("slurm", {"cluster": "slurm"}, "submitit refuses: "),
    ],
)
def test_executor_that_cannot_be_is_refused(tmp_path: Path, name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(UserError) as fault:
        make_executor(name, tmp_path, jobs=None, options=options)
    assert message in str(fault.value)


def test_dry_run_prints_each_run_its_memory_and_its_time(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text('preset = "dqn"\nseeds = [0, 1]\n[settings]\nenv = "probe/beta"\nsteps = 5000\n')
    assert main(["study", str(file), "--out", str(place.root), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("probe/beta dqn seed 0         5,000 steps    30")
    assert lines[0].endswith("time unknown")
    assert lines[-1].startswith("time unknown of 2 runs")
    assert main(["study", str(file), "--out", str(place.root), "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["total"] == {"runs": 2, "done": 0, "seconds": 0, "unknown": 2}
    assert not place.root.exists()


def test_time_is_that_of_finished_runs_of_the_kind_and_then_of_the_sort(grid: Grid, place: Place) -> None:
    place.prepare()
    first, other = grid(axes={"env": ["probe/beta", "probe/constant"]})
    (slow,) = grid(settings={"env": "CartPole-v1"})
    with Ledger(place.ledger) as ledger:
        ledger.write("done", first.identity, steps=200, seconds=4.0)
    found = costs([first, other, slow], [], [place.ledger])
    assert [one.rate for one in found[:2]] == [50.0, 50.0]
    assert math.isnan(found[2].rate)
    assert [one.seconds for one in found[:2]] == [4.0, 4.0]
    assert costs([first], [first.identity], [place.ledger])[0].seconds == 0.0


def test_try_of_a_run_gives_a_rate(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynaboltz.studies.cost.TRIAL_STEPS", 300)
    (config,) = grid()
    assert 0 < tried_rate(config) < math.inf


def test_board_tells_done_running_left_and_failures(
    grid: Grid, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    tasks = [Task(config) for config in grid(seeds=[0, 1, 2, 3])]
    tasks[0].state, tasks[1].state, tasks[3].state = "done", "running", "failed"
    tasks[1].beat, tasks[1].begun = {"step": 100, "phase": "training", "rate": 50.0, "memory": 10**8}, 2
    now = standing(tasks, rate=50.0)
    assert now.line() == "1 done, 1 running, 1 left, 1 failed, 1 begun again, 50 steps/s, 6 s to go"
    with Lines("tiny") as lines:
        lines(tasks, "")
        lines(tasks, "probe/beta failed: why")
    said = capsys.readouterr().err
    assert "tiny: 1 done, 1 running, 1 left, 1 failed, 1 begun again" in said
    assert "tiny: probe/beta failed: why" in said
    with Table("tiny") as table:
        table(tasks, "an event")
    said = capsys.readouterr().err
    assert all(text in said for text in ("1 done, 1 running", label(tasks[1].config), "50% training", "an event"))


def test_ledger_tells_the_whole_story(grid: Grid, place: Place) -> None:
    (config,) = grid()
    driven(place, config, Ended(-9), Ended(None, "job 1 is TIMEOUT"), "done")
    told = [(entry["event"], entry.get("how")) for entry in read_ledger(place.ledger)]
    assert told == [
        ("submitted", None), ("killed", "was ended by SIGKILL"),
        ("submitted", None), ("killed", "job 1 is TIMEOUT"),
        ("submitted", None), ("done", None),
    ]  # fmt: skip
