"""Runs that are killed, stopped, repeated and looked at: R2 and R7 to R10 of ``faults_runs.py``."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz.cli import main as command
from dynaboltz.envs.world import Worlds
from dynaboltz.runs import RunConfig, home_of, resume, train
from faulty import SMALL, Counter, Findings, at_step, config_of, count_steps, forked, journal, state_of, whole

SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1")


def killed_at_random(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R2."""
    return killed(config_of(saving__period_steps=250), tries, rng, folder, (0.02, 0.6))


def killed(
    config: RunConfig, tries: int, rng: np.random.Generator, folder: Path, moments: tuple[float, float],
    *, limit: float = 60.0,
) -> Findings:  # fmt: skip
    """SIGKILL at a random one of the ``moments``, again and again, until a run gets through; then the next run."""
    interval = config.saving.period_steps
    expected, counter, done, number = whole(config, folder, limit=limit), Counter(), 0, 0
    while done < tries:
        root, number, before, known = folder / f"run-{number}", number + 1, 0, 0

        def work(root: Path = root) -> None:
            count_steps(counter)
            train(config, root)

        while True:
            counter.set(0)
            ended = forked(work, folder, kill_after=float(rng.uniform(*moments)), limit=limit)
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
            at, far = counter.get(), ""
            if at - before > interval + 1:
                far = f"killed at step {at}, with nothing after {before} committed, more than an interval"
            yield lost or far
        shutil.rmtree(root, ignore_errors=True)


def stopped_and_resumed(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R7."""
    kinds = [
        config_of(),
        config_of("minatar/breakout", "dbs-dqn", steps=1200),
        config_of(preset="dbs-dqn", n_envs=3, agent__prioritised=True, agent__n_step=3),
    ]
    return stopped(kinds, tries, rng, folder)


def stopped(
    kinds: Sequence[RunConfig], tries: int, rng: np.random.Generator, folder: Path, *, limit: float = 60.0
) -> Findings:
    """SIGTERM at a random step of a run, then the rest of it."""
    for kind, config in enumerate(kinds):
        place = folder / str(kind)
        place.mkdir()
        expected = whole(config, place, limit=limit)
        for number in range(tries // len(kinds)):
            step, root = int(rng.integers(1, config.steps)), place / str(number)

            def work(config: RunConfig = config, root: Path = root, step: int = step) -> None:
                at_step(step, lambda: os.kill(os.getpid(), signal.SIGTERM))
                train(config, root)

            def again(config: RunConfig = config, root: Path = root) -> None:
                resume(home_of(config, root).folder)

            first, second = forked(work, place, limit=limit), forked(again, place, limit=limit)
            if first.code != 128 + signal.SIGTERM or second.code:
                yield f"{config.env}: exit codes {first.code} and {second.code}: {(first.said + second.said)[-500:]}"
            else:
                equal = state_of(config, root) == expected
                yield "" if equal else f"{config.env} {config.name} stopped at step {step} came to another end"


def same_seed_twice(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R8."""
    config = config_of(steps=800)
    seeds = [int(seed) for seed in rng.integers(0, 2**31, tries)]
    seed_list = ",".join(map(str, seeds))
    settings = [f"--set={key}={value}" for key, value in (SMALL | {"steps": 800}).items()]
    new = [sys.executable, "-m", "dynaboltz", "train", "CartPole-v1", "--preset", "dqn", *settings]
    subprocess.run(
        [*new, "--seeds", seed_list, "--out", str(folder / "new"), "--json"], check=True, capture_output=True
    )
    for seed in seeds:
        one = replace(config, seed=seed)
        ended = forked(lambda one=one: train(one, folder / "forked") and None, folder)
        states = {state_of(one, folder / name) for name in ("new", "forked")}
        yield ended.said if ended.code else "" if len(states) == 1 else f"seed {seed} has two outcomes"


def looked_at(tries: int, rng: np.random.Generator, folder: Path) -> Findings:  # noqa: ARG001
    """R9."""
    expected = ""
    for number in range(tries):
        evaluation, log, video = number % 3, number // 3 % 2, number // 6 % 2
        config = config_of(
            evaluation__episodes=0 if evaluation == 0 else 3, evaluation__period_steps=500 if evaluation == 1 else 50,
            sinks=("console", "tensorboard") if log else (), log_period_steps=10 if log else 10_000,
        )  # fmt: skip

        def work(config: RunConfig = config, video: int = video, number: int = number) -> None:
            original, count = Worlds.step, [0]

            def filmed(self: Worlds, actions: np.ndarray) -> Any:
                count[0] += 1
                if count[0] % 50 == 0:
                    self.picture(0)
                return original(self, actions)

            if video:
                Worlds.step = filmed  # type: ignore[method-assign]
            train(config, folder / str(number))

        ended = forked(work, folder)
        found = ended.said if ended.code else state_of(config, folder / str(number), learner_only=True)
        expected = expected or found
        what = f"evaluation {evaluation}, log {log}, video {video}"
        yield "" if found == expected and not ended.code else f"{what}: another learner ({found[:200]})"


def signalled(tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R10."""
    config = config_of(saving__period_steps=300, sinks=("console",))
    expected = whole(config, folder)
    phases = ("training", "evaluating", "saving", "reporting")
    forced = min(4, tries // 4)
    for number in range(tries - forced):
        phase, name = phases[number % 4], SIGNALS[number // 4 % 4]
        yield _signalled(config, folder / f"{number}", expected, phase, name, int(rng.integers(1, 4)))
    for number in range(forced):

        def work(root: Path = folder / f"forced-{number}", name: str = SIGNALS[number]) -> int:
            from dynaboltz.runs.train import Loop

            def twice(_loop: Loop) -> None:
                os.kill(os.getpid(), getattr(signal, name))
                os.kill(os.getpid(), getattr(signal, name))
                time.sleep(1000)

            Loop._tick = twice  # type: ignore[method-assign]
            train(config, root)
            return 0

        ended = forked(work, folder, limit=10)
        good = not ended.killed and ended.seconds < 5
        yield "" if good else f"a second {SIGNALS[number]} did not force the end: {ended}"


def _signalled(config: RunConfig, root: Path, expected: str, phase: str, name: str, nth: int) -> str:
    number = getattr(signal, name)

    def work() -> int:
        from dynaboltz.runs.sinks import Console
        from dynaboltz.runs.train import Loop

        seen = [0]

        def send() -> None:
            seen[0] += 1
            if seen[0] == nth:
                os.kill(os.getpid(), number)

        if phase == "training":
            at_step(nth * 400, lambda: os.kill(os.getpid(), number))
        elif phase == "reporting":
            Console.write = lambda _self, _row: send()  # type: ignore[method-assign]
        else:
            original = Loop._tell

            def tell(self: Loop, *, always: bool = False) -> None:
                if self.phase == phase and always:
                    send()
                original(self, always=always)

            Loop._tell = tell  # type: ignore[method-assign]
        settings = [f"--set={key}={value}" for key, value in SMALL.items()]
        more = ["--set=saving.period_steps=300", "--set=sinks=console"]
        return command(["train", config.env, "--preset", "dqn", *settings, *more, "--out", str(root)])

    root.mkdir()
    first = forked(work, root)
    second = forked(lambda: resume(home_of(config, root).folder) and None, root)
    if first.code != 128 + number or first.seconds > 10:
        return f"{name} while {phase}: exit code {first.code} after {first.seconds:.1f} s: {first.said[-500:]}"
    return "" if state_of(config, root) == expected else f"{name} while {phase}: another end: {second.said[-500:]}"
