"""One run in a process of its own, at the other end of two pipes: ``python -m dynaboltz.runs.worker``.

It reads a request from its standard input, a line of JSON, and writes messages, a line of JSON each, to what was its
standard output; what the environment prints goes to the standard error stream. It never outlives its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import signal
import sys
import threading
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dynaboltz.errors import DynaboltzError
from dynaboltz.runs.config import RunConfig
from dynaboltz.runs.progress import Progress
from dynaboltz.runs.settings import Given, build
from dynaboltz.runs.train import train

STOP = "stop\n"
"""Asks for a checkpoint and an end."""

PR_SET_PDEATHSIG = 1
GRACE_SECONDS = 3.0
"""Between being asked to stop by a parent that is gone and being stopped."""


def die_with_parent(parent: int) -> None:
    """Have the system end this process when its parent ends, however that is. Linux only; elsewhere see ``listen``."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before we asked
            os._exit(1)


def listen() -> None:
    """Wait for the word to stop, or for the end of the pipe, which is the end of the parent."""
    word = sys.stdin.readline()
    signal.raise_signal(signal.SIGTERM)
    if word != STOP:
        time.sleep(GRACE_SECONDS)
        os._exit(1)


def main() -> int:
    """Read the request, train, tell."""
    faulthandler.enable()  # SIGABRT then says where the work hung
    request = json.loads(sys.stdin.readline())
    die_with_parent(request["parent"])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path[:] = request["path"]

    def send(**message: Any) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    def watch(now: Progress) -> None:
        send(progress=asdict(now))

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        send(warning=str(message))

    warnings.showwarning = warn
    threading.Thread(target=listen, daemon=True).start()
    try:
        config = build(RunConfig, {key: Given(value, "a request") for key, value in request["settings"].items()}, {})
        result = train(config, Path(request["root"]), force=request["force"], watch=watch)
    except DynaboltzError as fault:
        send(fault=str(fault), code=fault.exit_code)
        return fault.exit_code
    send(result=asdict(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
