"""What an operator is: a function from action values to a state value, with its weights, derivatives and traits."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, final

import array_api_compat as compat
import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.operators.arrays import (
    Values,
    as_values,
    host_view,
    quiet,
    readable,
    rounding_reaches_minimum,
    truth,
)
from dynaboltz.operators.rows import Rows
from dynaboltz.scalars import as_float
from dynaboltz.text import literal

COMPILED_FROM = 1 << 17
"""Arrays in host memory with at least this many values go through the compiled rows, if no gradient is wanted."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is proven of an operator; ``m`` is the number of legal actions."""

    takes_beta: bool
    """Whether the operator has a sharpness β at all."""
    bounded_by_max: bool
    """op(q) ≤ max q for every q."""
    non_expansion: bool
    """|op(x) − op(y)| ≤ max |x − y| for every x, y, at every fixed β."""
    finite_at_zero: bool = True
    """Whether β = 0 is allowed (it gives the mean)."""
    gap: Callable[[float, int], float]
    """(β, m) ↦ an upper bound on max q − op(q) over all rows, ∞ if there is none."""
    gap_is_attained: bool
    """Whether the gap is the supremum, so that no smaller bound exists."""
    overshoot: Callable[[float, int], float]
    """(β, m) ↦ the supremum of op(q) − max q over all rows."""
    lipschitz: Callable[[int], float]
    """m ↦ a sup-norm Lipschitz constant that holds for every β, ∞ if none is proven."""


class Moments(NamedTuple):
    """Sums over one row from which every operator's value follows; d = q − top ≤ 0, over legal actions."""

    top: float
    """The maximum."""
    base: float
    """Σ g, where g = 1 or, for an operator with a base rate α, g = e^{αd}."""
    below: float
    """Σ g·d."""
    mass: float
    """Σ g·e^{βd}."""
    weighted: float
    """Σ g·e^{βd}·d."""
    relative: float
    """Σ g·(e^{βd} − 1), without cancellation."""


@dataclasses.dataclass(frozen=True)
class Operator(ABC):
    """An action-value summary operator, ``q ↦ v`` over the action axis.

    Calling it gives the value. ``beta`` is the inverse temperature: 0 gives the mean, ∞ the maximum, a negative number
    is an error; a number, or an array with one entry a row. ``mask`` is True for legal actions; a value of −inf is
    an illegal action too. Values are checked wherever looking at them is free: in host memory and outside of
    jit, vmap and compile. Results have the array type, dtype and device of ``q``; the rounding error is at most
    ``4·(m + 8)·eps·(max|q| + op's own overshoot)``, where a β beyond the type's largest number stands for that number.

    An operator is one subclass: five one-line formulas over :class:`Rows` and, for the compiled kernels, one over
    :class:`Moments`. Its dataclass fields are its parameters.
    """

    name: ClassVar[str]
    uses: ClassVar[str]
    """Which moments the compiled form needs: "top", "base" (base, below), "tilt" (mass, weighted) or "all"."""

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """What is proven of the operator, as data."""

    @abstractmethod
    def _value(self, rows: Rows) -> Values: ...

    @abstractmethod
    def _weights(self, rows: Rows) -> Values: ...

    @abstractmethod
    def _gradient(self, rows: Rows) -> Values: ...

    @abstractmethod
    def _beta_derivative(self, rows: Rows) -> Values: ...

    @staticmethod
    @abstractmethod
    def finish(parameters: Any, row: Moments, beta: float) -> float:
        """The value from a row's moments; compiled by Numba, so only arithmetic and :mod:`math`."""

    @final
    def __call__(self, q: Any, beta: Any = None, *, axis: int = -1, mask: Any = None) -> Values:
        """The state value, of q's shape without the action axis."""
        self._check_beta(beta)
        fast = self._compiled(q, beta, axis) if mask is None else None
        return fast if fast is not None else self._summarise(self._value_in_range, q, beta, axis, mask)

    @final
    def weights(self, q: Any, beta: Any = None, *, axis: int = -1, mask: Any = None) -> Values:
        """The distribution over actions that the value implies, of q's shape.

        The value is the weighted mean of q for the averages, and for log-sum-exp and the mellowmax family the
        weighted mean plus a bonus (the entropy, or minus the divergence from the base distribution) over β.
        """
        return self._by_action(self._weights, q, beta, axis, mask)

    @final
    def gradient(self, q: Any, beta: Any = None, *, axis: int = -1, mask: Any = None) -> Values:
        """∂op/∂q, of q's shape; it sums to 1 over actions. At ties of the maximum, the mean of the one-sided limits."""
        return self._by_action(self._gradient, q, beta, axis, mask)

    @final
    def beta_derivative(self, q: Any, beta: Any = None, *, axis: int = -1, mask: Any = None) -> Values:
        """∂op/∂β, of q's shape without the action axis; for Boltzmann the variance under its weights."""
        return self._summarise(self._beta_derivative, q, beta, axis, mask)

    def __str__(self) -> str:
        """The spec that parses back to this operator."""
        fields = ", ".join(f"{f.name}={literal(getattr(self, f.name))}" for f in dataclasses.fields(self))
        return f"{self.name}({fields})" if fields else self.name

    __repr__ = __str__

    def _value_in_range(self, rows: Rows) -> Values:
        value = self._value(rows)
        if not rounding_reaches_minimum(rows.below.shape[-1], float(rows.xp.finfo(value.dtype).eps)):
            return value
        bottom = rows.bottom()
        return rows.xp.where(value < bottom, bottom, value)

    def _summarise(self, body: Callable[[Rows], Values], q: Any, beta: Any, axis: int, mask: Any) -> Values:
        return self._over_rows(body, q, beta, axis, mask)[1][..., 0]

    def _by_action(self, body: Callable[[Rows], Values], q: Any, beta: Any, axis: int, mask: Any) -> Values:
        rows, result = self._over_rows(body, q, beta, axis, mask)
        return rows.xp.moveaxis(result, -1, axis) if axis not in (-1, result.ndim - 1) else result

    def _over_rows(
        self, body: Callable[[Rows], Values], q: Any, beta: Any, axis: int, mask: Any
    ) -> tuple[Rows, Values]:
        self._check_beta(beta)
        with quiet():
            rows = Rows.of(q, beta, axis=axis, mask=mask)
            if not self.traits.finite_at_zero and _any_zero(rows):
                raise UserError(
                    f"{self.name} is infinite at beta = 0 (and beyond {rows.below.dtype} at a beta as small as {beta});"
                    " use mellowmax, which is the mean there"
                )
            return rows, body(rows)

    def _check_beta(self, beta: Any) -> None:
        if self.traits.takes_beta and beta is None:
            raise UserError(f"{self.name} needs a beta, for instance {self.name}(q, 5.0)")
        if not self.traits.takes_beta and beta is not None:
            raise UserError(f"{self.name} has no beta, got beta={beta!r}; call {self.name}(q)")

    def _compiled(self, q: Any, beta: Any, axis: int) -> Values | None:
        """The value through the compiled rows, or None where they do not apply or the result needs explaining."""
        sharpness = 0.0 if beta is None else as_float(beta)
        host = host_view(q)
        if sharpness is None or host is None or host.size < COMPILED_FROM:
            return None
        if sharpness != 0 and not sharpness >= float(np.finfo(host.dtype).smallest_normal):  # wrong, NaN or too small
            return None
        as_values(q, axis)
        from dynaboltz.operators.compiled import summarise

        values = summarise(self, np.moveaxis(host, axis, -1), sharpness)
        return None if values is None else compat.array_namespace(q).asarray(values)


def _any_zero(rows: Rows) -> bool:
    smallest = float(rows.xp.finfo(rows.below.dtype).smallest_normal)  # libraries differ on what is below
    if isinstance(rows.beta, float):
        return rows.beta < smallest
    return readable(rows.beta) and not truth(rows.xp.all(rows.beta >= smallest))


def check_parameter(operator: Operator, name: str, value: object, largest: float) -> None:
    """Refuse a parameter outside [0, largest], and keep it as a float."""
    number = as_float(value)
    if number is None or not 0.0 <= number <= largest or math.isinf(number):
        upper = f"to {largest:g}" if math.isfinite(largest) else "up"
        raise UserError(f"{operator.name}: {name} must be a finite number from 0 {upper}, got {value!r}")
    object.__setattr__(operator, name, number)
