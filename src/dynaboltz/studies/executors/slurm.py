"""A SLURM queue, through submitit. Jobs go on when this process ends; the next one takes them up again.

What is submitted is a command line, so that nothing of ours is pickled; submitit itself writes that command line, and
the answer, as pickles into the study's folder, and reads them there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynaboltz.errors import DynaboltzError, MissingExtraError, UserError
from dynaboltz.studies.executors import Ended, Job

MINUTES = 24 * 60
"""Time limit of a job; one that comes to it goes on from its checkpoint in the next."""

GONE = ("UNKNOWN", "NO PROCESS AND NO RESULT")
"""What submitit says of a job that is in no queue and has left no result."""


class Slurm:
    """See the module.

    Options: those of submitit's ``update_parameters`` (``slurm_partition``, ``timeout_min``, …), and ``cluster=local``,
    which works a job off on this machine as SLURM would.
    """

    outlives = True
    prompt = False

    def __init__(self, folder: Path, jobs: int | None, options: Mapping[str, str]) -> None:
        self._submitit = _import()
        own = dict(options)
        self._cluster = own.pop("cluster", "slurm")
        self._folder = folder / "submitit"
        self.cores = float("inf")
        del jobs
        try:
            self._executor = self._submitit.AutoExecutor(folder=self._folder, cluster=self._cluster)
            self._parameters = {"timeout_min": _value(str(MINUTES))}
            self._parameters.update((key, _value(text)) for key, text in own.items())
            self._executor.update_parameters(**self._parameters)
        except (RuntimeError, ValueError, NameError) as fault:
            raise UserError(
                f"submitit refuses: {fault}\n  see --option, and whether sbatch is on this machine"
            ) from None
        self._jobs: dict[str, Any] = {}

    def room(self, job: Job, left: int) -> bool:
        """The queue decides."""
        del job, left
        return True

    def submit(self, job: Job) -> str:
        """Put the job into the queue."""
        threads = [f"{name}={job.threads}" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")]
        command = ["env", *threads, sys.executable, "-m", "dynaboltz.studies.worker", str(job.request.resolve())]
        needs: dict[str, int | str] = {
            "cpus_per_task": job.threads,
            "mem_gb": max(1, -(-job.size // 10**9)),
            "name": "dynaboltz",
        }
        self._executor.update_parameters(**{**needs, **self._parameters})
        try:
            submitted = self._executor.submit(self._submitit.helpers.CommandFunction(command, verbose=False))
        except (RuntimeError, OSError, self._submitit.core.utils.FailedJobError) as fault:
            raise DynaboltzError(f"the queue did not take {job.name}: {fault}") from None
        self._jobs[submitted.job_id] = submitted
        return str(submitted.job_id)

    def poll(self, handle: str) -> Ended | None:
        """How the job ended; its exit code stays in its log."""
        job = self._jobs[handle]
        if not job.done():
            return None
        del self._jobs[handle]
        return Ended(None, f"job {handle} is {job.state}; its log is in {self._folder}")

    def cancel(self, handle: str) -> None:
        """Take the job out of the queue, or end it."""
        if handle in self._jobs:
            self._jobs[handle].cancel()

    def adopt(self, handle: str) -> bool:
        """Whether the queue still has the job."""
        kind = self._submitit.SlurmJob if self._cluster == "slurm" else self._submitit.LocalJob
        job = kind(self._folder, handle)
        if job.done() or job.state in GONE:
            return False
        self._jobs[handle] = job
        return True

    def close(self) -> None:
        """Leave all as it is: the jobs go on."""
        self._jobs.clear()


def _value(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _import() -> Any:
    try:
        import submitit
        import submitit.helpers
    except ImportError:
        raise MissingExtraError("submitit", "scale", "a study on a SLURM queue") from None
    return submitit
