"""Summaries: the one type that planners and agents take, ``(values, t) ↦ value``, and its text form.

>>> from dynaboltz import boltzmann, power
>>> dbs = Dynamic(boltzmann, power(2))
>>> str(dbs), parse_summary("boltzmann(beta=power(2))") == dbs
('boltzmann(beta=power(2))', True)
>>> round(dbs([0.0, 1.0], t=2).item(), 6)  # boltzmann at beta = 4
0.982014
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, final

from dynaboltz import text
from dynaboltz.errors import UserError
from dynaboltz.operators import OPERATORS, Operator
from dynaboltz.operators.arrays import Values
from dynaboltz.scalars import as_float
from dynaboltz.schedules import SCHEDULES, Schedule, parse_schedule


@final
@dataclass(frozen=True, repr=False, slots=True)
class Fixed:
    """``(q, t) ↦ op(q)`` or ``op_β(q)``: the same at every time.

    >>> from dynaboltz import boltzmann
    >>> Fixed(boltzmann, 5)
    boltzmann(beta=5)
    """

    operator: Operator
    sharpness: float | None = None
    """β, for the operators that have one."""

    def __post_init__(self) -> None:
        _check_operator(self.operator)
        if self.operator.traits.takes_beta:
            if self.sharpness is None:
                raise UserError(
                    f"{self.operator} needs a beta: Fixed({self.operator}, 5.0), or as text "
                    f"{_spec(self.operator, 5.0)!r}, with a number or a schedule such as power(2)"
                )
            object.__setattr__(self, "sharpness", _check_sharpness(self.operator, self.sharpness))
        elif self.sharpness is not None:
            raise UserError(f"{self.operator} has no beta, got {self.sharpness!r}; write Fixed({self.operator.name})")

    def beta(self, t: Any) -> float | None:  # noqa: ARG002
        """β at time t: the same at every t."""
        return self.sharpness

    def __call__(self, q: Any, t: Any, *, axis: int = -1, mask: Any = None) -> Values:
        """The state value at time t."""
        return self.operator(q, self.beta(t), axis=axis, mask=mask)

    def __str__(self) -> str:
        """The spec that parses back to this summary."""
        return _spec(self.operator, self.sharpness)

    __repr__ = __str__


@final
@dataclass(frozen=True, repr=False, slots=True)
class Dynamic:
    """``(q, t) ↦ op_{β_t}(q)``: an operator whose sharpness follows a schedule.

    With ``boltzmann`` it is the paper's dynamic Boltzmann softmax (Pan et al. 2020, Eq. 7).
    """

    operator: Operator
    schedule: Schedule

    def __post_init__(self) -> None:
        _check_operator(self.operator)
        if not self.operator.traits.takes_beta:
            raise UserError(f"{self.operator} has no beta for a schedule to set; write Fixed({self.operator.name})")
        if not isinstance(self.schedule, Schedule):
            raise UserError(f"expected a schedule, for instance power(2), got {self.schedule!r}")

    def beta(self, t: Any) -> Any:
        """β_t."""
        return self.schedule(t)

    def __call__(self, q: Any, t: Any, *, axis: int = -1, mask: Any = None) -> Values:
        """The state value at time t."""
        return self.operator(q, self.beta(t), axis=axis, mask=mask)

    def __str__(self) -> str:
        """The spec that parses back to this summary."""
        return _spec(self.operator, self.schedule)

    __repr__ = __str__


Summary = Fixed | Dynamic


def parse_summary(spec: str, where: str = "") -> Summary:
    """The summary that a spec describes; ``where`` (a file, an option) goes into the error if it cannot be read.

    >>> parse_summary("soft_mellowmax(alpha=2, beta=linear(0.5, start=1))")
    soft_mellowmax(alpha=2, beta=linear(0.5, start=1))
    >>> parse_summary("hard_max")
    hard_max
    """
    call = text.parse(spec, where)
    if call.name in SCHEDULES:
        raise UserError(f"{text.short(spec)} is a schedule, not an operator\n  did you mean 'boltzmann(beta={spec})'?")
    args, kwargs = list(call.args), dict(call.kwargs)
    entry = OPERATORS.get(call.name)
    parameters = len(dataclasses.fields(entry)) if entry else 0
    if len(args) > parameters and "beta" not in kwargs:
        kwargs["beta"] = args.pop(parameters)
    beta = kwargs.pop("beta", None)
    taken = ("beta",) if entry and entry.uses in ("tilt", "all") else ()  # the moments that hold a β
    operator: Operator = text.build(
        "operator", OPERATORS, text.Call(call.name, tuple(args), kwargs), where, taken=taken
    )
    if isinstance(beta, text.Call):
        return Dynamic(operator, parse_schedule(beta, where))
    if isinstance(beta, (str, tuple)):
        raise UserError(f"beta must be a number or a schedule in {text.short(spec)}, got {text.short(beta)}")
    return Fixed(operator, beta)


def _spec(operator: Operator, beta: Any) -> str:
    fields = [f"{f.name}={text.literal(getattr(operator, f.name))}" for f in dataclasses.fields(operator)]
    if beta is not None:
        fields.append(f"beta={text.literal(beta)}")
    return f"{operator.name}({', '.join(fields)})" if fields else operator.name


def _check_operator(operator: object) -> None:
    if not isinstance(operator, Operator):
        hint = ""
        if isinstance(operator, type) and issubclass(operator, Operator):
            parameters = ", ".join(f"{f.name}=..." for f in dataclasses.fields(operator))
            hint = f"; {operator.name} has parameters, write {operator.name}({parameters})"
        raise UserError(f"expected an operator, for instance boltzmann, got {operator!r}{hint}")


def _check_sharpness(operator: Operator, beta: object) -> float:
    sharpness = as_float(beta)
    if sharpness is None or not sharpness >= 0:
        raise UserError(f"{operator}: beta must be a number of at least 0 (inf is the maximum), got {beta!r}")
    if sharpness == 0 and not operator.traits.finite_at_zero:
        raise UserError(f"{operator} is infinite at beta = 0; use mellowmax, which is the mean there")
    return sharpness
