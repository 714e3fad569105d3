"""The agent: it acts ε-greedily, remembers, and updates and syncs when they are due.

Everything that is random or counts is here and in the state: the same configuration, seed and transitions give the same
bits, whatever is logged or evaluated in between, and a restored agent goes on as if nothing had happened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from dynaboltz.deep.batch import Batch
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.engine import make_engine
from dynaboltz.deep.faults import NonFinite
from dynaboltz.deep.learner import Learner, Moment
from dynaboltz.deep.noise import Noise
from dynaboltz.deep.player import Player
from dynaboltz.deep.records import Records
from dynaboltz.deep.replay import Replay
from dynaboltz.deep.stacker import Stacker
from dynaboltz.deep.streams import restore_stream, stream, stream_state
from dynaboltz.envs.spec import Spec, Step
from dynaboltz.errors import UserError
from dynaboltz.storage import Weights


class Agent:
    """Deep Q-learning on ``n_envs`` environments that step together.

    With ``config.overlap`` an update runs in a thread of its own. It is handed over, with its batch, when it falls due,
    and taken back when the next one does; in between the agent acts with the weights of before it.
    """

    def __init__(self, config: AgentConfig, spec: Spec, n_envs: int = 1, *, seed: int, device: str = "cpu") -> None:
        self.config, self.spec, self.n_envs = config, spec, n_envs
        self.steps = self.updates = self.syncs = self.episodes = 0
        self.engine = make_engine(config, spec, seed=seed, device=device)
        self._noise = {
            purpose: Noise(config, spec, seed=seed, purpose=purpose)
            for purpose in ("acting", "learning")
            if config.noisy
        }
        self.learner = Learner(config, spec, self.engine, self._noise.get("learning"))
        self.replay = Replay(config, spec, n_envs, seed=seed)
        self.stacker = Stacker(n_envs, spec)
        self.records = Records()
        self._batch = Batch.empty(config.batch_size, spec)
        self._explore = stream(seed, "explore")
        self._draws = np.empty(2 * n_envs)
        self._epsilon = 1.0
        self._target_period = config.parsed_target_period
        self._sync_due = False
        self._updates_at_sync = 0
        self._begun = False
        self._acting = "acting" if config.overlap else "online"
        self._worker = ThreadPoolExecutor(1, "update") if config.overlap else None
        self._running: Future[None] | None = None
        self._handed_over = False

    def begin(self, observation: np.ndarray) -> None:
        """First observations, after reset or restore; an episode that is not the one that was saved begins anew."""
        frames = self._check(observation)
        new = [env for env in range(self.n_envs) if not self.replay.begin(env, frames[env])]
        if new:
            self.stacker.begin(frames, new)
        self._begun = True

    def act(self) -> np.ndarray:
        """Actions (n,) for the present observations: random with probability ε, else of the largest value.

        Where layers are noisy, values are those under one new set of noise.
        """
        if not self._begun:
            raise UserError("call begin(observation) before act()")
        n, draws = self.n_envs, self._draws
        self._explore.random(out=draws)
        self._epsilon = 1.0 if self.steps < self.config.replay_start_steps else self.config.parsed_epsilon(self.steps)
        if n == 1:
            if draws[0] < self._epsilon:
                return np.array((int(draws[1] * self.spec.n_actions),))
            return self._best()
        explores = draws[:n] < self._epsilon
        random = (draws[n:] * self.spec.n_actions).astype(np.int64)
        if explores.all():
            return random
        return np.where(explores, random, self._best())

    def _best(self) -> np.ndarray:
        noise = self._noise["acting"].draw() if self._noise else None
        best: np.ndarray = self.engine.values(self.stacker.inputs, self._acting, noise).argmax(axis=1)
        return best

    def observe(self, action: np.ndarray, step: Step) -> None:
        """What the actions led to: it is stored, and the updates and syncs that are due are done."""
        bound = self.config.reward_clip
        self._check(step.observation)
        if step.final is not step.observation:
            self._check(step.final)
        for env in range(self.n_envs):
            reward = float(step.reward[env])
            if not math.isfinite(reward):
                raise NonFinite(f"the reward of environment {env}", reward, self.updates, self.steps)
            over = bool(step.over[env])
            self.replay.add(
                env, int(action[env]), min(max(reward, -bound), bound), step.observation[env],
                terminal=bool(step.terminal[env]), over=over, final=step.final[env],
            )  # fmt: skip
            self.episodes += over
        self.stacker.push(step)
        before, self.steps = self.steps, self.steps + self.n_envs
        if self.steps >= self.config.replay_start_steps and len(self.replay) > self.n_envs * self.config.n_step:
            period = self.config.train_period_steps
            for _ in range((self.steps // period - before // period) * self.config.train_updates):
                self._train()
        self._count_towards_sync(before)

    def _train(self) -> None:
        """One update, of which the target network's turn is a part."""
        self._take_back()
        self.updates += 1
        self.replay.sample(self._batch, self.config.parsed_importance(self.steps))
        synced = self._target_period is None or self.syncs > 0
        now = Moment(self.updates, self.steps, self._time(), synced)
        self._handed_over = True
        if self._worker is not None:
            side = self.engine.side
            published = side.begin(self.engine.parameters.publish)
            ahead = self.learner.begin(self._batch)
            self._running = self._worker.submit(self.learner.update, self._batch, now, ahead)
            published()
        else:
            self.learner.update(self._batch, now)
            self._take_back()

    def _take_back(self) -> None:
        """The end of the last update: priorities, records and the sync that is due."""
        self.settle()
        if self._handed_over:
            self._handed_over = False
            self.replay.update(self._batch.slot, self.learner.targets.error)
            self.records.add(self.learner)
            period = self._target_period
            if period is not None and period.unit == "updates" and self.updates % period.count == 0:
                self._sync_due = True
        self._sync()

    def _count_towards_sync(self, before: int) -> None:
        period = self._target_period
        if period is not None and period.unit == "steps" and self.steps // period.count > before // period.count:
            self._sync_due = True
            if self._worker is None:
                self._sync()

    def _sync(self) -> None:
        """Copy into the target network, if something was learned since the last time."""
        if self._sync_due and self.updates > self._updates_at_sync:
            self.engine.parameters.sync()
            self.syncs += 1
            self._updates_at_sync = self.updates
        self._sync_due = False

    def _time(self) -> float:
        """Where the clock of β is, counted from 1."""
        clocks = {
            "target_sync": self.syncs + 1, "update": self.updates, "step": self.steps, "episode": self.episodes + 1,
        }  # fmt: skip
        return clocks[self.config.beta_clock]

    def _check(self, frames: np.ndarray) -> np.ndarray:
        """Refuse frames that are not what the spec says."""
        expected = (self.n_envs, *self.spec.shape)
        if frames.shape != expected:
            raise UserError(f"observations must have shape {expected}, got {frames.shape}")
        if frames.dtype.kind == "f" and not math.isfinite(frames.sum()) and not np.isfinite(frames).all():
            wrong = float(frames[~np.isfinite(frames)][0])
            raise NonFinite("an observation", wrong, self.updates, self.steps)
        return frames

    def measurements(self) -> dict[str, float]:
        """Means over the updates since the last call, and where ε, β and c are."""
        return {**self.records.drain(), "epsilon": self._epsilon}

    def player(self, n: int, *, epsilon: float, rng: np.random.Generator) -> Player:
        """One that acts in ``n`` other environments with the present weights and leaves no trace."""
        return Player(self, n, epsilon=epsilon, rng=rng)

    def settle(self) -> None:
        """Wait for an update that runs beside acting."""
        if self._running is not None:
            running, self._running = self._running, None
            self.engine.side.help_until(running)
            running.result()

    def weights(self) -> Weights:
        """The online network: named arrays, copied."""
        self.settle()
        return self.engine.parameters.weights()

    def load_weights(self, weights: Mapping[str, Any]) -> None:
        """Overwrite the online and the target network."""
        self.settle()
        self.engine.parameters.load(weights)

    def state(self) -> dict[str, Any]:
        """Everything :meth:`restore` needs; arrays are views, valid until the next step."""
        self.settle()
        tree: dict[str, Any] = {name: getattr(self, name) for name in _COUNTERS}
        pending = {"slot": self._batch.slot, "error": self.learner.targets.error, "counts": self.learner.targets.counts}
        if self._noise:
            tree["noise"] = {purpose: noise.state() for purpose, noise in self._noise.items()}
        return tree | {
            "learner": self.learner.state(),
            "replay": self.replay.state(),
            "stacker": self.stacker.state(),
            "explore": stream_state(self._explore),
            "records": self.records.state(),
            "pending": pending if self._handed_over else None,
        }

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Go back to a saved state; then :meth:`begin` with the observations of the restored environments."""
        self.settle()
        for name in _COUNTERS:
            setattr(self, name, type(getattr(self, name))(tree[name]))
        self.learner.restore(tree["learner"])
        self.replay.restore(tree["replay"])
        self.stacker.restore(tree["stacker"])
        restore_stream(self._explore, tree["explore"])
        self.records.restore(tree["records"])
        for purpose, noise in self._noise.items():
            noise.restore(tree["noise"][purpose])
        pending = tree["pending"]
        self._handed_over = pending is not None
        if pending is not None:
            self._batch.slot[:] = pending["slot"]
            self.learner.targets.error[:] = pending["error"]
            self.learner.targets.counts[:] = pending["counts"]
        self._begun = False

    def close(self) -> None:
        """End the thread and give back memory; a second call does nothing."""
        self._running = None
        if self._worker is not None:
            self._worker.shutdown(wait=True)
        self.engine.close()


_COUNTERS = ("steps", "updates", "syncs", "episodes", "_epsilon", "_sync_due", "_updates_at_sync")
