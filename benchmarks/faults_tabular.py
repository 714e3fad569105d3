"""Tabular learning under interruption, in full counts: R7 (20 points) and R8 (50 processes); exit code 1 if one fails."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

RESUMED, SAME = 20, 50

PROGRAM = """
import sys, time
from pathlib import Path
from dynaboltz.mdp import build_world
from dynaboltz.tabular import agent, learn
folder, threads, seeds = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])
config = agent("dbs", episodes=int(sys.argv[4]), initial="uniform(0, 0.1)", step_size="visits(0.8)")
keep = {} if folder == "none" else {"checkpoint": folder, "checkpoint_seconds": 0.05, "resume": any(Path(folder).glob("ckpt-*"))}
if keep:
    print("begun", flush=True)
found = learn(build_world("grid(rows=6, cols=6, slip=0.1)"), config, seeds=seeds, threads=threads, **keep)
import hashlib
last = hashlib.sha256(b"".join(a[-1].tobytes() for a in (found.q, found.visits, found.steps, found.returns))).hexdigest()
print(found.digest() if len(sys.argv) < 6 else last, flush=True)
"""


def run(folder: str, threads: int, seeds: str, episodes: int, *more: str) -> str:
    command = [sys.executable, "-c", PROGRAM, folder, str(threads), seeds, str(episodes), *more]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]


def interrupted(folder: str, threads: int, episodes: int, after: float, how: signal.Signals) -> int:
    """Start or go on, send the signal after some seconds, and return the exit code."""
    command = [sys.executable, "-c", PROGRAM, folder, str(threads), "6", str(episodes)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after)
    process.send_signal(how)
    code = process.wait(timeout=120)
    process.stdout.close()
    return code


def r7() -> int:
    """Interrupted at a random moment, by SIGTERM or killed, as often as it takes to end = never interrupted."""
    episodes, rng = 60_000, np.random.default_rng(7)
    whole, good = run("none", 2, "6", episodes), 0
    for number in range(RESUMED):
        with tempfile.TemporaryDirectory() as folder:
            times, ends = 0, []
            for _ in range(int(rng.integers(1, 4))):
                how = signal.SIGKILL if number % 2 else signal.SIGTERM
                ends.append(interrupted(folder, 1 + number % 2, episodes, float(rng.uniform(0.05, 1.2)), how))
                times += ends[-1] != 0
            found = run(folder, 2 - number % 2, "6", episodes)
            expected = {0, -signal.SIGKILL} if number % 2 else {0, 128 + signal.SIGTERM}
            passed = found == whole and set(ends) <= expected
            good += passed
            print(
                f"  R7 {number + 1:>2}: interrupted {times} times, exit codes {ends}: {'equal' if passed else 'DIFFERENT'}",
                flush=True,
            )
    return good


def r8() -> int:
    """The same seed in processes of its own, on one thread and on two, alone and among others."""
    wanted, good = run("none", 1, "[5]", 2000, "last"), 0
    for number in range(SAME):
        company = ["[5]", "6", "[900, 3, 5]", "list(range(40, 60)) + [5]"][number % 4]
        good += run("none", 1 + number // 4 % 2, company, 2000, "last") == wanted
    return good


def main() -> int:
    rows = []
    for name, what, tries, count in (
        ("R7", "interrupted and resumed = never interrupted", RESUMED, r7),
        ("R8", "a seed's bits: processes, threads, company", SAME, r8),
    ):
        began = time.perf_counter()
        rows.append((name, what, count(), tries, time.perf_counter() - began))
    print("\ntabular learning")
    for name, what, good, tries, seconds in rows:
        print(f"  {name}  {what:<46} {good:>3} of {tries}  {seconds:6.1f} s")
    return int(any(good < tries for _, _, good, tries, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
