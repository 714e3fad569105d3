"""What the claims on deep agents share: training in memory, returns of greedy episodes, and means over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.errors import MissingExtraError
from dynaboltz.reports.statistics import mean_interval

if TYPE_CHECKING:
    from dynaboltz.deep import Agent, AgentConfig
    from dynaboltz.envs import Spec

STREAM = 1
"""Of the environments that evaluate: episodes that training never saw."""


@dataclass
class Trained:
    """An agent, and what was seen while it learned."""

    agent: Agent
    episodes: list[tuple[int, float]] = field(default_factory=list)
    """Step of its end and undiscounted return of every training episode."""
    rows: list[dict[str, float]] = field(default_factory=list)
    """Measurements, every ``every`` steps, with the ``step`` they were taken at."""

    def column(self, name: str) -> np.ndarray:
        """One measurement against the rows; NaN where a row has none."""
        return np.array([row.get(name, np.nan) for row in self.rows])


def make_agent(config: AgentConfig, spec: Spec, *, seed: int) -> Agent:
    """An agent that has learned nothing yet, or an error that names the extra that it needs."""
    try:
        from dynaboltz.deep import Agent

        return Agent(config, spec, seed=seed)
    except MissingExtraError:
        raise
    except ImportError as fault:
        raise MissingExtraError(fault.name or "torch", "deep", "training an agent") from fault


def train(
    config: AgentConfig, env: str, *, seed: int, steps: int, every: int, watch: Callable[[Agent], None] | None = None
) -> Trained:
    """An agent after ``steps`` decisions in one environment, exactly as a run of ``dynaboltz train`` has it.

    Args:
        config: the agent.
        env: name of the environment.
        seed: of both.
        steps: agent decisions.
        every: steps between measurements.
        watch: called with the agent at every measurement.
    """
    from dynaboltz.envs import make

    with make(env, seed=seed) as worlds:
        found = Trained(make_agent(config, worlds.spec, seed=seed))
        agent = found.agent
        agent.begin(worlds.reset())
        while agent.steps < steps:
            action = agent.act()
            step = worlds.step(action)
            agent.observe(action, step)
            found.episodes += [(agent.steps, episode.reward) for episode in step.finished]
            if agent.steps % every == 0:
                found.rows.append({"step": float(agent.steps), **agent.measurements()})
                if watch is not None:
                    watch(agent)
    agent.close()
    return found


def greedy_return(agent: Agent, env: str, *, seed: int, episodes: int) -> float:
    """Mean return of the first episode of each of ``episodes`` environments, without exploring."""
    from dynaboltz.envs import make

    with make(env, n=episodes, seed=seed, stream=STREAM) as worlds:
        player = agent.player(episodes, epsilon=0.0, rng=np.random.default_rng(seed))
        player.begin(worlds.reset())
        returns: dict[int, float] = {}
        while len(returns) < episodes:
            step = worlds.step(player.act())
            player.observe(step)
            for episode in step.finished:
                returns.setdefault(episode.env, episode.reward)
    return float(np.mean(list(returns.values())))


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean over the first axis with its 95 % t interval, entry by entry; values (seeds, n)."""
    intervals = [mean_interval(column) for column in values.T]
    mean, low, high = (np.array([getattr(x, part) for x in intervals]) for part in ("value", "low", "high"))
    return mean, low, high


def binned(episodes: Sequence[tuple[int, float]], edges: np.ndarray) -> np.ndarray:
    """Mean return of the episodes that end in each bin of steps; where none does, that of the bin before."""
    ends, returns = np.array([end for end, _ in episodes]), np.array([value for _, value in episodes])
    found, last = np.empty(edges.size - 1), returns[0]
    for i, (low, high) in enumerate(pairwise(edges)):
        inside = returns[(ends > low) & (ends <= high)]
        last = inside.mean() if inside.size else last
        found[i] = last
    return found


def said(config: AgentConfig, names: Sequence[str]) -> Mapping[str, Any]:
    """Some of a configuration, for a reader."""
    return {name.replace("_", " "): getattr(config, name) for name in names}
