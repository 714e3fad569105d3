"""How much memory and how many cores there are to be had, without a library for it."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

CONTROL_GROUP = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """Bytes that can be taken without swapping, in this container; None where the system does not say."""
    found = []
    with contextlib.suppress(OSError, AttributeError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        found += [int(kib) * 1024 for kib in re.findall(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)]
    with contextlib.suppress(OSError, ValueError):  # a container's own limit; "max" is none
        limit = int((CONTROL_GROUP / "memory.max").read_text(encoding="ascii"))
        used = int((CONTROL_GROUP / "memory.current").read_text(encoding="ascii"))
        counters = (CONTROL_GROUP / "memory.stat").read_text(encoding="ascii")
        cached = sum(map(int, re.findall(r"^(?:in)?active_file (\d+)", counters, re.MULTILINE)))  # given back on demand
        found.append(max(0, limit - used + cached))
    if not found:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)


def as_text(size: float) -> str:
    """A number of bytes to read.

    >>> as_text(7_056_000_000), as_text(1500), as_text(12)
    ('7.06 GB', '1.5 kB', '12 bytes')
    """
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} bytes"


def cores() -> int:
    """How many of the machine's cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
