"""Environments that are stopped, restored, broken and orphaned: what the agent's side finds then.

    python benchmarks/faults_envs.py            # the full counts, about three minutes
    python benchmarks/faults_envs.py --small --json

R7   Environments of every kind are restored at 20 random points, in fresh ones: all that follows must be the same bits.
R8   Two processes play 50 seeds of each kind: the same bits.
R11  A world raises or returns a wrong shape, and a worker of an AsyncVectorEnv raises, is killed, hangs or returns a wrong
     shape, at random steps of random environments: a WorldError must name environment, episode, seed, step and action,
     within the time that workers are given, and no worker may be left. (A world inside this process that hangs cannot be
     stopped from within it; that is the part of whoever runs the process.)
R12  The process that has workers is killed with SIGKILL: five seconds later none of them is there.
R13  NaN or ±Inf in reward or observation: a WorldError at that very step.
Exit code 1 if anything does not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from dynaboltz.envs import Environments, WorldError, make, workers
from dynaboltz.envs.faults import episode_seed
from dynaboltz.envs.minatar import GAMES

KINDS = (
    "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "FrozenLake-v1", "Taxi-v4", "CliffWalking-v1", "probe/noise", "probe/history",
    "mdp/paper_grid(max_steps=200)", "mdp/garnet(states=50, max_steps=70)", "faults_envs:Fragile",
    *(f"minatar/{game}" for game in GAMES),
)  # fmt: skip
STEPS = 300
Findings = Iterator[str]
"""For each try, what did not hold; empty if all did."""


class Fragile(gymnasium.Env[Any, Any]):
    """Does what ``fault`` says at step ``at`` of its episode number ``episode``."""

    action_space = gymnasium.spaces.Discrete(3)
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)

    def __init__(self, fault: str = "", at: int = 0, episode: int = 0) -> None:
        self.fault, self.at, self.left, self.steps = fault, at, episode, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.steps, self.left = 0, self.left - 1
        return self.np_random.random(4, np.float32), {}

    def step(self, action: int) -> Any:
        frame, reward = self.np_random.random(4, np.float32), float(action)
        now = self.left == -1 and self.steps == self.at
        self.steps += 1
        what = self.fault if now else ""
        if what == "raise":
            raise RuntimeError("the simulator is gone")
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "hang":
            time.sleep(600)
        if what == "shape":
            frame = np.zeros(7, np.float32)
        name, _, value = what.partition(" ")
        if name == "observation":
            frame[self.at % 4] = float(value)
        if name == "reward":
            reward = float(value)
        return frame, reward, False, self.steps >= 9, {}


def fragile_workers(num_envs: int, which: int = -1, fault: str = "", at: int = 0, episode: int = 0) -> Any:
    made = [lambda i=i: Fragile(fault if i == which else "", at, episode) for i in range(num_envs)]
    return gymnasium.vector.AsyncVectorEnv(made)


def tape(envs: Environments, actions: np.ndarray) -> str:
    """A digest of all that follows."""
    digest = hashlib.sha256()
    for row in actions:
        step = envs.step(row)
        for part in (step.observation, step.reward, step.terminal, step.over, step.final):
            digest.update(np.ascontiguousarray(part).tobytes())
        digest.update(repr(step.finished).encode())
    return digest.hexdigest()


def restored(tries: int, rng: np.random.Generator) -> Findings:
    for name in KINDS:
        for _ in range(tries):
            seed, at = int(rng.integers(2**31)), int(rng.integers(1, STEPS))
            with make(name, n=2, seed=seed) as envs, make(name, n=2, seed=seed) as fresh:
                actions = rng.integers(envs.spec.n_actions, size=(STEPS, 2))
                envs.reset()
                tape(envs, actions[:at])
                fresh.restore(envs.state())
                yield "" if tape(envs, actions[at:]) == tape(fresh, actions[at:]) else f"{name}: another future at {at}"


def played(name: str, seed: int) -> str:
    with make(name, n=2, seed=seed) as envs:
        first = envs.reset()
        return hashlib.sha256(first.tobytes() + tape(envs, np.random.default_rng(seed).integers(
            envs.spec.n_actions, size=(60, 2))).encode()).hexdigest()  # fmt: skip


def two_processes(tries: int) -> Findings:
    code = f"import faults_envs; print([faults_envs.played(k, s) for s in range({tries}) for k in faults_envs.KINDS])"
    pair = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
            for _ in range(2)]  # fmt: skip
    one, other = (json.loads(done.stdout.replace("'", '"')) for done in pair)
    for at in range(tries):
        part = slice(at * len(KINDS), (at + 1) * len(KINDS))
        yield "" if one[part] == other[part] else f"seed {at}: two processes differ"


def faulty(fault: str, tries: int, rng: np.random.Generator, *, alone: bool) -> Findings:
    """One try a line: is the fault found, where it is, with all that names it, and is nothing left?"""
    for _ in range(tries):
        which, at, episode, seed = (int(rng.integers(high)) for high in (3, 9, 3, 2**31))
        place = f"fault={fault!r}, at={at}, episode={episode}"
        name = f"faults_envs:Fragile({place})" if alone else f"faults_envs:fragile_workers({place}, which={which})"
        began = time.monotonic()
        with make(name, n=3, seed=seed) as envs:
            rng_actions, said = np.random.default_rng(seed), ""
            try:
                envs.reset()
                for _ in range(40):
                    actions = rng_actions.integers(3, size=3)
                    envs.step(actions)
            except WorldError as error:
                said = str(error)
        own = episode_seed(seed, 0, 0, episode) if alone else seed
        wanted = (f"environment {0 if alone else which}, episode {episode}", f"step {at}", str(own))
        lacking = [part for part in wanted if part not in said]
        if not re.search(rf"action {actions[0 if alone else which]}\b", said):
            lacking.append("the action")
        left = len(multiprocessing.active_children())
        late = time.monotonic() - began > workers.PATIENCE_SECONDS + 15
        yield f"{name}: {said or 'not found'}; lacks {lacking}, {left} left" if lacking or left or late else ""


def orphaned(tries: int) -> Findings:
    code = (
        "import faults_envs, numpy as np, time; e = faults_envs.make('faults_envs:fragile_workers', n=3); e.reset();"
        "print(*[p.pid for p in e.env.processes], flush=True)\nwhile True: e.step(np.zeros(3, int))"
    )
    for at in range(tries):
        parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  cwd=Path(__file__).parent)  # fmt: skip
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        time.sleep(0.003 * at)
        parent.kill()
        parent.wait()
        parent.stdout.close()
        until = time.monotonic() + 5
        while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < until:
            time.sleep(0.05)
        yield f"{len(left)} of {len(pids)} workers are left" if left or len(pids) != 3 else ""


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent to notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a twentieth of the counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Gymnasium warns of a worker's error before it raises it
    workers.PATIENCE_SECONDS = 1.0
    sys.path.insert(0, str(Path(__file__).parent))
    rng = np.random.default_rng(options.seed)

    def count(full: int) -> int:
        return max(1, full // 20) if options.small else full

    questions: dict[str, Callable[[], Findings]] = {
        "R7 restored = never interrupted": lambda: restored(count(20), rng),
        "R8 two processes, the same bits": lambda: two_processes(count(50)),
        **{f"R11 world: {fault}": lambda fault=fault: faulty(fault, count(25), rng, alone=True) for fault in ("raise", "shape")},
        **{f"R11 worker: {fault}": lambda fault=fault: faulty(fault, count(25), rng, alone=False)
           for fault in ("raise", "shape", "kill", "hang")},
        "R12 parent killed, no worker left": lambda: orphaned(count(50)),
        **{f"R13 {fault}": lambda fault=fault: faulty(fault, count(20), rng, alone=True)
           for fault in ("reward nan", "reward inf", "reward -inf", "observation nan", "observation inf", "observation -inf")},
    }  # fmt: skip
    table, bad = [], 0
    for question, ask in questions.items():
        began, findings = time.monotonic(), list(ask())
        wrong = [finding for finding in findings if finding]
        bad += len(wrong)
        table.append({"question": question, "tries": len(findings), "held": len(findings) - len(wrong)})
        if not options.json:
            seconds = time.monotonic() - began
            print(
                f"{question:36} {len(findings) - len(wrong):5} of {len(findings):5} held  {seconds:6.1f} s", flush=True
            )
            for finding in wrong[:3]:
                print(f"    {finding}")
    if options.json:
        print(json.dumps(table, indent=2))
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
