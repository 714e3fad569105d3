"""A run's rows, read along while they are written: whole lines from a place on, and whether that place is still there.

Whoever reads keeps the place and a mark of what stood before it. A run that goes on from a checkpoint cuts its rows
and writes the same ones again, so the place is good once they are there; where the mark is another one, the file is
another one too, and is read again from its beginning.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from dynaboltz.errors import UserError
from dynaboltz.files import opened
from dynaboltz.runs.rows import Row

CHUNK = 1 << 20
"""Bytes that are read at a time, about."""
LONGEST = 16 << 20
"""Bytes of a line; a longer one is passed over."""
LARGEST = 1 << 53
"""Of the steps, and of the places in a file: what a page's numbers hold exactly."""
MARKED = 64
"""Bytes before a place that tell whether it is still there."""
TAILS = (1 << 16, LONGEST)

LEARNING = (
    "updates", "syncs", "loss", "q_mean", "td_error", "beta", "c", "gap", "variance", "entropy", "saturated", "epsilon",
)  # fmt: skip
"""Numbers of a learning row that are handed on."""


def follow(path: Path, place: int, mark: str) -> dict[str, Any]:
    """What stands after ``place``, in columns, with the next place and its mark.

    Returns:
        ``next`` and ``mark`` to ask with again; ``again`` where all that was handed out before does not count;
        ``more`` where there is more already; ``episodes`` and ``evaluations`` as lists of steps and of returns;
        ``learning`` as a list for each number; ``unread`` counts lines that are no rows.
    """
    found = Found()
    again = more = False
    end = 0
    with contextlib.suppress(UserError), opened(path) as file:  # a file that is not there has no rows
        size = os.fstat(file.fileno()).st_size
        again = place > 0 and (place > size or _mark(file, place) != mark)
        end = start = 0 if again else place
        file.seek(start)
        while end - start < CHUNK and (text := _line(file)) is not None:
            end = file.tell()
            found.add(text)
        more, mark = end - start >= CHUNK, _mark(file, end)
    again = again or end < place
    return {"next": end, "mark": mark if end else "", "again": again, "more": more, **asdict(found)}


@dataclass(slots=True)
class Found:
    """Numbers of rows, in columns."""

    episodes: list[list[float]] = field(default_factory=lambda: [[], []])
    evaluations: list[list[float]] = field(default_factory=lambda: [[], []])
    learning: dict[str, list[float | None]] = field(default_factory=lambda: {name: [] for name in ("step", *LEARNING)})
    unread: int = 0

    def add(self, text: bytes) -> None:
        """Take in a line."""
        row = as_row(text)
        if row is None:
            self.unread += 1
        elif row["kind"] == "learning":
            self.learning["step"].append(row["step"])
            for name in LEARNING:
                self.learning[name].append(number(row.get(name)))
        elif row["kind"] in ("episode", "evaluation"):
            columns, key = (self.episodes, "return") if row["kind"] == "episode" else (self.evaluations, "mean")
            value = number(row.get(key))
            if value is not None:
                columns[0].append(row["step"])
                columns[1].append(value)


def tail(path: Path) -> list[Row]:
    """The last rows of a file, those that are whole; none where it cannot be read."""
    for size in TAILS:
        try:
            with opened(path) as file:
                whole = os.fstat(file.fileno()).st_size
                file.seek(max(0, whole - size))
                lines = file.read(size).split(b"\n")
        except (UserError, OSError):
            return []
        first = 0 if whole <= size else 1  # the first line begins before what was read
        rows = [row for text in lines[first:-1] if (row := _object(text)) is not None]
        if rows or whole <= size:
            return rows
    return []


def number(value: object) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer that is larger than any float
        return None


def step_of(row: Row) -> int | None:
    """The step of a row, if it has one."""
    step = row.get("step")
    return step if type(step) is int and 0 <= step <= LARGEST else None


def as_row(text: bytes) -> Row | None:
    """A line as a row, if it is one."""
    row = _object(text)
    whole = row is not None and isinstance(row.get("kind"), str) and step_of(row) is not None
    return row if whole else None


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _line(file: BinaryIO) -> bytes | None:
    """The next line; empty where it is too long, None where it has no end yet."""
    text = file.readline(LONGEST)
    if text.endswith(b"\n"):
        return text
    while len(text) == LONGEST:
        text = file.readline(LONGEST)
        if text.endswith(b"\n"):
            return b""
    return None


def _mark(file: BinaryIO, place: int) -> str:
    """A digest of what stands before ``place``."""
    file.seek(max(0, place - MARKED))
    return hashlib.sha256(file.read(min(MARKED, place))).hexdigest()[:16] if place else ""
