"""Runs whose worlds, workers, numbers or folders fail them: R11 to R13, R18 and R21 of ``faults_runs.py``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz.errors import DynaboltzError, UserError
from dynaboltz.runs import RunConfig, home_of, read_rows, several, train
from dynaboltz.runs.progress import memory_in_use
from dynaboltz.storage import Store
from faulty import SMALL, Findings, children, config_of, forked, lives, state_of, whole

SILENT_SECONDS = 4.0
"""In place of a minute, so that a hundred tries take minutes."""


def bad_workers(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R11."""
    several.SILENT_SECONDS = SILENT_SECONDS
    for how in ("die", "hang", "raise", "shape"):
        configs = []
        for number in range(tries // 4):
            memory = str(folder / f"{how}-{number}") if how in ("die", "hang") else ""
            at = int(rng.integers(20, 900))
            env = f"faulty:broken(how='{how}', at={at}, memory='{memory}')"
            configs.append(config_of(env, evaluation__episodes=0, saving__period_steps=200, steps=1000))
        began = time.monotonic()
        outcomes = several.train_several(configs, folder / how, jobs=2)
        late = time.monotonic() - began > 60 * len(configs)
        reference = replace(configs[0], env="faulty:broken(how='none', at=0)")
        forked(lambda reference=reference: train(reference, folder / f"{how}-plain") and None, folder)
        learner = state_of(reference, folder / f"{how}-plain", learner_only=True)
        for outcome in outcomes:
            yield "took too long" if late else _worker_fault(how, outcome, folder / how, learner)


def _worker_fault(how: str, outcome: several.Outcome, root: Path, learner: str) -> str:
    if how in ("die", "hang"):
        if outcome.result is None or outcome.restarts != 1:
            return f"{how}: {outcome.fault or f'{outcome.restarts} restarts'}"
        return "" if state_of(outcome.config, root, learner_only=True) == learner else f"{how}: another end"
    needed = ("environment 0", "(seed ", "action ", "the simulator is gone" if how == "raise" else "has shape (3,)")
    missing = [word for word in needed if word not in outcome.fault]
    return f"{how}: the message lacks {missing}: {outcome.fault}" if missing or outcome.code != 1 else ""


def orphans(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R12."""
    settings = [f"--set={key}={value}" for key, value in (SMALL | {"steps": 1_000_000}).items()]
    for number in range(tries):
        line = [
            sys.executable, "-m", "dynaboltz", "train", "CartPole-v1", "--preset", "dqn", *settings, "--seeds", "0..1",
            "--jobs", "2", "--out", str(folder / str(number)),
        ]  # fmt: skip
        parent = subprocess.Popen(line, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while len(children(parent.pid)) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(float(rng.uniform(0, 4)))
        found = children(parent.pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        until = time.monotonic() + 5
        while any(map(lives, found)) and time.monotonic() < until:
            time.sleep(0.02)
        left = [process for process in found if lives(process)]
        for process in left:
            os.kill(process, signal.SIGKILL)
        yield f"{len(left)} of {len(found)} processes were left" if left or len(found) != 2 else ""


def bad_numbers(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R13."""
    kinds: dict[str, Callable[[int, Path], str]] = {
        "reward": _bad_world, "observation": _bad_world, "loss": _bad_part, "gradient": _bad_part, "weights": _bad_part,
        "β": _bad_beta, "P": _bad_model, "r": _bad_model,
    }  # fmt: skip
    for name, check in kinds.items():
        for number in range(tries // len(kinds)):
            found = check(name, int(rng.integers(420, 1400)), folder / f"{name}-{number}")  # type: ignore[call-arg,arg-type]
            yield found and f"{name}: {found}"


def _bad_world(name: str, step: int, root: Path) -> str:
    """The environment pays or shows something that is not finite at that step."""
    config = config_of(f"faulty:broken(how='{name}', at={step})", evaluation__episodes=0, saving__period_steps=100)
    return _stops(config, root, lambda: None, name, step)


def _bad_part(name: str, step: int, root: Path) -> str:
    """A number of the learner is not finite in the update at that step."""
    value = [np.nan, np.inf, -np.inf][step % 3]

    def poison() -> None:
        from dynaboltz.deep.learner import Learner

        original = Learner.update

        def update(self: Learner, batch: Any, now: Any) -> None:
            if now.step == step:
                _poisoned(self, batch, name, value)
            original(self, batch, now)

        Learner.update = update  # type: ignore[method-assign]

    preset = "dbs-dqn" if step % 2 else "dqn"
    config = config_of(preset=preset, evaluation__episodes=0, saving__period_steps=100)
    return _stops(config, root, poison, {"loss": "", "gradient": "", "weights": ""}[name], step)


def _poisoned(learner: Any, batch: Any, name: str, value: float) -> None:
    if name == "weights":
        learner.parameters.online[7] = value
    elif name == "loss":
        batch.reward[3] = value
    else:
        original = learner.engine.gradients

        def gradients(*arguments: Any) -> None:
            original(*arguments)
            learner.parameters.gradients[0][5] = value

        learner.engine.gradients = gradients


def _bad_beta(name: str, step: int, root: Path) -> str:  # noqa: ARG001
    """β that is no number: refused in the settings, and found in the update if it becomes so later."""
    if step % 2:
        for spec in ("nan", "-inf", "power(nan)", "power(2, c=inf)", "'x'"):
            try:
                config_of(preset="dbs-dqn-fixed", agent__summary=f"boltzmann(beta={spec})")
            except UserError:
                continue
            return f"{spec} was taken"
        return ""

    def poison() -> None:
        from dynaboltz.deep.learner import Learner

        original = Learner.update

        def update(self: Learner, batch: Any, now: Any) -> None:
            if now.step == step:

                class Wrong:
                    def __getattr__(self, name: str) -> Any:
                        return getattr(inner, name)

                    def beta(self, _t: float) -> float:
                        return float("nan")

                inner, self.summary = self.summary, Wrong()  # type: ignore[assignment]
                self._t = float("nan")  # as if the clock had moved
            original(self, batch, now)

        Learner.update = update  # type: ignore[method-assign]

    config = config_of(preset="dbs-dqn-fixed", evaluation__episodes=0, saving__period_steps=100)
    return _stops(config, root, poison, "β", step)


def _stops(config: RunConfig, root: Path, poison: Callable[[], None], word: str, step: int) -> str:
    """Whether the run ends at that step with an error of ours, a row, and the checkpoint from before."""

    def work() -> int:
        poison()
        try:
            train(config, root)
        except DynaboltzError as fault:
            print(json.dumps(str(fault)))
            return fault.exit_code
        return 0

    root.mkdir(parents=True)
    ended = forked(work, root)
    if ended.code != 1 or "Traceback" in ended.said:
        return f"exit code {ended.code}: {ended.said[-400:]}"
    rows = list(read_rows(home_of(config, root).rows))
    message, at = str(rows[-1].get("message", "")), int(rows[-1]["step"])
    if rows[-1]["kind"] != "error" or not step - 1 <= at <= step or word not in message:
        return f"at step {step} the last row is {rows[-1]}"
    if not any(value in message for value in ("nan", "inf")):
        return f"the value is not named: {message}"
    found = Store(home_of(config, root).checkpoints, run=config.identity).load()
    last = (at // 100 if at % 100 or "environment" in message else at // 100 - 1) * 100
    if found is None or found.step not in (last, last - 100) or found.skipped:
        return f"the last good checkpoint, of step {last}, is not there: {found and found.step}"
    return ""


def _bad_model(name: str, step: int, root: Path) -> str:  # noqa: ARG001
    """A model with such a number is refused, with the state and action named."""
    from dynaboltz.mdp.build import from_arrays

    rng = np.random.default_rng(step)
    P, R = rng.dirichlet(np.ones(4), (2, 4)), rng.normal(size=(4, 2))
    value = [np.nan, np.inf, -np.inf][step % 3]
    if name == "P":
        P[step % 2, step % 4, 1] = value
    else:
        R[step % 4, step % 2] = value
    try:
        from_arrays(P, R)
    except UserError as fault:
        text = str(fault)
        return "" if ("inf" in text or "nan" in text) else f"the message does not name it: {text}"
    return "it was taken"


def two_on_one(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R18."""
    config = config_of(saving__period_steps=100)
    expected = whole(config, folder)
    for number in range(tries):
        root = folder / str(number)
        if number % 3 == 2:
            yield _read_only(config, root)
            continue
        delay = float(rng.uniform(0, 0.5))

        def both(root: Path = root, delay: float = delay) -> int:
            second = os.fork()
            if second == 0:
                time.sleep(delay)
                code = 0
                try:
                    train(config, root)
                except UserError as fault:
                    code = 9 if "is in use by process" in str(fault) else 8
                os._exit(code)
            train(config, root)
            return os.waitstatus_to_exitcode(os.waitpid(second, 0)[1])

        ended = forked(both, folder)
        ends = state_of(config, root) == expected
        yield "" if ended.code in (9, 0) and ends else f"exit code {ended.code}, same end {ends}: {ended.said[-300:]}"


def _read_only(config: RunConfig, root: Path) -> str:
    """A folder that nobody may write in, or, as the super-user may, one that is a file."""
    home = home_of(config, root)
    home.folder.parent.mkdir(parents=True)
    if os.geteuid():
        home.folder.parent.chmod(0o555)
    else:
        home.folder.touch()
    try:
        train(config, root)
    except UserError as fault:
        return "" if str(home.folder) in str(fault) else f"the message does not name it: {fault}"
    finally:
        home.folder.parent.chmod(0o755)
    return "it trained where it cannot write"


MEMORIES: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "vectors": ("CartPole-v1", "dqn", {"agent__replay_capacity_steps": 2_000_000}, 64),
    "vectors, prioritised": (
        "CartPole-v1", "dqn", {"agent__replay_capacity_steps": 2_000_000, "agent__prioritised": True}, 64,
    ),
    "vectors, 6 numbers": ("Acrobot-v1", "dqn", {"agent__replay_capacity_steps": 2_000_000}, 32),
    "a large network": (
        "CartPole-v1", "dqn", {"agent__hidden": (4096, 4096), "agent__replay_capacity_steps": 2_000}, 1,
    ),
    "a large network in float64": (
        "CartPole-v1", "dbs-dqn",
        {"agent__hidden": (2048, 2048), "agent__dtype": "float64", "agent__replay_capacity_steps": 2_000}, 1,
    ),
    "MinAtar": ("minatar/breakout", "dqn", {"agent__replay_capacity_steps": 250_000}, 64),
    "MinAtar, 10 channels": ("minatar/seaquest", "dbs-dqn", {"agent__replay_capacity_steps": 150_000}, 64),
    "MinAtar, 3 steps": (
        "minatar/asterix", "ddqn", {"agent__replay_capacity_steps": 250_000, "agent__n_step": 3}, 64,
    ),
    "MinAtar, prioritised": (
        "minatar/freeway", "dqn", {"agent__replay_capacity_steps": 200_000, "agent__prioritised": True}, 64,
    ),
    "Discrete": ("Taxi-v4", "dqn", {"agent__replay_capacity_steps": 3_000_000}, 64),
    "Atari": ("atari/Breakout", "dqn", {"agent__replay_capacity_steps": 20_000, "agent__threads": 1}, 8),
    "Atari, c learned, beside acting": (
        "atari/Breakout", "dbs-dqn",
        {"agent__replay_capacity_steps": 20_000, "agent__threads": 1, "agent__overlap": True}, 8,
    ),
}  # fmt: skip
"""Environment, preset, settings, environments side by side: at least forty MB each."""


def estimated_memory(tries: int, rng: np.random.Generator, folder: Path) -> Findings:  # noqa: ARG001
    """R21: the most that the agent alone takes, its replay filled with made-up steps and a few updates done."""
    for name, (env, preset, changes, n) in list(MEMORIES.items())[:tries]:
        capacity = int(changes["agent__replay_capacity_steps"])
        start = capacity - 5 * n
        config = config_of(env, preset, n_envs=n, agent__replay_start_steps=start, **changes)

        def work(config: RunConfig = config) -> None:
            print(json.dumps(_measured(config)))

        ended = forked(work, folder, limit=300)
        if ended.code:
            yield f"{name}: {ended.said[-400:]}"
            continue
        named, took = json.loads(ended.said.splitlines()[-1])
        off = took / named - 1
        print(f"     R21 {name}: estimate {named / 1e6:.1f} MB, taken {took / 1e6:.1f} MB", file=sys.stderr)
        yield "" if abs(off) <= 0.1 else f"{name}: the estimate is {named / 1e6:.1f} MB, taken were {took / 1e6:.1f} MB"


def _measured(config: RunConfig) -> tuple[int, int]:
    from dynaboltz.deep import Agent, memory
    from dynaboltz.envs import Step, make

    with make(config.env, n=config.n_envs) as envs:
        spec, first = envs.spec, envs.reset()
    small = replace(config.agent, replay_capacity_steps=2000, replay_start_steps=100, hidden=(8,))
    for agent in (Agent(small, spec, config.n_envs, seed=0),):  # compiles, and warms the allocator up
        _fill(agent, first, 3000, Step)
        agent.close()
    del agent
    before = memory_in_use()
    agent = Agent(config.agent, spec, config.n_envs, seed=0)
    Path("/proc/self/clear_refs").write_text("5")  # forget the largest size so far
    _fill(agent, first, config.agent.replay_capacity_steps + 2 * config.n_envs, Step)
    agent.weights()
    status = Path("/proc/self/status").read_text()
    most = 1024 * int(status.partition("VmHWM:")[2].split()[0])
    return sum(memory(config.agent, spec, config.n_envs).values()), most - before


def _fill(agent: Any, first: np.ndarray, steps: int, kind: Any) -> None:
    n = len(first)
    agent.begin(first)
    off = np.zeros(n, np.bool_)
    for _ in range(steps // n + 1):
        agent.observe(np.zeros(n, np.int64), kind(first, np.zeros(n), off, off, first))
