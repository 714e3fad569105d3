"""How the learning figures are drawn: curves over episodes with bands, and what they differ by from Q-learning's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.paper.learners import CAP, LABELS, SOFT, G, Q, dbs, soft
from dynaboltz.paper.worlds import LAYOUTS
from dynaboltz.reports.figures import COLOURS, canvas
from dynaboltz.reports.statistics import difference_interval, mean_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure as MatplotlibFigure

    from dynaboltz.paper.learners import Floats
    from dynaboltz.reports.statistics import Interval

Runs = dict[tuple[str, str], "Floats"]
"""Layout and agent → steps, seeds × episodes."""

WINDOW = 10
"""Episodes that are averaged into one point."""
LOOKS: dict[str, dict[str, str]] = {
    Q: {"color": "#000000", "ls": "-"},
    G: {"color": "#777777", "ls": "--"},
    dbs(1): {"color": COLOURS[1], "ls": "--"},
    dbs(2): {"color": COLOURS[0], "ls": "-"},
    dbs(3): {"color": COLOURS[5], "ls": "-."},
    dbs(10): {"color": COLOURS[2], "ls": ":"},
} | {soft(k): {"color": shade, "ls": style} for k, shade, style in zip(
    SOFT, ("#7a0177", "#c51b8a", "#f768a1", COLOURS[4], "#8c6d1f"), ("-", "--", "-.", "-.", ":"), strict=True
)}  # fmt: skip
"""One look an agent, in every figure."""


def draw_curves(runs: Runs, names: Mapping[str, Sequence[str]]) -> MatplotlibFigure:
    """Mean steps against episodes, one panel a layout; ``names`` says which agents each shows."""
    figure, panels = canvas(2, width=4.0, height=3.5, sharey=True)
    for axes, layout in zip(panels, LAYOUTS, strict=True):
        for name in names[layout]:
            _line(axes, [mean_interval(part) for part in _windows(runs[layout, name]).T], name)
        axes.set(xlabel="episode", title=layout, ylim=(0, CAP + 12), xlim=(0, runs[layout, Q].shape[1]))
    panels[0].set_ylabel("steps to the apple")
    figure.legend(*_entries(panels), loc="outside lower center", ncols=6)
    drawn: MatplotlibFigure = figure
    return drawn


def draw_differences(runs: Runs, names: Mapping[str, Sequence[str]]) -> MatplotlibFigure:
    """How many steps fewer or more than Q-learning each agent needs, with 95 % intervals of the difference."""
    figure, panels = canvas(2, width=4.0, height=3.5, sharey=True)
    for axes, layout in zip(panels, LAYOUTS, strict=True):
        base = _windows(runs[layout, Q])
        for name in names[layout]:
            parts = zip(_windows(runs[layout, name]).T, base.T, strict=True)
            _line(axes, [difference_interval(own, other) for own, other in parts], name)
        axes.axhline(0, **LOOKS[Q], lw=0.9, label=Q)
        axes.set(xlabel="episode", title=layout, xlim=(0, runs[layout, Q].shape[1]))
    panels[0].set_ylabel("steps more than Q-learning")
    figure.legend(*_entries(panels), loc="outside lower center", ncols=6)
    drawn: MatplotlibFigure = figure
    return drawn


def _entries(panels: Any) -> tuple[list[Any], list[str]]:
    """One legend entry a label, of all panels together."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    order = [LABELS[name] for name in LOOKS if LABELS[name] in found]
    return [found[label] for label in order], order


def _windows(runs: Floats) -> Floats:
    """Means over windows of episodes, seeds × windows."""
    width = min(WINDOW, runs.shape[1])
    count = runs.shape[1] // width
    found: Floats = runs[:, : count * width].reshape(runs.shape[0], count, width).mean(axis=2)
    return found


def _line(axes: Any, intervals: Sequence[Interval], name: str) -> None:
    look = LOOKS[name]
    middle = (np.arange(len(intervals)) + 0.5) * WINDOW
    axes.plot(middle, [i.value for i in intervals], label=LABELS[name], **look)
    axes.fill_between(
        middle, [i.low for i in intervals], [i.high for i in intervals], color=look["color"], alpha=0.15, lw=0
    )
