"""Rows side by side: m actions of as many rows as a register has lanes, one register an action.

How they get there depends on m: for few actions the rows are loaded whole and taken apart in registers, for many they
are transposed in square blocks, and what neither fits is gathered value by value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from dynaboltz.operators import lanes

_GATHERED = 2
"""Up to so many actions beyond whole blocks are gathered: cheaper than a block that is mostly done already."""


_AHEAD = np.uintp(2)
"""Tiles between what is read and what is asked for."""


@lanes.primitive
def _strided(typing: Any, array: Any, start: Any, stride: Any, like: Any) -> Any:  # noqa: ARG001
    """``array[start + l·stride]`` in lane l."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = lanes.data_of(context, builder, signature.args[0], args[0])
        vector, index = ir.Constant(like.vector, ir.Undefined), args[1]
        for lane in range(like.width):
            value = builder.load(builder.gep(data, [index]))
            vector = builder.insert_element(vector, value, ir.Constant(lanes.INDEX, lane))
            index = builder.add(index, args[2])
        return vector

    return like(array, start, stride, like), code


@lanes.primitive
def transpose(
    typing: Any,  # noqa: ARG001
    source: Any,
    start: Any,
    stride: Any,
    target: Any,
    offset: Any,
    target_stride: Any,
    like: Any,
) -> Any:
    """Write a width × width block of ``source`` transposed to ``target[offset:]``; either's rows are a stride apart.

    log₂(width) butterfly stages of in-register shuffles: stage k swaps the off-diagonal blocks of size k.
    """
    n = like.width

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, index = [], args[1]
        for _ in range(n):
            rows.append(lanes.load_lanes(context, builder, signature.args[0], args[0], index, like))
            index = builder.add(index, args[2])
        k = 1
        while k < n:
            low = [c if not c & k else n + (c ^ k) for c in range(n)]
            high = [c | k if not c & k else n + c for c in range(n)]
            for i in range(n):
                if not i & k:
                    a, b = rows[i], rows[i | k]
                    for at, mask in ((i, low), (i | k, high)):
                        rows[at] = builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(lanes.INDEX, n), mask))
            k *= 2
        index = args[4]
        for row in rows:
            lanes.store_lanes(context, builder, signature.args[3], args[3], index, like, row)
            index = builder.add(index, args[5])
        return context.get_dummy_value()

    return types.void(source, start, stride, target, offset, target_stride, like), code


@lanes.primitive
def _prefetch(typing: Any, source: Any, index: Any) -> Any:  # noqa: ARG001
    """Ask for the cache line of ``source[index]``, which may lie beyond the end."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        symbol = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        address = builder.gep(lanes.data_of(context, builder, signature.args[0], args[0]), [args[1]])
        builder.call(symbol, [builder.bitcast(address, byte), *(ir.Constant(flag, k) for k in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(source, index), code


def _split(m: int) -> Any:
    @lanes.primitive
    def split(typing: Any, source: Any, start: Any, target: Any, like: Any) -> Any:  # noqa: ARG001
        n = like.width

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            whole, index = [], args[1]
            for _ in range(m):
                whole.append(lanes.load_lanes(context, builder, signature.args[0], args[0], index, like))
                index = builder.add(index, ir.Constant(index.type, n))
            index = ir.Constant(args[1].type, 0)
            for action in range(m):
                places = [divmod(lane * m + action, n) for lane in range(n)]
                vector = whole[0]
                for k in range(1, m):
                    mask = [n + at if held == k else lane if k > 1 else at for lane, (held, at) in enumerate(places)]
                    vector = builder.shuffle_vector(vector, whole[k], ir.Constant(ir.VectorType(lanes.INDEX, n), mask))
                lanes.store_lanes(context, builder, signature.args[2], args[2], index, like, vector)
                index = builder.add(index, ir.Constant(index.type, n))
            return context.get_dummy_value()

        return types.void(source, start, target, like), code

    split.__doc__ = f"Write ``width`` rows of {m} values, one after the other from ``source[start]`` on, to ``target``."
    return split


_split2, _split3, _split4, _split5, _split6 = (_split(m) for m in range(2, 7))


@lanes.inlined
def fill(q: Any, start: Any, m: Any, like: Any, tile: Any) -> None:
    """Put the next ``width`` rows of m actions, from ``q[start]`` on, side by side into ``tile``."""
    if m == 2:
        _split2(q, start, tile, like)
    elif m == 3:
        _split3(q, start, tile, like)
    elif m == 4:
        _split4(q, start, tile, like)
    elif m == 5:
        _split5(q, start, tile, like)
    elif m == 6:
        _split6(q, start, tile, like)
    else:
        _fill_any(q, start, np.uintp(m), like, tile)


@lanes.inlined
def _fill_any(q: Any, start: Any, actions: Any, like: Any, tile: Any) -> None:
    step = lanes.width(like)
    for a in range(actions):  # blocks jump from row to row, which hides the stream from the hardware
        _prefetch(q, start + (_AHEAD * actions + np.uintp(a)) * step)
    blocks = actions // step
    for b in range(blocks):
        action = np.uintp(b) * step
        transpose(q, start + action, actions, tile, action * step, step, like)
    left = actions - blocks * step
    if blocks and left > _GATHERED:  # one more block, which overlaps the one before it
        action = actions - step
        transpose(q, start + action, actions, tile, action * step, step, like)
    else:
        for a in range(left):
            action = blocks * step + np.uintp(a)
            lanes.store(tile, action * step, _strided(q, start + action, actions, like))
