"""Two screens of the emulator to one frame of 84 × 84 greys, compiled, without the interpreter lock.

A screen holds numbers of colours. What a pair of colours at one pixel comes to is read from a table, so it does not
matter here how two frames are pooled. Shrinking is exact: weights are whole numbers, and only the result is rounded.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

SIDE = 84

PRECISION = 22
"""Bits of Pillow's weights after the point."""

_U = np.uintp
"""Unsigned indices: a signed one costs Numba a test for negative numbers at every access."""


class Axis(NamedTuple):
    """Weights of the source pixels ``first[i] … first[i] + weight.shape[1] − 1`` in pixel ``i`` of the result."""

    first: np.ndarray
    weight: np.ndarray
    """``(84, k)`` int32."""
    total: int
    """What the weights of one pixel sum to."""


def area_axis(size: int, count: int) -> Axis:
    """What each pixel of the result covers of ``count`` pixels of the source, in whole units.

    >>> area_axis(210, 3).weight[:2].tolist(), area_axis(210, 3).total
    ([[2, 2, 1], [1, 2, 2]], 5)
    """
    common = math.gcd(size, SIDE)
    total, unit = size // common, SIDE // common
    ends = np.arange(SIDE + 1) * total
    first = ends[:-1] // unit
    assert (-(-ends[1:] // unit) - first).max() <= count
    first = np.minimum(first, size - count)
    left = (first[:, None] + np.arange(count)) * unit
    covered = np.minimum(left + unit, ends[1:, None]) - np.maximum(left, ends[:-1, None])
    return Axis(first.astype(np.int64), np.maximum(covered, 0).astype(np.int32), total)


def triangle_axis(size: int) -> Axis:
    """Pillow's ``BILINEAR``: a triangle of twice the width of a pixel of the result, weights of 22 bits."""
    scale = size / SIDE
    middle = (np.arange(SIDE) + 0.5) * scale
    first = np.maximum((middle - scale + 0.5).astype(np.int64), 0)
    last = np.minimum((middle + scale + 0.5).astype(np.int64), size)
    count = int((last - first).max())
    start = np.minimum(first, size - count)
    place = start[:, None] + np.arange(count)
    weight = np.maximum(1.0 - np.abs((place - middle[:, None] + 0.5) / scale), 0.0)
    weight[(place < first[:, None]) | (place >= last[:, None])] = 0.0
    weight /= weight.sum(axis=1, keepdims=True)
    return Axis(start, (0.5 + weight * (1 << PRECISION)).astype(np.int32), 1 << PRECISION)


@njit(nogil=True, cache=True, error_model="numpy")
def only_known(screen: Any, last: Any, known: Any) -> Any:
    """Whether every number in a screen is known; only rows that are not as they were in ``last`` are looked at."""
    all_known = True
    for y in range(_U(screen.shape[0])):
        changed = np.uint8(0)
        for x in range(_U(screen.shape[1])):
            changed |= screen[y, x] ^ last[y, x]
        if changed:
            for x in range(_U(screen.shape[1])):
                last[y, x] = screen[y, x]
                all_known &= known[_U(screen[y, x])]
    return all_known


@njit(nogil=True, cache=True, error_model="numpy")
def grey_of(older: Any, newer: Any, table: Any, grey: Any) -> None:
    """The grey of every pixel, by its two numbers."""
    for y in range(_U(older.shape[0])):
        for x in range(_U(older.shape[1])):
            grey[y, x] = table[_U(older[y, x]), _U(newer[y, x])]


@njit(nogil=True, cache=True, error_model="numpy")
def by_area(older: Any, newer: Any, table: Any, rows: Any, columns: Any, grey: Any, line: Any, frame: Any) -> None:
    """Averages of what each pixel covers, halves to even: four rows of the screen at most, and three columns."""
    grey_of(older, newer, table, grey)
    total = np.float32(rows.total * columns.total)
    zero, one, two, three = _U(0), _U(1), _U(2), _U(3)
    for y in range(_U(SIDE)):
        top = _U(rows.first[y])
        w0, w1, w2, w3 = rows.weight[y, zero], rows.weight[y, one], rows.weight[y, two], rows.weight[y, three]
        for x in range(_U(line.size)):
            line[x] = w0 * np.int32(grey[top, x]) + w1 * np.int32(grey[top + one, x])
            line[x] += w2 * np.int32(grey[top + two, x]) + w3 * np.int32(grey[top + three, x])
        for x in range(_U(SIDE)):
            left = _U(columns.first[x])
            value = columns.weight[x, zero] * line[left] + columns.weight[x, one] * line[left + one]
            value += columns.weight[x, two] * line[left + two]
            frame[y, x] = np.uint8(np.rint(np.float32(value) / total))  # a half is exact in float32: below 2²⁴


@njit(nogil=True, cache=True, error_model="numpy")
def by_triangle(older: Any, newer: Any, table: Any, rows: Any, columns: Any, grey: Any, line: Any, frame: Any) -> None:
    """Pillow's ``resize``, to the bit: columns first, rounded to bytes into ``grey``, then rows.

    (Of a screen with 250 rows, which none of the usual games has, Pillow 13 takes the rows first: one level off.)
    """
    grey_of(older, newer, table, grey)
    half = 1 << (PRECISION - 1)
    for y in range(_U(grey.shape[0])):
        for x in range(_U(line.size)):
            line[x] = grey[y, x]
        for x in range(_U(SIDE)):
            left, value = _U(columns.first[x]), half
            for k in range(_U(columns.weight.shape[1])):
                value += columns.weight[x, k] * line[left + k]
            grey[y, x] = min(max(value >> PRECISION, 0), 255)
    for y in range(_U(SIDE)):
        top = _U(rows.first[y])
        for x in range(_U(SIDE)):
            value = half
            for k in range(_U(rows.weight.shape[1])):
                value += rows.weight[y, k] * np.int32(grey[top + k, x])
            frame[y, x] = min(max(value >> PRECISION, 0), 255)


class Shrinker:
    """Pairs of screens of one size to frames. It learns the colours as they come up, from the emulator that shows them.

    Args:
        shape: of a screen.
        pool: as in a protocol.
        resize: as in a protocol; with ``bilinear``, pooled colours become greys as DQN Zoo makes them.
    """

    def __init__(self, shape: tuple[int, int], pool: str, resize: str) -> None:
        area = resize == "area"
        self._rows = area_axis(shape[0], 4) if area else triangle_axis(shape[0])
        self._columns = area_axis(shape[1], 3) if area else triangle_axis(shape[1])
        self._shrink = by_area if area else by_triangle
        self._grey, self._line = np.zeros(shape, np.uint8), np.zeros(shape[1], np.int32)
        self._pool, self._truncate = pool, not area
        self._colours: dict[int, tuple[int, tuple[int, int, int]]] = {}
        self._known, self._last = np.zeros(256, np.bool_), np.zeros(shape, np.uint8)
        self._last[:, 0] = 1  # no colour has an odd number: every row has changed
        self._table = np.zeros((256, 256), np.uint8)

    def take(self, ale: Any, screen: np.ndarray) -> None:
        """Write what the emulator shows now into ``screen``, and learn the colours that are new."""
        ale.getScreen(screen)
        if not only_known(screen, self._last, self._known):
            self._learn(screen, ale.getScreenGrayscale(), ale.getScreenRGB())

    def __call__(self, older: np.ndarray, newer: np.ndarray, frame: np.ndarray) -> None:
        """Two screens that were taken, as one frame."""
        self._shrink(older, newer, self._table, self._rows, self._columns, self._grey, self._line, frame)

    def _learn(self, screen: np.ndarray, greys: np.ndarray, colours: np.ndarray) -> None:
        """Note the grey and the red, green and blue of every number in a screen."""
        numbers, places = np.unique(screen, return_index=True)
        grey, colour = greys.reshape(-1)[places].tolist(), colours.reshape(-1, 3)[places].tolist()
        for number, level, mixed in zip(numbers.tolist(), grey, colour, strict=True):
            self._colours[number] = level, tuple(mixed)
            self._known[number] = True
        for one in self._colours:
            for two in self._colours:
                self._table[one, two] = self._pooled(one, two)

    def _pooled(self, older: int, newer: int) -> int:
        """The grey of a pixel that showed these two numbers."""
        before, after = self._colours[older], self._colours[newer]
        if self._pool == "none":
            return after[0]
        if self._pool == "luminance":
            return max(before[0], after[0])
        red, green, blue = map(max, before[1], after[1])
        return luminance((red, green, blue), truncate=self._truncate)


def luminance(colour: tuple[int, int, int], *, truncate: bool = False) -> int:
    """Rec. 601: 0.299 R + 0.587 G + 0.114 B; rounded as the emulator does, or cut off as DQN Zoo does.

    >>> luminance((200, 72, 72)), luminance((200, 72, 72), truncate=True)
    (110, 110)
    """
    red, green, blue = colour
    exact = 0.299 * red + 0.587 * green + (1 - (0.299 + 0.587)) * blue
    return int(exact) if truncate else round(exact)
