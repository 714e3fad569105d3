"""An end that is asked for by a signal, and comes when the work at hand is done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
"""What a keyboard, a system, a closed terminal and a batch queue send. Windows knows the first two."""


class Asked:
    """Which signal has asked for an end; false as long as none has."""

    signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    @property
    def name(self) -> str:
        """Its name, such as ``SIGTERM``; empty as long as none has come."""
        return "" if self.signal is None else signal.Signals(self.signal).name


@contextlib.contextmanager
def graceful(active: bool = True) -> Iterator[Asked]:
    """Hold back the first signal that asks for an end until the block is left; a second one acts at once.

    On leaving, the signal does what it would have done: a handler of the caller's is called (that of SIGINT raises
    ``KeyboardInterrupt``), and where the system would have killed the process, ``SystemExit(128 + number)`` is raised,
    so that everything that is open is closed. An error inside of the block goes first. A signal that is ignored, as
    SIGHUP is under ``nohup``, stays ignored. Only the main thread gets signals; elsewhere, and where not ``active``,
    nothing is changed.

    >>> with graceful() as asked:
    ...     bool(asked)
    False
    """
    asked = Asked()
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, _frame: object) -> None:
        asked.signal = number
        restore()

    if active and threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in NAMES if hasattr(signal, name)):
            handler = signal.getsignal(number)
            if handler not in (None, signal.SIG_IGN):  # None: set by something that is not Python; cannot be put back
                before[number] = handler
                signal.signal(number, note)
    try:
        yield asked
    finally:
        restore()
    if asked.signal is not None:
        if before[asked.signal] is signal.SIG_DFL:
            raise SystemExit(128 + asked.signal)
        signal.raise_signal(asked.signal)
