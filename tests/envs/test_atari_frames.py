"""Frames: exact averages, Pillow's triangle to the bit, pooling by colour and by grey."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from PIL import Image

from dynaboltz.envs.atari_frames import SIDE, Shrinker, area_axis, luminance, triangle_axis

COLOURS = {number: (number, 255 - number, number // 2) for number in range(0, 256, 2)}


class Console:
    """Shows one screen, in colours that are a function of its numbers."""

    def __init__(self, screen: np.ndarray) -> None:
        self.screen = screen
        self.asked = 0

    def getScreen(self, into: np.ndarray) -> None:  # noqa: N802
        into[:] = self.screen

    def getScreenRGB(self) -> np.ndarray:  # noqa: N802
        self.asked += 1
        return np.array([COLOURS[number] for number in self.screen.ravel().tolist()], np.uint8).reshape(
            *self.screen.shape, 3
        )

    def getScreenGrayscale(self) -> np.ndarray:  # noqa: N802
        greys = [luminance(COLOURS[number]) for number in self.screen.ravel().tolist()]
        return np.array(greys, np.uint8).reshape(self.screen.shape)


def screens(height: int, seed: int = 0) -> tuple[Console, Console]:
    rng = np.random.default_rng(seed)
    one, two = (2 * rng.integers(0, 128, (2, height, 160))).astype(np.uint8)
    return Console(one), Console(two)


def shrunk(one: Console, two: Console, pool: str, resize: str) -> np.ndarray:
    shrink = Shrinker(one.screen.shape, pool, resize)
    older, newer, frame = one.screen * 0, two.screen * 0, np.zeros((SIDE, SIDE), np.uint8)
    shrink.take(one, older)
    shrink.take(two, newer)
    shrink(older, newer, frame)
    return frame


@pytest.mark.parametrize("size", [160, 210, 214, 220, 230, 250])
def test_area_covers_every_pixel_of_the_source_equally(size: int) -> None:
    axis = area_axis(size, 4)
    covered = np.zeros(size, int)
    for first, weight in zip(axis.first, axis.weight, strict=True):
        assert weight.sum() == axis.total
        covered[first : first + 4] += weight
    assert set(covered.tolist()) == {axis.total * SIDE // size}


@pytest.mark.parametrize("height", [210, 250])
def test_area_is_the_exact_average_rounded_half_to_even(height: int) -> None:
    one, two = screens(height)
    frame = shrunk(one, two, "luminance", "area")
    grey = np.maximum(one.getScreenGrayscale(), two.getScreenGrayscale()).astype(int)
    rows, columns = area_axis(height, 4), area_axis(160, 3)
    for y, x in [(0, 0), (1, 5), (40, 41), (83, 83), (83, 0)]:
        part = grey[rows.first[y] : rows.first[y] + 4, columns.first[x] : columns.first[x] + 3]
        exact = Fraction(int(rows.weight[y] @ part @ columns.weight[x]), rows.total * columns.total)
        assert frame[y, x] == round(exact)


@pytest.mark.parametrize("height", [210, 230])
def test_bilinear_is_pillows_to_the_bit(height: int) -> None:
    one, two = screens(height)
    grey = np.maximum(one.getScreenGrayscale(), two.getScreenGrayscale())
    theirs = np.asarray(Image.fromarray(grey).resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(shrunk(one, two, "luminance", "bilinear"), theirs)


def test_weights_of_the_triangle_sum_to_one() -> None:
    axis = triangle_axis(210)
    assert np.abs(axis.weight.sum(axis=1) - axis.total).max() <= axis.weight.shape[1]


def test_pool_by_colour_takes_each_of_red_green_and_blue_alone() -> None:
    one = Console(np.full((210, 160), 200, np.uint8))
    two = Console(np.full((210, 160), 20, np.uint8))
    both = luminance((200, 235, 100))
    assert (shrunk(one, two, "colour", "area") == both).all()
    assert (shrunk(one, two, "luminance", "area") == luminance(COLOURS[20])).all()
    assert luminance(COLOURS[20]) > luminance(COLOURS[200])
    assert (shrunk(one, two, "none", "area") == luminance(COLOURS[20])).all()
    assert (shrunk(two, one, "none", "area") == luminance(COLOURS[200])).all()


def test_colours_are_asked_for_once_and_also_when_they_show_in_one_screen_alone() -> None:
    one, two = Console(np.full((210, 160), 2, np.uint8)), Console(np.full((210, 160), 4, np.uint8))
    shrink = Shrinker((210, 160), "none", "area")
    older, newer, frame = one.screen * 0, one.screen * 0, np.zeros((SIDE, SIDE), np.uint8)
    for _ in range(3):
        shrink.take(one, older)
        shrink.take(two, newer)
    assert (one.asked, two.asked) == (1, 1)
    one.screen[7, 9] = 254
    shrink.take(one, older)
    assert one.asked == 2
    shrink(newer, older, frame)
    assert frame.min() < luminance(COLOURS[2])
