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
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np

from dynaboltz.deep.agent import Agent
from dynaboltz.runs import RunConfig, home_of, resume, train
from faulty import Counter, Findings, at_step, config_of, forked, journal, state_of

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


def undisturbed(config: RunConfig, folder: Path) -> str:
    """The state of a run that nothing happened to."""
    ended = forked(lambda: train(config, folder / "whole") and None, folder, limit=LIMIT)
    if ended.code:
        raise RuntimeError(f"{config.env} ended with exit code {ended.code}: {ended.said[-300:]}")
    return state_of(config, folder / "whole")


def count_steps(counter: Counter) -> None:
    """From here on ``counter`` holds how many steps the agent of this process has taken."""
    original = Agent.observe

    def observe(self: Agent, action: np.ndarray, step: Any) -> None:
        original(self, action, step)
        counter.set(self.steps)

    Agent.observe = observe  # type: ignore[method-assign]


def killed(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R2."""
    config = atari("atari/Breakout(sticky_actions=0.25)", saving__period_steps=INTERVAL)
    began = time.monotonic()
    expected = undisturbed(config, folder)
    lasted = time.monotonic() - began
    counter, done, number = Counter(), 0, 0
    while done < tries:
        root, before, known = folder / f"run-{number}", 0, 0
        number += 1

        def work(root: Path = root) -> None:
            count_steps(counter)
            train(config, root)

        while True:
            counter.set(0)
            ended = forked(work, folder, kill_after=float(rng.uniform(0.02, 0.5 * lasted)), limit=LIMIT)
            resumed = journal(config, root, "resume")
            came_from = resumed[-1] if len(resumed) > known else before  # killed before it had begun
            known, lost = len(resumed), "a committed checkpoint was lost" if came_from < before else ""
            if not ended.killed:
                fault = ended.said if ended.code else ""
                if not fault and state_of(config, root) != expected:
                    fault = "the run came to another end than the one that nobody killed"
                if fault or lost:
                    yield fault or lost
                break
            before = max([before, came_from, *journal(config, root, "checkpoint")[-1:]])
            done += 1
            far = f"killed after step {counter.get()}, with nothing after {before} committed, more than an interval"
            yield lost or (far if counter.get() - before > INTERVAL + 1 else "")


def stopped(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R7."""
    for kind, (env, changes) in enumerate(KINDS.items()):
        config, place = atari(env, **changes), folder / str(kind)
        place.mkdir()
        expected = undisturbed(config, place)
        for number in range(tries // len(KINDS)):
            step, root = int(rng.integers(1, config.steps)), place / str(number)

            def work(config: RunConfig = config, root: Path = root, step: int = step) -> None:
                at_step(step, lambda: os.kill(os.getpid(), signal.SIGTERM))
                train(config, root)

            first = forked(work, place, limit=LIMIT)
            second = forked(lambda config=config, root=root: again(config, root), place, limit=LIMIT)
            if first.code != 128 + signal.SIGTERM or second.code:
                yield f"{env}: exit codes {first.code} and {second.code}: {(first.said + second.said)[-500:]}"
            else:
                equal = state_of(config, root) == expected
                yield "" if equal else f"{env} stopped at step {step} of {config.steps} came to another end"


def again(config: RunConfig, root: Path) -> None:
    """Resume what is in the folder of the run."""
    resume(home_of(config, root).folder)


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
