"""The exponentials and logarithms of the compiled kernels, lane by lane, against mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from numba import njit

from dynaboltz.operators import elementary, lanes


def _kernel(function: Any) -> Any:
    @njit(error_model="numpy")
    def wide(x: Any, out: Any) -> None:
        like = lanes.wide(x)
        for b in range(x.size // lanes.width(like)):
            i = np.uintp(b) * lanes.width(like)
            lanes.store(out, i, function(lanes.load(x, i, like)))

    @njit(error_model="numpy")
    def single(x: Any, out: Any) -> None:
        like = lanes.single(x)
        for i in range(x.size):
            lanes.store(out, np.uintp(i), function(lanes.load(x, np.uintp(i), like)))

    return wide, single


@njit(error_model="numpy")
def _log_from_excess(x: Any) -> Any:
    return elementary.log_either(x + 1.0, x)


@njit(error_model="numpy")
def _log_without_excess(x: Any) -> Any:
    return elementary.log_either(x, x - 1.0)


KERNELS = {
    "exp": _kernel(elementary.exp),
    "expm1": _kernel(elementary.expm1),
    "log": _kernel(elementary.log),
    "log1p": _kernel(_log_from_excess),
    "log_either": _kernel(_log_without_excess),
}
RELATIVE_ERROR = {np.float64: 3e-16, np.float32: 2e-7}
LOWEST = {np.float64: -708.0, np.float32: -87.0}
"""From here on down e^x comes close to the smallest normal number."""


def run(name: str, x: Any, *, wide: bool = True) -> Any:
    assert x.size % 16 == 0
    out = np.full_like(x, 7)
    KERNELS[name][0 if wide else 1](x, out)
    return out


def arguments(dtype: Any, lowest: float) -> Any:
    """Return arguments over the whole range, near 0, and beside every multiple of ln 2 / 2."""
    rng = np.random.default_rng(0)
    halves = -np.arange(1, int(-lowest / np.log(2) * 2)) * np.log(2) / 2
    x = np.concatenate([
        rng.uniform(lowest, 0, 3000),
        rng.uniform(-2, 0, 2000),
        -(10.0 ** rng.uniform(-30, 0, 2000)),
        *(halves * (1 + shift) for shift in (0.0, 1e-7, -1e-7)),
        [0.0, lowest],
    ])  # fmt: skip
    return np.resize(x[x >= lowest], 16 * (len(x) // 16)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["exp", "expm1"])
def test_relative_error_against_mpmath_is_as_claimed(name: str, dtype: Any) -> None:
    x = arguments(dtype, LOWEST[dtype])
    found = run(name, x)
    with mpmath.workdps(40):
        exact = [getattr(mpmath, name)(mpmath.mpf(float(v))) for v in x]
        errors = [abs(float(f) - e) / abs(e) if e else abs(float(f)) for f, e in zip(found, exact, strict=True)]
    assert max(errors) < RELATIVE_ERROR[dtype]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["exp", "expm1"])
def test_one_lane_equals_wide(name: str, dtype: Any) -> None:
    x = arguments(dtype, 2 * LOWEST[dtype])
    assert np.allclose(run(name, x), run(name, x, wide=False), rtol=np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_far_below_zero_exp_is_zero_and_expm1_is_minus_one(dtype: Any) -> None:
    x = np.resize(np.array([-710.0, -1e4, -1e30, -np.finfo(dtype).max, -np.inf], dtype), 16)
    assert (run("exp", x) == 0).all()
    assert (run("expm1", x) == -1).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_zero_gives_one_and_zero(dtype: Any) -> None:
    assert (run("exp", np.zeros(16, dtype)) == 1).all()
    assert (run("expm1", np.zeros(16, dtype)) == 0).all()


@pytest.mark.parametrize("name", list(KERNELS))
@pytest.mark.parametrize("payload", [0, 1, 2, 0x7A2, 0xFFF, 0x12345])
@pytest.mark.parametrize("wide", [True, False])
def test_nan_stays_nan_whatever_its_payload(name: str, payload: int, *, wide: bool) -> None:
    for sign in (0, 1):
        double = np.full(16, (sign << 63) | 0x7FF8000000000000 | payload, np.uint64).view(np.float64)
        single = np.full(16, (sign << 31) | 0x7FC00000 | payload, np.uint32).view(np.float32)
        assert np.isnan(run(name, double, wide=wide)).all()
        assert np.isnan(run(name, single, wide=wide)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exp_never_decreases_by_more_than_rounding(dtype: Any) -> None:
    x = np.sort(arguments(dtype, LOWEST[dtype]))
    found = run("exp", x).astype(float)
    assert (np.diff(found) >= -2 * np.finfo(dtype).eps * found[:-1]).all()
    assert found.max() == 1.0


def masses(dtype: Any) -> Any:
    """Return Σ e^{βd} and its inverse as rows of 1 to 10^7 actions give them, all near 1, and every power of 2."""
    rng = np.random.default_rng(1)
    near = 10.0 ** rng.uniform(-16, -0.4, 2000)
    x = np.concatenate([
        10.0 ** rng.uniform(-7, 7, 3000),
        1 + near, 1 - near,
        2.0 ** np.arange(-30, 31),
        *(np.sqrt(0.5) * 2.0 ** np.arange(-20, 21) * (1 + shift) for shift in (0.0, 1e-7, -1e-7, 3e-16, -3e-16)),
        1 + np.arange(-40, 41) * float(np.finfo(dtype).eps) / 2,
    ]).astype(dtype)  # fmt: skip
    return np.resize(x, 16 * (len(x) // 16))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["log", "log_either"])
def test_logarithm_of_any_mass_is_within_two_roundings(name: str, dtype: Any) -> None:
    x = masses(dtype)
    if name == "log_either":  # the mean of numbers at most 1
        x = np.minimum(x, dtype(1))
    found = run(name, x)
    with mpmath.workdps(40):
        exact = [mpmath.log(mpmath.mpf(float(v))) for v in x]
        errors = [abs(float(f) - e) / abs(e) if e else abs(float(f)) for f, e in zip(found, exact, strict=True)]
    assert max(errors) < 2 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logarithm_from_the_excess_over_one_keeps_every_digit(dtype: Any) -> None:
    """1 + x has lost x where |x| < eps; the logarithm must not."""
    rng = np.random.default_rng(2)
    x = np.resize(np.append(-(10.0 ** rng.uniform(-35, -0.7, 3000)), [0.0, -0.2499]), 2992).astype(dtype)
    found = run("log1p", x)
    with mpmath.workdps(40):
        exact = [mpmath.log1p(mpmath.mpf(float(v))) for v in x]
        errors = [abs(float(f) - e) / abs(e) if e else abs(float(f)) for f, e in zip(found, exact, strict=True)]
    assert max(errors) < 2 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["log", "log_either"])
def test_logarithm_of_one_lane_equals_wide(name: str, dtype: Any) -> None:
    x = masses(dtype)
    assert np.array_equal(run(name, x), run(name, x, wide=False))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["log", "log_either"])
def test_logarithm_of_what_is_not_finite_is_not_finite(name: str, dtype: Any) -> None:
    x = np.resize(np.array([np.nan, -np.nan, np.inf], dtype), 48)
    assert not np.isfinite(run(name, x)).any()
