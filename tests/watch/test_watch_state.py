"""Where a run stands: told by its files and its process alone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.runs import Home, RunConfig
from dynaboltz.watch import state
from dynaboltz.watch.state import Standing, lives, memory_of

Append = Callable[..., None]
Begun = tuple[Home, RunConfig]


def at(seconds_ago: float = 0.0) -> str:
    return datetime.fromtimestamp(time.time() - seconds_ago, UTC).strftime("%Y-%m-%dT%H:%M:%S%z")


def begin(home: Home, append: Append, pid: int | None = None, ago: float = 0.0) -> None:
    append(home.journal, {"time": at(ago), "pid": os.getpid() if pid is None else pid, "event": "start"})


def gone() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def phase(begun: Begun) -> tuple[str, str]:
    now = Standing(*begun).now()
    return now["phase"], now["note"]


def test_standing_of_a_run_that_has_written_nothing_is_waiting(begun: Begun) -> None:
    assert phase(begun) == ("waiting", "nothing is written yet")


def test_standing_of_a_run_whose_process_lives_is_training(begun: Begun, append: Append) -> None:
    begin(begun[0], append)
    append(begun[0].rows, {"kind": "episode", "step": 30, "return": 1.0})
    now = Standing(*begun).now()
    assert (now["phase"], now["step"], now["steps"]) == ("training", 30, 700)
    assert now["memory"] is None or now["memory"] > 1 << 20


def test_standing_of_a_run_whose_process_is_gone_is_stopped(begun: Begun, append: Append) -> None:
    begin(begun[0], append, gone())
    assert phase(begun) == ("stopped", "its process is gone")


def test_standing_takes_no_later_process_of_the_same_number_for_the_run(begun: Begun, append: Append) -> None:
    """The journal began an hour before this process did."""
    if not Path("/proc/uptime").exists():
        pytest.skip("nothing tells here when a process began")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        begin(begun[0], append, process.pid, ago=3600)
        assert phase(begun)[0] == "stopped"
        assert lives(process.pid, time.time())


def test_standing_tells_by_what_a_run_was_interrupted(begun: Begun, append: Append) -> None:
    begin(begun[0], append)
    append(begun[0].journal, {"time": at(), "event": "signal", "name": "SIGTERM"})
    assert phase(begun) == ("stopped", "interrupted by SIGTERM")


def test_standing_tells_the_error_that_ended_a_run(begun: Begun, append: Append) -> None:
    begin(begun[0], append)
    append(begun[0].journal, {"time": at(), "event": "error", "message": "<b>the loss is nan</b>"})
    assert phase(begun) == ("failed", "<b>the loss is nan</b>")
    begin(begun[0], append)
    assert phase(begun)[0] == "training"


def test_standing_of_a_run_with_a_result_is_finished(trained: Any) -> None:
    now = Standing(trained.home, trained.config).now()
    assert (now["phase"], now["step"], now["rate"], now["memory"]) == ("finished", 700, None, None)
    assert now["saved_step"] == 700
    assert now["saved_ago"] >= 0


def test_standing_of_a_run_that_was_removed_is_gone(begun: Begun) -> None:
    standing = Standing(*begun)
    begun[0].clear()
    begun[0].folder.rmdir()
    assert standing.now()["phase"] == "gone"


def test_standing_measures_the_speed_while_it_looks_on(
    begun: Begun, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    begin(begun[0], append)
    standing, rates = Standing(*begun), []
    for step in (100, 200, 300, 400, 50):
        append(begun[0].rows, {"kind": "episode", "step": step, "return": 1.0})
        now = standing.now()
        rates.append((now["rate"], now["seconds_left"]))
        clock[0] += 4.0
    assert rates == [(None, None), (25.0, 20.0), (25.0, 16.0), (25.0, 12.0), (None, None)]


def test_standing_forgets_how_fast_it_went_a_minute_ago(
    begun: Begun, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, step = [100.0], 0
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    begin(begun[0], append)
    standing = Standing(*begun)
    for steps in [8] * 30 + [2] * 40:
        step += steps
        append(begun[0].rows, {"kind": "episode", "step": step, "return": 1.0})
        rate = standing.now()["rate"]
        clock[0] += 2.0
    assert rate == 1.0


def test_standing_takes_the_speed_from_the_checkpoints_at_first(begun: Begun, append: Append) -> None:
    home, pid = begun[0], os.getpid()
    begin(home, append)
    for ago, step in ((20, 100), (0, 300)):
        append(home.journal, {"time": at(ago), "pid": pid, "event": "checkpoint", "step": step})
    append(home.rows, {"kind": "episode", "step": 300, "return": 1.0})
    now = Standing(*begun).now()
    assert now["rate"] == pytest.approx(10.0, rel=0.11)  # times of the journal are whole seconds
    assert now["seconds_left"] == pytest.approx(400 / now["rate"])


def test_standing_of_a_run_elsewhere_goes_by_what_it_writes(
    begun: Begun, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = begun[0]
    begin(home, append, gone())
    (home.folder / ".lock").write_text(f"process {os.getpid()} on not-{socket.gethostname()}\n")
    assert phase(begun)[0] == "training"
    assert Standing(*begun).now()["memory"] is None
    monkeypatch.setattr(state, "QUIET_SECONDS", -1.0)
    assert phase(begun)[0] == "stopped"


@pytest.mark.parametrize("pid", [0, -1, 2**31, 10**30, True, "1", None, 1.5])
def test_standing_makes_nothing_of_what_is_no_process(pid: Any, begun: Begun, append: Append) -> None:
    append(begun[0].journal, {"time": at(), "pid": pid, "event": "start"})
    assert phase(begun)[0] == "stopped"


@pytest.mark.parametrize(
    "text", [b"\x00\xff\n", b"[]\n", b"{}\n", b'{"event": {"a": 1}}\n', b'{"event": "error"', b"9" * 9000]
)
def test_standing_bears_a_torn_journal_and_rows_of_nonsense(text: bytes, begun: Begun) -> None:
    begun[0].journal.write_bytes(text)
    begun[0].rows.write_bytes(text)
    assert phase(begun)[0] in ("waiting", "stopped")
    assert Standing(*begun).beta() is None


def test_standing_bears_steps_and_times_that_are_none(begun: Begun, append: Append) -> None:
    home, standing = begun[0], Standing(*begun)
    append(home.journal, {"time": at(), "pid": os.getpid(), "event": "start"})
    append(home.journal, {"time": "9999-99-99", "pid": os.getpid(), "event": "checkpoint", "step": 10**400})
    append(home.rows, {"kind": "episode", "step": 7}, {"kind": "learning", "step": 10**400, "beta": float("inf")})
    now = standing.now()
    assert (now["step"], now["saved_step"], now["saved_ago"], now["rate"]) == (7, None, None, None)
    assert standing.beta() is None


def test_beta_is_that_of_the_last_row_that_has_one(begun: Begun, append: Append) -> None:
    append(begun[0].rows, {"kind": "learning", "step": 1, "beta": 2.0}, {"kind": "learning", "step": 2, "beta": 3.0})
    append(begun[0].rows, {"kind": "learning", "step": 3}, {"kind": "episode", "step": 4, "beta": 9.0})
    assert Standing(*begun).beta() == 3.0


def test_memory_is_that_of_the_process() -> None:
    found = memory_of(os.getpid())
    if found is None:
        pytest.skip("the system does not say")
    assert 1 << 24 < found < 1 << 40
    assert memory_of(gone()) is None


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="only there can one be told to stay as it ended")
def test_a_process_that_nobody_has_waited_for_does_not_live() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b""  # it has ended, or is about to
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not lives(process.pid, None)
