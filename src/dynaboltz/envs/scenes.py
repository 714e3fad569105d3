"""Episodes moment by moment, to be looked at: what is seen, what the agent thinks of it and what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dynaboltz.envs.spec import Environments, Spec, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One moment."""

    env: str
    spec: Spec
    picture: np.ndarray | None
    """RGB, ``(height, width, 3)`` uint8."""
    text: str
    values: np.ndarray | None
    """``(n_actions,)``: what the agent expects of each action; None if it expects nothing."""
    action: int | None
    """What it does now; None where the episode has ended."""
    episode: int
    step: int
    reward: float
    """Of the step before."""
    total: float
    """Sum of the rewards of the episode so far."""
    note: str = ""
    """``terminated``, ``truncated`` or ``cut`` (by us) at the last moment of an episode."""


class Actor(Protocol):
    """What chooses actions in one environment."""

    def begin(self, observation: np.ndarray) -> None:
        """First observations, ``(1, *shape)``."""

    def act(self) -> np.ndarray:
        """``(1,)`` int64."""

    def values(self) -> np.ndarray | None:
        """``(1, n_actions)`` of the present observation, if it values actions."""

    def observe(self, step: Step) -> None:
        """What came of the action."""


class Random:
    """An actor that chooses any action, each as often."""

    def __init__(self, spec: Spec, rng: np.random.Generator) -> None:
        self._n_actions, self._rng = spec.n_actions, rng

    def begin(self, observation: np.ndarray) -> None:
        """Nothing to remember."""

    def act(self) -> np.ndarray:
        """Any action."""
        return self._rng.integers(self._n_actions, size=1)

    def values(self) -> None:
        """It has none."""

    def observe(self, step: Step) -> None:
        """Nothing to remember."""


def scenes(begin: Callable[[int], Environments], actor: Actor, *, episodes: int, max_steps: int) -> Iterator[Scene]:
    """The moments of ``episodes`` episodes, each cut after ``max_steps`` steps.

    An episode of k steps has k + 1 moments. The last one tells how it ended, beside the picture of the one before:
    the environment has begun its next episode by then.

    Args:
        begin: environments, one of them, for the episode of that number.
        actor: what chooses the actions.
        episodes: how many.
        max_steps: steps of an episode that goes on for longer.
    """
    for episode in range(episodes):
        with begin(episode) as envs:
            actor.begin(envs.reset())
            reward = total = 0.0
            for step in range(max_steps):
                values, action = actor.values(), actor.act()
                shown = Scene(
                    env=envs.name,
                    spec=envs.spec,
                    picture=envs.picture(0),
                    text=envs.text(0),
                    values=None if values is None else np.asarray(values[0], np.float64),
                    action=int(action[0]),
                    episode=episode,
                    step=step,
                    reward=reward,
                    total=total,
                )
                yield shown
                taken = envs.step(action)
                actor.observe(taken)
                reward = float(taken.reward[0])
                total += reward
                if taken.over[0]:
                    break
            note = "cut" if not taken.over[0] else "terminated" if taken.terminal[0] else "truncated"
            yield replace(shown, action=None, step=step + 1, reward=reward, total=total, note=note)
