"""One call of learn: what it was asked, the state of its seeds, and what it tells and hands back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaboltz.tabular import layout
from dynaboltz.tabular import state as states
from dynaboltz.tabular.outcome import Learned, Progress
from dynaboltz.tabular.settings import Learning

SECONDS_BETWEEN_NEWS = 0.1


@dataclass(slots=True)
class Session:
    """See the module."""

    config: Learning
    shape: states.Shape
    seeds: tuple[int, ...]
    root: int
    arrays: dict[str, Any]
    """By the names in ``state.ARRAYS``, one row a seed."""
    optimum: npt.NDArray[np.float64]
    """Q* flat, or nothing."""
    marks: npt.NDArray[np.int64]
    """With one that never comes at the end."""
    stop_error: float
    progress: Callable[[Progress], object] | None
    seconds_before: float = 0.0
    steps_before: int = 0
    began: float = field(default_factory=time.perf_counter)
    told: float = field(default_factory=time.perf_counter)

    @property
    def total(self) -> int:
        """Steps of all seeds so far."""
        return int(self.arrays["counters"][:, layout.TOTAL].sum())

    @property
    def seconds(self) -> float:
        """Spent, interrupted runs included."""
        return self.seconds_before + time.perf_counter() - self.began

    def start_clock(self) -> None:
        """Time counts from now on."""
        self.began = self.told = time.perf_counter()

    def notify(self) -> None:
        """Tell of the progress, if there is someone to tell and the last time is a while ago."""
        now = time.perf_counter()
        if self.progress is None or now - self.told < SECONDS_BETWEEN_NEWS:
            return
        self.told = now
        counters = self.arrays["counters"]
        ended = counters[:, layout.STATUS] != layout.RUNNING
        share = float(np.where(ended, 1.0, counters[:, layout.EPISODE] / self.config.episodes).mean())
        spent, total = now - self.began, self.total
        left = spent * (1.0 - share) / share if share > 0 else math.nan
        self.progress(Progress(total, share, spent, (total - self.steps_before) / spent, left))

    def learned(self) -> Learned:
        """The outcome."""
        n, arrays, shape = len(self.seeds), self.arrays, self.shape
        tables = (n, self.config.parsed_rule.tables, shape.states, shape.actions)
        q = arrays["q"].reshape(tables)
        return Learned(
            config=self.config,
            seeds=self.seeds,
            root=self.root,
            steps=arrays["steps"],
            returns=arrays["returns"],
            q=q[:, 0] if tables[1] == 1 else q.mean(axis=1),
            visits=arrays["visits"].reshape(tables).sum(axis=1),
            marks=self.marks[:-1],
            errors=arrays["errors"],
            terminal=shape.terminal,
            total_steps=arrays["counters"][:, layout.TOTAL].copy(),
            seconds=self.seconds,
        )
