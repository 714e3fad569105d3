"""What the learning rules make of one row of action values, compiled.

A row is ``q[at : at + m]``; −inf marks an action that the state does not have.
"""

# ruff: noqa: ARG001, ARG005  (overloads have the signatures of what they stand for)
from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from dynaboltz.operators import boltzmann, elementary, epsilon_mixture, hard_max, lanes, mean
from dynaboltz.operators.compiled import parameters, values_of
from dynaboltz.operators.tilted import finish_tilted
from dynaboltz.tabular.registers import at_least, largest, total

U, U64 = np.uintp, np.uint64
LOWEST = float(np.finfo(np.float64).min)
"""Only −inf is smaller."""
_MAXIMUM, _MEAN, _BOLTZMANN, _MIXTURE = (
    type(parameters(entry)) for entry in (hard_max, mean, boltzmann, epsilon_mixture(0.0))
)


def summary_value(p: Any, q: Any, at: Any, m: Any, like: Any, beta: Any) -> Any:
    """The operator's value."""
    raise NotImplementedError


@overload(summary_value, strict=False, jit_options=lanes.INLINE)
def _summary_overload(p: Any, q: Any, at: Any, m: Any, like: Any, beta: Any) -> Any:
    if p.instance_class is _BOLTZMANN and like.width > 1:
        return lambda p, q, at, m, like, beta: boltzmann_across(q, at, like, beta)
    return lambda p, q, at, m, like, beta: lanes.extract(values_of(p, q, at, m, lanes.single(q), beta), 0)


@lanes.inlined
def boltzmann_across(q: Any, at: Any, like: Any, beta: Any) -> Any:
    """Boltzmann softmax of a row that fills a register.

    Where it is the maximum to the last bit nothing is computed: no exponential, no division, and nothing to wait for.
    That is where every action below the maximum has a weight of 0, or one of at most e^−64 and is not below by 2^20
    times the maximum, for then all of them together move it by less than an eighth of its last bit.
    """
    x = lanes.load(q, at, like)
    zero, lowest = lanes.splat(like, 0.0), lanes.splat(like, LOWEST)
    top = largest(x)
    d = lanes.where_less(x, lowest, zero, x - lanes.splat(like, top))
    t = d * beta
    far = at_least(d * -1.0, lanes.splat(like, abs(top) * 2.0**20))
    counts = at_least(t, lanes.splat(like, -64.0)) | (far & at_least(t, lanes.splat(like, -745.0)))
    if counts & ~at_least(d, zero) == U64(0):
        return top
    e = lanes.where_less(x, lowest, zero, elementary.exp(t))
    return top + total(e * d) / total(e)


@lanes.inlined
def top_of(q: Any, at: Any, m: Any) -> Any:
    """The maximum."""
    top = q[at]
    for a in range(1, m):
        x = q[at + U(a)]
        top = x if x > top else top
    return top


@lanes.inlined
def exponential(x: Any, one: Any) -> Any:
    """e^x for x ≤ 0, where ``one`` is a register of one value."""
    return lanes.extract(elementary.exp(lanes.splat(one, x)), 0)


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


def _weight(p: Any, d: Any, one: Any, beta: Any) -> Any:
    """The weight of an action d below the maximum, up to a factor that the row has in common."""
    raise NotImplementedError


@overload(_weight, strict=False, jit_options=lanes.INLINE)
def _weight_overload(p: Any, d: Any, one: Any, beta: Any) -> Any:
    if p.instance_class in (_MAXIMUM, _MIXTURE):
        return lambda p, d, one, beta: 1.0 if d == 0.0 else 0.0
    if p.instance_class is _MEAN:
        return lambda p, d, one, beta: 1.0
    return lambda p, d, one, beta: exponential(d * beta, one)


def _share_of_mean(p: Any) -> Any:
    raise NotImplementedError


@overload(_share_of_mean, strict=False, jit_options=lanes.INLINE)
def _share_overload(p: Any) -> Any:
    return (lambda p: p.epsilon) if p.instance_class is _MIXTURE else (lambda p: 0.0)


@lanes.inlined
def weighted_value(p: Any, q: Any, own: Any, other: Any, m: Any, beta: Any) -> Any:
    """``Σ w_a q[other + a]``, with the operator's weights w at the row ``own``."""
    top, one = top_of(q, own, m), lanes.single(q)
    mass, weighted, count, everything = 0.0, 0.0, 0.0, 0.0
    for a in range(m):
        x, y = q[own + U(a)], q[other + U(a)]
        if x >= LOWEST:
            w = _weight(p, x - top, one, beta)
            mass += w
            weighted += w * y
            count += 1.0
            everything += y
    share = _share_of_mean(p)
    return (1.0 - share) * (weighted / mass) + share * (everything / count)


@lanes.inlined
def prior_value(prior: Any, q: Any, at: Any, m: Any, beta: Any) -> Any:
    """``(1/β) log Σ ρ_a e^{β q_a} / Σ ρ_a`` over the actions that the state has."""
    top, one = top_of(q, at, m), lanes.single(q)
    base, below, mass, relative = 0.0, 0.0, 0.0, 0.0
    for a in range(m):
        x = q[at + U(a)]
        if x >= LOWEST:
            d, weight = x - top, prior[U(a)]
            step = lanes.splat(one, d * beta)
            base += weight
            below += weight * d
            mass += weight * lanes.extract(elementary.exp(step), 0)
            relative += weight * lanes.extract(elementary.expm1(step), 0)
    parts = lanes.splat(one, base), lanes.splat(one, below), lanes.splat(one, mass), lanes.splat(one, relative)
    return top + lanes.extract(finish_tilted(parts[0], parts[1], parts[2], parts[3], beta), 0)
