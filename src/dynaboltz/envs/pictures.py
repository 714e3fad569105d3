"""Any frame as a picture and as characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

SMALLEST = 240
"""Pixels of a picture's shorter side, about: small frames are enlarged by a whole factor."""

BACKGROUND = (24, 26, 33)
LIT = (94, 174, 255)
BELOW = (255, 148, 77)
"""Bars of numbers below zero."""

PALETTE = np.array(
    [
        (94, 174, 255),
        (255, 148, 77),
        (120, 210, 130),
        (240, 100, 120),
        (200, 150, 250),
        (250, 214, 90),
        (90, 215, 215),
        (245, 155, 205),
        (165, 180, 195),
        (190, 130, 90),
    ],
    np.uint8,
)
"""Colours of channels, in their order."""

SHADES = " .:-=+*#%@"


def frame_picture(frame: np.ndarray) -> np.ndarray | None:
    """An RGB picture ``(height, width, 3)`` uint8 of one frame; None of a single number, which is no picture.

    Images stay as they are, channels of bools get a colour each, and vectors become bars.
    """
    if frame.ndim == 0:
        return None
    if frame.ndim == 3 and frame.dtype == np.bool_:
        return enlarged(_channels(frame))
    if frame.ndim == 3 and frame.shape[2] == 3:
        return enlarged(_levels(frame))
    if frame.ndim == 3:
        grey = frame[-1] if frame.shape[0] <= frame.shape[2] else frame[:, :, -1]
        return frame_picture(grey)
    if frame.ndim == 2:
        return enlarged(_levels(frame)[:, :, None].repeat(3, axis=2))
    return _bars(frame.reshape(-1).astype(np.float64))


def frame_text(frame: np.ndarray, n_values: int | None = None) -> str:
    """One frame in characters."""
    if n_values is not None:
        return f"state {int(frame)} of 0 … {n_values - 1}"
    if frame.ndim == 3 and frame.dtype == np.bool_:
        return cells_text(frame, [str(channel) for channel in range(len(frame))])
    if frame.ndim in (2, 3) and min(frame.shape[:2]) > 1:
        drawn = frame_picture(frame)
        assert drawn is not None
        picture = drawn.mean(axis=2)
        rows, columns = picture.shape
        step = max(1, math.ceil(columns / 64))
        few = picture[: rows // (2 * step) * 2 * step, : columns // step * step]
        few = few.reshape(few.shape[0] // (2 * step), 2 * step, few.shape[1] // step, step).mean(axis=(1, 3))
        return "\n".join("".join(SHADES[int(level * len(SHADES) / 256)] for level in row) for row in few)
    numbers = frame.reshape(-1)
    shown = "  ".join(f"{value:+.3g}" for value in numbers[:32].tolist())
    return shown + (f"  … {numbers.size - 32} more" if numbers.size > 32 else "")


def cells_text(frame: np.ndarray, names: Sequence[str]) -> str:
    """Channels of bools, each cell with the initial of the first thing in it, and what the initials mean."""
    marks = _initials(names)
    cells = np.full(frame.shape[1:], ".")
    for channel in reversed(range(len(frame))):
        cells[frame[channel]] = marks[channel]
    legend = "  ".join(f"{mark} {name}" for mark, name in zip(marks, names, strict=True) if mark != name)
    return "\n".join([*(" ".join(row) for row in cells), *([legend] if legend else [])])


def enlarged(picture: np.ndarray, smallest: int = SMALLEST) -> np.ndarray:
    """Each pixel as a square, so many that the shorter side is about ``smallest``; a large picture stays as it is."""
    factor = max(1, smallest // max(1, min(picture.shape[:2])))
    return picture if factor == 1 else picture.repeat(factor, axis=0).repeat(factor, axis=1)


def _initials(names: Sequence[str]) -> list[str]:
    """One letter a name: the first letter of it that no name before has, small, then large."""
    taken: list[str] = []
    for name in names:
        letters = [letter for letter in name.lower() + name.upper() if letter.isalnum() and letter not in taken]
        taken.append(letters[0] if letters else "?")
    return taken


def _channels(frame: np.ndarray) -> np.ndarray:
    picture = np.full((*frame.shape[1:], 3), BACKGROUND, np.uint8)
    for channel in reversed(range(len(frame))):
        picture[frame[channel]] = PALETTE[channel % len(PALETTE)]
    return picture


def _levels(frame: np.ndarray) -> np.ndarray:
    """Numbers as brightness: bytes are it, everything else is stretched from its least to its greatest number."""
    if frame.dtype == np.uint8:
        return frame
    values = frame.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    return np.round((values - low) * (255 / (high - low or 1.0))).astype(np.uint8)


def _bars(numbers: np.ndarray) -> np.ndarray:
    """A bar a number, from the middle; its length is x / (1 + |x|) of the half, so that all numbers fit."""
    numbers = numbers[:32]
    half, height = 120, max(8, 240 // max(numbers.size, 4))
    picture = np.full((height * numbers.size, 2 * half, 3), BACKGROUND, np.uint8)
    for place, value in enumerate(numbers.tolist()):
        length = round(half * value / (1 + abs(value)))
        rows = slice(place * height + 2, (place + 1) * height - 2)
        picture[rows, min(half, half + length) : max(half, half + length)] = LIT if length >= 0 else BELOW
    picture[:, half - 1 : half + 1] = (90, 95, 110)
    return picture
