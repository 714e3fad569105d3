"""Worlds that play one episode at a time, n of them in step, and restored by playing their episodes again."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynaboltz.envs.faults import WorldError, actions_of, episode_seed, flag_of, frame_of, reward_of
from dynaboltz.envs.spec import Environments, Episode, Spec, Step
from dynaboltz.errors import UserError
from dynaboltz.text import short


class World(ABC):
    """One environment. After ``reset(seed)`` its future is a function of the actions alone."""

    spec: Spec
    """What an agent must know."""

    @abstractmethod
    def reset(self, seed: int) -> Any:
        """The first frame of the episode that ``seed`` names; nothing of earlier episodes is left."""

    @abstractmethod
    def step(self, action: int) -> tuple[Any, Any, Any, Any]:
        """Frame, reward, terminated, truncated."""

    def picture(self) -> np.ndarray | None:
        """An RGB picture ``(height, width, 3)`` uint8, or None."""
        return None

    @abstractmethod
    def text(self) -> str:
        """The world in characters."""

    def close(self) -> None:  # noqa: B027
        """Give back what the world holds."""


class Worlds(Environments):
    """``n`` worlds that step together.

    Every episode has a seed of its own and the actions of the running one are kept, so ``state`` is small and
    ``restore`` is exact: it plays the running episodes again and compares what comes out.
    """

    def __init__(self, worlds: Sequence[World], *, name: str, seed: int, stream: int) -> None:
        self.spec = worlds[0].spec
        self.name = name
        self.n = len(worlds)
        self.seed, self.stream = seed, stream
        self._worlds = tuple(worlds)
        for index, world in enumerate(worlds):
            if world.spec != self.spec:
                raise UserError(
                    f"{name} made environments that differ: number 0 is {self.spec}, number {index} is {world.spec}"
                )
        self._number = [0] * self.n
        self._reward = [0.0] * self.n
        self._log_type = "B" if self.spec.n_actions <= 256 else "q"
        self._actions = [array(self._log_type) for _ in worlds]
        self._now = np.zeros((self.n, *self.spec.shape), self.spec.dtype)
        self._begun = False

    def reset(self) -> np.ndarray:
        """First observations; again if called again."""
        self._number = [0] * self.n
        for index in range(self.n):
            self._begin(index)
        self._begun = True
        return self._now.copy()

    def step(self, actions: np.ndarray) -> Step:
        """One action in each world."""
        self._check_begun("step")
        n = self.n
        reward, terminal, over = np.empty(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        ended = []
        for index, action in enumerate(actions_of(actions, n, self.spec.n_actions)):
            self._now[index], paid, terminated, truncated = self._act(index, action)
            self._actions[index].append(action)
            self._reward[index] += paid
            reward[index] = paid
            if terminated or truncated:
                terminal[index], over[index] = terminated, True
                ended.append(index)
        final = self._now.copy()
        if not ended:
            return Step(final, reward, terminal, over, final)
        finished = tuple(self._end(index) for index in ended)
        return Step(self._now.copy(), reward, terminal, over, final, finished)

    def state(self) -> dict[str, Any]:
        """The number, the actions and a digest of each running episode."""
        self._check_begun("state")
        return {
            "name": self.name,
            "seed": self.seed,
            "stream": self.stream,
            "number": list(self._number),
            "actions": [np.array(actions) for actions in self._actions],
            "digest": [self._digest(index) for index in range(self.n)],
        }

    def restore(self, tree: Mapping[str, Any]) -> np.ndarray:
        """Play the running episodes again; an error where they do not come out the same."""
        numbers, logs, digests = self._read(tree)
        for index in range(self.n):
            self._number[index] = numbers[index]
            if not self.spec.resumable:  # the episode that was running cannot be had back; begin the one after it
                self._number[index] += 1
            self._begin(index)
            if self.spec.resumable:
                self._replay(index, logs[index], digests[index])
        self._begun = True
        return self._now.copy()

    def picture(self, index: int = 0) -> np.ndarray | None:
        """What world ``index`` draws of itself, or its frame as a picture."""
        from dynaboltz.envs.pictures import frame_picture

        drawn = self._worlds[index].picture()
        return frame_picture(self._now[index]) if drawn is None else drawn

    def text(self, index: int = 0) -> str:
        """World ``index`` in characters."""
        return self._worlds[index].text()

    def close(self) -> None:
        """Close each world."""
        for world in self._worlds:
            world.close()

    def _check_begun(self, call: str) -> None:
        if not self._begun:
            raise UserError(f"{self.name}: call reset() or restore() before {call}()")

    def _begin(self, index: int) -> None:
        self._actions[index], self._reward[index] = array(self._log_type), 0.0
        try:
            self._now[index] = frame_of(self._worlds[index].reset(self._episode_seed(index)), self.spec)
        except Exception as fault:
            raise self._fault(index, "reset", fault) from fault

    def _act(self, index: int, action: int) -> tuple[np.ndarray, float, bool, bool]:
        try:
            frame, reward, terminated, truncated = self._worlds[index].step(action)
            return (
                frame_of(frame, self.spec),
                reward_of(reward),
                terminated if terminated.__class__ is bool else flag_of("terminated", terminated),
                truncated if truncated.__class__ is bool else flag_of("truncated", truncated),
            )
        except Exception as fault:
            raise self._fault(index, f"action {action} ({self.spec.label(action)})", fault) from fault

    def _end(self, index: int) -> Episode:
        episode = Episode(index, self._number[index], len(self._actions[index]), self._reward[index])
        self._number[index] += 1
        self._begin(index)
        return episode

    def _replay(self, index: int, log: np.ndarray, digest: str) -> None:
        for at, action in enumerate(log.tolist()):
            if not 0 <= action < self.spec.n_actions:
                raise UserError(
                    f"{self.name}: the saved actions hold {action}, not from 0 to {self.spec.n_actions - 1}"
                )
            frame, reward, terminated, truncated = self._act(index, action)
            self._now[index] = frame
            self._actions[index].append(action)
            self._reward[index] += reward
            if terminated or truncated:
                raise self._differs(index, f"it ended at step {at + 1} of the {len(log)} that were played")
        if self._digest(index) != digest:
            raise self._differs(index, f"after its {len(log)} actions the observation or the return is another one")

    def _differs(self, index: int, how: str) -> WorldError:
        return WorldError(
            f"{self.name}: environment {index} cannot be restored: episode {self._number[index]} "
            f"(seed {self._episode_seed(index)}), played again, {how}\n"
            "  is it random beyond its seed, or is the machine or a package's version another one than at the save?"
        )

    def _digest(self, index: int) -> str:
        played = hashlib.sha256(np.ascontiguousarray(self._now[index]).tobytes())
        played.update(np.float64(self._reward[index]).tobytes())
        return played.hexdigest()

    def _episode_seed(self, index: int) -> int:
        return episode_seed(self.seed, self.stream, index, self._number[index])

    def _fault(self, index: int, call: str, fault: Exception) -> WorldError:
        what = str(fault) if isinstance(fault, WorldError) else f"{type(fault).__name__}: {fault}"
        return WorldError(
            f"{self.name}: environment {index}, episode {self._number[index]} (seed {self._episode_seed(index)}), "
            f"step {len(self._actions[index])}, {call}: {what}"
        )

    def _read(self, tree: Mapping[str, Any]) -> tuple[list[int], list[np.ndarray], list[str]]:
        """The checked contents of ``state``."""
        own = {"name": self.name, "seed": self.seed, "stream": self.stream}
        for key, value in own.items():
            if tree.get(key) != value:
                raise UserError(
                    f"{self.name}: the saved state is of {key} {short(tree.get(key))}, not {value!r}; "
                    "restore environments that were made with the same arguments"
                )
        columns = [tree.get(key) for key in ("number", "actions", "digest")]
        lists = [column for column in columns if isinstance(column, list | tuple) and len(column) == self.n]
        if len(lists) < len(columns):
            raise UserError(f"{self.name}: the saved state is not of {self.n} environments: {short(tree)}")
        numbers, logs, digests = lists
        return [int(number) for number in numbers], [np.asarray(log) for log in logs], [str(text) for text in digests]
