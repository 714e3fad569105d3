"""Observations as states from 0 on: whole numbers, or a few of them at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynaboltz.scalars import as_float


@dataclass(frozen=True, slots=True)
class Numbering:
    """Observations of so many whole numbers each; the last one counts fastest.

    >>> both = Numbering(starts=(10, 0), sizes=(3, 2), single=False)
    >>> both.count, both.state((11, 1)), both.state((13, 0))
    (6, 3, None)
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    single: bool = True
    """Whether an observation is one bare number."""

    @classmethod
    def of(cls, space: Any) -> Numbering | None:
        """That of a Discrete or MultiDiscrete space or of a Tuple of Discrete ones; None for any other."""
        from gymnasium.spaces import Discrete, MultiDiscrete, Tuple

        if isinstance(space, Discrete):
            return cls((int(space.start),), (int(space.n),))
        if isinstance(space, Tuple) and space.spaces and all(isinstance(part, Discrete) for part in space.spaces):
            parts: Any = space.spaces
            return cls(tuple(int(p.start) for p in parts), tuple(int(p.n) for p in parts), single=False)
        if isinstance(space, MultiDiscrete):
            return cls(tuple(space.start.ravel().tolist()), tuple(space.nvec.ravel().tolist()), single=False)
        return None

    @property
    def count(self) -> int:
        """How many states there are."""
        return math.prod(self.sizes)

    def state(self, observation: Any) -> int | None:
        """The state's number; None for what is no observation of the space."""
        if isinstance(observation, np.ndarray) and (observation.ndim == 0) == self.single:
            parts = observation.ravel().tolist()
        elif isinstance(observation, tuple | list) and not self.single:
            parts = list(observation)
        else:
            parts = [observation]
        if len(parts) != len(self.sizes):
            return None
        number = 0
        for part, start, size in zip(parts, self.starts, self.sizes, strict=True):
            value = as_float(part)
            if value is None or not value.is_integer() or not 0 <= value - start < size:
                return None
            number = number * size + int(value) - start
        return number

    def __str__(self) -> str:
        """What an observation must be."""
        ends = [start + size - 1 for start, size in zip(self.starts, self.sizes, strict=True)]
        if self.single:
            return f"a whole number from {self.starts[0]} to {ends[0]}"
        return f"{len(ends)} whole numbers, from {self.starts} to {tuple(ends)}"
