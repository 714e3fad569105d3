"""Maps → MDPs, without a loop over cells: a grid of ten million states is built in blocks, in place.

Four actions, ``up right down left``. With probability 1 − slip the agent goes where it wants, with slip/2 each to the
left or the right of it; a move into a wall or over the edge leaves it where it is. Entering a goal ``G`` pays 1 and
ends the episode, entering a hole ``H`` ends it; nothing else pays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError
from dynaboltz.mdp.arrays import Bools, Floats, Ints, index_dtype, pointer
from dynaboltz.mdp.grid import GOAL, HOLE, START, WALL, Grid, parse_map

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

ACTIONS = ("up", "right", "down", "left")
SLOTS = {"up": (-1, 0), "left": (0, -1), "stay": (0, 0), "right": (0, 1), "down": (1, 0)}
"""The five outcomes of an action, in the order of the states they lead to, with their steps in rows and columns."""
STAY = 2
BLOCK = 1 << 15
"""States treated at a time: large enough to hide NumPy's overhead, small enough for the cache."""


def from_text(text: str, *, slip: float = 0.0, precision: str = "float64") -> MDP:
    """The MDP of a text map: ``#`` wall, ``.`` free, ``S`` start, ``G`` goal (reward 1, the end), ``H`` hole (the end).

    Args:
        text: the map, one line a row (or rows separated by ``/``).
        slip: the probability of going sideways, half of it to each side.
        precision: float type of the probabilities.

    >>> from_text("S.G").reward
    array([0., 0., 0., 0., 0., 1., 0., 0.])
    """
    return from_cells(parse_map(text), slip=slip, precision=precision)


def from_cells(cells: npt.NDArray[np.uint8], *, slip: float = 0.0, precision: str = "float64") -> MDP:
    """The MDP of a table of map characters; see ``from_text``."""
    from dynaboltz.mdp.model import MDP

    if isinstance(slip, bool) or not isinstance(slip, int | float) or not 0 <= slip <= 1:
        raise UserError(f"slip must be a probability in [0, 1], got {slip!r}")
    if precision not in ("float64", "float32"):
        raise UserError(f"precision must be 'float64' or 'float32', got {precision!r}")
    grid = Grid(cells)
    of_state = grid.cells[grid.cells != WALL]
    goal, ended = of_state == GOAL, (of_state == GOAL) | (of_state == HOLE)
    if not goal.any():
        raise UserError("the map has no goal: mark at least one cell with G")
    if ended.all():
        raise UserError("every cell of the map ends the episode: leave at least one free")
    starts = of_state == START
    weights = _weights(float(slip))
    n_rows, longest = 4 * int(np.count_nonzero(~ended)), int(np.count_nonzero(weights[0]))
    next_state = np.empty(n_rows * longest, index_dtype(ended.size))
    probability = np.empty(next_state.size, precision)
    lengths, reward = np.empty(n_rows, np.int8), np.empty(n_rows)
    row = entry = 0
    for targets, chances in _outcomes(grid, ended, weights):
        kept = chances > 0
        rows, entries = slice(row, row + kept.shape[0] * 4), slice(entry, entry + int(np.count_nonzero(kept)))
        lengths[rows] = kept.sum(axis=2).reshape(-1)
        next_state[entries] = np.broadcast_to(targets[:, None, :], kept.shape)[kept]
        probability[entries] = chances[kept]
        reward[rows] = (chances * goal[targets][:, None, :]).sum(axis=2).reshape(-1)
        row, entry = rows.stop, entries.stop
    # The arrays were made for the longest case; shrinking in place spares a copy of the two largest.
    next_state.resize(entry, refcheck=False)
    probability.resize(entry, refcheck=False)
    return MDP(
        state_ptr=pointer(np.where(ended, 0, 4)),
        action=np.tile(np.arange(4, dtype=np.int32), n_rows // 4),
        row_ptr=pointer(lengths),
        next_state=next_state,
        probability=probability,
        reward=reward,
        n_actions=4,
        terminal=ended,
        start=starts / np.count_nonzero(starts) if starts.any() else None,
        # Without slip every row has one transition, and its reward is the row's.
        transition_reward=None if longest == 1 else goal[next_state].astype(precision),
        action_labels=ACTIONS,
        grid=grid,
    )


def _weights(slip: float) -> Floats:
    """The probability that action a tries direction d, shape (4, 5); no entry for staying, which nobody tries."""
    weights, slots = np.zeros((4, 5)), list(SLOTS)
    for number in range(4):
        for turn, chance in ((0, 1.0 - slip), (1, slip / 2), (-1, slip / 2)):
            weights[number, slots.index(ACTIONS[(number + turn) % 4])] += chance
    return weights


def _outcomes(grid: Grid, ended: Bools, weights: Floats) -> Iterator[tuple[Ints, Floats]]:
    """For blocks of the states that go on: where each slot leads, (n, 5), and each action's chances, (n, 4, 5)."""
    width = grid.cols + 2
    numbers = np.full((grid.rows + 2, width), -1, index_dtype(grid.cells.size))  # a rim of walls: no edge cases
    numbers[1:-1, 1:-1] = grid.states
    flat = numbers.reshape(-1)
    places = np.flatnonzero(flat >= 0)[~ended]
    steps = np.array([down * width + right for down, right in SLOTS.values()])
    for low in range(0, places.size, BLOCK):
        here = places[low : low + BLOCK, None]
        targets = flat[here + steps]
        blocked = targets < 0
        targets = np.where(blocked, flat[here], targets)
        chances = weights * ~blocked[:, None, :]
        chances[:, :, STAY] = (weights * blocked[:, None, :]).sum(axis=2)
        yield targets, chances
