"""A moment of an episode as one picture: the world on the left, the action values on the right."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dynaboltz.envs.scenes import Scene
from dynaboltz.errors import MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image

HEIGHT, WIDTH = 480, 960
"""Multiples of 16, which video codecs want."""

MARGIN = 24
BACK, PANEL, TRACK = (17, 19, 24), (24, 26, 33), (38, 42, 52)
BRIGHT, SOFT, FAINT = (236, 239, 244), (165, 172, 186), (104, 112, 128)
BAR, BEST, CHOSEN = (70, 104, 150), (94, 174, 255), (250, 214, 90)

Colour = tuple[int, int, int]


class Canvas:
    """Draws the moments of one show; the axis of the bars holds all values seen so far, so that bars do not jump."""

    def __init__(self) -> None:
        try:
            from PIL import Image, ImageDraw, ImageFont
        except ImportError as fault:
            raise MissingExtraError("pillow", "video", "drawing an episode") from fault
        self._image: Final[Any] = Image
        self._draw: Final[Any] = ImageDraw
        self._font: Final = cache(ImageFont.load_default)
        self._low, self._high = np.inf, -np.inf

    def draw(self, scene: Scene) -> np.ndarray:
        """The moment as ``(HEIGHT, WIDTH, 3)`` uint8."""
        image = self._image.new("RGB", (WIDTH, HEIGHT), BACK)
        pen = self._draw.Draw(image)
        side = HEIGHT - 2 * MARGIN
        pen.rectangle((MARGIN, MARGIN, MARGIN + side - 1, MARGIN + side - 1), fill=PANEL)
        if scene.picture is None:
            self._letters(pen, scene.text, side)
        else:
            fitted = self._fitted(scene.picture, side)
            at = (MARGIN + (side - fitted.width) // 2, MARGIN + (side - fitted.height) // 2)
            image.paste(fitted, at)
        self._panel(pen, scene, 2 * MARGIN + side)
        return np.asarray(image)

    def _fitted(self, picture: np.ndarray, side: int) -> Image:
        """As large as fits; small pictures with sharp edges."""
        rows, columns = picture.shape[:2]
        factor = side / max(rows, columns)
        size = (max(1, round(columns * factor)), max(1, round(rows * factor)))
        how = self._image.Resampling.NEAREST if factor >= 1 else self._image.Resampling.LANCZOS
        fitted: Image = self._image.fromarray(np.ascontiguousarray(picture)).resize(size, how)
        return fitted

    def _letters(self, pen: Any, text: str, side: int) -> None:
        """Characters in a field of equal cells; those in brackets are lit, the brackets themselves left out."""
        lines = text.splitlines()[:60]
        columns = max((len(line.replace("[", "").replace("]", "")) for line in lines), default=1)
        wide = min(28.0, (side - 32) / max(columns, 1), (side - 32) / (1.4 * max(len(lines), 1)))
        high = 1.4 * wide
        left, top = MARGIN + (side - columns * wide) / 2, MARGIN + (side - len(lines) * high) / 2
        for row, line in enumerate(lines):
            marked, column = False, 0
            for letter in line:
                if letter in "[]":
                    marked = letter == "["
                    continue
                x, y = left + column * wide, top + row * high
                if marked:
                    pen.rectangle((x, y, x + wide, y + high), fill=BAR)
                ink = BRIGHT if marked else SOFT
                at = (x + wide / 2, y + high / 2)
                pen.text(at, letter, fill=ink, font=self._font(max(8, round(wide * 1.1))), anchor="mm")
                column += 1

    def _panel(self, pen: Any, scene: Scene, left: int) -> None:
        """Name, counts and the bars."""
        right = WIDTH - MARGIN
        self._write(pen, (left, MARGIN), _cut(scene.env, 38), 22, BRIGHT)
        self._write(pen, (left, MARGIN + 34), f"episode {scene.episode + 1}    step {scene.step}", 16, SOFT)
        self._write(pen, (left, MARGIN + 58), f"return {scene.total:g}    reward {scene.reward:+g}", 16, SOFT)
        if scene.note:
            self._write(pen, (right, MARGIN + 34), scene.note, 16, CHOSEN, anchor="ra")
        top = MARGIN + 106
        title = "action values" if scene.values is not None else "actions (no values: chosen at random)"
        self._write(pen, (left, top), title, 14, FAINT)
        top += 28
        height = min(40, (HEIGHT - MARGIN - top) // scene.spec.n_actions)
        for action in range(min(scene.spec.n_actions, (HEIGHT - MARGIN - top) // max(height, 12))):
            self._bar(pen, scene, action, left, top + action * height, right, height)

    def _bar(self, pen: Any, scene: Scene, action: int, left: int, top: int, right: int, height: int) -> None:
        size, middle = (16 if height >= 26 else 12), top + height // 2
        chosen = action == scene.action
        if chosen:
            pen.polygon([(left, middle - 5), (left, middle + 5), (left + 8, middle)], fill=CHOSEN)
        ink = BRIGHT if chosen else SOFT
        self._write(pen, (left + 16, middle), _cut(scene.spec.label(action), 14), size, ink, anchor="lm")
        if scene.values is None:
            return
        self._low, self._high = min(self._low, scene.values.min()), max(self._high, scene.values.max())
        start, end = left + 130, right - 84
        half = max(2, min(10, height // 2 - 2))
        share = (scene.values[action] - self._low) / (self._high - self._low or 1.0)
        pen.rectangle((start, middle - half, end, middle + half), fill=TRACK)
        best = scene.values[action] == scene.values.max()
        length = max(2, round(share * (end - start)))
        pen.rectangle((start, middle - half, start + length, middle + half), fill=BEST if best else BAR)
        self._write(pen, (right, middle), number(scene.values[action]), size, ink, anchor="rm")

    def _write(self, pen: Any, at: tuple[int, int], text: str, size: int, ink: Colour, *, anchor: str = "la") -> None:
        pen.text(at, text, fill=ink, font=self._font(size), anchor=anchor)


def number(value: float) -> str:
    """A value in at most eight characters.

    >>> number(0.12345), number(-12.3456), number(123456.0)
    ('0.123', '-12.35', '123456')
    """
    size = abs(value)
    return f"{value:.3f}" if size < 10 else f"{value:.2f}" if size < 1000 else f"{value:.6g}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
