"""A trained agent at play: it acts and learns nothing, and the training cannot tell that it was there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.deep.stacker import Stacker
from dynaboltz.envs.spec import Step

if TYPE_CHECKING:
    from dynaboltz.deep.agent import Agent


class Player:
    """ε-greedy by the online network, with frames and random numbers of its own; noisy layers have mean weights."""

    def __init__(self, agent: Agent, n: int, *, epsilon: float, rng: np.random.Generator) -> None:
        self._agent, self._rng, self._epsilon = agent, rng, epsilon
        self._n, self._actions = n, agent.spec.n_actions
        self._stacker = Stacker(n, agent.spec)

    def begin(self, observation: np.ndarray) -> None:
        """First observations (n, *shape)."""
        self._stacker.begin(observation)

    def values(self) -> np.ndarray:
        """Action values (n, A) of the present observations."""
        self._agent.settle()
        return self._agent.engine.values(self._stacker.inputs, "online")

    def act(self) -> np.ndarray:
        """Actions (n,) for the present observations."""
        draws = self._rng.random((2, self._n))
        best: np.ndarray = self.values().argmax(axis=1)
        return np.where(draws[0] < self._epsilon, (draws[1] * self._actions).astype(np.int64), best)

    def observe(self, step: Step) -> None:
        """What the actions led to."""
        self._stacker.push(step)
