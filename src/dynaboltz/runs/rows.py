"""Rows: what a run found, one JSON object a line, appended; and its journal, what happened to the process.

The rows of a run depend on its settings alone: they hold no time of day and no duration, and a run that was
interrupted has the same bytes as one that was not. For that a checkpoint stores how long the file was, and
going on from it cuts off whatever was written since, a torn last line included.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dynaboltz.errors import StorageError, UserError
from dynaboltz.files import opened

Row = dict[str, Any]
"""``kind`` (start, episode, learning, evaluation, error, end), ``step`` and whatever else belongs to the kind."""


class Rows:
    """A file of rows, open for appending at ``offset``; what lies beyond it is cut off."""

    def __init__(self, path: Path, *, offset: int = 0) -> None:
        self.path = path
        try:
            self._file = path.open("ab")
        except OSError as fault:
            raise UserError(f"cannot write {path}: {fault.strerror or fault}") from None
        try:
            there = self._file.seek(0, os.SEEK_END)
            if there >= offset:
                self._file.truncate(offset)
                self._file.seek(0, os.SEEK_END)
        except OSError as fault:
            self._file.close()
            raise UserError(f"cannot write {path}: {fault.strerror or fault}") from None
        if there < offset:
            self._file.close()
            raise UserError(
                f"{path} has {there:,} bytes, but had {offset:,} at the checkpoint: rows were lost\n"
                "  put the file back, or start the run again with --force"
            )

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row."""
        with self._telling():
            self._file.write(line(row))

    def flush(self) -> None:
        """Show what was written to whoever reads along."""
        with self._telling():
            self._file.flush()

    def sync(self) -> int:
        """Bring all rows to the disk; the length of the file."""
        with self._telling():
            self._file.flush()
            os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self, *, quiet: bool = False) -> None:
        """Flush and close; a second call does nothing. ``quiet`` where an error is under way already."""
        with contextlib.suppress(*(StorageError,) * quiet), self._telling():
            self._file.close()

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            raise StorageError(
                f"cannot write {self.path}: {fault.strerror or fault}\n"
                "  the checkpoints are untouched; free some space and resume"
            ) from None


def line(row: Mapping[str, Any]) -> bytes:
    r"""The row as one line of JSON: NaN, which JSON has not, is null, and ±∞ are text.

    >>> line({"kind": "learning", "step": 5, "beta": float("inf")})
    b'{"kind": "learning", "step": 5, "beta": "inf"}\n'
    """
    return (json.dumps({key: _plain(value) for key, value in row.items()}, ensure_ascii=False) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def read_rows(path: Path, kind: str | None = None) -> Iterator[Row]:
    """The rows of a file, or those of one kind; a last line without its end is still being written and is left out."""
    with opened(path) as file:
        for number, text in enumerate(file, 1):
            if not text.endswith(b"\n"):
                return
            try:
                row = json.loads(text)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise UserError(f"{path}, line {number} is not a row: {text[:60].decode(errors='replace')!r}")
            if kind is None or row.get("kind") == kind:
                yield row


def note(path: Path, event: str, **more: Any) -> None:
    """Append an event to the journal of a run: when, which process, what. A journal that cannot be written is left."""
    entry = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "pid": os.getpid(), "event": event, **more}
    try:
        with path.open("ab") as file:
            file.write(line(entry))
    except OSError:
        return
