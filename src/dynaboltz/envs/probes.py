"""Probe worlds: each isolates one thing that an agent must get right, and says what its action values must become.

The simplest that fails is the diagnosis. One more costs one entry of ``PROBES``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dynaboltz.envs.spec import Environments, Spec
from dynaboltz.envs.world import World, Worlds
from dynaboltz.errors import UnknownNameError, UserError

Outcome = tuple[float, int, bool]
"""Reward, next state, terminated."""

Value = Callable[[np.ndarray], float]
"""Action values of a state → its value: a summary at a fixed β."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A world of a few states."""

    isolates: str
    """What is wrong in an agent whose values are not the targets, if it passes the probes before this one."""

    frames: np.ndarray
    """What is seen of each state, ``(states, *shape)``."""

    moves: Sequence[Sequence[Sequence[Outcome]]]
    """State, action → outcomes, all equally likely."""

    targets: Callable[[float, Value], Sequence[Sequence[float]]]
    """Discount, value → action values after each of the ``histories``."""

    histories: Sequence[tuple[int, ...]]
    """The states that ``targets`` speaks of: as many as the agent stacks, the newest last."""

    starts: tuple[int, ...] = (0,)
    """First states, all equally likely."""

    truncated_after: int | None = None
    """Steps after which an episode is truncated."""

    @property
    def spec(self) -> Spec:
        """What an agent must know."""
        return Spec(
            shape=self.frames.shape[1:],
            dtype=str(self.frames.dtype),
            n_actions=len(self.moves[0]),
            n_values=len(self.frames) if self.frames.dtype == np.int64 else None,
            stack=len(self.histories[0]),
        )

    @property
    def inputs(self) -> np.ndarray:
        """What the agent sees where the targets hold, ``(histories, stack, *shape)``."""
        inputs: np.ndarray = self.frames[np.array(self.histories)]
        return inputs


def _vectors(*numbers: float) -> np.ndarray:
    """Frames of one number."""
    return np.array(numbers, np.float32)[:, None]


def _lamps(count: int) -> np.ndarray:
    """MinAtar-like frames: in frame i, channel i is lit."""
    frames = np.zeros((count, 4, 10, 10), np.bool_)
    for lit in range(count):
        frames[lit, lit] = True
    return frames


def _each(count: int) -> tuple[tuple[int], ...]:
    return tuple((state,) for state in range(count))


MATCH: Final = tuple(
    tuple([(1.0 if action == state else -1.0, state, True)] for action in range(2)) for state in range(2)
)
"""Two states, two actions: +1 for the action of the state's number, −1 for the other."""

PROBES: Final[dict[str, Probe]] = {
    "constant": Probe(
        isolates="loss or optimiser: one step with reward 1",
        frames=_vectors(1),
        moves=[[[(1.0, 0, True)]]],
        histories=_each(1),
        targets=lambda _, __: [[1.0]],
    ),
    "observation": Probe(
        isolates="the network does not read its input: the reward is what is seen",
        frames=_vectors(-1, 1),
        moves=[[[(-1.0, 0, True)]], [[(1.0, 1, True)]]],
        histories=_each(2),
        starts=(0, 1),
        targets=lambda _, __: [[-1.0], [1.0]],
    ),
    "discount": Probe(
        isolates="discount or bootstrap: two steps without a reward, then 1",
        frames=_vectors(-1, 0, 1),
        moves=[[[(0.0, 1, False)]], [[(0.0, 2, False)]], [[(1.0, 2, True)]]],
        histories=_each(3),
        targets=lambda discount, _: [[discount**2], [discount], [1.0]],
    ),
    "action": Probe(
        isolates="the value of an action is given to another one, or one is never tried",
        frames=_vectors(1),
        moves=[[[(-1.0, 0, True)], [(1.0, 0, True)]]],
        histories=_each(1),
        targets=lambda _, __: [[-1.0, 1.0]],
    ),
    "match": Probe(
        isolates="actions and observations of different moments are paired",
        frames=_vectors(-1, 1),
        moves=MATCH,
        histories=_each(2),
        starts=(0, 1),
        targets=lambda _, __: [[1.0, -1.0], [-1.0, 1.0]],
    ),
    "discrete": Probe(
        isolates="as match, where observations are numbers of states",
        frames=np.arange(2),
        moves=MATCH,
        histories=_each(2),
        starts=(0, 1),
        targets=lambda _, __: [[1.0, -1.0], [-1.0, 1.0]],
    ),
    "channels": Probe(
        isolates="as match, where observations are pictures of 4 × 10 × 10 bools",
        frames=_lamps(2),
        moves=MATCH,
        histories=_each(2),
        starts=(0, 1),
        targets=lambda _, __: [[1.0, -1.0], [-1.0, 1.0]],
    ),
    "noise": Probe(
        isolates="rewards are not averaged: 0 or 2 by chance",
        frames=_vectors(1),
        moves=[[[(0.0, 0, True), (2.0, 0, True)]]],
        histories=_each(1),
        targets=lambda _, __: [[1.0]],
    ),
    "terminal": Probe(
        isolates="the bootstrap is not cut at the end: episodes end on a frame that is worth 4 where one begins there",
        frames=_vectors(-1, 1),
        moves=[[[(1.0, 1, True)]], [[(4.0, 0, True)]]],
        histories=_each(2),
        starts=(0, 1),
        targets=lambda _, __: [[1.0], [4.0]],
    ),
    "truncation": Probe(
        isolates="the bootstrap is cut where an episode is only truncated: reward 1 for ever, truncated after 3 steps",
        frames=_vectors(1),
        moves=[[[(1.0, 0, False)]]],
        histories=_each(1),
        truncated_after=3,
        targets=lambda discount, _: [[1 / (1 - discount)]],
    ),
    "final": Probe(
        isolates="a truncated episode is bootstrapped from the next one's first frame, not from its own last one",
        frames=_vectors(-1, 1),
        moves=[[[(0.0, 1, False)]], [[(1.0, 0, True)]]],
        histories=_each(2),
        starts=(0, 1),
        truncated_after=1,
        targets=lambda discount, _: [[discount], [1.0]],
    ),
    "beta": Probe(
        isolates="the summary: one step to a state with values 0 and 1",
        frames=np.array([[1, 0, 0], [0, 1, 0]], np.float32),
        moves=[[[(0.0, 1, False)], [(0.0, 1, False)]], [[(0.0, 1, True)], [(1.0, 1, True)]]],
        histories=_each(2),
        targets=lambda discount, value: [[discount * value(np.array([0.0, 1.0]))] * 2, [0.0, 1.0]],
    ),
    "history": Probe(
        isolates="frames are not stacked, or in the wrong order: the reward is what was seen one step ago",
        frames=_vectors(-1, 1, 0, 0),
        moves=[[[(0.0, 2, False)]], [[(0.0, 3, False)]], [[(-1.0, 2, True)]], [[(1.0, 3, True)]]],
        histories=((0, 2), (1, 3)),
        starts=(0, 1),
        targets=lambda _, __: [[-1.0], [1.0]],
    ),
}
"""Simplest first."""


def make_probe(name: str, keywords: dict[str, Any], *, n: int, seed: int, stream: int) -> Environments:
    """``n`` worlds of a probe; it has no keywords."""
    if name not in PROBES:
        raise UnknownNameError("probe", name, PROBES)
    if keywords:
        raise UserError(f"probe/{name} takes no keywords, got {', '.join(keywords)}")
    return Worlds([ProbeWorld(PROBES[name]) for _ in range(n)], name=f"probe/{name}", seed=seed, stream=stream)


class ProbeWorld(World):
    """A probe that is played."""

    def __init__(self, probe: Probe) -> None:
        self.probe, self.spec = probe, probe.spec
        self._random = np.random.default_rng(0)
        self._state = self._steps = 0

    def reset(self, seed: int) -> Any:
        """The frame of a first state."""
        self._random = np.random.default_rng(seed)
        self._state, self._steps = self.probe.starts[self._draw(len(self.probe.starts))], 0
        return self.probe.frames[self._state]

    def step(self, action: int) -> tuple[Any, Any, Any, Any]:
        """One of the outcomes of ``action``."""
        outcomes = self.probe.moves[self._state][action]
        reward, self._state, terminated = outcomes[self._draw(len(outcomes))]
        self._steps += 1
        truncated = not terminated and self._steps == self.probe.truncated_after
        return self.probe.frames[self._state], reward, terminated, truncated

    def text(self) -> str:
        """The number of the state."""
        return f"state {self._state} of 0 … {len(self.probe.frames) - 1}"

    def _draw(self, count: int) -> int:
        return int(self._random.integers(count)) if count > 1 else 0
