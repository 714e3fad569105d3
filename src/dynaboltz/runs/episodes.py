"""Episodes that are only looked at: environments, seeds and random numbers of their own; the agent learns nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dynaboltz.deep.agent import Agent

STREAM = 1
"""That of evaluation; training is 0."""

AT_ONCE = 16
"""Episodes that are played side by side."""


@dataclass(frozen=True, slots=True)
class Score:
    """What the episodes came to, in the order in which they were begun."""

    returns: tuple[float, ...]
    """Undiscounted, as the environment pays: never clipped."""
    steps: tuple[int, ...]
    cut: int
    """How many were cut at the limit of steps; they count as they stand."""

    def row(self) -> dict[str, Any]:
        """As part of a row; the deviation is that of the sample."""
        returns = np.array(self.returns)
        return {
            "episodes": len(self.returns),
            "mean": float(returns.mean()),
            "deviation": float(returns.std(ddof=1)) if returns.size > 1 else 0.0,
            "least": float(returns.min()),
            "most": float(returns.max()),
            "returns": list(self.returns),
            "steps": list(self.steps),
            "cut": self.cut,
        }


def play(
    env: str, agent: Agent, *, episodes: int, epsilon: float, max_steps: int, key: tuple[int, ...],
    tick: Callable[[], None],
) -> Score:  # fmt: skip
    """The returns of ``episodes`` episodes by the agent's present weights.

    ``key`` alone says which episodes these are: first states, noise and the agent's own randomness. Every environment
    plays one episode, so that short ones are not met more often than long ones. ``tick`` is called at every step and
    may raise to stop.
    """
    returns: list[float] = []
    steps: list[int] = []
    cut = 0
    for start in range(0, episodes, AT_ONCE):
        done, played, running = _round(
            env, agent, min(AT_ONCE, episodes - start), epsilon, max_steps, (*key, start), tick
        )
        returns += done
        steps += played
        cut += running
    return Score(tuple(returns), tuple(steps), cut)


def _round(
    env: str, agent: Agent, n: int, epsilon: float, max_steps: int, key: tuple[int, ...], tick: Callable[[], None]
) -> tuple[list[float], list[int], int]:
    from dynaboltz.envs import make

    root = np.random.SeedSequence(key)
    seed = int(root.generate_state(1, np.uint64)[0] >> np.uint64(1))
    with make(env, n=n, seed=seed, stream=STREAM) as envs:
        player = agent.player(n, epsilon=epsilon, rng=np.random.default_rng(root.spawn(1)[0]))
        player.begin(envs.reset())
        running = np.ones(n, np.bool_)
        returns, steps = np.zeros(n), np.zeros(n, np.int64)
        for _ in range(max_steps):
            step = envs.step(player.act())
            player.observe(step)
            returns[running] += step.reward[running]
            steps[running] += 1
            running &= ~step.over
            tick()
            if not running.any():
                break
    return returns.tolist(), steps.tolist(), int(running.sum())
