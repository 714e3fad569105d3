"""``name(key=value, …)`` as text: parsed as a literal, never evaluated."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dynaboltz.errors import UnknownNameError, UserError

T = TypeVar("T")
LONGEST = 100_000
"""Characters; a longer text is no description that anyone typed."""


def parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the keyword arguments of ``name`` or ``name(key=value, …)``; values are Python literals.

    >>> parse_call("grid(rows=5, slip=0.1, walls='empty')")
    ('grid', {'rows': 5, 'slip': 0.1, 'walls': 'empty'})
    """
    shown = text if len(text) <= 80 else text[:77] + "..."
    form = f"cannot read {shown!r}: write name(key=value, ...), such as grid(rows=5, slip=0.1)"
    if len(text) > LONGEST:
        raise UserError(f"{form}; the text has {len(text)} characters")
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
        raise UserError(f"{form}; {type(fault).__name__}: {fault}") from fault
    if isinstance(body, ast.Name):
        return body.id, {}
    if not isinstance(body, ast.Call) or not isinstance(body.func, ast.Name):
        raise UserError(form)
    if body.args:
        raise UserError(f"{form}; every value needs its key, but {ast.unparse(body.args[0])} has none")
    arguments: dict[str, Any] = {}
    for keyword in body.keywords:
        if keyword.arg is None:
            raise UserError(f"{form}; ** is not allowed")
        try:
            arguments[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, RecursionError, MemoryError) as fault:
            raise UserError(
                f"{form}; the value of {keyword.arg} must be a literal, got {ast.unparse(keyword.value)}"
            ) from fault
    return body.func.id, arguments


def called(function: Callable[..., T], arguments: Mapping[str, Any], where: str) -> T:
    """``function(**arguments)``, once every key is known to be one of its parameters and none is missing."""
    parameters = inspect.signature(function).parameters
    for key in arguments:
        if key not in parameters:
            raise UnknownNameError("parameter", key, parameters, where)
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in arguments:
            raise UserError(f"{where} needs the parameter {key}")
    return function(**arguments)


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
