"""Matrix products for small networks: tiles that live in registers, written out for the shapes that passes need.

The batch is the vector dimension: activations are kept as ``[feature, batch]``, so that a weight is read as it is
stored and multiplied into a register of samples, and nothing is transposed or unrolled into columns. One core reaches
most of what its multipliers can do, where a general library is held up by shapes as thin as these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils

from dynaboltz.operators import lanes

TILE_ROWS, TILE_REGISTERS = 8, 2
"""Of a full tile: 16 sums in registers hide the latency of the multipliers."""
COMPILED: Any = {"nogil": True, "error_model": "numpy"}


def _scalar(builder: Any, data: Any, index: Any, like: Any) -> Any:
    """One value, in every lane."""
    scalar = builder.load(builder.gep(data, [index]))
    vector = builder.insert_element(ir.Constant(like.vector, ir.Undefined), scalar, ir.Constant(lanes.INDEX, 0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(lanes.INDEX, like.width), [0] * like.width))


def _add_product(builder: Any, sum_: Any, x: Any, y: Any) -> None:
    product = builder.fmul(x, y, flags=lanes.FLAGS)
    builder.store(builder.fadd(builder.load(sum_), product, flags=lanes.FLAGS), sum_)


def _sums(builder: Any, like: Any, rows: int, columns: int) -> list[list[Any]]:
    return [[cgutils.alloca_once(builder, like.vector) for _ in range(columns)] for _ in range(rows)]


def _product_tile(rows: int, registers: int) -> Any:
    @lanes.primitive
    def tile(
        typing, a, a0, a_row, a_outer, a_inner, b, b0, b_outer, b_inner, bias, bias0, bias_row,
        c, c0, c_row, outer, inner, floor, like,
    ):  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            (_, a0_, a_row_, a_outer_, a_inner_, _, b0_, b_outer_, b_inner_, _, bias0_, bias_row_,
             _, c0_, c_row_, outer_, inner_, floor_, _) = args  # fmt: skip
            a_, b_, bias_, c_ = (lanes.data_of(context, builder, signature.args[i], args[i]) for i in (0, 5, 9, 12))
            index = a0_.type
            sums = _sums(builder, like, rows, registers)
            for r in range(rows):
                first = _scalar(
                    builder, bias_, builder.add(bias0_, builder.mul(bias_row_, ir.Constant(index, r))), like
                )
                for v in range(registers):
                    builder.store(first, sums[r][v])
            with cgutils.for_range(builder, outer_) as far:
                a_far = builder.add(a0_, builder.mul(far.index, a_outer_))
                b_far = builder.add(b0_, builder.mul(far.index, b_outer_))
                with cgutils.for_range(builder, inner_) as near:
                    a_at = builder.add(a_far, builder.mul(near.index, a_inner_))
                    b_at = builder.add(b_far, builder.mul(near.index, b_inner_))
                    samples = [
                        _register(builder, b_, builder.add(b_at, ir.Constant(index, v * like.width)), like)
                        for v in range(registers)
                    ]
                    for r in range(rows):
                        weight = _scalar(builder, a_, a_at, like)
                        a_at = builder.add(a_at, a_row_)
                        for v in range(registers):
                            _add_product(builder, sums[r][v], weight, samples[v])
            vector = builder.insert_element(ir.Constant(like.vector, ir.Undefined), floor_, ir.Constant(lanes.INDEX, 0))
            low = builder.shuffle_vector(
                vector, vector, ir.Constant(ir.VectorType(lanes.INDEX, like.width), [0] * like.width)
            )
            c_at = c0_
            for r in range(rows):
                for v in range(registers):
                    value = builder.load(sums[r][v])
                    value = builder.select(builder.fcmp_ordered("<", value, low), low, value)  # NaN stays NaN
                    _keep(builder, c_, builder.add(c_at, ir.Constant(index, v * like.width)), like, value)
                c_at = builder.add(c_at, c_row_)
            return context.get_dummy_value()

        size = types.intp
        return types.void(
            a,
            size,
            size,
            size,
            size,
            b,
            size,
            size,
            size,
            bias,
            size,
            size,
            c,
            size,
            size,
            size,
            size,
            like.dtype,
            like,
        ), code

    return tile


def _register(builder: Any, data: Any, index: Any, like: Any) -> Any:
    value = builder.load(builder.bitcast(builder.gep(data, [index]), like.vector.as_pointer()))
    value.align = like.dtype.bitwidth // 8
    return value


def _keep(builder: Any, data: Any, index: Any, like: Any, value: Any) -> None:
    store = builder.store(value, builder.bitcast(builder.gep(data, [index]), like.vector.as_pointer()))
    store.align = like.dtype.bitwidth // 8


_tile_8x2, _tile_8x1, _tile_1x2, _tile_1x1 = (
    _product_tile(rows, registers) for rows in (TILE_ROWS, 1) for registers in (TILE_REGISTERS, 1)
)


@njit(**COMPILED)
def product(
    a, a0, a_row, a_outer, a_inner, b, b0, b_outer, b_inner, bias, bias0, bias_row,
    c, c0, c_row, rows, columns, outer, inner, floor,
):  # fmt: skip
    """``c[i, j] = max(floor, bias[i] + Σ_{o, k} a[i, o, k]·b[o, k, j])``, each a strided view from an index on.

    ``columns`` is a multiple of a register's width; j is contiguous in b and c.
    """
    like = lanes.wide(c)
    width = np.intp(lanes.width(like))
    column = np.intp(0)
    while column < columns:
        pair = columns - column >= TILE_REGISTERS * width
        row = np.intp(0)
        while row < rows:
            many = rows - row >= TILE_ROWS
            x, y, d, z = a0 + row * a_row, b0 + column, bias0 + row * bias_row, c0 + row * c_row + column
            if many and pair:
                _tile_8x2(
                    a, x, a_row, a_outer, a_inner, b, y, b_outer, b_inner, bias, d, bias_row,
                    c, z, c_row, outer, inner, floor, like,
                )  # fmt: skip
            elif many:
                _tile_8x1(
                    a, x, a_row, a_outer, a_inner, b, y, b_outer, b_inner, bias, d, bias_row,
                    c, z, c_row, outer, inner, floor, like,
                )  # fmt: skip
            elif pair:
                _tile_1x2(
                    a, x, a_row, a_outer, a_inner, b, y, b_outer, b_inner, bias, d, bias_row,
                    c, z, c_row, outer, inner, floor, like,
                )  # fmt: skip
            else:
                _tile_1x1(
                    a, x, a_row, a_outer, a_inner, b, y, b_outer, b_inner, bias, d, bias_row,
                    c, z, c_row, outer, inner, floor, like,
                )  # fmt: skip
            row += TILE_ROWS if many else 1
        column += TILE_REGISTERS * width if pair else width


def _correlation_tile(rows: int, columns: int) -> Any:
    @lanes.primitive
    def tile(
        typing, a, a0, a_row, a_outer, a_inner, b, b0, b_column, b_outer, b_inner,
        c, c0, c_row, outer, inner, samples, like,
    ):  # fmt: skip
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            (_, a0_, a_row_, a_outer_, a_inner_, _, b0_, b_column_, b_outer_, b_inner_,
             _, c0_, c_row_, outer_, inner_, samples_, _) = args  # fmt: skip
            a_, b_, c_ = (lanes.data_of(context, builder, signature.args[i], args[i]) for i in (0, 5, 10))
            index, width = a0_.type, ir.Constant(a0_.type, like.width)
            sums = _sums(builder, like, rows, columns)
            for row in sums:
                for sum_ in row:
                    builder.store(ir.Constant(like.vector, [0.0] * like.width), sum_)
            with cgutils.for_range(builder, outer_) as far, cgutils.for_range(builder, inner_) as near:
                a_near = builder.add(
                    a0_, builder.add(builder.mul(far.index, a_outer_), builder.mul(near.index, a_inner_))
                )
                b_near = builder.add(
                    b0_, builder.add(builder.mul(far.index, b_outer_), builder.mul(near.index, b_inner_))
                )
                with cgutils.for_range(builder, builder.sdiv(samples_, width)) as register:
                    offset = builder.mul(register.index, width)
                    at, right = builder.add(b_near, offset), []
                    for _ in range(columns):
                        right.append(_register(builder, b_, at, like))
                        at = builder.add(at, b_column_)
                    at = builder.add(a_near, offset)
                    for r in range(rows):
                        left = _register(builder, a_, at, like)
                        at = builder.add(at, a_row_)
                        for j in range(columns):
                            _add_product(builder, sums[r][j], left, right[j])
            for r in range(rows):
                for j in range(columns):
                    total = _across(builder, builder.load(sums[r][j]), like)
                    at = builder.add(
                        c0_, builder.add(builder.mul(c_row_, ir.Constant(index, r)), ir.Constant(index, j))
                    )
                    builder.store(total, builder.gep(c_, [at]))
            return context.get_dummy_value()

        size = types.intp
        return types.void(
            a, size, size, size, size, b, size, size, size, size, c, size, size, size, size, size, like
        ), code

    return tile


def _across(builder: Any, value: Any, like: Any) -> Any:
    """The sum over the lanes, half added to half until one is left."""
    half = like.width // 2
    while half:
        mask = [(lane + half) % like.width for lane in range(like.width)]
        moved = builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(lanes.INDEX, like.width), mask))
        value, half = builder.fadd(value, moved, flags=lanes.FLAGS), half // 2
    return builder.extract_element(value, ir.Constant(lanes.INDEX, 0))


_sum_8x2, _sum_8x1, _sum_1x2, _sum_1x1 = (
    _correlation_tile(rows, columns) for rows in (TILE_ROWS, 1) for columns in (2, 1)
)


@njit(**COMPILED)
def correlation(
    a, a0, a_row, a_outer, a_inner, b, b0, b_column, b_outer, b_inner,
    c, c0, c_row, rows, columns, outer, inner, samples,
):  # fmt: skip
    """``c[i, j] = Σ_{o, k, s} a[i, o, k, s]·b[j, o, k, s]``, each a strided view from an index on; s is contiguous.

    ``samples`` is a multiple of a register's width.
    """
    like = lanes.wide(c)
    row = np.intp(0)
    while row < rows:
        many = rows - row >= TILE_ROWS
        column = np.intp(0)
        while column < columns:
            pair = columns - column >= 2
            x, y, z = a0 + row * a_row, b0 + column * b_column, c0 + row * c_row + column
            if many and pair:
                _sum_8x2(
                    a, x, a_row, a_outer, a_inner, b, y, b_column, b_outer, b_inner,
                    c, z, c_row, outer, inner, samples, like,
                )  # fmt: skip
            elif many:
                _sum_8x1(
                    a, x, a_row, a_outer, a_inner, b, y, b_column, b_outer, b_inner,
                    c, z, c_row, outer, inner, samples, like,
                )  # fmt: skip
            elif pair:
                _sum_1x2(
                    a, x, a_row, a_outer, a_inner, b, y, b_column, b_outer, b_inner,
                    c, z, c_row, outer, inner, samples, like,
                )  # fmt: skip
            else:
                _sum_1x1(
                    a, x, a_row, a_outer, a_inner, b, y, b_column, b_outer, b_inner,
                    c, z, c_row, outer, inner, samples, like,
                )  # fmt: skip
            column += 2 if pair else 1
        row += TILE_ROWS if many else 1
