"""Real runs that are killed, stopped, starved, fed with nonsense, and looked at: what comes of them.

    python benchmarks/faults_runs.py                 # the full counts, some twenty minutes on two cores
    python benchmarks/faults_runs.py --quick         # a tenth of them
    python benchmarks/faults_runs.py --only R2 R7 --seed 7 --json

R2   SIGKILL at random moments: every run goes on, loses nothing that was committed and at most one interval, and
     comes to the bits of a run that nobody killed.
R7   Stopped at a random step and resumed: rows, weights, optimiser, replay and streams as without.
R8   The same seed in two processes, one new and one forked: the same.
R9   Evaluations, logs and pictures, on and off in 12 combinations: the learner's state is the same.
R10  SIGTERM, SIGINT, SIGHUP, SIGUSR1 while training, evaluating, saving and reporting: saved and gone in 10 s with
     exit code 128 + n, and resumed to the same. A second signal forces the end.
R11  A worker killed or hung is begun again and comes to the same; one whose environment raises or returns a wrong shape
     stops with environment, seed and action named.
R12  The parent of two workers is killed: no process is left after 5 s.
R13  NaN or ±Inf in reward, observation, loss, gradient, weights, β, P, r: stopped within one update, named, and the
     last good checkpoint is there.
R18  Two processes on one run; a folder that cannot be written: a message, and nothing is lost.
R21  The memory that the estimate names against what the agent takes: within 10 %.
Exit code 1 if anything does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np

import runs_interrupted as interrupted
import runs_misled as misled
from faulty import Findings, warm_up

CHECKS: dict[str, tuple[Callable[[int, np.random.Generator, Path], Findings], int, int]] = {
    "R2": (interrupted.killed_at_random, 500, 30),
    "R7": (interrupted.stopped_and_resumed, 60, 9),
    "R8": (interrupted.same_seed_twice, 50, 4),
    "R9": (interrupted.looked_at, 12, 12),
    "R10": (interrupted.signalled, 164, 20),
    "R11": (misled.bad_workers, 100, 8),
    "R12": (misled.orphans, 50, 4),
    "R13": (misled.bad_numbers, 160, 16),
    "R18": (misled.two_on_one, 30, 6),
    "R21": (misled.estimated_memory, 12, 12),
}
"""Id → the check, and how often it is tried in full and quickly."""


def run_one(name: str, tries: int, seed: int) -> dict[str, Any]:
    """Do one check in this process."""
    warnings.simplefilter("ignore")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder))
        findings = list(CHECKS[name][0](tries, np.random.default_rng([seed, int(name[1:])]), Path(folder)))
    failures = [text for text in findings if text]
    seconds = round(time.monotonic() - began, 1)
    return {
        "id": name,
        "tries": len(findings),
        "survived": len(findings) - len(failures),
        "failures": failures,
        "seconds": seconds,
    }


def run_apart(name: str, tries: int, seed: int) -> dict[str, Any]:
    """Do one check in a process of its own."""
    line = [sys.executable, str(Path(__file__)), "--alone", name, str(tries), "--seed", str(seed)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        found = {
            "id": name,
            "tries": 1,
            "survived": 0,
            "failures": [f"the check itself failed: {done.stdout}"],
            "seconds": 0,
        }
    print("\n     ".join([f"  {told(found)}", *found["failures"][:10]]), file=sys.stderr)
    return found


def told(found: dict[str, Any]) -> str:
    """A line of the table."""
    what = (CHECKS[found["id"]][0].__doc__ or "").split()[0]
    assert what.startswith(found["id"])
    return f"{found['id']:4s} {found['tries']:4d} tries  {found['survived']:4d} survived  {found['seconds']:7.1f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the checks, print the table; 1 if anything does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=list(CHECKS), default=list(CHECKS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.alone:
        print(json.dumps(run_one(options.alone[0], int(options.alone[1]), options.seed)))
        return 0
    with ThreadPoolExecutor(options.jobs) as pool:
        found = list(
            pool.map(lambda name: run_apart(name, CHECKS[name][1 + options.quick], options.seed), options.only)
        )
    bad = any(one["failures"] for one in found)
    if options.json:
        print(json.dumps(found, indent=1))
        return int(bad)
    for one in found:
        print(told(one))
        for text in one["failures"][:10]:
            print(f"     {text}")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
