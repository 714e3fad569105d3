"""The drawing that belongs to a grid world: its map, and how a vector over states is laid out on it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError
from dynaboltz.mdp.arrays import Bools, Floats, Ints, frozen, index_dtype

WALL, FREE, START, GOAL, HOLE = (ord(mark) for mark in "#.SGH")
MARKS = {"#": "wall", ".": "free", "S": "start", "G": "goal, ends the episode", "H": "hole, ends the episode"}


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A map of one character a cell; every cell that is no wall is a state, numbered in reading order."""

    cells: npt.NDArray[np.uint8]
    """Character codes, shape (rows, cols)."""

    def __post_init__(self) -> None:
        cells = np.asarray(self.cells)
        if cells.dtype != np.uint8 or cells.ndim != 2 or 0 in cells.shape:
            raise UserError(
                f"a grid's cells must be a non-empty table of uint8, got {cells.dtype} of shape {cells.shape}"
            )
        if cells.min() < 32 or cells.max() > 126:
            raise UserError("a grid's cells must be codes of printable ASCII characters")
        object.__setattr__(self, "cells", frozen(cells))

    def __repr__(self) -> str:
        return f"Grid(rows={self.rows}, cols={self.cols}, states={self.n_states})"

    @property
    def rows(self) -> int:
        """The number of rows of cells."""
        return int(self.cells.shape[0])

    @property
    def cols(self) -> int:
        """The number of columns of cells."""
        return int(self.cells.shape[1])

    @property
    def walls(self) -> Bools:
        """Where the walls are, shape (rows, cols)."""
        walls: Bools = self.cells == WALL
        return walls

    @property
    def n_states(self) -> int:
        """The number of cells that are no wall."""
        return int(np.count_nonzero(self.cells != WALL))

    @property
    def states(self) -> Ints:
        """The state of each cell, shape (rows, cols); −1 at a wall."""
        free = self.cells != WALL
        numbers = np.full(self.cells.shape, -1, index_dtype(self.cells.size))
        numbers[free] = np.arange(self.n_states)
        return numbers

    @property
    def text(self) -> str:
        """The map, one line a row."""
        return "\n".join(row.tobytes().decode("ascii") for row in self.cells)

    def image(self, values: npt.ArrayLike, wall: float = np.nan) -> Floats:
        """``values`` of the states laid out as the map, shape (rows, cols), ``wall`` at the walls.

        Values beyond the last cell belong to states outside the map and are left out.

        >>> Grid(parse_map("S#G")).image([0.9, 1.0], wall=-1.0)
        array([[ 0.9, -1. ,  1. ]])
        """
        flat = np.asarray(values, np.float64)
        if flat.ndim != 1 or flat.size < self.n_states:
            raise UserError(f"a value map needs {self.n_states} values, one a state, got the shape {flat.shape}")
        picture = np.full(self.cells.shape, wall)
        picture[self.cells != WALL] = flat[: self.n_states]
        return picture


def parse_map(text: str) -> npt.NDArray[np.uint8]:
    """The cells of a text map: ``#`` wall, ``.`` or ``F`` free, ``S`` start, ``G`` goal, ``H`` hole.

    Lines end at a newline or at ``/``; indentation and blank lines around the map do not count.

    >>> print(Grid(parse_map("S.#/..G")).text)
    S.#
    ..G
    """
    if not isinstance(text, str):
        raise UserError(f"a map must be text, got {type(text).__name__}")
    lines = textwrap.dedent(text.replace("/", "\n")).strip("\n").rstrip().split("\n")
    width = len(lines[0].rstrip())
    if width == 0:
        raise UserError("the map is empty: draw it with the characters # . S G H, one line a row")
    for number, line in enumerate(lines, 1):
        unknown = next((c for c in line.rstrip() if c not in MARKS and c != "F"), None)
        if unknown is not None:
            known = ", ".join(f"{mark} {meaning}" for mark, meaning in MARKS.items())
            raise UserError(
                f"map line {number}, column {line.index(unknown) + 1}: unknown character {unknown!r}\n  known: {known}"
            )
        if len(line.rstrip()) != width:
            raise UserError(
                f"map line {number} has {len(line.rstrip())} characters where line 1 has {width}; "
                "all rows of a map must be equally long"
            )
    joined = "".join(line.rstrip() for line in lines).replace("F", ".")
    return np.frombuffer(joined.encode("ascii"), np.uint8).reshape(len(lines), width).copy()
