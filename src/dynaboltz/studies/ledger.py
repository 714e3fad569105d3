"""What was done, in the order in which it happened: one line of JSON an event, appended whole and never changed.

Whether a run is finished, its own folder says; the ledger says what was tried, how long it took and what went wrong.
One process writes, which holds the lock of the study's folder. A line that was torn by a crash is cut off by the next
writer and left out by every reader.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dynaboltz.errors import StorageError, UserError
from dynaboltz.files import opened

Entry = dict[str, Any]
"""``event``, ``run`` (the identity of its settings), ``time`` and whatever belongs to the event."""


class Ledger:
    """A ledger open for appending."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o644)
        except OSError as fault:
            raise UserError(f"cannot write {path}: {fault.strerror or fault}") from None
        self._cut_torn_end()

    def write(self, event: str, run: str, **more: Any) -> None:
        """Append one event and bring it to the disk."""
        entry = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "event": event, "run": run, **more}
        text = (json.dumps(entry, ensure_ascii=False) + "\n").encode()
        try:
            written = os.write(self._file, text)
            os.fsync(self._file)
        except OSError as fault:
            with contextlib.suppress(OSError):
                self._cut_torn_end()
            raise StorageError(
                f"cannot write {self.path}: {fault.strerror or fault}\n  the runs are untouched"
            ) from None
        if written < len(text):
            self._cut_torn_end()
            raise StorageError(f"cannot write {self.path}: the disk is full\n  the runs are untouched")

    def close(self) -> None:
        """Give back the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _cut_torn_end(self) -> None:
        """Cut off what follows the last end of a line."""
        size = end = os.fstat(self._file).st_size
        while end > 0:
            start = max(0, end - 4096)
            os.lseek(self._file, start, os.SEEK_SET)
            at = os.read(self._file, end - start).rfind(b"\n")
            if at >= 0:
                end = start + at + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._file, end)


def read_ledger(path: Path) -> Iterator[Entry]:
    """The events of a ledger, none where there is no file; lines that are not whole are left out."""
    if not path.exists():
        return
    with opened(path) as file:
        for text in file:
            entry = None
            if text.endswith(b"\n"):
                with contextlib.suppress(ValueError, RecursionError):
                    entry = json.loads(text)
            if isinstance(entry, dict) and isinstance(entry.get("event"), str) and isinstance(entry.get("run"), str):
                yield entry
