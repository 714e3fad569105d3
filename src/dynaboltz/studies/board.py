"""How a study stands, while it is worked off: a table that is written over on a terminal, sparse lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TextIO

from dynaboltz.runs.progress import Rate
from dynaboltz.storage.memory import as_text
from dynaboltz.studies.drive import Task
from dynaboltz.studies.study import label

SHOWN = 16
"""Runs at work that a table has room for."""

REDRAW_SECONDS = 0.5
LINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Standing:
    """A study at one moment."""

    done: int
    running: int
    left: int
    failed: int
    again: int
    """Processes that were begun again."""
    rate: float
    """Steps a second of all that run."""
    seconds: float
    """That it will still take, if it goes on so; ∞ if nobody knows."""

    def line(self) -> str:
        """All of it in a line."""
        parts = [f"{self.done} done", f"{self.running} running", f"{self.left} left"]
        parts += [f"{self.failed} failed"] * bool(self.failed) + [f"{self.again} begun again"] * bool(self.again)
        if self.rate > 0:
            parts.append(f"{self.rate:,.0f} steps/s")
        if self.left + self.running and math.isfinite(self.seconds):
            parts.append(f"{duration(self.seconds)} to go")
        return ", ".join(parts)


def standing(tasks: Sequence[Task], rate: float) -> Standing:
    """How they stand, at ``rate`` steps a second."""
    count = {state: sum(task.state == state for task in tasks) for state in ("done", "running", "waiting", "failed")}
    steps = sum(task.config.steps - task.step for task in tasks if task.state in ("running", "waiting"))
    again = sum(max(0, task.begun - 1) for task in tasks)
    seconds = steps / rate if rate > 0 else math.inf
    return Standing(count["done"], count["running"], count["waiting"], count["failed"], again, rate, seconds)


def duration(seconds: float) -> str:
    """A time to read.

    >>> duration(42), duration(130), duration(7500), duration(400_000)
    ('42 s', '2 min', '2 h 05 min', '4.6 days')
    """
    if not math.isfinite(seconds):
        return "unknown"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes < 48 * 60 else f"{seconds / 86400:.1f} days"


class Board:
    """What both forms share: the rate, and what has happened."""

    def __init__(self) -> None:
        self._rate: Rate | None = None
        self._drawn = -math.inf

    def __call__(self, tasks: Sequence[Task], event: str) -> None:
        """Take note of it."""
        steps = sum(task.step for task in tasks if not task.found)
        now = time.monotonic()
        self._rate = self._rate or Rate(steps)
        if event or now >= self._drawn + self.pause:
            self._drawn = now
            self.draw(tasks, standing(tasks, max(0.0, self._rate(steps))), event)

    pause = REDRAW_SECONDS

    def draw(self, tasks: Sequence[Task], now: Standing, event: str) -> None:
        """Show it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        return


class Lines(Board):
    """A line now and then, and one for whatever went wrong."""

    pause = LINE_SECONDS

    def __init__(self, name: str, stream: TextIO | None = None) -> None:
        super().__init__()
        self._name, self._stream, self._last, self._at = name, stream or sys.stderr, "", -math.inf

    def draw(self, tasks: Sequence[Task], now: Standing, event: str) -> None:
        """What is done is told in the next line of all."""
        del tasks
        if event and not event.endswith(" is done"):
            self._stream.write(f"{self._name}: {event}\n")
        ended = not now.running and not now.left
        line = f"{self._name}: {now.line()}"
        if line != self._last and (ended or time.monotonic() >= self._at + LINE_SECONDS):
            self._last, self._at = line, time.monotonic()
            self._stream.write(f"{line}\n")
        self._stream.flush()


class Table(Board):
    """The runs at work, a bar each, under a line of all; the last events below."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__()
        self._name = name
        self._events: deque[str] = deque(maxlen=5)
        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def draw(self, tasks: Sequence[Task], now: Standing, event: str) -> None:
        """Write the table over."""
        if event and not event.endswith(" is done"):
            self._events.append(event.replace("\n", " "))
        self._live.update(self._all(tasks, now), refresh=True)

    def _all(self, tasks: Sequence[Task], now: Standing) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table as Grid
        from rich.text import Text

        bar = ProgressBar(total=max(1, len(tasks)), completed=now.done + now.failed, width=30)
        head = Grid.grid(padding=(0, 2))
        head.add_row(Text(self._name, style="bold"), bar, Text(now.line()))
        grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for title in ("run", "", "", "steps/s", "return", "evaluated", "β", "memory", "tries"):
            grid.add_column(title, no_wrap=True, justify="left" if title in ("run", "") else "right")
        running = [task for task in tasks if task.state == "running"]
        for task in running[:SHOWN]:
            beat = task.beat
            grid.add_row(
                Text(label(task.config)), ProgressBar(total=task.config.steps, completed=task.step, width=10),
                Text(f"{100 * task.step / task.config.steps:3.0f}% {beat.get('phase') or 'queued'}"),
                _number(beat.get("rate"), ",.0f"), _number(beat.get("recent")), _number(beat.get("evaluated")),
                _number(beat.get("beta")), as_text(beat["memory"]) if beat.get("memory") else "", str(task.begun or 1),
            )  # fmt: skip
        more = [Text(f"and {len(running) - SHOWN} more", style="dim")] if len(running) > SHOWN else []
        return Group(head, grid, *more, *(Text(event, style="yellow") for event in self._events))


def _number(value: Any, form: str = ".4g") -> str:
    return "" if value is None else f"{value:{form}}"


def board(name: str, *, quiet: bool = False) -> Board:
    """What fits where the messages go: a table on a terminal, lines elsewhere; nothing where ``quiet``."""
    if quiet:
        import io

        return Lines(name, io.StringIO())
    return Table(name) if sys.stderr.isatty() else Lines(name)
