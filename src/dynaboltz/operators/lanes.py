"""Several rows at once: a Numba type that is one SIMD register, with the few operations the row kernels need.

LLVM does not vectorise a loop over four actions well, so the kernels put *rows* side by side instead: lane ``l`` of
every register belongs to row ``l``. A register holds 8 float64 or 16 float32 (512 bits; narrower machines split it),
or a single value, which makes the same kernel serve one row.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

WIDTH = {8: 8, 4: 16}
"""Lanes in a register by bytes a value."""

FLAGS = ("contract", "nsz")
"""Only fused multiply-adds and unsigned zeros: nothing that could lose a NaN or an infinity."""

INLINE: Any = {"forceinline": True, "error_model": "numpy", "nogil": True}
"""For functions that are part of a kernel: a call would cost more than they do."""

_INDEX = ir.IntType(32)


def primitive(function: Any) -> Any:
    """A few LLVM instructions as a function of compiled code."""
    return intrinsic(function)


def inlined(function: Any) -> Any:
    """The function compiled as part of every kernel that calls it."""
    return njit(**INLINE)(function)


class Lanes(types.Type):
    """``width`` values of one float type, in one register."""

    def __init__(self, dtype: types.Float, width: int) -> None:
        self.dtype, self.width = dtype, width
        super().__init__(name=f"Lanes({dtype}, {width})")

    @property
    def vector(self) -> Any:
        """The LLVM vector type."""
        scalar = ir.DoubleType() if self.dtype.bitwidth == 64 else ir.FloatType()
        return ir.VectorType(scalar, self.width)

    @property
    def bits(self) -> Any:
        """The LLVM vector of integers of the same size."""
        return ir.VectorType(ir.IntType(self.dtype.bitwidth), self.width)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Lanes) -> None:
        super().__init__(dmm, fe_type, fe_type.vector)  # type: ignore[no-untyped-call]


def _constant(lanes: Lanes, value: float) -> ir.Constant:
    return ir.Constant(lanes.vector, [value] * lanes.width)


def _data(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    struct: Any = cgutils.create_struct_proxy
    return struct(array_type)(context, builder, array).data


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: Lanes) -> Any:
    return builder.bitcast(builder.gep(_data(context, builder, array_type, array), [index]), lanes.vector.as_pointer())


def _load(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: Lanes) -> Any:
    value = builder.load(_address(context, builder, array_type, array, index, lanes))
    value.align = lanes.dtype.bitwidth // 8
    return value


def _store(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: Lanes, value: Any) -> None:
    store = builder.store(value, _address(context, builder, array_type, array, index, lanes))
    store.align = lanes.dtype.bitwidth // 8


def _wide(array: Any) -> Lanes:
    return Lanes(array.dtype, WIDTH[array.dtype.bitwidth // 8])


@primitive
def load(typing: Any, array: Any, index: Any, like: Any) -> Any:  # noqa: ARG001
    """``array[index : index + width]`` as lanes, as wide as ``like``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(context, builder, signature.args[0], args[0], args[1], like)

    return like(array, index, like), code


@primitive
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
    """Write the lanes to ``array[index : index + width]``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _store(context, builder, signature.args[0], args[0], args[1], value, args[2])
        return context.get_dummy_value()

    return types.void(array, index, value), code


@primitive
def wide(typing: Any, array: Any) -> Any:  # noqa: ARG001
    """Zeros as wide as a register of the array's type."""
    lanes = _wide(array)
    return lanes(array), lambda context, builder, signature, args: _constant(lanes, 0.0)  # noqa: ARG005


@primitive
def single(typing: Any, array: Any) -> Any:  # noqa: ARG001
    """One zero of the array's type, as lanes of width 1."""
    lanes = Lanes(array.dtype, 1)
    return lanes(array), lambda context, builder, signature, args: _constant(lanes, 0.0)  # noqa: ARG005


@primitive
def width(typing: Any, like: Any) -> Any:  # noqa: ARG001
    """The number of lanes."""
    return types.uintp(like), lambda context, builder, signature, args: ir.Constant(  # noqa: ARG005
        context.get_value_type(types.uintp), like.width
    )


@primitive
def splat(typing: Any, like: Any, value: Any) -> Any:  # noqa: ARG001
    """``value`` in every lane."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        scalar = context.cast(builder, args[1], signature.args[1], like.dtype)
        vector = builder.insert_element(ir.Constant(like.vector, ir.Undefined), scalar, ir.Constant(_INDEX, 0))
        return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_INDEX, like.width), [0] * like.width))

    return like(like, value), code


def _binary(method: str) -> Any:
    @primitive
    def operation(typing: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
        return a(a, b), lambda context, builder, signature, args: getattr(builder, method)(  # noqa: ARG005
            *args, flags=FLAGS
        )

    return operation


_add, _sub, _mul, _div = (_binary(method) for method in ("fadd", "fsub", "fmul", "fdiv"))


def _overload(symbol: Any, operation: Any) -> None:
    @overload(symbol, strict=False, jit_options=INLINE)
    def implementation(a: Any, b: Any) -> Any:
        if isinstance(a, Lanes) and isinstance(b, Lanes):
            return lambda a, b: operation(a, b)  # noqa: PLW0108  (the names must match)
        if isinstance(a, Lanes) and isinstance(b, types.Number):
            return lambda a, b: operation(a, splat(a, b))
        if isinstance(b, Lanes) and isinstance(a, types.Number):
            return lambda a, b: operation(splat(b, a), b)
        return None


for _symbol, _operation in (
    (operator.add, _add), (operator.sub, _sub), (operator.mul, _mul), (operator.truediv, _div),
):  # fmt: skip
    _overload(_symbol, _operation)


@primitive
def where_less(typing: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:  # noqa: ARG001
    """``yes`` where a < b, else ``no``; a comparison with NaN is false."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return yes(a, b, yes, no), code


@primitive
def extract(typing: Any, value: Any, lane: Any) -> Any:  # noqa: ARG001
    """The value in one lane."""
    return value.dtype(value, lane), lambda context, builder, signature, args: builder.extract_element(  # noqa: ARG005
        *args
    )


@primitive
def insert(typing: Any, value: Any, scalar: Any, lane: Any) -> Any:  # noqa: ARG001
    """The lanes with one replaced."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.insert_element(args[0], context.cast(builder, args[1], signature.args[1], value.dtype), args[2])

    return value(value, scalar, lane), code


@overload(math.log, strict=False, jit_options=INLINE)
def _log_lanes(x: Any) -> Any:
    def code(x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        for lane in range(width(x)):
            x = insert(x, math.log(extract(x, lane)), lane)
        return x

    return code if isinstance(x, Lanes) else None


@primitive
def maximum(typing: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    """The larger of the two, NaN if either is."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        larger = builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[1], args[0])
        return builder.select(builder.fcmp_unordered("uno", args[1], args[1]), args[1], larger)

    return a(a, b), code


@primitive
def times_power_of_two(typing: Any, value: Any, shifted: Any) -> Any:  # noqa: ARG001
    """``value · 2^k``, where k is held in the low mantissa bits of ``shifted`` (see :func:`exp`)."""
    mantissa = 52 if value.dtype.bitwidth == 64 else 23

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        shift = ir.Constant(value.bits, [mantissa] * value.width)
        k = builder.shl(builder.bitcast(args[1], value.bits), shift)
        return builder.bitcast(builder.add(builder.bitcast(args[0], value.bits), k), value.vector)

    return value(value, shifted), code


@primitive
def strided(typing: Any, array: Any, start: Any, stride: Any, like: Any) -> Any:  # noqa: ARG001
    """``array[start + l·stride]`` in lane l."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _data(context, builder, signature.args[0], args[0])
        vector, index = ir.Constant(like.vector, ir.Undefined), args[1]
        for lane in range(like.width):
            value = builder.load(builder.gep(data, [index]))
            vector = builder.insert_element(vector, value, ir.Constant(_INDEX, lane))
            index = builder.add(index, args[2])
        return vector

    return like(array, start, stride, like), code


@primitive
def transpose(typing: Any, source: Any, start: Any, stride: Any, target: Any, offset: Any, like: Any) -> Any:  # noqa: ARG001
    """Write a width × width block of ``source``, whose rows are ``stride`` apart, transposed to ``target[offset:]``.

    log₂(width) butterfly stages of in-register shuffles: stage k swaps the off-diagonal blocks of size k.
    """
    n = like.width

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, index = [], args[1]
        for _ in range(n):
            rows.append(_load(context, builder, signature.args[0], args[0], index, like))
            index = builder.add(index, args[2])
        k = 1
        while k < n:
            low = [c if not c & k else n + (c ^ k) for c in range(n)]
            high = [c | k if not c & k else n + c for c in range(n)]
            for i in range(n):
                if not i & k:
                    a, b = rows[i], rows[i | k]
                    for at, mask in ((i, low), (i | k, high)):
                        rows[at] = builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INDEX, n), mask))
            k *= 2
        index = args[4]
        for row in rows:
            _store(context, builder, signature.args[3], args[3], index, like, row)
            index = builder.add(index, ir.Constant(index.type, n))
        return context.get_dummy_value()

    return types.void(source, start, stride, target, offset, like), code


# Chebyshev-economised polynomials of e^r on |r| ≤ ln(2)/2, from the constant on; the relative error of exp is below
# 3e-16 (float64) and 2e-7 (float32), which tests/operators/test_lanes.py holds against mpmath.
_C64 = (
    1.0, 1.0, 0.5000000000000019, 0.1666666666666668, 0.0416666666664881, 0.008333333333319601,
    0.0013888888952314775, 0.00019841269890047113, 2.4801485482328494e-05, 2.755724091857897e-06,
    2.763263963904103e-07, 2.5110037605963777e-08,
)  # fmt: skip
_C32 = (1.0, 1.0, 0.5, 0.16666415333747864, 0.04166635125875473, 0.00837512593716383, 0.0013941108481958508)
_LOG2E = math.log2(math.e)
# ln 2 in two parts, the first with trailing zeros, so that k·high is exact; and 1.5·2^mantissa, which rounds to a
# whole number when added and leaves that number in the low mantissa bits.
_HIGH64, _LOW64, _ROUND64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10, 1.5 * 2.0**52
_HIGH32, _LOW32, _ROUND32 = 0.693359375, -2.12194440054690574e-04, 1.5 * 2.0**23
# The first k whose 2^k has only zero bits: there, and for all that is cut to it, e^x comes out as 0.
_LOWEST64, _LOWEST32 = -1023 * math.log(2), -127 * math.log(2)


def _reduce(x: Any) -> Any:
    """Return (shifted, r) with x = k·ln 2 + r, k in the low bits of ``shifted``; x is cut where e^x underflows."""
    raise NotImplementedError


@overload(_reduce, jit_options=INLINE)
def _reduce_lanes(x: Any) -> Any:
    high, low, rounding, lowest = (
        (_HIGH64, _LOW64, _ROUND64, _LOWEST64) if x.dtype.bitwidth == 64 else (_HIGH32, _LOW32, _ROUND32, _LOWEST32)
    )

    def code(x: Any) -> Any:
        floor = splat(x, lowest)
        x = where_less(x, floor, floor, x)
        shifted = x * _LOG2E + rounding
        k = shifted - rounding
        return shifted, (x - k * high) - k * low

    return code


def _tail(r: Any) -> Any:
    """(e^r − 1 − r) / r², by Estrin's scheme."""
    raise NotImplementedError


@overload(_tail, jit_options=INLINE)
def _tail_lanes(r: Any) -> Any:
    if r.dtype.bitwidth == 64:
        c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 = _C64[2:]

        def code(r: Any) -> Any:
            r2 = r * r
            r4 = r2 * r2
            high = (r * c11 + c10) * r2 + (r * c9 + c8)
            low = ((r * c7 + c6) * r2 + (r * c5 + c4)) * r2 + (r * c3 + c2)
            return high * (r4 * r2) + low
    else:
        c2, c3, c4, c5, c6 = _C32[2:]

        def code(r: Any) -> Any:
            r2 = r * r
            return (r * c5 + c4 + r2 * c6) * r2 + (r * c3 + c2)

    return code


@inlined
def exp(x: Any) -> Any:
    """e^x for x ≤ 0, lane by lane; 0 where 2^k would be subnormal, and NaN stays NaN whatever its payload."""
    shifted, r = _reduce(x)
    power = times_power_of_two(splat(x, 1.0), shifted)
    return power * (r * r * _tail(r) + r) + power


@inlined
def expm1(x: Any) -> Any:
    """e^x − 1 for x ≤ 0 without cancellation near 0, lane by lane."""
    shifted, r = _reduce(x)
    power = times_power_of_two(splat(x, 1.0), shifted)
    return power * (r * r * _tail(r) + r) + (power - 1.0)
