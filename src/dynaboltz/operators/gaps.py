"""Distances to the maximum that several operators share, as functions of β and the number of actions m."""

from __future__ import annotations

import math

from dynaboltz.operators.constants import gap_constant


def none(_beta: float, _m: int) -> float:
    """0: the operator is never on this side of the maximum."""
    return 0.0


def one(_m: int) -> float:
    """1: the Lipschitz constant of a non-expansion."""
    return 1.0


def log_over_beta(beta: float, m: int) -> float:
    """``log(m)/β``, the largest entropy over β (Pan et al. 2020, Proposition 1)."""
    if m == 1:
        return 0.0
    return math.log(m) / beta if beta > 0 else math.inf


def sharp(beta: float, m: int) -> float:
    """``W((m−1)/e)/β``, the supremum of max − boltz_β (ours; the paper has log(m)/β)."""
    if m == 1:
        return 0.0
    return gap_constant(m) / beta if beta > 0 else math.inf
