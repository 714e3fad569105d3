"""One question about a model, ready to be swept: the passes over all states, on any number of threads.

Threads share the ranges of a pass between them through compiled code that holds no interpreter lock, so there is no
threading layer to configure and no process to fork. Ranges are fixed by the model, never by the number of threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP
from dynaboltz.operators import Operator
from dynaboltz.planning.horizon import Horizon, horizon_of
from dynaboltz.storage import cores

Floats = npt.NDArray[np.float64]
Choice = npt.NDArray[np.int32]

RANGE_TRANSITIONS = 1 << 19
"""About the work of a range, some 0.2 ms: little enough to share evenly, much above the cost of a call."""
BLOCK_STATES = 1 << 16
MOST_BLOCKS = 16
"""Of a pass in place: more blocks would keep more threads busy, but news crosses one block border a pass."""
LARGEST_VALUE = 1e290


@dataclass(frozen=True, slots=True)
class Change:
    """The least and the largest entry of ``T_m V − V``, and how large the values on both sides of it are."""

    low: float
    high: float
    magnitude: float

    @classmethod
    def of(cls, found: list[tuple[float, float, float]]) -> Change:
        """From the extremes of the change and the largest size of ``T_m V`` in each range."""
        low, high, size = zip(*found, strict=True)
        # What was rounded is about the values before; they exceed those after by at most the change.
        return cls(min(low), max(high), max(size) + max(0.0, -min(low), *high))


class Problem:
    """A model, a discount and threads; a context, since the threads end with it."""

    def __init__(self, mdp: MDP, discount: float, *, threads: int | None = None) -> None:
        from dynaboltz.planning import kernels  # Numba is imported where something is computed

        self.kernels = kernels
        self.mdp, self.discount = mdp, discount
        self.model = kernels.Model(mdp.state_ptr, mdp.row_ptr, mdp.next_state, mdp.probability, mdp.reward)
        self.most_actions = int(np.diff(mdp.state_ptr).max())
        self.reward_bound = float(max(mdp.reward.max(), -mdp.reward.min()))
        count = max(1, -(-mdp.n_transitions // RANGE_TRANSITIONS))
        self.ranges = _ranges(mdp, count)
        self.blocks = _ranges(mdp, min(MOST_BLOCKS, max(1, mdp.n_states // BLOCK_STATES)))
        self.threads = min(threads if threads is not None else cores(), len(self.ranges))
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None
        low, high, longest = zip(*self.each(lambda first, last: kernels.row_sums(self.model, first, last)), strict=True)
        self.horizon: Horizon = horizon_of(mdp, self.model, discount, (min(low), max(high), max(longest)))
        if not self.reward_bound * self.horizon.steps <= LARGEST_VALUE:
            raise UserError(
                f"rewards up to {self.reward_bound:g} over {self.horizon.steps:g} steps reach beyond "
                f"{LARGEST_VALUE:g}; rescale the rewards"
            )

    def __enter__(self) -> Problem:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)

    @property
    def small(self) -> bool:
        """Whether one call can make a whole sweep."""
        return len(self.ranges) == 1

    def each(self, function: Callable[[int, int], Any], ranges: list[tuple[int, int]] | None = None) -> list[Any]:
        """``function(first, last)`` of every range, in their order, whoever computed them."""
        ranges = self.ranges if ranges is None else ranges
        if self._pool is None or len(ranges) == 1:
            return [function(*span) for span in ranges]
        results: list[Any] = [None] * len(ranges)
        ticket = itertools.count()

        def work() -> None:
            while (i := next(ticket)) < len(ranges):
                results[i] = function(*ranges[i])

        helpers = [self._pool.submit(work) for _ in range(min(self.threads, len(ranges)) - 1)]
        work()
        for helper in helpers:
            helper.result()
        return results

    @staticmethod
    def parameters(operator: Operator) -> Any:
        """The operator in compiled code."""
        from dynaboltz.operators.compiled import parameters

        return parameters(operator)

    def sweep(self, p: Any, beta: float, old: Floats, new: Floats) -> Floats:
        """T_op old into ``new``; returns the seven numbers of ``kernels.sweep``."""
        found = np.array(
            self.each(
                lambda first, last: self.kernels.sweep(
                    p, self.model, first, last, self.most_actions, self.discount, beta, old, new
                )
            )
        )
        low, high = found.min(axis=0), found.max(axis=0)
        return np.array([low[0], high[1], low[2], high[3], low[4], high[5], high[6]])

    def improve(self, values: Floats, backup: Floats, choice: Choice) -> Change:
        """T_m values into ``backup``, its greedy rows in ``choice``."""
        found = self.each(
            lambda first, last: self.kernels.improve(self.model, first, last, self.discount, values, backup, choice)
        )
        return Change.of(found)

    def relax(self, values: Floats, old: Floats, *, forward: bool) -> float:
        """Max backups in place within each block, other blocks read from ``old``; returns the largest change."""
        np.copyto(old, values)
        changes = self.each(
            lambda first, last: self.kernels.relax(self.model, first, last, forward, self.discount, old, values),
            self.blocks,
        )
        return float(max(changes))


def _ranges(mdp: MDP, count: int) -> list[tuple[int, int]]:
    """At most ``count`` ranges of states with about equally many transitions."""
    marks = np.linspace(0, mdp.n_transitions, count + 1)[1:-1].astype(mdp.row_ptr.dtype)
    rows = np.searchsorted(mdp.row_ptr, marks).astype(mdp.state_ptr.dtype)
    ends = np.searchsorted(mdp.state_ptr, rows) // 8 * 8
    borders = sorted({0, *ends.tolist(), mdp.n_states})
    return list(itertools.pairwise(borders))
