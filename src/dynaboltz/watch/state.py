"""Where a run stands, by what it has written: its step, its process, its speed, what it ended by."""

from __future__ import annotations

import os
import re
import socket
import time
from collections import deque
from datetime import datetime
from pathlib import Path
from typing import Any

from dynaboltz.runs import Home, RunConfig
from dynaboltz.watch.follow import number, step_of, tail

WINDOW_SECONDS = 60.0
"""Over which the speed is measured."""
QUIET_SECONDS = 120.0
"""After which a run on another machine counts as stopped, if it has written nothing."""
LARGEST_PID = 1 << 31
HOLDER = re.compile(r"process (\d+) on (.+)\n?")


class Standing:
    """A run as it is now, told by files alone. Not for several threads at once."""

    def __init__(self, home: Home, config: RunConfig) -> None:
        self.home, self.config = home, config
        self._marks: deque[tuple[float, int]] = deque()
        self.about = {
            "env": config.env, "name": config.name, "seed": config.seed, "steps": config.steps,
            "summary": str(config.agent.parsed_summary), "n_envs": config.n_envs, "folder": str(home.folder),
        }  # fmt: skip

    def now(self) -> dict[str, Any]:
        """All of it, for the page."""
        if not self.home.folder.is_dir():
            return self.about | {"phase": "gone", "note": "the folder is no longer there"}
        rows, journal = tail(self.home.rows), tail(self.home.journal)
        step = next((step for row in reversed(rows) if (step := step_of(row)) is not None), 0)
        pid, alive = self._process(journal)
        phase, note = self._phase(journal, alive)
        rate = self._rate(step, journal) if phase == "training" else None
        left = (self.config.steps - step) / rate if rate else None
        saved = next((one for one in reversed(journal) if one.get("event") == "checkpoint"), {})
        return self.about | {
            "phase": phase, "note": note, "step": step, "rate": rate, "seconds_left": left,
            "memory": memory_of(pid) if alive and pid else None, "saved_step": number(saved.get("step")),
            "saved_ago": _ago(saved.get("time")),
        }  # fmt: skip

    def beta(self) -> float | None:
        """β of the last update that was told of; None where there is none, or it is ∞."""
        rows = tail(self.home.rows)
        return next(
            (number(row["beta"]) for row in reversed(rows) if row.get("kind") == "learning" and "beta" in row), None
        )

    def _phase(self, journal: list[dict[str, Any]], alive: bool) -> tuple[str, str]:
        if self.home.result.exists():
            return "finished", ""
        if alive:
            return "training", ""
        last = next((one for one in reversed(journal) if one.get("event") in ("signal", "error")), None)
        if not journal:
            return "waiting", "nothing is written yet"
        if last is not None and last is journal[-1] and last["event"] == "error":
            return "failed", str(last.get("message", ""))[:2000]
        by = f" by {str(last.get('name'))[:20]}" if last is not None and last is journal[-1] else ""
        return "stopped", f"interrupted{by}" if by else "its process is gone"

    def _process(self, journal: list[dict[str, Any]]) -> tuple[int | None, bool]:
        """The process of the run on this machine, if it is on this one, and whether it lives."""
        begun = next((one for one in reversed(journal) if one.get("event") in ("start", "resume")), None)
        if begun is None or self.home.result.exists() or journal[-1].get("event") in ("signal", "error", "end"):
            return None, False
        holder = _holder(self.home.folder)
        if holder is not None and holder[1] != socket.gethostname():
            return None, time.time() - _written(self.home) < QUIET_SECONDS
        pid = begun.get("pid")
        if type(pid) is not int:
            return None, False
        return pid, lives(pid, _moment(begun.get("time")))

    def _rate(self, step: int, journal: list[dict[str, Any]]) -> float | None:
        """Steps a second while this looked on, or between the last checkpoints."""
        now, marks = time.monotonic(), self._marks
        if marks and step < marks[-1][1]:  # it went back to a checkpoint
            marks.clear()
        if not marks or step > marks[-1][1]:
            marks.append((now, step))
        while len(marks) > 2 and marks[1][0] < now - WINDOW_SECONDS:
            marks.popleft()
        (then, before), (last, after) = marks[0], marks[-1]
        if last - then >= 2:
            return (after - before) / (last - then)
        saved = [one for one in journal if one.get("event") in ("start", "resume", "checkpoint")][-2:]
        moments = [_moment(one.get("time")) for one in saved]
        steps = [number(one.get("step", 0)) for one in saved]
        if len(saved) < 2 or None in moments or None in steps or saved[0].get("pid") != saved[1].get("pid"):
            return None
        seconds, done = moments[1] - moments[0], steps[1] - steps[0]  # type: ignore[operator]
        return done / seconds if seconds >= 1 and done > 0 else None


def memory_of(pid: int) -> int | None:
    """Bytes that a process has in memory; None where the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * int(os.sysconf("SC_PAGE_SIZE"))


def lives(pid: int, moment: float | None) -> bool:
    """Whether there is a process of this number that was there at ``moment``; one that came later is another."""
    if os.name != "posix":
        return _fresh(moment)
    if not 0 < pid < LARGEST_PID:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # there, but somebody else's
        pass
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        uptime = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        began = time.time() - uptime + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return True
    return fields[0] != "Z" and (moment is None or began <= moment + 2)


def _fresh(moment: float | None) -> bool:
    return moment is not None and time.time() - moment < QUIET_SECONDS


def _holder(folder: Path) -> tuple[int, str] | None:
    """Which process on which machine has the folder, or was the last to have it."""
    try:
        with (folder / ".lock").open("rb") as file:
            found = HOLDER.fullmatch(file.read(300).decode(errors="replace"))
    except OSError:
        return None
    return None if found is None else (int(found[1]), found[2])


def _written(home: Home) -> float:
    """When the run last wrote something."""
    moments = [0.0]
    for path in (home.rows, home.journal):
        try:
            moments.append(path.stat().st_mtime)
        except OSError:
            continue
    return max(moments)


def _moment(text: object) -> float | None:
    """A time of the journal in seconds."""
    try:
        return datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except ValueError:
        return None


def _ago(text: object) -> float | None:
    moment = _moment(text)
    return None if moment is None else max(0.0, time.time() - moment)
