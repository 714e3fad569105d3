"""The text form of a world or an environment, ``name(key=value, …)``, and the checks of its values."""

from __future__ import annotations

from dynaboltz import text
from dynaboltz.errors import UserError

LONGEST = 100_000
"""Characters; a longer text is no description that anyone typed."""


def parse_call(spec: str) -> text.Call:
    """The name and the keyword arguments of ``name`` or ``name(key=value, …)``; values are Python literals.

    >>> parse_call("grid(rows=5, slip=0.1, walls='empty')").kwargs
    {'rows': 5, 'slip': 0.1, 'walls': 'empty'}
    """
    call = text.parse(spec, example="grid(rows=5, slip=0.1)", longest=LONGEST)
    if call.args:
        raise UserError(f"every value needs its key in {text.short(spec)}, but {text.short(call.args[0])} has none")
    for key, value in call.kwargs.items():
        if isinstance(value, text.Call):
            raise UserError(
                f"the value of {key} must be a literal in {text.short(spec)}; did you mean {value.name!r} in quotes?"
            )
    return call


def whole(name: str, value: object, low: int, high: int | None = None) -> int:
    """``value`` if it is an integer from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        limits = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise UserError(f"{name} must be an integer {limits}, got {value!r}")
    return value


def number(name: str, value: object, low: float = -1e300, high: float = 1e300) -> float:
    """``value`` if it is a number from ``low`` to ``high``; NaN is not."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise UserError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)
