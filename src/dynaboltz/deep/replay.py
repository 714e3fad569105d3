"""The replay memory: every frame once, in a ring for each environment; stacks and n-step returns are made when sampled.

A slot is a frame with the action taken there, the reward that followed and how it ended. The next slot's frame is the
next frame, so no frame is stored twice; only where an episode is truncated does its last frame, from which the
bootstrap is taken, need a slot of its own before the next episode begins. Nothing that is sampled crosses an episode:
stacks are zero before its first frame, and an n-step return ends with it, by its terminal reward or by a bootstrap
that is discounted by the steps there were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynaboltz.deep.batch import Batch
from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.streams import restore_stream, stream, stream_state
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError

SMALLEST_ERROR = 1e-6
"""Added to absolute errors, so that no priority is 0 (Schaul et al. 2016)."""
ARRAYS = ("frames", "action", "reward", "flags", "age")


class Replay:
    """Transitions of ``n_envs`` environments, sampled uniformly or by priority, always from one stream."""

    def __init__(self, config: AgentConfig, spec: Spec, n_envs: int, *, seed: int) -> None:
        from dynaboltz.deep import replay_rows

        self._rows: Any = replay_rows
        self.n_envs, self.stack = n_envs, spec.stack
        self.n_step, self.discount = config.n_step, config.discount
        self.slots = slots_per_environment(config, spec, n_envs)
        self.frames = np.empty((n_envs, self.slots, *spec.shape), spec.dtype)
        self.action = np.zeros((n_envs, self.slots), np.int32)
        self.reward = np.zeros((n_envs, self.slots))
        self.flags = np.zeros((n_envs, self.slots), np.uint8)
        self.age = np.zeros((n_envs, self.slots), np.uint16)
        self.first, self.count = np.zeros(n_envs, np.int64), np.zeros(n_envs, np.int64)
        self._head = [0] * n_envs  # the slot of the present frame
        self._flat: tuple[Any, ...] = (
            _bytes(self.frames, 2).reshape(n_envs * self.slots, -1),
            *(getattr(self, name).reshape(-1) for name in ARRAYS[1:]),
        )
        self._stream = stream(seed, "replay")
        self._draws = np.empty(config.batch_size)
        self.exponent = config.priority_exponent
        self.tree = np.zeros(tree_size(n_envs * self.slots)) if config.prioritised else None
        self.largest = 1.0
        self._mass = np.empty(config.batch_size)
        self._batches: dict[int, tuple[Batch, np.ndarray, np.ndarray]] = {}

    def __len__(self) -> int:
        """Slots in use, those of last frames among them."""
        return int(self.count.sum())

    def begin(self, env: int, frame: np.ndarray) -> bool:
        """The present frame of an environment, at the start or after a restore; whether its episode goes on.

        If it is not the frame that was here before, the episode that was running counts as truncated there.
        """
        head = self._head[env]
        if self.count[env] and np.array_equal(self.frames[env, head], frame):
            return True
        before = (head - 1) % self.slots
        if self.count[env] and not self.flags[env, before] & (self._rows.OVER | self._rows.LAST):
            self.flags[env, before] |= self._rows.OVER
            self._advance(env, self._rows.LAST)
        self._place(env, frame, 0)
        return False

    def add(
        self, env: int, action: int, reward: float, frame: np.ndarray, *, terminal: bool, over: bool, final: np.ndarray
    ) -> None:
        """One step of one environment: ``frame`` is the next present frame, ``final`` the one the action led to."""
        rows, head = self._rows, self._head[env]
        self.action[env, head] = action
        self.reward[env, head] = reward
        if self.tree is not None:
            rows.put(self.tree, env * self.slots + head, self.largest)
        age = min(int(self.age[env, head]) + 1, self.stack - 1)
        self._advance(env, rows.TERMINAL * terminal | rows.OVER * over)
        if over and not terminal:
            self._place(env, final, age)
            self._advance(env, rows.LAST)
        self._place(env, frame, 0 if over else age)

    def _advance(self, env: int, flags: int) -> None:
        self.flags[env, self._head[env]] = flags
        self._head[env] = (self._head[env] + 1) % self.slots
        if self.count[env] + 1 < self.slots:
            self.count[env] += 1
        else:
            self.first[env] = (self.first[env] + 1) % self.slots

    def _place(self, env: int, frame: np.ndarray, age: int) -> None:
        head = self._head[env]
        self.frames[env, head] = frame
        self.age[env, head] = age
        if self.tree is not None:
            self._rows.put(self.tree, env * self.slots + head, 0.0)

    def sample(self, batch: Batch, importance: float = 0.0) -> None:
        """Fill a batch; ``importance`` is the exponent of the importance weights, where sampling is by priority."""
        inputs, next_inputs = self._views(batch)
        filled, size = 0, len(batch.action)
        while filled < size:
            draws = self._draws[: size - filled]
            self._stream.random(out=draws)
            common = (
                *self._flat, self.first, self.count, draws, self.n_step,
                self.discount, filled, inputs, next_inputs, batch.action, batch.reward, batch.discount, batch.slot,
            )  # fmt: skip
            if self.tree is None:
                filled = self._rows.uniform(*common)
            else:
                filled = self._rows.prioritised(*common, self.tree, self._mass)
        if self.tree is not None:
            np.power(self._mass * (len(self) / self.tree[1]), -importance, out=batch.importance)
            batch.importance[:] /= batch.importance.max()

    def update(self, slots: np.ndarray, errors: np.ndarray) -> None:
        """New priorities of the transitions of a batch, where sampling is by priority."""
        if self.tree is not None:
            self.largest = float(
                self._rows.put_errors(self.tree, slots, errors, SMALLEST_ERROR, self.exponent, self.largest)
            )

    def _views(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        key = id(batch.inputs)
        if key not in self._batches:
            self._batches[key] = batch, _bytes(batch.inputs, 2), _bytes(batch.next_inputs, 2)
        return self._batches[key][1:]

    def state(self) -> dict[str, Any]:
        """Everything :meth:`restore` needs; the arrays are views, valid until the next step."""
        used = [
            self.slots if self.first[e] or self._head[e] < self.count[e] else self._head[e] + 1
            for e in range(self.n_envs)
        ]
        tree: dict[str, Any] = {
            name: [getattr(self, name)[env, : used[env]] for env in range(self.n_envs)] for name in ARRAYS
        }
        tree |= {
            "slots": self.slots, "first": self.first, "count": self.count, "stream": stream_state(self._stream),
        }  # fmt: skip
        if self.tree is not None:
            leaves = self.tree[len(self.tree) // 2 :]
            tree["priority"] = [leaves[env * self.slots :][: used[env]] for env in range(self.n_envs)]
            tree["largest"] = self.largest
        return tree

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        if int(tree["slots"]) != self.slots or len(tree["frames"]) != self.n_envs:
            raise UserError(
                f"the saved replay memory has {len(tree['frames'])} environments of {tree['slots']} slots, this one "
                f"{self.n_envs} of {self.slots}: it was made under other settings"
            )
        self.first[:], self.count[:] = tree["first"], tree["count"]
        self._head = [int(head) for head in (self.first + self.count) % self.slots]
        for name in ARRAYS:
            for env, saved in enumerate(tree[name]):
                getattr(self, name)[env, : len(saved)] = saved
        if self.tree is not None:
            leaves = len(self.tree) // 2
            self.tree[:] = 0.0
            for env, saved in enumerate(tree["priority"]):
                self.tree[leaves + env * self.slots :][: len(saved)] = saved
            level = leaves // 2
            while level:
                self.tree[level : 2 * level] = (
                    self.tree[2 * level : 4 * level : 2] + self.tree[2 * level + 1 : 4 * level : 2]
                )
                level //= 2
            self.largest = float(tree["largest"])
        restore_stream(self._stream, tree["stream"])


def slots_per_environment(config: AgentConfig, spec: Spec, n_envs: int) -> int:
    """Slots of each ring: its share of the capacity, and one for the present frame."""
    share = -(-config.replay_capacity_steps // n_envs)
    if share < config.n_step + spec.stack + 1:
        raise UserError(
            f"replay_capacity_steps: {config.replay_capacity_steps} over {n_envs} environments leaves {share} steps "
            f"each; n_step {config.n_step} with {spec.stack} stacked frames needs {config.n_step + spec.stack + 1}"
        )
    return share + 1


def _bytes(array: np.ndarray, axes: int) -> np.ndarray:
    """The array with all axes from ``axes`` on as one axis of bytes."""
    width = int(np.prod(array.shape[axes:], dtype=np.int64)) * array.itemsize
    return array.reshape(*array.shape[:axes], -1).view(np.uint8).reshape(*array.shape[:axes], width)


def tree_size(slots: int) -> int:
    """Entries of the tree of sums over so many leaves."""
    return 2 << max(slots - 1, 0).bit_length()


def bytes_per_slot(spec: Spec) -> int:
    """A frame, and the action, reward, flags and age beside it."""
    return spec.bytes_per_frame + 4 + 8 + 1 + 2
