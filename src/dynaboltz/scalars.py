"""What counts as a number when a user hands one over."""

from __future__ import annotations

import math

import numpy as np


def as_float(value: object) -> float | None:
    """``value`` as a float if it is a real number, else None; an integer beyond the largest float is ±∞.

    A bool is not a number here: β = True is a mistake.

    >>> as_float(np.float32(2)), as_float(True), as_float("2"), as_float(-(10**400))
    (2.0, None, None, -inf)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
