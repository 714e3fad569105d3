"""What an agent and an environment say to each other: a spec, a step of n environments, an episode that has ended."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import numpy as np

DTYPES = ("uint8", "float32", "bool", "int64")
"""What one observation can be made of; int64 is for Discrete observations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What an agent must know of its environment before the first step."""

    shape: tuple[int, ...]
    """Shape of one frame; ``()`` for Discrete observations."""

    dtype: str
    """One of ``DTYPES``."""

    n_actions: int
    """Actions are 0 … ``n_actions - 1``."""

    n_values: int | None = None
    """Number of Discrete observations, 0 … ``n_values - 1``; None where observations are arrays."""

    stack: int = 1
    """How many frames make one input of the agent (Atari: 4); environments always hand out single frames."""

    resumable: bool = True
    """Whether ``state`` and ``restore`` bring back the exact same future."""

    action_labels: tuple[str, ...] | None = None
    """What the actions are called, where the environment says so."""

    def __post_init__(self) -> None:
        assert self.dtype in DTYPES
        assert self.n_actions >= 1
        assert self.stack >= 1
        assert (self.n_values is None) == (self.dtype != "int64")
        assert self.action_labels is None or len(self.action_labels) == self.n_actions

    @property
    def bytes_per_frame(self) -> int:
        """Size of one stored frame."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def label(self, action: int) -> str:
        """What ``action`` is called; its number, where it has no name."""
        return self.action_labels[action] if self.action_labels else str(action)


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode that has ended, as the world scores it: raw and in full, never clipped or cut at a lost life."""

    env: int
    """Which of the n environments."""

    number: int
    """0 for the first episode of that environment."""

    steps: int
    """Decisions of the agent."""

    reward: float
    """Undiscounted sum."""


@dataclass(slots=True)
class Step:
    """One step of n environments. The arrays are the caller's: a later step does not write into them.

    ``final`` may be ``observation`` itself where no episode ended.
    """

    observation: np.ndarray
    """``(n, *shape)``: what to act on next; where ``over``, the first frame of the next episode."""

    reward: np.ndarray
    """``(n,)`` float64, raw."""

    terminal: np.ndarray
    """``(n,)`` bool: no value after this transition (terminated, or a life lost): the bootstrap is cut."""

    over: np.ndarray
    """``(n,)`` bool: the episode has ended, terminated or truncated."""

    final: np.ndarray
    """``(n, *shape)``: the frame that the action led to; the same as ``observation`` where not ``over``."""

    finished: tuple[Episode, ...] = ()
    """The episodes that ended with this step."""


class Environments(ABC):
    """``n`` environments that step together, each by its own random streams.

    Episode k of environment i draws its seed from (seed, stream, i, k) alone, so what it holds does not depend on
    the episodes of others, and an interrupted one is the same again when its actions are replayed.
    """

    spec: Spec
    """What an agent must know."""

    name: str
    """The text that made these environments, for messages."""

    n: int
    """How many."""

    @abstractmethod
    def reset(self) -> np.ndarray:
        """First observations, ``(n, *shape)``; to be called once, before the first ``step``."""

    @abstractmethod
    def step(self, actions: np.ndarray) -> Step:
        """Take one action in each environment; an episode that ends starts anew within the same call.

        Args:
            actions: ``(n,)`` int64.
        """

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """All that ``restore`` needs: a tree of arrays, numbers and strings."""

    @abstractmethod
    def restore(self, tree: dict[str, Any]) -> np.ndarray:
        """Go to the point that ``state`` described, in place of ``reset``; the same future if ``spec.resumable``.

        Returns the current observations. The environments must have been made with the same arguments.
        """

    def picture(self, index: int = 0) -> np.ndarray | None:  # noqa: ARG002
        """Environment ``index`` as an RGB picture ``(height, width, 3)`` uint8; None if it has none."""
        return None

    @abstractmethod
    def text(self, index: int = 0) -> str:
        """Environment ``index`` in characters: its own drawing, or a line of numbers."""

    def close(self) -> None:  # noqa: B027
        """Give back windows, memory and processes; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()
