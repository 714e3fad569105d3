"""A contestant of a benchmark, in a process of its own: it waits for its turns, each a line with a number of steps."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable


def answer(steps: Callable[[int], int]) -> None:
    """Say that it is ready, then answer each turn with updates, seconds by the clock and of the processor."""
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        clock, processor = time.perf_counter(), time.process_time()
        updates = steps(int(line))
        told = {"updates": updates, "clock": time.perf_counter() - clock, "processor": time.process_time() - processor}
        print(json.dumps(told), flush=True)
