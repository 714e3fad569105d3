"""Curves of many runs: returns aligned by agent steps, with the mean over seeds and its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynaboltz.reports.aggregates import Band
from dynaboltz.reports.collect import Run, Series
from dynaboltz.reports.figures import COLOURS, canvas
from dynaboltz.reports.statistics import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

Array = NDArray[np.float64]

POINTS = 60
"""Points of a curve where the runs have no steps in common."""
DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))
"""Each turn through the colours takes the next."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Mean return over the runs that have come so far, at each step; NaN where there is none."""

    steps: Array
    mean: Array
    low: Array
    """Of the 95 % interval of Student's t; NaN with fewer than two runs."""
    high: Array
    runs: NDArray[np.int64]
    """How many runs each point is of."""


def evaluations_at(series: Series, grid: ArrayLike) -> Array:
    """The last evaluation at or before each step; NaN before the first and after the last.

    >>> evaluations_at(Series(np.array([10.0, 20.0]), np.array([1.0, 2.0])), [5, 10, 15, 20, 25])
    array([nan,  1.,  1.,  2., nan])
    """
    asked = np.asarray(grid, np.float64)
    if not len(series):
        return np.full(asked.shape, math.nan)
    place = np.searchsorted(series.steps, asked, side="right") - 1
    there = (place >= 0) & (asked <= series.steps[-1])
    return np.where(there, series.returns[np.maximum(place, 0)], math.nan)


def episodes_at(series: Series, grid: ArrayLike) -> Array:
    """The mean return of the episodes that ended after the step before and by this one; where none did, the last mean.

    >>> episodes_at(Series(np.array([1.0, 9.0, 30.0]), np.array([0.0, 2.0, 5.0])), [10, 20, 30, 40])
    array([ 1.,  1.,  5., nan])
    """
    asked = np.asarray(grid, np.float64)
    if not len(series):
        return np.full(asked.shape, math.nan)
    ends = np.searchsorted(series.steps, asked, side="right")
    sums = np.concatenate([[0.0], np.cumsum(series.returns)])
    found, begin, last = np.full(asked.shape, math.nan), 0, math.nan
    for i, end in enumerate(map(int, ends)):
        if end > begin:
            last = float((sums[end] - sums[begin]) / (end - begin))
        if asked[i] <= series.steps[-1] or end > begin:
            found[i] = last
        begin = end
    return found


def curve(runs: Sequence[Run], kind: str) -> Curve:
    """The curve of runs of one agent on one environment.

    Args:
        runs: at least one.
        kind: "evaluation" or "training".
    """
    if kind == "evaluation":
        grid = np.unique(np.concatenate([run.evaluations.steps for run in runs]))
        values = np.array([evaluations_at(run.evaluations, grid) for run in runs])
    else:
        grid = np.linspace(0, max(run.step for run in runs), POINTS + 1)[1:]
        values = np.array([episodes_at(run.episodes, grid) for run in runs])
    there = np.isfinite(values)
    low, mean, high = np.full((3, grid.size), math.nan)
    for i in range(grid.size):
        column = values[there[:, i], i]
        if column.size >= 2:
            found = mean_interval(column)
            mean[i], low[i], high[i] = found.value, found.low, found.high
        elif column.size == 1:
            mean[i] = column[0]
    return Curve(grid, mean, low, high, there.sum(axis=0))


def draw(curves: Mapping[str, Curve], looks: Mapping[str, int], ylabel: str) -> MatplotlibFigure:
    """The curves of several agents in one panel; ``looks`` numbers the agents, the same in every figure."""
    figure, axes = canvas(width=5.6, height=3.2)
    for name, one in curves.items():
        number = looks[name]
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        marker = "o" if one.steps.size == 1 else None
        axes.plot(one.steps, one.mean, label=name.replace("$", r"\$"), color=colour, ls=dash, marker=marker)
        axes.fill_between(one.steps, one.low, one.high, color=colour, alpha=0.15, lw=0)
    axes.set(xlabel="agent steps", ylabel=ylabel, xlim=(0, None))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(ncols=2 if len(curves) > 4 else 1)
    drawn: MatplotlibFigure = figure
    return drawn


def draw_profiles(levels: Array, shares: Mapping[str, Band], looks: Mapping[str, int]) -> MatplotlibFigure:
    """Performance profiles of several agents in one panel."""
    figure, axes = canvas(width=5.6, height=3.2)
    for name, one in shares.items():
        number = looks.get(name, 0)
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
        axes.plot(levels, one.value, label=name.replace("$", r"\$"), color=colour, ls=dash)
        axes.fill_between(levels, one.low, one.high, color=colour, alpha=0.15, lw=0)
    axes.set(xlabel="score, on the common scale", ylabel="share of runs above it", ylim=(-0.02, 1.02))
    axes.legend(loc="lower left", ncols=2 if len(shares) > 4 else 1)
    drawn: MatplotlibFigure = figure
    return drawn
