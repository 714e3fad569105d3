"""A Ray cluster: one of this machine that ends with this process, or one that is there, by its address.

A task of Ray is a process of ours beside it that it waits for: the run is the same command as everywhere, it dies with
Ray's worker, and on another node it goes on from its checkpoint, given that both see the folder of runs. Ray itself
retries nothing, so that a study counts its tries alike on every executor.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynaboltz.errors import DynaboltzError, MissingExtraError, UserError
from dynaboltz.storage import cores
from dynaboltz.studies.executors import Ended, Job, check_options
from dynaboltz.studies.executors.keeper import LOOPBACK
from dynaboltz.studies.executors.local import launch

LOCAL_ADDRESSES = ("127.0.0.1", "localhost")
KILLED = -9


@functools.cache
def own_token() -> dict[str, str]:
    """What a cluster of our own asks of whoever connects; no other process knows it, and no file holds it.

    Ray reads it once in a process, so there is one for all its clusters.
    """
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def work(request: str, log: str, threads: int) -> int:
    """What a task of Ray does, on whatever node: the exit code of the run's process."""
    process = launch(Path(request), Path(log), threads)
    try:
        return process.wait()
    finally:
        process.kill()


class RayCluster:
    """See the module. Option: ``address``, such as ``10.0.0.1:6379`` or ``auto``."""

    outlives = False
    prompt = False

    def __init__(self, folder: Path, jobs: int | None, options: Mapping[str, str]) -> None:
        del folder
        check_options("ray", options, ("address",))
        address = options.get("address")
        self._keeper: subprocess.Popen[str] | None = None
        self._tasks: dict[str, Any] = {}
        try:
            if address is None:
                address = self._start(jobs or cores())
            self._ray = self._connect(address)
        except BaseException:
            self._end_keeper()
            raise
        self.cores = float("inf") if jobs is not None else self._ray.cluster_resources().get("CPU", 1.0)

    def room(self, job: Job, left: int) -> bool:
        """Ray keeps count of memory itself; what no node can ever hold is refused."""
        del left
        largest = max(
            (node["Resources"].get("memory", 0.0) for node in self._ray.nodes() if node["Alive"]), default=0.0
        )
        if job.size > largest > 0:
            raise UserError(
                f"{job.name} needs {job.size / 1e9:.3g} GB of memory; the largest node of the cluster has "
                f"{largest / 1e9:.3g} GB\n  lower agent.replay_capacity_steps, or add a node"
            )
        return True

    def submit(self, job: Job) -> str:
        """Hand the job to Ray."""
        task = self._ray.remote(num_cpus=job.threads, memory=job.size, max_retries=0)(work)
        reference = task.remote(str(job.request.resolve()), str(job.log.resolve()), job.threads)
        self._tasks[reference.hex()] = reference
        return str(reference.hex())

    def poll(self, handle: str) -> Ended | None:
        """How the task ended; a node or a worker that is gone counts as killed."""
        reference = self._tasks[handle]
        if not self._ray.wait([reference], timeout=0)[0]:
            return None
        del self._tasks[handle]
        errors = self._ray.exceptions
        try:
            return Ended(self._ray.get(reference))
        except errors.RayTaskError as fault:
            return Ended(1, str(fault.cause))
        except errors.RayError as fault:
            return Ended(KILLED, f"Ray: {type(fault).__name__}")

    def cancel(self, handle: str) -> None:
        """Kill Ray's worker, and with it the run."""
        if handle in self._tasks:
            self._ray.cancel(self._tasks[handle], force=True)

    def adopt(self, handle: str) -> bool:
        """Never: Ray ends the tasks of a driver that is gone."""
        del handle
        return False

    def close(self) -> None:
        """Cancel what still runs, and end the cluster if it is ours."""
        for handle in list(self._tasks):
            with contextlib.suppress(Exception):  # the cluster may be gone already
                self.cancel(handle)
        self._ray.shutdown()
        self._end_keeper()

    def _start(self, slots: int) -> str:
        """A cluster of this machine; its address."""
        os.environ.update(own_token())  # before Ray is imported
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "dynaboltz.studies.executors.keeper", str(slots)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        assert self._keeper.stdout is not None
        for line in self._keeper.stdout:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                return str(json.loads(line)["address"])
        raise DynaboltzError("Ray did not start on this machine\n  try: ray start --head --node-ip-address=127.0.0.1")

    def _connect(self, address: str) -> Any:
        loopback = address.rpartition(":")[0] in LOCAL_ADDRESSES
        ray = _import(loopback=loopback)
        if ray.is_initialized():
            raise UserError(
                "this process is connected to a Ray cluster already\n  call ray.shutdown() before the study"
            )
        own = {"_node_ip_address": "127.0.0.1"} if loopback else {}
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False, **own)
        except (ConnectionError, RuntimeError, ValueError) as fault:
            reason = str(fault).split("\n", maxsplit=1)[0]
            raise UserError(
                f"there is no Ray cluster at {address}: {reason}\n  if it asks for a token, set "
                "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
            ) from None
        return ray

    def _end_keeper(self) -> None:
        if self._keeper is None:
            return
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        with contextlib.suppress(OSError):
            self._keeper.stdin.close()
        try:
            self._keeper.wait(10)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        self._keeper.stdout.close()


def _import(*, loopback: bool) -> Any:
    """Ray, told first what it asks only when it is imported."""
    settings = LOOPBACK if loopback else {"RAY_USAGE_STATS_ENABLED": "0"}
    os.environ.update(settings)
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise MissingExtraError("ray", "scale", "a study on a Ray cluster") from None
    return ray
