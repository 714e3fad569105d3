"""Atari stepping beside its limit, the bare emulator, and beside ale-py's own vector environment, in one run.

A step is one decision of one environment: four frames emulated, pooled and shrunk. Rounds are interleaved and the best
of each is taken, because shared machines drift; no episode ends within a round. Both the time on the clock and that of
the processor are shown: on a busy machine only the latter says what the work is. With --resume every game of the paper
is interrupted at random points and must go on as if it had not been; with --replay the longest episode of a 30-minute
cap, 27,000 actions, is restored.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import threading
import time
from collections.abc import Callable
from typing import Any

import ale_py
import numpy as np
from ale_py.vector_env import AtariVectorEnv

from dynaboltz.envs import Environments, make
from dynaboltz.envs.atari import AtariEnvironments, rom_of
from dynaboltz.reports.scores import paper_scores

LONG = "protocol='dqn_zoo', resize='area'"


Times = tuple[float, float]
"""On the clock, and of the processor."""


class Watch:
    """Both times since it was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def per(self, count: int, unit: float = 1e6) -> Times:
        clock, processor = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        return clock / count * unit, processor / count * unit


def best_of(rounds: int, timed: dict[str, Callable[[], Times]]) -> dict[str, Times]:
    """The least of what each function returns, after one call to warm up."""
    for function in timed.values():
        function()
    best = dict.fromkeys(timed, (float("inf"), float("inf")))
    for _ in range(rounds):
        for name, function in timed.items():
            clock, processor = function()
            best[name] = min(best[name][0], clock), min(best[name][1], processor)
    return best


def ours(game: str, n: int, steps: int) -> Callable[[], Times]:
    envs = make(f"atari/{game}({LONG})", n=n)
    actions = np.random.default_rng(0).integers(0, envs.spec.n_actions, (steps, n))

    def run() -> Times:
        envs.reset()
        watch = Watch()
        for action in actions:
            envs.step(action)
        return watch.per(steps * n)

    return run


def theirs(game: str, n: int, threads: int, steps: int) -> Callable[[], Times]:
    envs = AtariVectorEnv(
        rom_of(game), n, num_threads=threads, stack_num=1, use_fire_reset=False, reward_clipping=False
    )
    actions = np.random.default_rng(0).integers(0, envs.single_action_space.n, (steps, n))
    seeds = np.arange(n)

    def run() -> Times:
        envs.reset(seed=seeds)
        watch = Watch()
        for action in actions:
            envs.step(action)
        return watch.per(steps * n)

    return run


def emulator(game: str) -> ale_py.ALEInterface:
    envs = make(f"atari/{game}({LONG})")
    assert isinstance(envs, AtariEnvironments)
    envs.reset()
    return envs._games[0]._ale


def bare(game: str, steps: int) -> Callable[[], Times]:
    ale = emulator(game)
    actions = [
        ale.getMinimalActionSet()[k]
        for k in np.random.default_rng(0).integers(0, len(ale.getMinimalActionSet()), steps)
    ]

    def run() -> Times:
        ale.reset_game()
        watch = Watch()
        for action in actions:
            ale.act(action), ale.act(action), ale.act(action), ale.act(action)
        times = watch.per(steps)
        assert not ale.game_over(), "an emulator does nothing once a game is over"
        return times

    return run


def side_by_side(game: str, steps: int) -> Callable[[], Times]:
    """Two bare emulators on two threads: half of ``bare`` if they do not wait for one another."""
    runs = [bare(game, steps), bare(game, steps)]

    def run() -> Times:
        threads = [threading.Thread(target=function) for function in runs]
        watch = Watch()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return watch.per(2 * steps)

    return run


def starting(game: str) -> dict[str, Callable[[], Times]]:
    """What it costs to begin an episode, in milliseconds."""
    envs = make(f"atari/{game}({LONG})")
    vector = AtariVectorEnv(rom_of(game), 1, num_threads=1)

    def timed(function: Callable[[], object]) -> Callable[[], Times]:
        def run() -> Times:
            watch = Watch()
            function()
            return watch.per(1, 1e3)

        return run

    return {
        "start an episode, ms": timed(envs.reset),
        "AtariVectorEnv, start a seeded episode, ms": timed(lambda: vector.reset(seed=np.array([1]))),
    }


def speed(game: str, steps: int, rounds: int) -> dict[str, Times]:
    found = best_of(
        rounds,
        {
            "bare emulator": bare(game, steps),
            "bare emulator, two Python threads": side_by_side(game, steps),
            "ours, 1": ours(game, 1, steps),
            "ours, 8": ours(game, 8, steps),
            "AtariVectorEnv, 1": theirs(game, 1, 1, steps),
            "AtariVectorEnv, 8 on 1 thread": theirs(game, 8, 1, steps),
            "AtariVectorEnv, 8 on 2 threads": theirs(game, 8, 2, steps),
        },
    )
    limit = found["bare emulator"]
    print(f"\n{game}: µs a step on the clock and of the processor, and both as multiples of the bare emulator's")
    for name, (clock, processor) in found.items():
        print(f"  {name:<44} {clock:7.0f} {processor:7.0f}   {clock / limit[0]:5.2f} {processor / limit[1]:5.2f}")
    for name, (clock, processor) in (started := best_of(rounds, starting(game))).items():
        print(f"  {name:<44} {clock:7.2f} {processor:7.2f}")
    return found | started


def replay() -> dict[str, Times]:
    """Breakout without its ball lasts as long as the cap lets it."""
    with make(f"atari/Breakout({LONG})") as envs:
        envs.reset()
        noop = np.array([0])
        for _ in range(26_999):
            envs.step(noop)
        state = envs.state()
        watch = Watch()
        envs.restore(state)
        seconds, processor = watch.per(1, 1.0)
    print(f"\nrestore after 26,999 actions: {seconds:.1f} s, {processor:.1f} s of the processor")
    return {"restore after 26,999 actions, s": (seconds, processor)}


def trace(envs: Environments, actions: np.ndarray) -> list[str]:
    """A digest of all that each step says."""
    digests = []
    for action in actions:
        step = envs.step(action)
        said = hashlib.sha256(step.observation.tobytes() + step.final.tobytes() + step.reward.tobytes())
        said.update(step.terminal.tobytes() + step.over.tobytes() + repr(step.finished).encode())
        digests.append(said.hexdigest())
    return digests


def resume(points: int, steps: int, after: int) -> dict[str, int]:
    """Interrupt every game of the paper; how many times the future is not the same."""
    wrong = tries = 0
    for game in paper_scores().games:
        rng = np.random.default_rng(1)
        text = f"atari/{rom_of(game)}(sticky_actions=0.25)"
        with make(text, seed=2) as envs, make(text, seed=2) as other:
            other.reset()
            trace(other, rng.integers(0, envs.spec.n_actions, (50, 1)))
            envs.reset()
            actions = rng.integers(0, envs.spec.n_actions, (steps, 1))
            at = sorted(rng.integers(1, steps - after, points).tolist())
            states, said = {}, []
            for index in range(steps):
                if index in at:
                    states[index] = envs.state()
                said += trace(envs, actions[index : index + 1])
            for point in at:
                other.restore(states[point])
                tries += 1
                if trace(other, actions[point : point + after]) != said[point : point + after]:
                    wrong += 1
                    print(f"  {game}: another future after step {point}")
    print(f"\nresume: {tries - wrong} of {tries} go on as if never interrupted ({len(paper_scores().games)} games)")
    return {"resumed": tries, "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="*", default=["Breakout", "Seaquest"])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--resume", type=int, default=0, metavar="POINTS", help="interruptions of each game")
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    found: dict[str, Any] = {game: speed(game, options.steps, options.rounds) for game in options.games}
    if options.replay:
        found["replay"] = replay()
    if options.resume:
        found["resume"] = dict(resume(options.resume, 500, 60))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(found, file, indent=1)
    if found.get("resume", {}).get("wrong"):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
