"""What is to be told of a run while it goes on: how far, how fast, how well; on a terminal or as sparse lines."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from dynaboltz.storage.memory import as_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A run at one moment."""

    name: str
    """Environment, agent and seed."""
    phase: str
    """What it is at: training, evaluating, saving, done."""
    step: int
    steps: int
    """Of how many."""
    rate: float
    """Steps a second, lately; 0 at first."""
    episodes: int
    recent: float
    """Mean return of the last 100 episodes; NaN before the first."""
    evaluated: float
    """Mean return of the last evaluation; NaN before the first."""
    beta: float = math.nan
    c: float = math.nan
    memory: int = 0
    """Bytes that the process has in memory; 0 where the system does not say."""

    @property
    def remaining_seconds(self) -> float:
        """How long it still takes at this rate; ∞ at first."""
        return (self.steps - self.step) / self.rate if self.rate > 0 else math.inf

    def line(self) -> str:
        """All of it in a line."""
        return f"{self.name}: step {self.step:,} of {self.steps:,}, {self.numbers()}".removesuffix(", ")

    def numbers(self) -> str:
        """All but how far it is."""
        parts = []
        if self.phase != "training":
            parts.append(self.phase)
        if self.rate > 0:
            parts.append(f"{self.rate:,.0f}/s")
        if self.step < self.steps and self.rate > 0:
            parts.append(f"{_duration(self.remaining_seconds)} left")
        named = (("return", self.recent), ("evaluated", self.evaluated), ("β", self.beta), ("c", self.c))
        parts += [f"{name} {value:.4g}" for name, value in named if not math.isnan(value)]
        if self.memory:
            parts.append(as_text(self.memory))
        return ", ".join(parts)


Watch = Callable[[Progress], None]
"""Whoever wants to know; called about once a second, and when the phase changes."""


def _duration(seconds: float) -> str:
    """A time to read.

    >>> _duration(42), _duration(130), _duration(7500)
    ('42 s', '2 min', '2 h 05 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def memory_in_use() -> int:
    """Bytes of this process that are in memory, without a library for it; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * int(os.sysconf("SC_PAGE_SIZE"))


class Rate:
    """Steps a second over about the last ten seconds."""

    def __init__(self, step: int) -> None:
        self._marks = [(time.monotonic(), step)]

    def __call__(self, step: int) -> float:
        """The rate now."""
        now = time.monotonic()
        self._marks.append((now, step))
        while len(self._marks) > 2 and self._marks[1][0] < now - 10:
            self._marks.pop(0)
        then, before = self._marks[0]
        return (step - before) / (now - then) if now > then else 0.0


class Lines:
    """A line for each run now and then: at a twentieth of the way, but not more often than every few seconds."""

    def __init__(self, stream: TextIO | None = None, *, seconds: float = 10.0) -> None:
        self._stream = stream or sys.stderr
        self._seconds = seconds
        self._last: dict[str, tuple[float, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._stream.flush()

    def __call__(self, now: Progress) -> None:
        """Write a line if it is time for one."""
        moment = time.monotonic()
        before, step = self._last.setdefault(now.name, (moment, now.step))
        due = moment - before >= self._seconds and now.step - step >= now.steps / 20
        if now.phase == "done" or due or moment - before >= 20 * self._seconds:
            self._last[now.name] = (moment, now.step)
            self._stream.write(now.line() + "\n")
            self._stream.flush()


class Display:
    """A table on a terminal that is written over: a bar and the numbers of each run."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bars
        from rich.table import Column

        name = TextColumn("{task.description}", table_column=Column(no_wrap=True))
        columns = (name, BarColumn(bar_width=10), TextColumn("{task.percentage:>3.0f}% {task.fields[told]}"))
        self._bars = Bars(*columns, console=Console(stderr=True), auto_refresh=False, transient=False)
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._bars.stop()

    def __call__(self, now: Progress) -> None:
        """Show how the run stands."""
        if now.name not in self._tasks:
            self._tasks[now.name] = self._bars.add_task(now.name, total=now.steps, told="")
        self._bars.update(self._tasks[now.name], completed=now.step, told=now.numbers())
        self._bars.refresh()


def shown(*, quiet: bool = False) -> Lines | Display:
    """What fits where the messages go: a display on a terminal, lines elsewhere; nothing where ``quiet``."""
    if quiet:
        import io

        return Lines(io.StringIO())
    return Display() if sys.stderr.isatty() else Lines()
