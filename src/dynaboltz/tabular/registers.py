"""A row of 2, 4 or 8 action values in one register: loaded once, with the few operations between its lanes.

LLVM leaves a loop over four actions a loop, and a step is short enough for that to cost more than the arithmetic. Rows
of other lengths go through plain loops, to the same choices.
"""

# ruff: noqa: ARG001, ARG005  (the signatures are Numba's)
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import overload

from dynaboltz.operators import lanes

WIDTHS = (2, 4, 8)
"""Rows of so many actions fill a register."""

_LANE, _WORD = ir.IntType(32), ir.IntType(64)

NTH = np.array([[*[bit for bit in range(8) if mask >> bit & 1], *[0] * 8][:8] for mask in range(256)], np.uint8).ravel()
"""The n-th of the bits that are set in a mask is ``NTH[8·mask + n]``."""


def width_of(actions: Any) -> int:
    """The lanes of a row, from the type of a world's actions; 1 if rows do not fill a register."""
    return len(actions) if isinstance(actions, types.UniTuple) and len(actions) in WIDTHS else 1


def register(actions: Any, q: Any) -> Any:
    """Zeros as wide as a row, or as one value."""
    raise NotImplementedError


@overload(register, strict=False, jit_options=lanes.INLINE)
def _register_overload(actions: Any, q: Any) -> Any:
    row = lanes.Lanes(q.dtype, width_of(actions))

    @lanes.primitive
    def zeros(typing: Any, q: Any) -> Any:
        return row(q), lambda context, builder, signature, args: ir.Constant(row.vector, [0.0] * row.width)

    return lambda actions, q: zeros(q)


def _across(builder: Any, value: Any, width: int, join: Any) -> Any:
    parts = [builder.extract_element(value, ir.Constant(_LANE, lane)) for lane in range(width)]
    while len(parts) > 1:
        parts = [join(first, second) for first, second in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


@lanes.primitive
def largest(typing: Any, value: Any) -> Any:
    """The largest lane."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def larger(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered("<", a, b), b, a)

        return _across(builder, args[0], value.width, larger)

    return value.dtype(value), code


@lanes.primitive
def total(typing: Any, value: Any) -> Any:
    """The sum of the lanes, neighbours first."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _across(builder, args[0], value.width, builder.fadd)

    return value.dtype(value), code


@lanes.primitive
def at_least(typing: Any, value: Any, bound: Any) -> Any:
    """A mask with a bit for each lane that is at least as large as that of ``bound``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.bitcast(builder.fcmp_ordered(">=", *args), ir.IntType(value.width))
        return builder.zext(bits, _WORD)

    return types.uint64(value, bound), code


@lanes.primitive
def set_bits(typing: Any, mask: Any) -> Any:
    """How many bits are set."""
    return types.uint64(mask), lambda context, builder, signature, args: builder.ctpop(args[0])
