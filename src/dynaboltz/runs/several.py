"""Several runs side by side, each in a process of its own: what a machine with several cores does fastest.

A process that dies is begun again from its checkpoint, and so is one that says nothing for a minute; one that fails
with an error of ours fails again, so it is not. None outlives this process.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dynaboltz.errors import UserError
from dynaboltz.runs.config import RunConfig
from dynaboltz.runs.layout import home_of
from dynaboltz.runs.progress import Progress, Watch
from dynaboltz.runs.rows import note
from dynaboltz.runs.session import RunWarning
from dynaboltz.runs.settings import flat
from dynaboltz.runs.train import Result
from dynaboltz.runs.worker import STOP
from dynaboltz.storage import graceful

SILENT_SECONDS = 60.0
"""A run that has said nothing for so long hangs; it speaks every second, even while it evaluates."""

START_SECONDS = 300.0
"""As long as the first word may take: libraries are imported and kernels compiled before it."""

RESTARTS = 2
"""How often one run is begun again."""

STOP_SECONDS = 60.0
"""How long runs that were asked to stop may save."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one of the runs."""

    config: RunConfig
    result: Result | None
    """None if it failed."""
    fault: str = ""
    """Why it failed."""
    code: int = 0
    """Its exit code: 2 for wrong settings, 1 for a failed run."""
    restarts: int = 0


class Worker:
    """The process of one run, and what it has said."""

    def __init__(self, config: RunConfig, root: Path, *, force: bool) -> None:
        self.config, self.root, self.force = config, root, force
        self.restarts = 0
        self.outcome: Outcome | None = None
        self.done = False
        self.begin()

    def begin(self) -> None:
        """Start the process."""
        threads = str(self.config.agent.threads)
        environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dynaboltz.runs.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace", env=environment,
            start_new_session=True,
        )  # fmt: skip
        self.messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.tail: deque[str] = deque(maxlen=200)
        self.spoken = False
        self.heard_at = time.monotonic()
        self.hung = self.asked = False
        self._follow(self.process.stdout, self.messages.put)
        self._follow(self.process.stderr, self.tail.append)
        request = {
            "settings": flat(self.config), "root": str(self.root), "force": self.force, "path": sys.path,
            "parent": os.getpid(),
        }  # fmt: skip
        self._say(json.dumps(request) + "\n")
        self.force = False  # begun again, it goes on from its checkpoint

    def stop(self) -> None:
        """Ask for a checkpoint and an end; asking twice would force it."""
        if not self.asked:
            self.asked = True
            self._say(STOP)

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.wait()

    def look(self, watch: Watch | None) -> None:
        """Take up what it has said, and find out whether it still works."""
        ended = self.process.poll() is not None
        if ended:
            for thread in self._threads:
                thread.join(5)
        while not self.messages.empty():
            self.spoken, self.heard_at = True, time.monotonic()
            self._take(json.loads(self.messages.get()), watch)
        if ended:
            self.close()
            if self.outcome is None:
                self._ended()
            self.done = self.outcome is not None
        elif time.monotonic() > self.heard_at + (SILENT_SECONDS if self.spoken else START_SECONDS):
            self._hangs()

    def _take(self, message: dict[str, Any], watch: Watch | None) -> None:
        if "progress" in message and watch is not None:
            watch(Progress(**message["progress"]))
        elif "warning" in message:
            warnings.warn(f"seed {self.config.seed}: {message['warning']}", RunWarning, stacklevel=4)
        elif "result" in message:
            self.outcome = Outcome(self.config, Result(**message["result"]), restarts=self.restarts)
        elif "fault" in message:
            self.outcome = Outcome(self.config, None, message["fault"], message["code"], self.restarts)

    def _ended(self) -> None:
        """It is gone without a word: killed, or by an error that is not ours."""
        code = self.process.returncode
        if self.hung:
            how = f"said nothing for {SILENT_SECONDS:.0f} s and was ended{self._where()}"
        elif code in (1, 2):
            how = "failed: " + (
                next((line for line in reversed(self.tail) if line.strip()), "").strip() or "no message"
            )
        else:
            number = -code if code < 0 else code - 128
            name = signal.Signals(number).name if number in signal.valid_signals() else f"code {code}"
            how = f"was ended by {name}"
        again = code not in (1, 2) and not self.asked and self.restarts < (1 if self.hung else RESTARTS)
        what = f"the process of {self.config.env}, seed {self.config.seed}, {how}"
        note(home_of(self.config, self.root).journal, "process ended", message=what, again=again)
        if again:
            warnings.warn(f"{what}; it is begun again from its checkpoint", RunWarning, stacklevel=4)
            self.restarts += 1
            self.begin()
        else:
            hint = "\n  killed by the system for its memory?" if code == -signal.SIGKILL and not self.hung else ""
            self.outcome = Outcome(self.config, None, what + hint, 1, self.restarts)

    def _hangs(self) -> None:
        self.hung = True
        with contextlib.suppress(OSError):
            self.process.send_signal(getattr(signal, "SIGABRT", signal.SIGTERM))
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.kill()

    def _where(self) -> str:
        """The line that it hung at, as its last words tell: each thread's calls, the innermost first."""
        lines = list(self.tail)
        threads = [index for index, line in enumerate(lines) if "most recent call first" in line]
        hung = [index for index in threads if lines[index].startswith("Current thread")] or threads[-1:]
        return f" at {lines[hung[0] + 1].strip()}" if hung and hung[0] + 1 < len(lines) else ""

    def _say(self, text: str) -> None:
        stdin = self.process.stdin
        assert stdin is not None
        with contextlib.suppress(OSError):  # it is gone; that is found out in looking
            stdin.write(text)
            stdin.flush()

    def _follow(self, stream: IO[str] | None, take: Any) -> None:
        def follow() -> None:
            for line in stream or ():
                take(line)

        if stream is self.process.stdout:
            self._threads: list[threading.Thread] = []
        self._threads.append(threading.Thread(target=follow, daemon=True))
        self._threads[-1].start()

    def close(self) -> None:
        """Give back the pipes."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def train_several(
    configs: Sequence[RunConfig], root: Path = Path("runs"), *, jobs: int = 2, force: bool = False,
    watch: Watch | None = None,
) -> list[Outcome]:  # fmt: skip
    """Do these runs, ``jobs`` at a time, and tell what became of each, in their order.

    A signal that asks for an end has all of them save and leave.
    """
    if not 1 <= jobs <= 1024:
        raise UserError(f"jobs must be from 1 to 1,024, got {jobs}")
    folders = [home_of(config, root).folder for config in configs]
    if len(set(folders)) < len(folders):
        raise UserError("two of the runs have the same settings; each would wait for the other's folder")
    workers: list[Worker] = []
    with graceful() as asked:
        try:
            while not asked and (len(workers) < len(configs) or any(not worker.done for worker in workers)):
                if len(workers) < len(configs) and sum(not worker.done for worker in workers) < jobs:
                    workers.append(Worker(configs[len(workers)], root, force=force))
                else:
                    _look(workers, watch)
            if asked:
                _stop(workers, watch)
        finally:
            for worker in workers:
                if worker.process.poll() is None:
                    worker.kill()
                worker.close()
    return [worker.outcome for worker in workers if worker.outcome is not None]


def _stop(workers: Sequence[Worker], watch: Watch | None) -> None:
    """Have all that still work save and leave."""
    until = time.monotonic() + STOP_SECONDS
    for worker in workers:
        if not worker.done:
            worker.stop()
    while time.monotonic() < until and any(not worker.done for worker in workers):
        _look(workers, watch)


def _look(workers: Sequence[Worker], watch: Watch | None) -> None:
    for worker in workers:
        if not worker.done:
            worker.look(watch)
    time.sleep(0.05)
