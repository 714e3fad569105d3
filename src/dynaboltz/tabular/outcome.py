"""What learning hands back, and what it tells on the way."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import DynaboltzError, UserError
from dynaboltz.scalars import as_float
from dynaboltz.tabular.settings import Learning

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class DivergedError(DynaboltzError):
    """A value became infinite or NaN; the message names the seed, the step and the entry."""


class Progress(NamedTuple):
    """What a progress callable is told now and then."""

    steps: int
    """Steps of all seeds so far, those before an interruption included."""
    share: float
    """Of the episodes of all seeds that are done; a seed that has ended counts as done."""
    seconds: float
    """Since the start, or since the resume."""
    steps_per_second: float
    """Since the start, or since the resume."""
    remaining_seconds: float
    """An estimate from the share; NaN as long as nothing is done."""


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What every seed learned; the first axis is always the seeds, in the order they were asked for."""

    config: Learning
    seeds: tuple[int, ...]
    root: int
    steps: Ints
    """Steps of each episode, shape (seeds, episodes); 0 where a seed had ended before."""
    returns: Floats
    """Undiscounted sum of rewards of each episode, shape (seeds, episodes); NaN where a seed had ended before."""
    q: Floats
    """Final action values, shape (seeds, states, actions): 0 in a terminal state, −∞ for an action that does not exist.
    Of double Q-learning the mean of both tables."""
    visits: Ints
    """Updates of each pair, shape (seeds, states, actions)."""
    marks: Ints
    """The steps at which the error was noted."""
    errors: Floats
    """‖Q − Q*‖ in the sup norm over the pairs that exist, shape (seeds, marks); NaN where a seed had ended before."""
    terminal: npt.NDArray[np.bool_]
    """Which states are terminal; none where the world is no model."""
    total_steps: Ints
    """Steps of each seed, those of an unfinished last episode included."""
    seconds: float
    """Time spent on steps, interrupted runs included and compiling not."""

    def policy(self) -> Ints:
        """The greedy action of each seed and state, the lowest of several, −1 in a terminal state."""
        best: Ints = self.q.argmax(axis=2)
        best[:, self.terminal] = -1
        return best

    def first_within(self, error: float) -> Floats:
        """The first mark of each seed at which its error is at most ``error``; ∞ where there is none."""
        wanted = as_float(error)
        if wanted is None or not wanted >= 0 or self.marks.size == 0:
            what = f"got {error!r}" if self.marks.size else "and this was learned without an optimum"
            raise UserError(f"first_within needs an error of at least 0, {what}")
        within = self.errors <= wanted
        return np.where(within.any(axis=1), self.marks[within.argmax(axis=1)], math.inf)

    def digest(self) -> str:
        """SHA-256 of all that was learned and noted, in hexadecimal; it knows neither time nor threads."""
        found = hashlib.sha256(repr((self.config.as_dict(), self.seeds, self.root)).encode())
        for array in (self.steps, self.returns, self.q, self.visits, self.marks, self.errors, self.total_steps):
            found.update(f"{array.dtype.str} {array.shape} ".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def __repr__(self) -> str:
        return (
            f"Learned({len(self.seeds)} seeds × {self.config.episodes} episodes, {int(self.total_steps.sum()):,} steps "
            f"in {self.seconds:.3g} s)"
        )
