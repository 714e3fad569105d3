"""The figure of the sample complexity: four log-log panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.reports.figures import COLOURS, canvas
from dynaboltz.reports.statistics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

    from dynaboltz.paper.learners import Floats

LOOKS: dict[str, dict[str, Any]] = {
    "t": {"color": COLOURS[1], "marker": "s", "ls": "--", "label": r"DBS $\beta_t = t$"},
    "t²": {"color": COLOURS[0], "marker": "o", "ls": "-", "label": r"DBS $\beta_t = t^2$"},
    "t^10": {"color": COLOURS[2], "marker": "^", "ls": ":", "label": r"DBS $\beta_t = t^{10}$"},
    "max": {"color": "#000000", "marker": "x", "ls": "-", "label": "max (Q-learning)"},
    "mellowmax, t²": {"color": COLOURS[3], "marker": "D", "ls": "-.", "label": r"mellowmax $\beta_t = t^2$"},
    "log-sum-exp, t²": {"color": COLOURS[4], "marker": "v", "ls": "-.", "label": r"log-sum-exp $\beta_t = t^2$"},
}
TITLES = {"1/ε": "accuracy", "1/(1−γ)": "horizon", "|A|": "actions"}


def draw(
    sweeps: Mapping[str, tuple[Sequence[float], Mapping[str, Sequence[Floats]]]],
    powers: Mapping[float, Sequence[Floats]],
    errors: Sequence[float],
) -> MatplotlibFigure:
    """Steps against each quantity in turn, and against p for each error."""
    figure, panels = canvas(4, width=2.55, height=3.3, sharey=True)
    for axes, (what, (x, of)) in zip(panels, sweeps.items(), strict=False):
        for name, logs in of.items():
            _line(axes, x, logs, **LOOKS[name])
        axes.set(xscale="log", yscale="log", xlabel=what, title=TITLES[what])
        axes.set_xticks(list(x), [f"{value:g}" for value in x])
        axes.minorticks_off()
    last, marks = panels[-1], ("o", "s", "^", "D")
    for position, error in enumerate(errors):
        shade = f"{abs(0.66 - 0.22 * position):.2f}"
        logs = [of[position] for of in powers.values()]
        _line(last, list(powers), logs, color=shade, marker=marks[position], ls="-", label=f"ε = {error:g}")
    last.set(xscale="log", xlabel="p", title="power of DBS")
    last.set_xticks(list(powers), [f"{p:g}" for p in powers])
    last.minorticks_off()
    last.legend(loc="upper right", fontsize=7)
    panels[0].set_ylabel("steps")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    drawn: MatplotlibFigure = figure
    return drawn


def _line(axes: Any, x: Sequence[float], logs: Sequence[Floats], **look: Any) -> None:
    """Geometric means with intervals; where some never arrive there is no point."""
    shown = [(place, mean_interval(of)) for place, of in zip(x, logs, strict=True) if np.isfinite(of).all()]
    middle = np.exp([i.value for _, i in shown])
    reach = np.abs(np.exp([[i.low for _, i in shown], [i.high for _, i in shown]]) - middle)
    axes.errorbar([place for place, _ in shown], middle, yerr=reach, capsize=2, elinewidth=0.9, **look)
