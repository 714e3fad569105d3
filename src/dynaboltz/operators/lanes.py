"""Several rows at once: a Numba type that is one SIMD register, with the few operations the row kernels need.

LLVM does not vectorise a loop over four actions well, so the kernels put *rows* side by side instead: lane ``l`` of
every register belongs to row ``l``. A register holds 8 float64 or 16 float32 (512 bits; narrower machines split it),
or a single value, which makes the same kernel serve one row.
"""

from __future__ import annotations

import math
import operator
import struct
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

INDEX = ir.IntType(32)


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


def data_of(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """In an intrinsic: the address of an array's first value."""
    struct: Any = cgutils.create_struct_proxy
    return struct(array_type)(context, builder, array).data


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: Lanes) -> Any:
    return builder.bitcast(
        builder.gep(data_of(context, builder, array_type, array), [index]), lanes.vector.as_pointer()
    )


def load_lanes(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: Lanes) -> Any:
    """In an intrinsic: a register's worth of the array from ``index`` on."""
    value = builder.load(_address(context, builder, array_type, array, index, lanes))
    value.align = lanes.dtype.bitwidth // 8
    return value


def store_lanes(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lanes: Lanes, value: Any) -> None:
    """In an intrinsic: write a register to the array from ``index`` on."""
    store = builder.store(value, _address(context, builder, array_type, array, index, lanes))
    store.align = lanes.dtype.bitwidth // 8


def _wide(array: Any) -> Lanes:
    return Lanes(array.dtype, WIDTH[array.dtype.bitwidth // 8])


@primitive
def load(typing: Any, array: Any, index: Any, like: Any) -> Any:  # noqa: ARG001
    """``array[index : index + width]`` as lanes, as wide as ``like``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return load_lanes(context, builder, signature.args[0], args[0], args[1], like)

    return like(array, index, like), code


@primitive
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:  # noqa: ARG001
    """Write the lanes to ``array[index : index + width]``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        store_lanes(context, builder, signature.args[0], args[0], args[1], value, args[2])
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
        vector = builder.insert_element(ir.Constant(like.vector, ir.Undefined), scalar, ir.Constant(INDEX, 0))
        return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(INDEX, like.width), [0] * like.width))

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
def exponent(typing: Any, value: Any) -> Any:  # noqa: ARG001
    """The whole k with value = 2^k·m and m in [√½, √2), for positive normal numbers, as a float."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.sitofp(_binary_exponent(builder, value, args[0]), value.vector)

    return value(value), code


@primitive
def mantissa(typing: Any, value: Any) -> Any:  # noqa: ARG001
    """The m of :func:`exponent`."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        k = _binary_exponent(builder, value, args[0])
        shift = ir.Constant(value.bits, [_mantissa_bits(value)] * value.width)
        return builder.bitcast(builder.sub(builder.bitcast(args[0], value.bits), builder.shl(k, shift)), value.vector)

    return value(value), code


def _mantissa_bits(lanes: Lanes) -> int:
    return 52 if lanes.dtype.bitwidth == 64 else 23


def _binary_exponent(builder: Any, lanes: Lanes, value: Any) -> Any:
    smallest = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0]
    if lanes.dtype.bitwidth == 32:
        smallest = struct.unpack("<i", struct.pack("<f", math.sqrt(0.5)))[0]
    bits = builder.sub(builder.bitcast(value, lanes.bits), ir.Constant(lanes.bits, [smallest] * lanes.width))
    return builder.ashr(bits, ir.Constant(lanes.bits, [_mantissa_bits(lanes)] * lanes.width))


@primitive
def maximum(typing: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    """The larger of the two, NaN if either is."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        larger = builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[1], args[0])
        return builder.select(builder.fcmp_unordered("uno", args[1], args[1]), args[1], larger)

    return a(a, b), code


@primitive
def times_power_of_two(typing: Any, value: Any, shifted: Any) -> Any:  # noqa: ARG001
    """``value · 2^k``, where k is held in the low mantissa bits of ``shifted`` (see :mod:`elementary`)."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        shift = ir.Constant(value.bits, [_mantissa_bits(value)] * value.width)
        k = builder.shl(builder.bitcast(args[1], value.bits), shift)
        return builder.bitcast(builder.add(builder.bitcast(args[0], value.bits), k), value.vector)

    return value(value, shifted), code
