"""Processes of this machine, as many as its cores and its memory hold; none outlives this one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from dynaboltz.storage import available_bytes, cores
from dynaboltz.studies.executors import Ended, Job, check_options


def launch(request: Path, log: Path, threads: int) -> subprocess.Popen[bytes]:
    """The process of one run, which ends with this one."""
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    command = [sys.executable, "-m", "dynaboltz.studies.worker", str(request), str(os.getpid())]
    with log.open("ab") as file:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=file, stderr=file, env=environment, start_new_session=True
        )


class Local:
    """See the module."""

    outlives = False
    prompt = True

    def __init__(self, folder: Path, jobs: int | None, options: Mapping[str, str]) -> None:
        del folder
        check_options("local", options, ())
        self.cores = float(cores()) if jobs is None else float("inf")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def room(self, job: Job, left: int) -> bool:
        """Whether it fits into what is free after all that run have taken theirs."""
        free = available_bytes()
        return not self._processes or free is None or job.size + left <= free

    def submit(self, job: Job) -> str:
        """Start a process."""
        process = launch(job.request, job.log, job.threads)
        self._processes[str(process.pid)] = process
        return str(process.pid)

    def poll(self, handle: str) -> Ended | None:
        """How the process ended."""
        process = self._processes[handle]
        code = process.poll()
        if code is None:
            return None
        self._forget(handle)
        return Ended(code)

    def cancel(self, handle: str) -> None:
        """Have it write down where it is, then kill it."""
        process = self._processes.get(handle)
        if process is None:
            return
        with contextlib.suppress(OSError):
            process.send_signal(getattr(signal, "SIGABRT", signal.SIGTERM))
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def adopt(self, handle: str) -> bool:
        """Never: all ended with the process that started them."""
        del handle
        return False

    def close(self) -> None:
        """Kill what still runs."""
        for handle, process in list(self._processes.items()):
            process.kill()
            process.wait()
            self._forget(handle)

    def _forget(self, handle: str) -> None:
        process = self._processes.pop(handle)
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
