"""The argument checks that every bound shares: each returns the value or refuses it with what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynaboltz.errors import UserError


def _number(name: str, value: Any, allowed: str, accepts: Callable[[float], bool]) -> float:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not accepts(float(value)):
        raise UserError(f"{name} must be {allowed}, got {value!r}")
    return float(value)


def check_discount(discount: Any) -> float:
    """``discount`` as a float, if it lies in [0, 1)."""
    return _number("the discount γ", discount, "a number in [0, 1)", lambda x: 0.0 <= x < 1.0)


def check_beta(beta: Any, name: str = "β") -> float:
    """``beta`` as a float, if it lies in (0, ∞]."""
    return _number(name, beta, "a number above 0 (∞ is the maximum)", lambda x: x > 0.0)


def check_beta_or_zero(beta: Any, name: str = "β") -> float:
    """``beta`` as a float, if it lies in [0, ∞]; 0 is the mean."""
    return _number(name, beta, "a number of at least 0 (0 is the mean, ∞ the maximum)", lambda x: x >= 0.0)


def check_positive(name: str, value: Any) -> float:
    """``value`` as a float, if it is finite and above 0."""
    return _number(name, value, "a finite number above 0", lambda x: 0.0 < x < math.inf)


def check_not_negative(name: str, value: Any) -> float:
    """``value`` as a float, if it is finite and at least 0."""
    return _number(name, value, "a finite number of at least 0", lambda x: 0.0 <= x < math.inf)


def check_count(name: str, value: Any, least: int = 0) -> int:
    """``value`` itself, if it is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UserError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def check_at_least_two(m: int) -> int:
    """``m`` itself, if a comparison of bounds makes sense for it: with one action every bound is 0."""
    return check_count("the number of actions m", m, least=2)


def check_rows(name: str, rows: ArrayLike) -> NDArray[np.float64]:
    """``rows`` as a float64 array of shape (..., m), if every entry is finite and m is at least 1."""
    array = np.asarray(rows, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise UserError(f"{name} must have at least one entry on the last axis, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise UserError(f"{name} must be finite, got {array[~np.isfinite(array)][0]} among the entries")
    return array
