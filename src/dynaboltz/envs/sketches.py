"""Drawings of Gymnasium's classic worlds from what the agent observes, for where pygame is not there to draw them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from dynaboltz.envs.pictures import BACKGROUND, BELOW, LIT

SIDE = 432
"""Pixels of a sketch, which is square."""

LINE, DARK, GOAL = (104, 112, 128), (52, 56, 68), (120, 210, 130)

Point = tuple[float, float]
"""Right and up, in pixels from the lower left corner."""


def stroke(picture: np.ndarray, start: Point, end: Point, width: float, colour: tuple[int, int, int]) -> None:
    """A straight line with round ends; a dot where it has no length."""
    reach = math.ceil(width / 2 + 1)
    columns = _span(start[0], end[0], reach)
    rows = _span(SIDE - start[1], SIDE - end[1], reach)
    y, x = np.mgrid[rows, columns].astype(np.float64)
    right, up = x - start[0], SIDE - y - start[1]
    along = (end[0] - start[0], end[1] - start[1])
    share = np.clip((right * along[0] + up * along[1]) / (along[0] ** 2 + along[1] ** 2 or 1.0), 0.0, 1.0)
    distance = np.hypot(right - share * along[0], up - share * along[1])
    cover = np.clip(width / 2 + 0.5 - distance, 0.0, 1.0)[:, :, None]
    picture[rows, columns] = np.round(picture[rows, columns] * (1 - cover) + np.array(colour) * cover)


def _span(one: float, other: float, reach: int) -> slice:
    """The pixels from ``one`` to ``other`` and ``reach`` more on each side, as far as they are on the sheet."""
    low, high = sorted(round(min(max(place, -reach), SIDE + reach)) for place in (one, other))
    return slice(min(max(low - reach, 0), SIDE), min(max(high + reach, 0), SIDE))


def _sheet() -> np.ndarray:
    return np.full((SIDE, SIDE, 3), BACKGROUND, np.uint8)


def cart_pole(frame: np.ndarray) -> np.ndarray:
    """A cart on its track, which ends where the episode does, and the pole on it."""
    picture, scale, ground = _sheet(), SIDE / 5.2, 0.3 * SIDE
    place, angle = SIDE / 2 + float(frame[0]) * scale, float(frame[2])
    stroke(picture, (SIDE / 2 - 2.4 * scale, ground), (SIDE / 2 + 2.4 * scale, ground), 3, LINE)
    stroke(picture, (place - 22, ground + 12), (place + 22, ground + 12), 24, LIT)
    tip = (place + 190 * math.sin(angle), ground + 20 + 190 * math.cos(angle))
    stroke(picture, (place, ground + 20), tip, 10, BELOW)
    stroke(picture, (place, ground + 20), (place, ground + 20), 8, BACKGROUND)
    return picture


def mountain_car(frame: np.ndarray) -> np.ndarray:
    """The valley, the car and the goal on the right."""

    def at(place: float, above: float = 0.0) -> Point:
        height = 0.45 * math.sin(3 * place) + 0.55
        return (place + 1.2) / 1.8 * (SIDE - 20) + 10, 60 + height * 250 + above

    picture, places = _sheet(), np.linspace(-1.2, 0.6, 37).tolist()
    for left, right in pairwise(places):
        stroke(picture, at(left), at(right), 3, LINE)
    stroke(picture, at(0.5), at(0.5, 60), 3, LINE)
    stroke(picture, at(0.5, 54), (at(0.5)[0] + 16, at(0.5, 54)[1]), 12, GOAL)
    stroke(picture, at(float(frame[0]), 11), at(float(frame[0]), 11), 22, LIT)
    return picture


def acrobot(frame: np.ndarray) -> np.ndarray:
    """Two links that hang from the middle, and the height that the tip must reach."""
    picture, middle, length = _sheet(), SIDE / 2, SIDE / 4.6
    first = math.atan2(frame[1], frame[0])
    second = first + math.atan2(frame[3], frame[2])
    elbow = (middle + length * math.sin(first), middle - length * math.cos(first))
    tip = (elbow[0] + length * math.sin(second), elbow[1] - length * math.cos(second))
    stroke(picture, (0, middle + length), (SIDE, middle + length), 3, GOAL)
    stroke(picture, (middle, middle), elbow, 14, LIT)
    stroke(picture, elbow, tip, 14, BELOW)
    for joint in ((middle, middle), elbow):
        stroke(picture, joint, joint, 8, BACKGROUND)
    return picture


SKETCHES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "AcrobotEnv": acrobot,
    "CartPoleEnv": cart_pole,
    "MountainCarEnv": mountain_car,
}
"""Class of the environment → its drawing."""
