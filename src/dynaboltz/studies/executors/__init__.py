"""Where runs are worked off: processes of this machine, a Ray cluster, a SLURM queue; one interface, one entry each.

Whatever it is, a run is one process that is told by a file what to do and says by files how it stands
(:mod:`dynaboltz.studies.worker`). An executor starts that process somewhere, says whether it still works, and can
end it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from dynaboltz.errors import UnknownNameError, UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run, ready to be worked off."""

    name: str
    """For people."""
    request: Path
    """What its process is told."""
    log: Path
    """Where that prints to."""
    threads: int
    size: int
    """Bytes of memory that it will take, Python and its libraries included."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    code: int | None
    """Its exit code, minus the number of the signal that killed it; None where nobody knows."""
    how: str = ""
    """What is known beside that."""


class Executor(Protocol):
    """What works runs off."""

    outlives: bool
    """Whether jobs go on when this process ends."""
    prompt: bool
    """Whether a job begins as soon as it is submitted, and not when a queue gets to it."""
    cores: float
    """Threads that are worked off at a time; infinity where a queue decides."""

    def room(self, job: Job, left: int) -> bool:
        """Whether the job fits beside those that run, which will take ``left`` more bytes than they have now."""

    def submit(self, job: Job) -> str:
        """Start the job; the text that names it from then on."""

    def poll(self, handle: str) -> Ended | None:
        """How the job ended; None as long as it has not."""

    def cancel(self, handle: str) -> None:
        """End the job at once."""

    def adopt(self, handle: str) -> bool:
        """Whether a job of an earlier process is still there; from then on it is this one's."""

    def close(self) -> None:
        """End all that was started and does not outlive this process."""


TABLE: Mapping[str, str] = {
    "local": "dynaboltz.studies.executors.local:Local",
    "ray": "dynaboltz.studies.executors.ray_cluster:RayCluster",
    "slurm": "dynaboltz.studies.executors.slurm:Slurm",
}
"""Name → ``make(folder, jobs, options)``: the study's folder, runs at a time or None, and options of its own."""


def make_executor(name: str, folder: Path, *, jobs: int | None, options: Mapping[str, str]) -> Executor:
    """The executor of that name."""
    if name not in TABLE:
        raise UnknownNameError("executor", name, TABLE, "--on")
    if jobs is not None and not 1 <= jobs <= 100_000:
        raise UserError(f"jobs must be from 1 to 100,000, got {jobs}")
    module, _, kind = TABLE[name].partition(":")
    make: Callable[..., Any] = getattr(import_module(module), kind)
    executor: Executor = make(folder, jobs, dict(options))
    return executor


def check_options(executor: str, options: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Refuse options that the executor has not."""
    for key in options:
        if key not in known:
            raise UnknownNameError(f"option of the executor {executor}:", key, known or ("none",), "--option")
