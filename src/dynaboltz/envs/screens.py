"""Where the moments of an episode are shown: a terminal, a window, or a video file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.envs.drawing import Canvas, number
from dynaboltz.errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

    from dynaboltz.envs.scenes import Scene

VIDEOS = (".gif", ".mp4")

CLOSING_SECONDS = 0.8
"""How long the last moment of an episode stands still."""


def show_text(scenes: Iterable[Scene], console: Console, fps: float) -> None:
    """In a terminal, each moment over the one before; into a pipe or a file, a line for each."""
    if not console.is_terminal:
        for scene in scenes:
            console.print(line(scene), markup=False, highlight=False, soft_wrap=True)
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False, screen=False) as live:
        for scene in scenes:
            live.update(panel(scene, coloured=console.color_system is not None), refresh=True)
            time.sleep(CLOSING_SECONDS if scene.note else 1 / fps)


def line(scene: Scene) -> str:
    """A moment as one line."""
    counts = f"episode {scene.episode + 1} step {scene.step} reward {scene.reward:g} return {scene.total:g}"
    if scene.action is None:
        return f"{counts} {scene.note}"
    values = "" if scene.values is None else "  values " + " ".join(number(value) for value in scene.values)
    return f"{counts} action {scene.spec.label(scene.action)}{values}"


def panel(scene: Scene, *, coloured: bool) -> RenderableType:
    """A moment as the world beside a table of actions."""
    from rich.columns import Columns
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    pixels = coloured and scene.picture is not None and len(scene.spec.shape) >= 2
    world = blocks(scene.picture) if pixels and scene.picture is not None else Text(scene.text)
    table = Table(box=None, padding=(0, 1), show_header=scene.values is not None)
    for title in ("", "action", "value", ""):
        table.add_column(title, justify="right" if title == "value" else "left")
    for action in range(scene.spec.n_actions):
        chosen = action == scene.action
        row = ["▶" if chosen else " ", scene.spec.label(action)]
        if scene.values is not None:
            span = float(np.ptp(scene.values)) or 1.0
            length = 1 + round(19 * float(scene.values[action] - scene.values.min()) / span)
            row += [number(scene.values[action]), "━" * length]
        table.add_row(*row, style="bold yellow" if chosen else None)
    counts = Text(
        f"episode {scene.episode + 1}   step {scene.step}   reward {scene.reward:+g}   return {scene.total:g}   "
    )
    counts.append(scene.note, style="bold yellow")
    return Panel(Columns([world, table], padding=(0, 4)), title=Text(scene.env), subtitle=counts, title_align="left")


def blocks(picture: np.ndarray, columns: int = 40) -> Text:
    """A picture in half blocks: each character is two pixels, one over the other, in their colours."""
    from rich.style import Style
    from rich.text import Text

    rows = max(2, round(picture.shape[0] * columns / picture.shape[1] / 2) * 2)
    down = np.minimum((np.arange(rows) + 0.5) * picture.shape[0] / rows, picture.shape[0] - 1).astype(int)
    across = np.minimum((np.arange(columns) + 0.5) * picture.shape[1] / columns, picture.shape[1] - 1).astype(int)
    few = picture[down][:, across].tolist()
    text = Text()
    for row in range(0, rows, 2):
        for above, below in zip(few[row], few[row + 1], strict=True):
            text.append("▀", Style(color=_code(above), bgcolor=_code(below)))
        text.append("\n" if row + 2 < rows else "")
    return text


def save_video(scenes: Iterable[Scene], path: Path, fps: float) -> int:
    """A GIF or MP4 of the moments, complete or not there at all; returns the number of frames."""
    if path.suffix.lower() not in VIDEOS:
        raise UserError(f"a video is a file that ends in {' or '.join(VIDEOS)}, got {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: its folder does not exist")
    canvas, frames = Canvas(), 0
    beside = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix.lower()}")
    try:
        with _writer(str(beside), fps) as writer:
            for scene in scenes:
                drawn = canvas.draw(scene)
                for _ in range(max(1, round(CLOSING_SECONDS * fps)) if scene.note else 1):
                    writer.append_data(drawn)
                    frames += 1
        beside.replace(path)
    except OSError as fault:
        raise UserError(f"cannot write {path}: {fault.strerror or fault}") from fault
    finally:
        beside.unlink(missing_ok=True)
    return frames


def _writer(path: str, fps: float) -> Any:
    try:
        import imageio.v2 as imageio
    except ImportError as fault:
        raise MissingExtraError("imageio", "video", "writing a video") from fault
    if path.endswith(".gif"):
        return imageio.get_writer(path, mode="I", duration=1000 / fps, loop=0)
    try:
        return imageio.get_writer(path, fps=fps, codec="libx264", quality=8)
    except (ImportError, ValueError) as fault:  # imageio finds no plugin for .mp4
        raise MissingExtraError("imageio-ffmpeg", "video", "writing an MP4 video") from fault


def _code(colour: list[int]) -> str:
    red, green, blue = colour
    return f"#{red:02x}{green:02x}{blue:02x}"
