"""What the claims on Atari share: the published runs, and what one of them costs, tried on this machine."""

from __future__ import annotations

import math
import os
import platform
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dynaboltz.deep.presets import PRESETS
from dynaboltz.envs.protocols import PROTOCOLS
from dynaboltz.paper.claim import Table
from dynaboltz.paper.deep_runs import make_agent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynaboltz.deep import AgentConfig
    from dynaboltz.envs import Spec

PUBLISHED = dict(PROTOCOLS["nature2015"].run)
"""Settings of Mnih et al. (2015), by their key in a run."""
STEPS, PERIOD, EPISODES, MOST = (
    int(PUBLISHED[key])
    for key in ("steps", "evaluation.period_steps", "evaluation.episodes", "evaluation.max_steps")
)  # fmt: skip
"""Agent steps of a run, steps between evaluations, episodes of one and the most steps of an episode."""
SEEDS = 3
"""Independent runs of an algorithm on a game, by the paper's text."""
AGENTS = {"DQN": "dqn", "DBS-DQN": "dbs-dqn", "DBS-DQN, c = 1": "dbs-dqn-fixed"}
"""Algorithm → its name in the studies, which is that of a preset."""
GAME = "Seaquest"
DAY = 86_400.0
START, WARM_UP, SYNC = 100, 8, 10
"""Of a try: steps before it learns, updates before it is timed, updates between copies into the target network."""


def spec_of(game: str) -> Spec:
    """What an agent is shown of a game under the published protocol."""
    from dynaboltz.envs import make

    with make(f"atari/{game}", seed=0) as worlds:
        return worlds.spec


def published(name: str) -> AgentConfig:
    """An agent of the studies with the settings of Mnih et al. (2015)."""
    return PRESETS[f"{name}-nature"]()


class Tried(NamedTuple):
    """A few seconds of an agent at work; times are seconds of one core."""

    training: float
    """Of a step, with its share of an update."""
    playing: float
    """Of a step of an evaluation."""
    memory: int
    """Bytes of a run, with the whole replay memory."""
    updates: int
    """That were timed."""
    derivatives: int
    """In how many of them the meta-gradient was taken."""
    betas: list[float]
    """β at each of them; empty for the maximum."""
    seen: Mapping[str, float]
    """Means of the agent's measurements over them."""

    def days(self, steps: int = STEPS) -> tuple[float, float]:
        """Core-days of a run: without its evaluations, and if all of their episodes last as long as they may."""
        alone = steps * self.training / DAY
        return alone, alone + steps // PERIOD * EPISODES * MOST * self.playing / DAY


def machine() -> str:
    """This one, in words."""
    try:
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.partition(":")[2].strip() for line in about if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} cores, {platform.system()}"


@cache
def tried(name: str, game: str = GAME, *, seed: int, seconds: float) -> Tried:
    """What an agent of the studies does and costs on a game.

    All is as published but for the start: it learns after ``START`` steps and its target network is copied to at once,
    so that c is learned while it is timed. It has one thread, so that the time of the process is that of its core,
    whatever else the machine does.
    """
    from dynaboltz.deep import memory
    from dynaboltz.envs import make

    full = published(name)
    config = PRESETS[f"{name}-nature"](
        replay_start_steps=START, replay_capacity_steps=10_000, target_period=f"{SYNC} updates", threads=1
    )
    training, playing = list[float](), list[float]()
    betas, derivatives, every = list[float](), 0, config.train_period_steps
    with make(f"atari/{game}", seed=seed) as worlds:
        spec = worlds.spec
        agent = make_agent(config, spec, seed=seed)
        agent.begin(worlds.reset())
        while not training or sum(training) < seconds:
            began = time.process_time()
            for _ in range(every):
                action = agent.act()
                agent.observe(action, worlds.step(action))
            if agent.updates <= WARM_UP:
                agent.measurements()
                continue
            training.append((time.process_time() - began) / every)
            derivatives += not math.isnan(agent.learner.derivative)
            if agent.learner.beta is not None:
                betas.append(agent.learner.beta)
    with make(f"atari/{game}", seed=seed, stream=1) as worlds:
        player = agent.player(1, epsilon=float(PUBLISHED["evaluation.epsilon"]), rng=np.random.default_rng(seed))
        player.begin(worlds.reset())
        while not playing or sum(playing) < seconds / 4:
            began = time.process_time()
            player.observe(worlds.step(player.act()))
            playing.append(time.process_time() - began)
    seen = agent.measurements()
    agent.close()
    return Tried(
        float(np.mean(training)), float(np.mean(playing)), sum(memory(full, spec).values()), len(training),
        derivatives, betas, seen,
    )  # fmt: skip


def costs(found: Mapping[str, Tried], *, runs: int, steps: int = STEPS) -> tuple[str, Table]:
    """What a study of ``runs`` runs, as many of each agent, would cost: a sentence and a table."""
    days = {name: one.days(steps) for name, one in found.items()}
    low, high = (np.mean([each[i] for each in days.values()]) * runs for i in (0, 1))
    said = (
        f"Tried on this machine ({machine()}), {runs} runs of {steps:,} steps would take {low:,.0f} core-days, and up to "
        f"{high:,.0f} with their evaluations"
    )
    table = Table(
        caption="Cost of a run, by a try of seconds on one core of this machine",
        header=("agent", "steps a second", "core-days", "at most, with evaluations", "memory, GB"),
        rows=[
            (
                name, f"{1 / one.training:.0f}", f"{days[name][0]:.1f}", f"{days[name][1]:.1f}", f"{one.memory / 1e9:.1f}",
            )
            for name, one in found.items()
        ],
    )  # fmt: skip
    return said, table
