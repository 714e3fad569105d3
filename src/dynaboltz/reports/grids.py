"""Value maps and policy arrows of grid worlds, for a terminal and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

    from dynaboltz.mdp.grid import Grid

ARROWS = {"up": "↑", "right": "→", "down": "↓", "left": "←", "north": "↑", "east": "→", "south": "↓", "west": "←"}
STEPS = {"↑": (0.0, -1.0), "→": (1.0, 0.0), "↓": (0.0, 1.0), "←": (-1.0, 0.0)}
WALL = "#"
ON_BRIGHT, ON_DARK = "#101010", "#ffffff"
"""Colours of signs on cells; not those that a page replaces by its own."""


def arrows(policy: Any, labels: Sequence[str] | None) -> list[str]:
    """One sign a state: the arrow of its action where the name is a direction, else its number; · if it has none."""
    names = [ARROWS.get(label, str(number)) for number, label in enumerate(labels or ())]
    return ["·" if action < 0 else names[action] if names else str(action) for action in map(int, policy)]


def value_map(grid: Grid, values: Any, policy: Any, labels: Sequence[str] | None, *, width: int = 100) -> str:
    """The map as text: an arrow and the value in each cell, or only the arrows where the line would be too long."""
    signs = arrows(policy, labels)
    numbers = [f"{value:.3f}" for value in np.asarray(values)[: grid.n_states]]
    room = max(map(len, numbers)) + 3
    full = grid.cols * room <= width
    lines = []
    for row in grid.states:
        cells = []
        for state in map(int, row):
            text = WALL if state < 0 else f"{signs[state]} {numbers[state]}" if full else signs[state]
            cells.append(text.ljust(room) if full else text)
        lines.append("".join(cells).rstrip())
    return "\n".join(lines)


def figure(
    grid: Grid, values: Any, policy: Any, labels: Sequence[str] | None, *, title: str = "", axes: Any = None
) -> MatplotlibFigure:
    """The map as a figure: colour is value, arrows are the policy, dark cells are walls."""
    from matplotlib import colormaps

    from dynaboltz.reports.figures import canvas

    if grid.rows * grid.cols > 250_000:
        raise UserError(f"a map of {grid.rows} × {grid.cols} cells is too large to draw cell by cell")
    drawn = None
    if axes is None:
        scale = max(2.2, min(7.0, 0.42 * grid.cols))
        drawn, axes = canvas(width=scale + 1.0, height=max(1.4, scale * grid.rows / grid.cols))
    colours = colormaps["cividis"].with_extremes(bad="#2b2b2b")
    image = axes.imshow(np.ma.masked_invalid(grid.image(values)), cmap=colours, interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, label="value", shrink=0.9)
    if grid.rows * grid.cols <= 2500:
        signs = arrows(policy, labels)
        middle = (float(np.max(values)) + float(np.min(values))) / 2
        for (y, x), state in np.ndenumerate(grid.states):
            sign = WALL if state < 0 else signs[int(state)]
            colour = ON_BRIGHT if state >= 0 and values[int(state)] > middle else ON_DARK
            if sign in STEPS:
                dx, dy = STEPS[sign]
                axes.annotate(
                    "", (x + 0.3 * dx, y + 0.3 * dy), (x - 0.3 * dx, y - 0.3 * dy),
                    arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.0, "shrinkA": 0, "shrinkB": 0},
                )  # fmt: skip
            elif sign not in (WALL, "·"):
                axes.text(x, y, sign, ha="center", va="center", color=colour, fontsize=7)
    axes.set(xticks=[], yticks=[], title=title)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(True)
    result: MatplotlibFigure = drawn if drawn is not None else axes.figure
    return result
