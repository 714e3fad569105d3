"""Step sizes and initial values: small families with a text form, one class and one line in a table each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, final

import numpy as np
import numpy.typing as npt

from dynaboltz import text
from dynaboltz.errors import UserError
from dynaboltz.scalars import as_float


@dataclass(frozen=True)
class Form:
    """Finite numbers under a name; its fields are its text form."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = as_float(getattr(self, field.name))
            if value is None or not math.isfinite(value):
                raise UserError(f"{self.name}: {field.name} must be a finite number, got {getattr(self, field.name)!r}")
            object.__setattr__(self, field.name, value)

    def __str__(self) -> str:
        """The spec that parses back to this form."""
        return f"{self.name}({', '.join(text.literal(getattr(self, f.name)) for f in fields(self))})".removesuffix("()")

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class StepSize(Form, ABC):
    """α, as ``scale · n^(−omega)`` of the number n of updates of the same entry, the present one included."""

    @property
    @abstractmethod
    def coefficients(self) -> tuple[float, float]:
        """(scale, omega)."""


@final
@dataclass(frozen=True, repr=False)
class ConstantStep(StepSize):
    """The same α in (0, 1] for ever; the values never stop moving where rewards or transitions are random."""

    alpha: float = 0.1
    name: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha <= 1:
            raise UserError(f"constant: alpha must be above 0 and at most 1, got {self.alpha:g}")

    @property
    def coefficients(self) -> tuple[float, float]:
        """(alpha, 0)."""
        return self.alpha, 0.0


@final
@dataclass(frozen=True, repr=False)
class VisitStep(StepSize):
    """``α = n^(−omega)``: meets the conditions of Theorem 3 (Σα = ∞, Σα² < ∞) for omega in (1/2, 1].

    Other exponents are allowed, to see what the conditions are for; 0.8 is G-learning's (Fox et al. 2016, Eq. 29).
    """

    omega: float = 1.0
    name: ClassVar[str] = "visits"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.omega < 0:
            raise UserError(f"visits: omega must be at least 0, got {self.omega:g}")

    @property
    def coefficients(self) -> tuple[float, float]:
        """(1, omega)."""
        return 1.0, self.omega


@dataclass(frozen=True, repr=False)
class Initial(Form, ABC):
    """Q_0; terminal states are 0 whatever it says."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """The values of one seed."""


@final
@dataclass(frozen=True, repr=False)
class Zeros(Initial):
    """All zero."""

    name: ClassVar[str] = "zeros"

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:  # noqa: ARG002
        """Zeros."""
        return np.zeros(shape)


@final
@dataclass(frozen=True, repr=False)
class ConstantInitial(Initial):
    """All the same; above the largest value it is optimism that explores."""

    value: float
    name: ClassVar[str] = "constant"

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:  # noqa: ARG002
        """The value everywhere."""
        return np.full(shape, self.value)


@final
@dataclass(frozen=True, repr=False)
class Uniform(Initial):
    """Independent, uniform in [low, high)."""

    low: float
    high: float
    name: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high or math.isinf(self.high - self.low):
            raise UserError(f"uniform: needs low < high, got {self.low:g} and {self.high:g}")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Uniform numbers."""
        return rng.uniform(self.low, self.high, shape)


@final
@dataclass(frozen=True, repr=False)
class Normal(Initial):
    """Independent, normal."""

    mean: float
    deviation: float
    name: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deviation < 0:
            raise UserError(f"normal: deviation must be at least 0, got {self.deviation:g}")

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Normal numbers."""
        return rng.normal(self.mean, self.deviation, shape)


STEP_SIZES: dict[str, Callable[..., StepSize]] = {entry.name: entry for entry in (ConstantStep, VisitStep)}
"""Step sizes by their name in text."""
INITIALS: dict[str, Callable[..., Initial]] = {entry.name: entry for entry in (Zeros, ConstantInitial, Uniform, Normal)}
"""Initial values by their name in text."""

F = TypeVar("F", bound=Form)


def read_form(kind: str, table: Mapping[str, Callable[..., F]], value: Any, base: type[F]) -> F:
    """``value`` if it is of the family, or what its text form or plain number describes.

    >>> read_form("step size", STEP_SIZES, "visits(0.8)", StepSize).coefficients
    (1.0, 0.8)
    """
    if isinstance(value, base):
        return value
    if (number := as_float(value)) is not None:
        return table["constant"](number)
    if not isinstance(value, str):
        raise UserError(f"{kind} must be a number or a text form such as {next(iter(table))!r}, got {value!r}")
    try:
        plain = float(value)
    except ValueError:
        form: F = text.build(kind, table, text.parse(value, kind, example=f"{list(table)[-1]}(…)"), "")
        return form
    return table["constant"](plain)
