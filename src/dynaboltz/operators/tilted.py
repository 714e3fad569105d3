"""The log-mean ``(1/β) log Σ_i w_i e^{βd_i}`` of centred rows, exact for every β, and its derivatives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dynaboltz.operators.arrays import Values
from dynaboltz.operators.rows import Rows


@dataclass(frozen=True, slots=True, eq=False)
class TiltedLogMean:
    """``(1/β) log Σ_i w_i e^{βd_i}`` for base weights w, with what its derivatives need; exact as β → 0.

    Where β·spread is below eps^{1/3} the cumulant series takes over: its error and the quotients' cancellation meet
    there, and it is what makes the derivatives exist at β = 0.
    """

    rows: Rows
    base: Values
    small: Values
    """Rows in which the series holds."""
    beta: Any
    """β, and 1 in small rows."""
    tiny: Any
    """β in small rows, 0 elsewhere."""
    mean: Values
    centred: Values
    """d − mean in small rows, 0 elsewhere."""

    @property
    def value(self) -> Values:
        """Of one number a row, relative to the maximum."""
        xp = self.rows.xp
        mass = self.rows.sum(self.base * self.rows.exp(self.beta))
        relative = self._relative()
        near = mass > 0.7  # there log1p keeps what log would cancel; below, XLA's log1p is off by 120 eps
        one = xp.ones_like(mass)
        log = xp.where(near, xp.log1p(xp.where(near, relative, one)), xp.log(xp.where(near, one, mass)))
        series = self.mean + self._sum(self._scaled * self.centred) / 2 + self._sum(self._scaled**2 * self.centred) / 6
        return xp.where(self.small, series, log / self.beta)

    def slope(self, tilted: Values) -> Values:
        """Its derivative by β, ``(Σ r d − value)/β``, where r are the tilted weights."""
        direct = (self.rows.sum(tilted * self.rows.below) - self.value) / self.beta
        series = self._sum(self.centred**2) / 2 + self._sum(self._scaled * self.centred**2) / 3
        return self.rows.xp.where(self.small, series, direct)

    def shift(self) -> Values:
        """``(r − w)/β`` by action, where r are the tilted weights."""
        relative = self._relative()
        expm1 = self.rows.only_legal(self.rows.xp.expm1(self.beta * self.rows.below))
        direct = self.base * (expm1 - relative) / (1.0 + relative) / self.beta
        c = self.centred
        series = self.base * (c + (self._scaled * c - self._sum(self._scaled * c)) / 2)
        return self.rows.xp.where(self.small, series, direct)

    def _relative(self) -> Values:
        return self.rows.sum(self.base * self.rows.only_legal(self.rows.xp.expm1(self.beta * self.rows.below)))

    @property
    def _scaled(self) -> Values:
        return self.tiny * self.centred  # in this order: β may be huge where the row is constant

    def _sum(self, x: Values) -> Values:
        return self.rows.sum(self.base * x)


def tilted_log_mean(rows: Rows, base: Values) -> TiltedLogMean:
    """The log-mean of e^{βd} under ``base``, over β."""
    xp = rows.xp
    beta = xp.asarray(rows.beta, dtype=rows.below.dtype) if isinstance(rows.beta, float) else rows.beta
    beta = rows.zeros() + beta
    spread = -xp.min(rows.below, axis=-1, keepdims=True)
    small = beta * spread <= float(xp.finfo(rows.below.dtype).eps) ** (1 / 3)
    mean = rows.sum(base * rows.below)
    centred = xp.where(small & rows.legal, rows.below - mean, rows.only_legal(rows.zeros() * rows.below))
    return TiltedLogMean(
        rows, base, small, xp.where(small, xp.ones_like(beta), beta), xp.where(small, beta, xp.zeros_like(beta)),
        mean, centred,
    )  # fmt: skip


def finish_tilted(base: float, below: float, mass: float, relative: float, beta: float) -> float:
    """The same from one row's moments."""
    mean = below / base
    if -beta * mean < 1e-17:  # also where β·d underflows
        return mean
    return math.log1p(relative / base) / beta if mass > 0.7 * base else math.log(mass / base) / beta
