"""A Ray cluster of this machine that lives as long as the process that asked for it: ``python -m ….keeper CORES``.

It starts Ray, writes its address as a line of JSON, and waits for the end of its standard input, which is the end of
the asker, however that came. Then it kills all that descends from it: Ray by itself leaves two agents behind for a
minute when its driver is killed. Nothing listens beyond the loopback device, and the folder of Ray's files is removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
SECONDS = 4.0
"""How long killing may take."""

STORE_BYTES = 80 << 20
"""Ray's shared memory, which a study has no use for; it takes no less."""

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Set before Ray is imported. The first has Ray take 127.0.0.1 for this machine's address, as it does on macOS; with
``_node_ip_address="127.0.0.1"`` alone, Linux binds to every device."""


def main() -> int:
    """Start Ray, tell its address, wait, end it."""
    _adopt_orphans()
    os.environ.update(LOOPBACK)
    folder = tempfile.mkdtemp(prefix="dbz-ray-")
    try:
        import ray

        context: Any = ray.init(
            num_cpus=int(float(sys.argv[1])), include_dashboard=False, _node_ip_address="127.0.0.1", _temp_dir=folder,
            object_store_memory=STORE_BYTES, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False,
        )  # fmt: skip
        sys.stdout.write(json.dumps({"address": context.address_info["gcs_address"]}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        if sys.platform != "linux":
            import ray

            ray.shutdown()
        kill_descendants()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)  # Ray's own end would wait for what has just been killed


def _adopt_orphans() -> None:
    """Have processes whose parent dies become children of this one. Linux only."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_descendants() -> None:
    """Kill every process that descends from this one. Linux only."""
    until = time.monotonic() + SECONDS
    while sys.platform == "linux" and time.monotonic() < until:
        found = descendants(os.getpid())
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        time.sleep(0.02)


def descendants(pid: int) -> list[int]:
    """The processes that come from ``pid``."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(path.parent.name))
    found, new = [], [pid]
    while new:
        new = [child for one in new for child in children.get(one, [])]
        found += new
    return found


if __name__ == "__main__":
    sys.exit(main())
