"""The optimisers compiled: one pass over flat arrays, a register at a time, that reads and writes each entry once.

The arithmetic is the rule's own ``entry``, inlined; for gradients, moments and weights of 1.7 million float32 the pass
is as fast as memory.
"""

from __future__ import annotations

import hashlib
import operator
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils
from numba.extending import overload

from dynaboltz.deep.rules import RULES, Rule
from dynaboltz.operators import lanes
from dynaboltz.operators.compiled import SOURCES

_HERE = Path(__file__).parent
_SOURCES = SOURCES + hashlib.sha256((_HERE / "rules.py").read_bytes() + (_HERE / "steps.py").read_bytes()).hexdigest()

_CONSTANTS: dict[type[Rule], Any] = {
    entry: namedtuple(entry.__name__ + "Constants", [f"p{i}" for i in range(len(entry().constants(1)))])
    for entry in RULES.values()
}
globals().update({kind.__name__: kind for kind in _CONSTANTS.values()})  # importable, so that Numba can cache
_ENTRIES = {kind: lanes.inlined(entry.entry) for entry, kind in _CONSTANTS.items()}


def constants(rule: Rule, update: int) -> Any:
    """The constants of the rule's ``update``-th step, whose type says which rule it is."""
    return _CONSTANTS[type(rule)](*rule.constants(update))


def _elementwise(name: str) -> Any:
    @lanes.primitive
    def function(typing: Any, x: Any) -> Any:  # noqa: ARG001
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
            kind = ir.FunctionType(args[0].type, [args[0].type])
            symbol = f"llvm.{name}.v{x.width}f{x.dtype.bitwidth}"
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, symbol), args)

        return x(x), code

    return function


_root, _absolute = _elementwise("sqrt"), _elementwise("fabs")


@overload(operator.pow, strict=False, jit_options=lanes.INLINE)
def _pow_lanes(x: Any, exponent: Any) -> Any:  # noqa: ARG001
    return (lambda x, exponent: _root(x)) if isinstance(x, lanes.Lanes) else None  # noqa: ARG005 - rules use ½ alone


@overload(abs, strict=False, jit_options=lanes.INLINE)
def _abs_lanes(x: Any) -> Any:
    return (lambda x: _absolute(x)) if isinstance(x, lanes.Lanes) else None  # noqa: PLW0108  (the names must match)


def _normal(x: Any) -> Any:
    """``x``, and 0 where x is subnormal: a moment that decays would stay there for ever, and cost ten times as much."""
    raise NotImplementedError


@overload(_normal, strict=False, jit_options=lanes.INLINE)
def _normal_lanes(x: Any) -> Any:
    smallest = 10 * float(np.finfo(x.dtype.name).smallest_normal)
    return lambda x: lanes.where_less(_absolute(x), lanes.splat(x, smallest), lanes.splat(x, 0.0), x)


def _entry(g: Any, m: Any, n: Any, p: Any) -> Any:
    raise NotImplementedError


@overload(_entry, strict=False, jit_options=lanes.INLINE)
def _entry_overload(g: Any, m: Any, n: Any, p: Any) -> Any:  # noqa: ARG001
    entry = _ENTRIES[p.instance_class]
    return lambda g, m, n, p: entry(g, m, n, p)  # noqa: PLW0108


@lanes.inlined
def _total(x: Any) -> Any:
    total = 0.0
    for lane in range(lanes.width(x)):
        total += lanes.extract(x, lane)
    return total


BLOCK = 4096
"""Entries that are summed in the arrays' own type before the sum goes on in float64."""


def _build(sources: str) -> tuple[Any, Any, Any]:
    @njit(nogil=True, cache=True, error_model="numpy")
    def step(theta: Any, g: Any, m: Any, n: Any, p: Any, rate: Any, factor: Any) -> Any:
        sources  # noqa: B018  (in the cache key)
        like = lanes.wide(theta)
        width, size, i = lanes.width(like), np.uintp(theta.size), np.uintp(0)
        wrong = like
        while i < size:
            move, first, second, _, _ = _entry(
                lanes.load(g, i, like) * factor, lanes.load(m, i, like), lanes.load(n, i, like), p
            )
            x = lanes.load(theta, i, like) - move * rate
            lanes.store(m, i, _normal(first))
            lanes.store(n, i, _normal(second))
            lanes.store(theta, i, x)
            wrong = wrong + (x - x)
            i += width
        return _total(wrong)

    @njit(nogil=True, cache=True, error_model="numpy")
    def step_and_trace(
        theta: Any, g: Any, m: Any, n: Any, p: Any, rate: Any, factor: Any,
        v: Any, share: Any, z: Any, decay: Any, exact: Any,
    ) -> Any:  # fmt: skip
        sources  # noqa: B018  (in the cache key)
        like = lanes.wide(theta)
        width, size, i = lanes.width(like), np.uintp(theta.size), np.uintp(0)
        wrong = like
        while i < size:
            gradient = lanes.load(g, i, like)
            move, first, second, direct, through = _entry(
                gradient * factor, lanes.load(m, i, like), lanes.load(n, i, like), p
            )
            x = lanes.load(theta, i, like) - move * rate
            change = (lanes.load(v, i, like) - gradient * share) * factor
            lanes.store(m, i, _normal(first))
            lanes.store(n, i, _normal(second))
            lanes.store(theta, i, x)
            moved = lanes.load(z, i, like) * decay + change * (direct - through * exact) * rate
            lanes.store(z, i, _normal(moved))
            wrong = wrong + (x - x)
            i += width
        return _total(wrong)

    @njit(nogil=True, cache=True, error_model="numpy")
    def dot(a: Any, b: Any) -> Any:
        sources  # noqa: B018  (in the cache key)
        like = lanes.wide(a)
        width, size, i = lanes.width(like), np.uintp(a.size), np.uintp(0)
        total = 0.0
        while i < size:
            stop, part = min(size, i + np.uintp(BLOCK)), like
            while i < stop:
                part = part + lanes.load(a, i, like) * lanes.load(b, i, like)
                i += width
            total += _total(part)
        return total

    return step, step_and_trace, dot


step, step_and_trace, dot = _build(_SOURCES)
"""``step``: weights, gradient, both moments, constants, learning rate and a factor on the gradient; the moments and the
weights are overwritten; what is returned is 0, or NaN if a weight has become infinite or NaN.

``step_and_trace``: the same, and ``z ← decay·z + rate·D∘(factor·(v − share·g))``, where D is the step's slope, with its
``through`` part if ``exact`` is 1 and without if it is 0.

``dot``: the inner product of two arrays. All arrays are flat, contiguous and a multiple of a register long.
"""
