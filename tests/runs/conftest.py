"""A small agent that obeys the rules of agents: linear Q-learning with a replay, momentum and a stream of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.envs import Spec, Step
from dynaboltz.errors import DynaboltzError
from dynaboltz.runs import Given, RunConfig, resolve
from dynaboltz.storage import Weights

LEARNING_RATE, DISCOUNT, CAPACITY = 0.01, 0.9, 50


class Toy:
    """Q(x, a) = w_a · x, learned from one replayed transition a step."""

    def __init__(self, spec: Spec, n_envs: int, seed: int) -> None:
        size = int(np.prod(spec.shape))
        self.n, self.n_actions = n_envs, spec.n_actions
        self.rng = np.random.default_rng([seed, 5])
        self.w, self.momentum = np.zeros((spec.n_actions, size)), np.zeros((spec.n_actions, size))
        self.memory = np.zeros((CAPACITY, 2 * size + 3))
        self.steps = self.updates = self.syncs = self.episodes = self.loss_count = 0
        self.loss = 0.0
        self.now = np.zeros((n_envs, size))
        self.poison_at = -1
        self.closed = 0

    def begin(self, observation: np.ndarray) -> None:
        self.now = observation.reshape(self.n, -1).astype(np.float64)

    def act(self) -> np.ndarray:
        greedy = (self.now @ self.w.T).argmax(axis=1)
        random = self.rng.integers(self.n_actions, size=self.n)
        return np.where(self.rng.random(self.n) < 0.3, random, greedy)

    def observe(self, action: np.ndarray, step: Step) -> None:
        for i in range(self.n):
            row = np.concatenate([self.now[i], step.final[i].ravel(), [action[i], step.reward[i], step.terminal[i]]])
            self.memory[(self.steps + i) % CAPACITY] = row
        self.steps += self.n
        self.episodes += len(step.finished)
        self.begin(step.observation)
        self._update(self.memory[self.rng.integers(min(self.steps, CAPACITY))])

    def _update(self, row: np.ndarray) -> None:
        size = self.now.shape[1]
        x, after, (action, reward, terminal) = row[:size], row[size : 2 * size], row[2 * size :]
        error = reward + DISCOUNT * (1 - terminal) * (self.w @ after).max() - self.w[int(action)] @ x
        self.momentum *= 0.5
        self.momentum[int(action)] += np.clip(error, -1, 1) * x
        self.w += LEARNING_RATE * self.momentum
        self.updates += 1
        self.loss, self.loss_count = self.loss + error * error, self.loss_count + 1
        if self.updates == self.poison_at:
            raise DynaboltzError(f"the loss is nan at update {self.updates}")

    def measurements(self) -> dict[str, float]:
        found = {"loss": self.loss / max(self.loss_count, 1), "beta": float("inf")}
        self.loss, self.loss_count = 0.0, 0
        return found

    def player(self, n: int, *, epsilon: float, rng: np.random.Generator) -> ToyPlayer:
        return ToyPlayer(self, n, epsilon, rng)

    def weights(self) -> Weights:
        return Weights(w=self.w)

    def load_weights(self, weights: Mapping[str, np.ndarray]) -> None:
        self.w = weights["w"].copy()

    def state(self) -> dict[str, Any]:
        names = ("momentum", "memory", "steps", "updates", "syncs", "episodes", "loss", "loss_count")
        return {name: getattr(self, name) for name in names} | {
            "weights": self.weights(), "rng": self.rng.bit_generator.state,
        }  # fmt: skip

    def restore(self, tree: Mapping[str, Any]) -> None:
        for name, value in tree.items():
            if name not in ("weights", "rng"):
                setattr(self, name, value)
        self.load_weights(tree["weights"])
        self.rng.bit_generator.state = tree["rng"]

    def settle(self) -> None:
        return

    def close(self) -> None:
        self.closed += 1


class ToyPlayer:
    """Acts as a toy does."""

    def __init__(self, agent: Toy, n: int, epsilon: float, rng: np.random.Generator) -> None:
        self.agent, self.n, self.epsilon, self.rng = agent, n, epsilon, rng

    def begin(self, observation: np.ndarray) -> None:
        self.now = observation.reshape(self.n, -1)

    def act(self) -> np.ndarray:
        random = self.rng.integers(self.agent.n_actions, size=self.n)
        return np.where(self.rng.random(self.n) < self.epsilon, random, (self.now @ self.agent.w.T).argmax(axis=1))

    def observe(self, step: Step) -> None:
        self.begin(step.observation)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> list[Toy]:
    """Runs take toys for agents; the list has all that were made."""
    made: list[Toy] = []

    def make(config: RunConfig, spec: Spec) -> Toy:
        made.append(Toy(spec, config.n_envs, config.seed))
        return made[-1]

    monkeypatch.setattr("dynaboltz.runs.session.make_agent", make)
    monkeypatch.setattr("dynaboltz.runs.estimate.memory_of_agent", lambda *_: {"replay": 1000})
    return made


@pytest.fixture
def settings() -> Callable[..., RunConfig]:
    """A short run on CartPole; ``__`` stands for the dot."""

    def config(**changes: Any) -> RunConfig:
        base: dict[str, Any] = {
            "env": "CartPole-v1", "steps": 600, "log_period_steps": 100, "evaluation.period_steps": 200,
            "evaluation.episodes": 3, "evaluation.max_steps": 50, "saving.period_seconds": 0,
        }  # fmt: skip
        values = base | {key.replace("__", "."): value for key, value in changes.items()}
        return resolve(None, None, {key: Given(value, "a test") for key, value in values.items()})

    return config


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where runs go."""
    return tmp_path / "runs"
