"""For the faults of runs: small ones, worlds that go wrong at a given step, and work in a fork that can be killed."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from dynaboltz.deep.agent import Agent
from dynaboltz.envs.world import Worlds
from dynaboltz.runs import Given, RunConfig, digest, home_of, read_rows, resolve, train
from dynaboltz.storage import Store

Findings = Iterator[str]
"""For each try, what did not hold; empty if all did."""

SMALL = {
    "steps": 1500, "agent.replay_start_steps": 200, "agent.replay_capacity_steps": 1000, "log_period_steps": 100,
    "evaluation.period_steps": 500, "evaluation.episodes": 4, "evaluation.max_steps": 60, "saving.period_seconds": 0,
    "agent.target_period": "100 steps",
}  # fmt: skip


class Broken(gymnasium.Wrapper[Any, Any, Any, Any]):
    """CartPole that does something wrong at its ``at``-th step, once if it has a file to remember that in."""

    def __init__(self, how: str, at: int, memory: str) -> None:
        super().__init__(gymnasium.make("CartPole-v1", disable_env_checker=True))
        self.how, self.at, self.memory, self.count = how, at, memory, 0

    def step(self, action: Any) -> Any:
        self.count += 1
        observation, reward, terminated, truncated, info = super().step(action)
        if self.count != self.at or (self.memory and Path(self.memory).exists()):
            return observation, reward, terminated, truncated, info
        if self.memory:
            Path(self.memory).touch()
        match self.how:
            case "raise":
                raise RuntimeError("the simulator is gone")
            case "hang":
                time.sleep(1e6)
            case "die":
                os.kill(os.getpid(), 9)
            case "shape":
                observation = observation[:3]
            case "observation":
                observation = np.array([0, math.nan if self.at % 2 else math.inf, 0, 0], np.float32)
            case "reward":
                reward = math.nan if self.at % 2 else -math.inf
        return observation, reward, terminated, truncated, info


def broken(how: str, at: int, memory: str = "") -> gymnasium.Env[Any, Any]:
    """The factory."""
    return Broken(how, at, memory)


class Counter:
    """A number that outlives the process that counts."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)

    def set(self, value: int) -> None:
        struct.pack_into("q", self._shared, 0, value)

    def get(self) -> int:
        return int(struct.unpack_from("q", self._shared, 0)[0])


@dataclass
class Ended:
    """How a forked process ended."""

    code: int
    """Exit code; minus the signal that killed it."""
    seconds: float
    said: str
    killed: bool = False


def forked(work: Callable[[], Any], folder: Path, *, kill_after: float = math.inf, limit: float = 60.0) -> Ended:
    """Do ``work`` in a fork of this process, which has imported everything already; SIGKILL it after a while."""
    said = folder / f"said-{os.getpid()}"
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
            handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            code = int(work() or 0)
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    killed = False
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        seconds = time.monotonic() - began
        if found:
            return Ended(os.waitstatus_to_exitcode(status), seconds, said.read_text(errors="replace"), killed)
        if seconds > min(kill_after, limit) and not killed:
            os.kill(pid, 9)
            killed = True
        time.sleep(0.002)


def config_of(env: str = "CartPole-v1", preset: str = "dqn", **changes: Any) -> RunConfig:
    """A small run; ``__`` in a keyword stands for the dot."""
    values = SMALL | {key.replace("__", "."): value for key, value in changes.items()} | {"env": env}
    return resolve(preset, None, {key: Given(value, "here") for key, value in values.items()})


def state_of(config: RunConfig, root: Path, *, learner_only: bool = False) -> str:
    """The digest of all that the newest checkpoint holds, and of the rows; or of the learner alone."""
    home = home_of(config, root)
    found = Store(home.checkpoints, run=config.identity).load()
    if found is None:
        return "no checkpoint"
    return digest(found.tree["agent"]) if learner_only else digest([found.tree, home.rows.read_bytes()])


def whole(config: RunConfig, folder: Path, *, limit: float = 60.0) -> str:
    """The state of a run that nothing happened to."""
    ended = forked(lambda: train(config, folder / "whole") and None, folder, limit=limit)
    assert ended.code == 0, ended.said
    return state_of(config, folder / "whole")


def count_steps(counter: Counter) -> None:
    """From here on ``counter`` holds how many steps the agent of this process has taken."""
    original = Agent.observe

    def observe(self: Agent, action: np.ndarray, step: Any) -> None:
        original(self, action, step)
        counter.set(self.steps)

    Agent.observe = observe  # type: ignore[method-assign]


def at_step(step: int, do: Callable[[], None]) -> None:
    """From here on, ``do`` when the training has taken that many steps in this process."""
    original, count = Worlds.step, [0]

    def counted(self: Worlds, actions: np.ndarray) -> Any:
        count[0] += self.n if self.stream == 0 else 0
        if self.stream == 0 and count[0] >= step > count[0] - self.n:
            do()
        return original(self, actions)

    Worlds.step = counted  # type: ignore[method-assign]


def journal(config: RunConfig, root: Path, event: str) -> list[int]:
    """The steps of the events of that name."""
    if not home_of(config, root).journal.exists():
        return []
    return [int(entry["step"]) for entry in read_rows(home_of(config, root).journal) if entry["event"] == event]


def warm_up(folder: Path) -> None:
    """Import and compile in this process what its forks will need."""
    for env, preset in (("CartPole-v1", "dqn"), ("minatar/breakout", "dbs-dqn")):
        train(config_of(env, preset, steps=300, n_envs=1), folder / "warm")


def children(pid: int) -> list[int]:
    """The processes that ``pid`` has started itself."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def lives(pid: int) -> bool:
    """Whether there is such a process, and not only what is left of it for a parent that does not ask."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
