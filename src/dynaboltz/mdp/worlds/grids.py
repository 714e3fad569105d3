"""Grid worlds: any map, any size, the paper's and PGQ's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.mdp.calls import number, whole
from dynaboltz.mdp.grid import FREE, GOAL, START, WALL
from dynaboltz.mdp.grids import from_cells, from_text
from dynaboltz.mdp.worlds.limits import check_size

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

PGQ_MAP = """
S.....
.##.#.
...#..
.#...G
"""


def drawn(*, text: str, slip: float = 0.0, precision: str = "float64") -> MDP:
    """The grid world of a map, rows separated by ``/``: ``map(text='S.#/..G', slip=0.1)``."""
    return from_text(text, slip=slip, precision=precision)


def grid(
    *,
    rows: int = 10,
    cols: int = 10,
    slip: float = 0.0,
    walls: str | float = "empty",
    seed: int | None = None,
    precision: str = "float64",
) -> MDP:
    """A grid world with its start in the upper left and its goal in the lower right corner.

    Args:
        rows: at least 1.
        cols: at least 1.
        slip: the probability of going sideways, half of it to each side.
        walls: ``"empty"``, ``"interleaved"`` (every third column, open at the bottom and the top in turn), or the share
            of cells that are walls at random.
        seed: of random walls; they need one.
        precision: float type of the probabilities.

    >>> print(grid(rows=4, cols=8, walls="interleaved").grid.text)
    S..#....
    ...#..#.
    ...#..#.
    ......#G
    """
    whole("rows", rows, 1)
    whole("cols", cols, 1)
    if rows * cols < 2:
        raise UserError("a grid needs at least two cells, a start and a goal")
    check_size("grid", 12 * rows * cols)
    cells = np.full((rows, cols), FREE, np.uint8)
    if isinstance(walls, str):
        if walls not in ("empty", "interleaved"):
            raise UnknownNameError("walls", walls, ("empty", "interleaved"), "world 'grid'")
        if seed is not None:
            raise UserError(f"seed is for random walls, and walls={walls!r} has none; leave it out")
        if walls == "interleaved":
            _interleave(cells)
    else:
        share = number("walls", walls, 0.0, 1.0)
        if seed is None:
            raise UserError("random walls need a seed, such as seed=0")
        cells[np.random.default_rng(whole("seed", seed, 0)).random(cells.shape) < share] = WALL
    cells[0, 0], cells[-1, -1] = START, GOAL
    return from_cells(cells, slip=slip, precision=precision)


def _interleave(cells: npt.NDArray[np.uint8]) -> None:
    """Walls in columns 3, 6, 9, …; each leaves three tenths of the rows open, at the bottom and at the top in turn."""
    rows, cols = cells.shape
    opening = max(1, 3 * rows // 10)
    for turn, column in enumerate(range(3, cols - 1, 3)):
        if turn % 2 == 0:
            cells[: rows - opening, column] = WALL
        else:
            cells[opening:, column] = WALL


def paper_grid(*, walls: str = "interleaved", slip: float = 0.0) -> MDP:
    """The 10 × 10 GridWorld of Pan et al. (2020): start upper left, apple lower right, reward 1 on eating it.

    The paper draws walls but gives no layout. ``interleaved`` is ours: column 3 in rows 0 to 6 and column 6 in rows 3
    to 9, so that the apple is 28 moves away; ``empty`` has none (18 moves).
    """
    if walls not in ("empty", "interleaved"):
        raise UnknownNameError("walls", str(walls), ("empty", "interleaved"), "world 'paper_grid'")
    return grid(walls=walls, slip=slip)


def pgq_grid(*, slip: float = 0.0) -> MDP:
    """A 4 × 6 grid of the kind of O'Donoghue et al. (2017), Section 5.1.

    Their walls are known from a figure only; these are ours.
    """
    return from_text(PGQ_MAP, slip=slip)
