"""What the learning rules make of one row of action values, compiled.

A row is ``q[at : at + m]``; −inf marks an action that the state does not have.
"""

# ruff: noqa: ARG001, ARG005  (overloads have the signatures of what they stand for)
from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from dynaboltz.operators import elementary, epsilon_mixture, hard_max, lanes, mean
from dynaboltz.operators.compiled import parameters, values_of
from dynaboltz.operators.tilted import finish_tilted

U = np.uintp
LOWEST = float(np.finfo(np.float64).min)
"""Only −inf is smaller."""
_MAXIMUM, _MEAN, _MIXTURE = (type(parameters(entry)) for entry in (hard_max, mean, epsilon_mixture(0.0)))


@lanes.inlined
def summary_value(p: Any, q: Any, at: Any, m: Any, like: Any, beta: Any) -> Any:
    """The operator's value."""
    return lanes.extract(values_of(p, q, at, m, like, beta), 0)


@lanes.inlined
def top_of(q: Any, at: Any, m: Any) -> Any:
    """The maximum."""
    top = q[at]
    for a in range(1, m):
        x = q[at + U(a)]
        top = x if x > top else top
    return top


@lanes.inlined
def exponential(x: Any, like: Any) -> Any:
    """e^x for x ≤ 0."""
    return lanes.extract(elementary.exp(lanes.splat(like, x)), 0)


@lanes.inlined
def greedy_value(q: Any, at: Any, m: Any, epsilon: Any) -> Any:
    """``(1 − ε) max + ε mean``."""
    top = top_of(q, at, m)
    below, count = 0.0, 0.0
    for a in range(m):
        x = q[at + U(a)]
        legal = x >= LOWEST
        below += x - top if legal else 0.0
        count += 1.0 if legal else 0.0
    return top + epsilon * (below / count)


def _weight(p: Any, d: Any, like: Any, beta: Any) -> Any:
    """The weight of an action d below the maximum, up to a factor that the row has in common."""
    raise NotImplementedError


@overload(_weight, strict=False, jit_options=lanes.INLINE)
def _weight_overload(p: Any, d: Any, like: Any, beta: Any) -> Any:
    if p.instance_class in (_MAXIMUM, _MIXTURE):
        return lambda p, d, like, beta: 1.0 if d == 0.0 else 0.0
    if p.instance_class is _MEAN:
        return lambda p, d, like, beta: 1.0
    return lambda p, d, like, beta: exponential(d * beta, like)


def _share_of_mean(p: Any) -> Any:
    raise NotImplementedError


@overload(_share_of_mean, strict=False, jit_options=lanes.INLINE)
def _share_overload(p: Any) -> Any:
    return (lambda p: p.epsilon) if p.instance_class is _MIXTURE else (lambda p: 0.0)


@lanes.inlined
def weighted_value(p: Any, q: Any, own: Any, other: Any, m: Any, like: Any, beta: Any) -> Any:
    """``Σ w_a q[other + a]``, with the operator's weights w at the row ``own``."""
    top = top_of(q, own, m)
    mass, total, count, everything = 0.0, 0.0, 0.0, 0.0
    for a in range(m):
        x, y = q[own + U(a)], q[other + U(a)]
        if x >= LOWEST:
            w = _weight(p, x - top, like, beta)
            mass += w
            total += w * y
            count += 1.0
            everything += y
    share = _share_of_mean(p)
    return (1.0 - share) * (total / mass) + share * (everything / count)


@lanes.inlined
def prior_value(prior: Any, q: Any, at: Any, m: Any, like: Any, beta: Any) -> Any:
    """``(1/β) log Σ ρ_a e^{β q_a} / Σ ρ_a`` over the actions that the state has."""
    top = top_of(q, at, m)
    base, below, mass, relative = 0.0, 0.0, 0.0, 0.0
    for a in range(m):
        x = q[at + U(a)]
        if x >= LOWEST:
            d, weight = x - top, prior[U(a)]
            step = lanes.splat(like, d * beta)
            base += weight
            below += weight * d
            mass += weight * lanes.extract(elementary.exp(step), 0)
            relative += weight * lanes.extract(elementary.expm1(step), 0)
    parts = lanes.splat(like, base), lanes.splat(like, below), lanes.splat(like, mass), lanes.splat(like, relative)
    return top + lanes.extract(finish_tilted(parts[0], parts[1], parts[2], parts[3], beta), 0)
