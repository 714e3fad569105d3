"""Atari runs, agent and all, that are stopped and killed: what comes of them.

    python benchmarks/faults_atari.py                # the full counts, about a quarter of an hour on two free cores
    python benchmarks/faults_atari.py --quick        # a fifth of them
    python benchmarks/faults_atari.py --only R7 --seed 7 --json

R2   SIGKILL at random moments of a run on Breakout: every one goes on, loses nothing that was committed and at most one
     interval between checkpoints, and comes to the bits of a run that nobody killed.
R7   Runs on three games (sticky actions, an update that overlaps acting, c learned) are stopped by SIGTERM at random
     steps, in the middle of an episode and of a period between updates as it comes, and resumed: rows, weights,
     optimiser, replay memory, streams and emulator as without.
Exit code 1 if anything does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np

import runs_interrupted as interrupted
from dynaboltz.runs import RunConfig, train
from faulty import Findings, config_of, whole

ATARI = {
    "steps": 400, "agent.replay_start_steps": 64, "agent.replay_capacity_steps": 300, "agent.target_period": "10 updates",
    "agent.threads": 1, "agent.epsilon": "0.3", "log_period_steps": 50, "evaluation.period_steps": 200,
    "evaluation.episodes": 2, "evaluation.max_steps": 20, "evaluation.epsilon": 0.05,
}  # fmt: skip
INTERVAL = 50
"""Agent steps between checkpoints of a run that is killed."""
LIMIT = 600.0
"""Seconds for a run of half a minute, on a machine that is busy with other things."""
KINDS: dict[str, dict[str, Any]] = {
    "atari/Breakout(sticky_actions=0.25)": {},
    "atari/Seaquest": {"agent.overlap": True},
    "atari/Qbert(protocol='dqn3_lua')": {"n_envs": 2},
}
"""Three games; each kind of run has something of its own that has to come back."""


def atari(env: str, **changes: Any) -> RunConfig:
    """A small run of DBS-DQN with learned c."""
    values = ATARI | {key.replace("__", "."): value for key, value in changes.items()}
    return config_of(env, "dbs-dqn", **{key.replace(".", "__"): value for key, value in values.items()})


def killed(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R2."""
    config = atari("atari/Breakout(sticky_actions=0.25)", saving__period_steps=INTERVAL)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        whole(config, Path(place), limit=LIMIT)
    lasted = time.monotonic() - began
    return interrupted.killed(config, tries, rng, folder, (0.02, 0.5 * lasted), limit=LIMIT)


def stopped(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R7."""
    kinds = [atari(env, **changes) for env, changes in KINDS.items()]
    return interrupted.stopped(kinds, tries, rng, folder, limit=LIMIT)


CHECKS: dict[str, tuple[Callable[[int, np.random.Generator, Path], Findings], int, int]] = {
    "R2": (killed, 50, 10),
    "R7": (stopped, 15, 3),
}
"""Id → the check, and how often it is tried in full and quickly."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do the checks, print the table; 1 if anything does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=list(CHECKS), default=list(CHECKS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    table, bad = [], False
    with tempfile.TemporaryDirectory() as root:
        train(atari("atari/Breakout", steps=100), Path(root) / "warm")  # imports and compiles what the forks will need
        for name in options.only:
            began, folder = time.monotonic(), Path(root) / name
            folder.mkdir()
            rng = np.random.default_rng([options.seed, int(name[1:])])
            findings = list(CHECKS[name][0](CHECKS[name][1 + options.quick], rng, folder))
            failures = [text for text in findings if text]
            bad |= bool(failures)
            seconds = time.monotonic() - began
            table.append({"id": name, "tries": len(findings), "survived": len(findings) - len(failures)})
            if not options.json:
                print(
                    f"{name} Atari {len(findings):4d} tries  {len(findings) - len(failures):4d} survived  "
                    f"{seconds:7.1f} s",
                    flush=True,
                )
                for text in failures[:10]:
                    print(f"     {text}")
    if options.json:
        print(json.dumps(table, indent=1))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
