"""One run of a study in a process of its own: ``python -m dynaboltz.studies.worker REQUEST [PARENT]``.

All that it needs stands in the request, and all that it says goes to files, so that it works the same on this machine
and on another one. It says how it stands about once a second, saves and leaves when the study's stop file appears or on
SIGTERM, and never outlives the process PARENT, where one is named.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dynaboltz.errors import DynaboltzError
from dynaboltz.runs import Given, Progress, RunConfig, home_of, train
from dynaboltz.runs.settings import build
from dynaboltz.runs.worker import GRACE_SECONDS, die_with_parent
from dynaboltz.storage import locked
from dynaboltz.studies.place import IN_USE, write_beat

LOOK_SECONDS = 0.5
"""Between two looks for the stop file."""


class Voice:
    """What the run says of itself, and how fast it was in this process."""

    def __init__(self, path: Path) -> None:
        self.path, self.count, self.first = path, 0, -1
        self.began = time.monotonic()
        self.last: dict[str, Any] = {}

    def __call__(self, now: Progress) -> None:
        """Say how it stands."""
        if self.first < 0:
            self.first, self.began = now.step, time.monotonic()
        self.last = {key: None if value != value else value for key, value in asdict(now).items()}  # noqa: PLR0124
        self.say(phase=now.phase)

    def say(self, **more: Any) -> None:
        """Say the last, and more."""
        self.count += 1
        own = {"count": self.count, "host": socket.gethostname(), "pid": os.getpid(), "first": max(0, self.first)}
        seconds = round(time.monotonic() - self.began, 3)
        write_beat(self.path, self.last | own | {"seconds": seconds} | more)


def obey(stop: Path) -> None:
    """Save and leave once the stop file is there."""
    while not stop.exists():
        time.sleep(LOOK_SECONDS)
    signal.raise_signal(signal.SIGTERM)


def listen() -> None:
    """Leave at the end of the pipe, which is the end of the parent, where the system itself does not see to it."""
    while sys.stdin.readline():
        continue
    signal.raise_signal(signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


def main(arguments: Sequence[str]) -> int:
    """Read the request, train, say what it came to."""
    faulthandler.enable()  # SIGABRT then says where the work hung
    request = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    if len(arguments) > 1:
        die_with_parent(int(arguments[1]))
        threading.Thread(target=listen, daemon=True).start()
    sys.path += [one for one in request["path"] if one not in sys.path]
    warnings.showwarning = lambda message, *_, **__: _tell(f"warning: {message}")
    voice = Voice(Path(request["beat"]))
    voice.say(phase="starting")
    threading.Thread(target=obey, args=[Path(request["stop"])], daemon=True).start()
    try:
        config = build(RunConfig, {key: Given(value, "a request") for key, value in request["settings"].items()}, {})
        if _in_use(config, Path(request["root"])):
            return IN_USE
        train(config, Path(request["root"]), watch=voice)
    except DynaboltzError as fault:
        voice.say(phase="failed", fault=str(fault), code=fault.exit_code)
        _tell(f"error: {fault}")
        return fault.exit_code
    voice.say(phase="done")
    return 0


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _in_use(config: RunConfig, root: Path) -> bool:
    """Whether another process has the run: one of another study, or of a driver whose end has not got about yet."""
    try:
        with locked(home_of(config, root).folder):
            return False
    except DynaboltzError as fault:
        if "is in use by" in str(fault):
            return True
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
