"""β and ε over time as tables that compiled code reads: the schedules themselves, evaluated a window at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError
from dynaboltz.schedules import Constant, Schedule
from dynaboltz.summaries import Dynamic
from dynaboltz.tabular.settings import CLOCKS, Learning

Floats = npt.NDArray[np.float64]

WINDOW = 1 << 18
"""Steps of a seed between two looks at the world outside; no result depends on it."""
LONGEST_TABLE = 1 << 27
LARGEST = float(np.finfo(np.float64).max)
SMALLEST = float(np.finfo(np.float64).smallest_normal)


@dataclass(slots=True)
class Clocks:
    """The tables of one agent."""

    config: Learning
    window: int = field(default_factory=lambda: WINDOW)
    _lock: Lock = field(default_factory=Lock)
    _betas: dict[int, Floats] = field(default_factory=dict)
    _epsilons: dict[int, Floats] = field(default_factory=dict)

    @property
    def clock(self) -> str:
        """What t counts in β_t; a constant needs no clock and goes by the first there is."""
        summary = self.config.parsed_summary
        constant = not isinstance(summary, Dynamic) or isinstance(summary.schedule, Constant)
        return CLOCKS[0] if constant else self.config.clock

    @property
    def _most_steps(self) -> int:
        return self.config.episodes * self.config.max_steps

    def at(self, total: int) -> dict[str, Any]:
        """The tables for the steps after ``total``, up to the end of the window that it is in, as fields of a plan."""
        offset = total // self.window * self.window
        with self._lock:
            betas, epsilons = self._beta_table(offset), self._epsilon_table(offset)
        return {
            "beta_clock": CLOCKS.index(self.clock),
            "betas": betas,
            "beta_offset": offset,
            "epsilon_clock": int(self.config.epsilon_clock == "step"),
            "epsilons": epsilons,
            "epsilon_offset": offset,
        }

    def _beta_table(self, offset: int) -> Floats:
        summary, config = self.config.parsed_summary, self.config
        if not isinstance(summary, Dynamic):
            sharpness = 0.0 if summary is None or summary.sharpness is None else summary.sharpness
            return np.array([min(sharpness, LARGEST)])
        if self.clock == "step":
            return self._windowed(self._betas, summary.schedule, offset, self._beta_values)
        length = {"episode": config.episodes, "episode_step": config.max_steps}.get(self.clock)
        if length is None:  # by visits: at most as many as steps
            length = min(1 << (offset + self.window).bit_length(), self._most_steps)
        if isinstance(summary.schedule, Constant):
            length = 1
        table = self._betas.get(0)
        if table is None or table.size < length:
            self._betas[0] = table = self._beta_values(summary.schedule, 0, length)
        return table

    def _epsilon_table(self, offset: int) -> Floats:
        schedule = self.config.parsed_epsilon
        if isinstance(schedule, Constant):
            return np.array([schedule.value])
        if self.config.epsilon_clock == "step":
            return self._windowed(self._epsilons, schedule, offset, self._epsilon_values)
        if 0 not in self._epsilons:
            self._epsilons[0] = self._epsilon_values(schedule, 0, self.config.episodes + 1)
        return self._epsilons[0]

    def _windowed(self, kept: dict[int, Floats], schedule: Schedule, offset: int, values: Any) -> Floats:
        if offset not in kept:
            while len(kept) >= 8:
                del kept[next(iter(kept))]
            # One more than there are steps, for the choice that a rule carries; none that can never come.
            kept[offset] = values(schedule, offset, min(self.window + 1, self._most_steps - offset + 1))
        return kept[offset]

    def _beta_values(self, schedule: Schedule, offset: int, length: int) -> Floats:
        assert self.config.parsed_summary is not None
        operator = self.config.parsed_summary.operator
        values = _evaluated("summary", schedule, offset, length)
        least = 0.0 if operator.traits.finite_at_zero else SMALLEST
        _refuse(
            ~(values >= least), values, offset,
            f"{operator.name} needs a beta {'of at least' if least == 0.0 else 'above'} 0; {schedule} is",
        )  # fmt: skip
        return np.minimum(values, LARGEST)

    def _epsilon_values(self, schedule: Schedule, offset: int, length: int) -> Floats:
        values = _evaluated("epsilon", schedule, offset, length)
        _refuse(~((values >= 0.0) & (values <= 1.0)), values, offset, f"epsilon must be from 0 to 1; {schedule} is")
        return values


def _evaluated(name: str, schedule: Schedule, offset: int, length: int) -> Floats:
    if length > LONGEST_TABLE:
        raise UserError(
            f"{name}: {schedule} would need {length:,} values by this clock, and {LONGEST_TABLE:,} is the most\n"
            "  the clock 'step' has no such limit"
        )
    values: Floats = np.asarray(schedule(np.arange(offset + 1, offset + length + 1, dtype=np.float64)), np.float64)
    return np.ascontiguousarray(np.broadcast_to(values, (length,)))


def _refuse(wrong: npt.NDArray[np.bool_], values: Floats, offset: int, what: str) -> None:
    if wrong.any():
        at = int(wrong.argmax())
        raise UserError(f"{what} {values[at]:g} at t = {offset + at + 1}")
