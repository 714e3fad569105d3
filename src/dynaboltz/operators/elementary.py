"""Exponentials and logarithms of :mod:`~dynaboltz.operators.lanes`, in the ranges that centred rows need.

Numba's own call the C library, one value at a time; these are polynomials on whole registers.
"""

from __future__ import annotations

import math
from typing import Any

from numba.extending import overload

from dynaboltz.operators import lanes

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
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_HIGH64, _LOW64, _ROUND64 = _LN2_HIGH, _LN2_LOW, 1.5 * 2.0**52
_HIGH32, _LOW32, _ROUND32 = 0.693359375, -2.12194440054690574e-04, 1.5 * 2.0**23
# The first k whose 2^k has only zero bits: there, and for all that is cut to it, e^x comes out as 0.
_LOWEST64, _LOWEST32 = -1023 * math.log(2), -127 * math.log(2)


def _reduce(x: Any) -> Any:
    """Return (shifted, r) with x = k·ln 2 + r, k in the low bits of ``shifted``; x is cut where e^x underflows."""
    raise NotImplementedError


@overload(_reduce, jit_options=lanes.INLINE)
def _reduce_lanes(x: Any) -> Any:
    high, low, rounding, lowest = (
        (_HIGH64, _LOW64, _ROUND64, _LOWEST64) if x.dtype.bitwidth == 64 else (_HIGH32, _LOW32, _ROUND32, _LOWEST32)
    )

    def code(x: Any) -> Any:
        floor = lanes.splat(x, lowest)
        x = lanes.where_less(x, floor, floor, x)
        shifted = x * _LOG2E + rounding
        k = shifted - rounding
        return shifted, (x - k * high) - k * low

    return code


def _tail(r: Any) -> Any:
    """(e^r − 1 − r) / r², by Estrin's scheme."""
    raise NotImplementedError


@overload(_tail, jit_options=lanes.INLINE)
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


@lanes.inlined
def exp(x: Any) -> Any:
    """e^x for x ≤ 0, lane by lane; 0 where 2^k would be subnormal, and NaN stays NaN whatever its payload."""
    shifted, r = _reduce(x)
    power = lanes.times_power_of_two(lanes.splat(x, 1.0), shifted)
    return power * (r * r * _tail(r) + r) + power


@lanes.inlined
def expm1(x: Any) -> Any:
    """e^x − 1 for x ≤ 0 without cancellation near 0, lane by lane."""
    shifted, r = _reduce(x)
    power = lanes.times_power_of_two(lanes.splat(x, 1.0), shifted)
    return power * (r * r * _tail(r) + r) + (power - 1.0)


# Economised polynomials P(s²) = (atanh(s)/s − 1)/s² for |s| ≤ (√2 − 1)/(√2 + 1): log(1 + f) = 2s + 2s³·P(s²) with
# s = f/(2 + f).
_A64 = (
    0.3333333333333333, 0.20000000000000442, 0.14285714285399892, 0.11111111196290523, 0.09090897773760569,
    0.07693122368810833, 0.06634319184633412, 0.06544017425463777,
)  # fmt: skip
_A32 = (0.3333333432674408, 0.2000006139278412, 0.14275389909744263, 0.11665806919336319)


def _atanh_tail(z: Any) -> Any:
    """(atanh(√z)/√z − 1)/z."""
    raise NotImplementedError


@overload(_atanh_tail, jit_options=lanes.INLINE)
def _atanh_tail_lanes(z: Any) -> Any:
    if z.dtype.bitwidth == 64:
        a0, a1, a2, a3, a4, a5, a6, a7 = _A64

        def code(z: Any) -> Any:
            z2 = z * z
            return ((z * a7 + a6) * z2 + (z * a5 + a4)) * (z2 * z2) + ((z * a3 + a2) * z2 + (z * a1 + a0))
    else:
        a0, a1, a2, a3 = _A32

        def code(z: Any) -> Any:
            return (z * a3 + a2) * (z * z) + (z * a1 + a0)

    return code


@lanes.inlined
def _log_of(k: Any, f: Any) -> Any:
    """k·ln 2 + log(1 + f) for f from √½ − 1 to √2 − 1."""
    s = f / (f + 2.0)
    z = s * s
    return k * _LN2_HIGH + ((s + s) + ((s + s) * z * _atanh_tail(z) + k * _LN2_LOW))


@lanes.inlined
def log(x: Any) -> Any:
    """Log x for positive normal x, lane by lane; NaN stays NaN."""
    return _log_of(lanes.exponent(x), lanes.mantissa(x) - 1.0) + (x - x)


@lanes.inlined
def log_either(x: Any, beyond: Any) -> Any:
    """Log x for x from 0 (normal) to 1, where ``beyond`` is x − 1 with all its digits. NaN stays NaN."""
    quarter, zero = lanes.splat(x, 0.75), lanes.splat(x, 0.0)
    k = lanes.where_less(quarter, x, zero, lanes.exponent(x))
    f = lanes.where_less(quarter, x, beyond, lanes.mantissa(x) - 1.0)
    return _log_of(k, f) + (x - x)


@overload(math.log, strict=False, jit_options=lanes.INLINE)
def _log_lanes(x: Any) -> Any:
    return (lambda x: log(x)) if isinstance(x, lanes.Lanes) else None  # noqa: PLW0108  (the names must match)
