"""Schedules: t → value, frozen, printable, picklable, and with a stated limit.

The caller names the clock that t counts: sweeps, episodes, updates, target syncs. t is a number of at least 0, or an
array of any library (inside a jitted step, or for a plot), which is passed through the same formula unchecked.
Theorem 1 asks of β_t only that it stays positive and its ``limit`` is ∞.

>>> beta = power(2)
>>> beta(3), beta.limit, str(beta)
(9.0, inf, 'power(2)')
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, final

import numpy as np

from dynaboltz import text
from dynaboltz.errors import UserError
from dynaboltz.scalars import as_float


@dataclass(frozen=True)
class Schedule(ABC):
    """t → value; its fields are its parameters and its text form."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def limit(self) -> float:
        """The value as t → ∞."""

    @abstractmethod
    def _at(self, t: Any, xp: Any) -> Any: ...

    @final
    def __call__(self, t: Any) -> Any:
        """The value at t ≥ 0, a float; where it overflows, the limit (±∞)."""
        time = as_float(t)
        if time is None:
            with np.errstate(over="ignore", under="ignore"):
                return self._at(t, _namespace(t, self))
        if not 0 <= time < math.inf:
            raise UserError(f"{self}: time must be a finite number of at least 0, got {t!r}")
        try:
            return float(self._at(time, _Scalars))
        except OverflowError:
            return self.limit

    def __str__(self) -> str:
        """The spec that parses back to this schedule."""
        return text.write(self.name, self)

    __repr__ = __str__

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type == "float":
                object.__setattr__(self, field.name, _number(self, field.name, getattr(self, field.name)))


class _Scalars:
    """The few functions that formulas need, for plain numbers."""

    exp, log1p, minimum = staticmethod(math.exp), staticmethod(math.log1p), staticmethod(min)

    @staticmethod
    def where(condition: bool, yes: float, no: float) -> float:
        return yes if condition else no


@final
@dataclass(frozen=True, repr=False)
class Constant(Schedule):
    """The same value for ever.

    >>> constant(5.0)(1000)
    5.0
    """

    value: float
    name: ClassVar[str] = "constant"

    @property
    def limit(self) -> float:
        """The value."""
        return self.value

    def _at(self, t: Any, xp: Any) -> Any:  # noqa: ARG002
        return self.value + 0.0 * t


@final
@dataclass(frozen=True, repr=False)
class Power(Schedule):
    """``c · t^p``, the paper's β_t (Pan et al. 2020, Theorem 2, and β_t(c) = c·t² of Algorithm 2).

    >>> power(2, c=0.5)(4)
    8.0
    """

    p: float
    """Exponent, at least 0."""
    c: float = 1.0
    """Coefficient."""
    name: ClassVar[str] = "power"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p < 0:
            raise UserError(f"power: p must be at least 0, got {self.p:g}")

    @property
    def limit(self) -> float:
        """∞ with the sign of c; c where p = 0."""
        return self.c if self.p == 0 else _signed_infinity(self.c)

    def _at(self, t: Any, xp: Any) -> Any:  # noqa: ARG002
        return self.c * t**self.p


@final
@dataclass(frozen=True, repr=False)
class Linear(Schedule):
    """``start + slope · t``.

    >>> linear(0.5, start=1)(4)
    3.0
    """

    slope: float
    """Change by unit of time."""
    start: float = 0.0
    """Value at t = 0."""
    name: ClassVar[str] = "linear"

    @property
    def limit(self) -> float:
        """∞ with the sign of the slope; the start where the slope is 0."""
        return self.start if self.slope == 0 else _signed_infinity(self.slope)

    def _at(self, t: Any, xp: Any) -> Any:  # noqa: ARG002
        return self.start + self.slope * t


@final
@dataclass(frozen=True, repr=False)
class Exponential(Schedule):
    """``c · g^t``.

    >>> exponential(2)(10)
    1024.0
    """

    g: float
    """Growth by unit of time, above 0."""
    c: float = 1.0
    """Value at t = 0."""
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.g <= 0:
            raise UserError(f"exponential: g must be above 0, got {self.g:g}")

    @property
    def limit(self) -> float:
        """∞ with the sign of c if g > 1, c if g = 1, else 0."""
        if self.g == 1:
            return self.c
        return _signed_infinity(self.c) if self.g > 1 else 0.0

    def _at(self, t: Any, xp: Any) -> Any:  # noqa: ARG002
        return self.c * self.g**t


@final
@dataclass(frozen=True, repr=False)
class Logarithmic(Schedule):
    """``c · log(1 + t)``: it grows without bound, but slower than any power.

    >>> round(logarithmic(2)(1), 6)
    1.386294
    """

    c: float = 1.0
    """Coefficient."""
    name: ClassVar[str] = "logarithmic"

    @property
    def limit(self) -> float:
        """∞ with the sign of c."""
        return _signed_infinity(self.c)

    def _at(self, t: Any, xp: Any) -> Any:
        return self.c * xp.log1p(t)


@final
@dataclass(frozen=True, repr=False)
class Piecewise(Schedule):
    """Straight lines through (t, value) points, constant before the first and after the last.

    >>> piecewise(((0, 1.0), (100, 0.1)))(50)
    0.55
    """

    points: tuple[tuple[float, float], ...]
    """At least one point, t rising."""
    name: ClassVar[str] = "piecewise"

    def __post_init__(self) -> None:
        try:
            points = tuple((_number(self, "t", t), _number(self, "value", v)) for t, v in self.points)
        except (TypeError, ValueError) as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"piecewise: points must be pairs (t, value), got {self.points!r}") from None
        times = [t for t, _ in points]
        if not points or times[0] < 0 or any(b <= a for a, b in itertools.pairwise(times)):
            raise UserError(f"piecewise: needs at least one point, with t rising from 0 or later, got {self.points!r}")
        object.__setattr__(self, "points", points)

    @property
    def limit(self) -> float:
        """The last value."""
        return self.points[-1][1]

    def _at(self, t: Any, xp: Any) -> Any:
        value = self.points[0][1] + 0.0 * t
        for (t0, v0), (t1, v1) in itertools.pairwise(self.points):
            share = xp.where(t > t1, t1 - t0 + 0.0 * t, t - t0) / (t1 - t0)
            value = xp.where(t > t0, v0 + (v1 - v0) * share, value)
        return value


@final
@dataclass(frozen=True, repr=False)
class Capped(Schedule):
    """Another schedule, never above ``largest``.

    >>> capped(power(2), 50)(10)
    50.0
    """

    schedule: Schedule
    """What is capped."""
    largest: float = math.inf
    """The cap; it bounds DBS value iteration's error by W((m−1)/e)/(largest·(1−γ)) where ∞ would give 0."""
    name: ClassVar[str] = "capped"

    def __post_init__(self) -> None:
        if not isinstance(self.schedule, Schedule):
            raise UserError(f"capped: needs a schedule, for instance capped(power(2), 1e6), got {self.schedule!r}")
        super().__post_init__()

    @property
    def limit(self) -> float:
        """The smaller of the schedule's limit and the cap."""
        return min(self.schedule.limit, self.largest)

    def _at(self, t: Any, xp: Any) -> Any:
        value = self.schedule(t)
        return xp.minimum(value, self.largest if xp is _Scalars else xp.full_like(value, self.largest))


constant, power, linear, exponential = Constant, Power, Linear, Exponential
logarithmic, piecewise, capped = Logarithmic, Piecewise, Capped

SCHEDULES: dict[str, Callable[..., Schedule]] = {
    entry.name: entry for entry in (Constant, Power, Linear, Exponential, Logarithmic, Piecewise, Capped)
}
"""Every schedule by its name in text. A new one is a class above and a line here."""


def parse_schedule(spec: str | text.Call | float, where: str = "") -> Schedule:
    """The schedule that a spec, or a plain number, describes.

    >>> parse_schedule("capped(power(2), 1e6)")
    capped(power(2), largest=1000000)
    """
    if isinstance(spec, (int, float)):
        return Constant(spec)
    call = spec if isinstance(spec, text.Call) else text.parse(spec, where)
    args = tuple(parse_schedule(a, where) if isinstance(a, text.Call) else a for a in call.args)
    kwargs = {k: parse_schedule(a, where) if isinstance(a, text.Call) else a for k, a in call.kwargs.items()}
    schedule: Schedule = text.build("schedule", SCHEDULES, text.Call(call.name, args, kwargs), where)
    return schedule


def _number(schedule: Schedule, name: str, value: object) -> float:
    number = as_float(value)
    if number is None or math.isnan(number):
        raise UserError(f"{schedule.name}: {name} must be a number, got {value!r}")
    if math.isinf(number) and name != "largest":
        raise UserError(f"{schedule.name}: {name} must be finite, got {value!r}")
    return number


def _signed_infinity(x: float) -> float:
    return math.copysign(math.inf, x) if x else 0.0


def _namespace(t: Any, schedule: Schedule) -> Any:
    import array_api_compat as compat

    if isinstance(t, bool) or not compat.is_array_api_obj(t):
        raise UserError(f"{schedule}: time must be a number or an array, got {type(t).__name__}")
    return compat.array_namespace(t)
