"""The operators as compiled row functions, for kernels over millions of rows.

A kernel takes an operator's *parameters*, a named tuple whose type says which operator it is, so Numba compiles one
version of the kernel for each operator and caches it on disk. :func:`summarise` is the batch form for arrays;
:func:`row_value` and :func:`tile_values` are called from other kernels. In a row, −inf marks an illegal action.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import namedtuple
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload

from dynaboltz.operators import elementary, lanes, tiles
from dynaboltz.operators.arrays import rounding_reaches_minimum
from dynaboltz.operators.library import OPERATORS
from dynaboltz.operators.logarithms import SoftMellowmax
from dynaboltz.operators.operator import Moments, Operator
from dynaboltz.operators.tilted import finish_tilted

SOURCES = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()
"""Digest of all code that a row function inlines. A kernel that names it has it in its cache key, so that neither an
edit nor an upgrade ever meets a stale compiled file."""

_PARAMETERS: dict[type[Operator], Any] = {
    entry: namedtuple(entry.__name__ + "Parameters", [field.name for field in dataclasses.fields(entry)])
    for entry in OPERATORS.values()
}
globals().update({kind.__name__: kind for kind in _PARAMETERS.values()})  # importable, so that Numba can cache
_OPERATOR_OF = {kind: entry for entry, kind in _PARAMETERS.items()}


def parameters(operator: Operator) -> Any:
    """The named tuple that stands for the operator in compiled code."""
    kind = _PARAMETERS[type(operator)]
    return kind(*(getattr(operator, field) for field in kind._fields))


@overload(finish_tilted, strict=False, jit_options=lanes.INLINE)
def _finish_tilted_lanes(base: Any, below: Any, mass: Any, relative: Any, beta: Any) -> Any:  # noqa: ARG001
    def code(base, below, mass, relative, beta):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        mean = below / base
        log = elementary.log_either(mass / base, relative / base)
        return lanes.where_less(mean * -beta, lanes.splat(mean, 1e-17), mean, log / beta)

    return code


@cache
def _finish_of(entry: type[Operator]) -> Any:
    return lanes.inlined(entry.finish)


def _finish(p: Any, row: Any, beta: Any) -> Any:
    raise NotImplementedError


@overload(_finish, strict=False, jit_options=lanes.INLINE)
def _finish_overload(p: Any, row: Any, beta: Any) -> Any:  # noqa: ARG001
    finish = _finish_of(_OPERATOR_OF[p.instance_class])
    return lambda p, row, beta: finish(p, row, beta)  # noqa: PLW0108  (the names must match)


def _sums(p: Any, source: Any, offset: Any, m: Any, like: Any, beta: Any) -> Any:
    """Return the moments of the rows in lanes: top, Σ g, Σ g·d, Σ g·e^{βd}, Σ g·e^{βd}·d, Σ g·(e^{βd} − 1)."""
    raise NotImplementedError


@overload(_sums, strict=False, jit_options=lanes.INLINE)
def _sums_overload(p: Any, source: Any, offset: Any, m: Any, like: Any, beta: Any) -> Any:  # noqa: ARG001
    entry = _OPERATOR_OF[p.instance_class]
    base, tilt, relative = (entry.uses in uses for uses in (("base", "all"), ("tilt", "all"), ("all",)))
    prior = entry is SoftMellowmax
    below_all = float(np.finfo(like.dtype.name).min)  # only −inf is smaller

    def code(p, source, offset, m, like, beta):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        step = lanes.width(like)
        top = lanes.load(source, offset, like)
        at = offset
        for _ in range(1, m):
            at += step
            x = lanes.load(source, at, like)
            top = lanes.where_less(top, x, x, top) if base or tilt else lanes.maximum(top, x)
        zero, one, lowest = lanes.splat(like, 0.0), lanes.splat(like, 1.0), lanes.splat(like, below_all)
        count = below = mass = weighted = excess = zero
        if base or tilt:
            at = offset
            for _ in range(m):
                x = lanes.load(source, at, like)
                at += step
                d = lanes.where_less(x, lowest, zero, x - top)
                g = elementary.exp(d * p.alpha) if prior else one
                if base:
                    g = lanes.where_less(x, lowest, zero, g)
                    count = count + g
                    below = below + g * d
                if tilt:
                    e = lanes.where_less(x, lowest, zero, elementary.exp(d * beta))
                    e = e * g if prior else e
                    mass = mass + e
                    weighted = weighted + e * d
                if relative:
                    excess = excess + g * elementary.expm1(d * beta)
        return Moments(top, count, below, mass, weighted, excess)

    return code


@lanes.inlined
def values_of(p: Any, source: Any, offset: Any, m: Any, like: Any, beta: Any) -> Any:
    """The values of the rows in ``source[offset:]``, which holds m registers as wide as ``like``, one an action."""
    return _finish(p, _sums(p, source, offset, m, like, beta), beta)


def _build(sources: str) -> Any:
    @njit(nogil=True, cache=True, error_model="numpy")
    def rows(p: Any, q: Any, m: Any, beta: Any, out: Any) -> None:
        sources  # noqa: B018  (in the cache key)
        like, one = lanes.wide(q), lanes.single(q)
        step = lanes.width(like)
        buffer = np.empty((m + 1) * step, q.dtype)
        first = np.uintp((-buffer.ctypes.data % 64) // q.itemsize)  # a register never straddles two cache lines
        tile = buffer[first:]
        full = np.uintp(out.size) // step
        for b in range(full):
            i = np.uintp(b) * step
            tiles.fill(q, i * np.uintp(m), m, like, tile)
            lanes.store(out, i, values_of(p, tile, np.uintp(0), m, like, beta))
        for r in range(full * step, out.size):
            i = np.uintp(r)
            lanes.store(out, i, values_of(p, q, i * np.uintp(m), m, one, beta))

    return rows


batch = _build(SOURCES)
"""``batch(parameters(op), q, m, beta, out)``: the values of rows of m actions each, ``q`` flat and contiguous."""


def summarise(operator: Operator, q: Any, beta: float | None = None) -> Any:
    """The operator's value of every row of ``q``, actions last; None if some value is not finite.

    ``q`` is float64 or float32; one thread, without the interpreter lock.
    """
    values = np.empty(q.shape[:-1], q.dtype)
    rows = np.ascontiguousarray(q).reshape(-1)
    sharpness = 0.0 if beta is None else min(float(beta), float(np.finfo(q.dtype).max))
    batch(parameters(operator), rows, q.shape[-1], sharpness, values.reshape(-1))
    if rounding_reaches_minimum(q.shape[-1], float(np.finfo(q.dtype).eps)):
        values = np.maximum(values, np.where(np.isneginf(q), np.inf, q).min(axis=-1))
    return values if np.isfinite(values).all() else None
