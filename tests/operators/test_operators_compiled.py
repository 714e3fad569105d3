"""The compiled rows give what the array form gives, and report what they cannot give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from dynaboltz import log_sum_exp
from dynaboltz.operators import operator as operator_module
from dynaboltz.operators.compiled import summarise
from dynaboltz.operators.operator import COMPILED_FROM

DTYPES = (np.float64, np.float32)
ACTIONS = (*range(1, 10), 15, 16, 17, 18, 31, 32, 33, 40)


def draw(rows: int, m: int, dtype: Any = np.float64, scale: float = 3.0) -> Any:
    return (np.random.default_rng([rows, m]).normal(size=(rows, m)) * scale).astype(dtype)


def close(case: Any, q: Any, found: Any, expected: Any, beta: float) -> bool:
    """Whether the two differ by no more than two rounding errors."""
    m, eps = q.shape[-1], float(np.finfo(q.dtype).eps)
    size = np.abs(np.where(np.isfinite(q), q, 0)).max(initial=0) + case.operator.traits.overshoot(beta, m)
    return found is not None and bool(np.abs(found - expected).max(initial=0) <= 8 * (m + 8) * eps * size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_equal_the_array_form_for_any_number_of_actions(case: Any, dtype: Any) -> None:
    for m in ACTIONS:
        q = draw(37, m, dtype)
        assert close(
            case, q, summarise(case.operator, q, *case.arguments(1.7)), case.operator(q, *case.arguments(1.7)), 1.7
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_equal_the_array_form_for_any_number_of_rows(case: Any, dtype: Any) -> None:
    """Around the register width, 8 or 16, where the rest is done one row at a time."""
    for rows in (0, 1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49):
        q = draw(rows, 5, dtype)
        found = summarise(case.operator, q, *case.arguments(1.7))
        assert found.shape == (rows,)
        assert close(case, q, found, case.operator(q, *case.arguments(1.7)), 1.7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_has_the_same_value_wherever_it_stands(case: Any, dtype: Any) -> None:
    """Each of 17 rows through a wide register and through a single lane, equal to the last bits."""
    q = draw(17, 6, dtype)
    single = np.array([summarise(case.operator, row[None], *case.arguments(1.7))[0] for row in q])
    wide = summarise(case.operator, np.repeat(q, 16, axis=0), *case.arguments(1.7))[::16]
    assert np.allclose(single, wide, rtol=4 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "beta", [0.0, 1e-300, 1e-45, 1e-20, 1e-8, 6e-6, 4.9e-3, 0.5, 30.0, 1e3, 1e6, 1e38, 1e300, math.inf]
)
def test_rows_equal_the_array_form_at_any_beta(sharp_case: Any, dtype: Any, beta: float) -> None:
    if sharp_case.operator is log_sum_exp and beta < 1e-30:
        assert summarise(log_sum_exp, draw(37, 5, dtype), 0.0) is None
        return
    for q in (draw(37, 5, dtype), np.round(draw(37, 5, dtype)), np.full((37, 5), 2.5, dtype)):
        assert close(sharp_case, q, summarise(sharp_case.operator, q, beta), sharp_case.operator(q, beta), beta)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_skip_illegal_actions(case: Any, dtype: Any) -> None:
    for beta in (0.01, 1.7, 1e300):
        for m in (1, 2, 5, 17):
            q = draw(37, m, dtype)
            illegal = np.random.default_rng(m).random(q.shape) < 0.6
            illegal[np.arange(37), np.random.default_rng(1).integers(m, size=37)] = False
            q[illegal] = -np.inf
            found = summarise(case.operator, q, *case.arguments(beta))
            assert close(case, q, found, case.operator(q, *case.arguments(beta)), beta)


@pytest.mark.parametrize("dtype", DTYPES)
def test_lowest_finite_number_is_a_legal_value(case: Any, dtype: Any) -> None:
    """Only −inf is illegal: code that masks with the lowest number gets that number's mean."""
    lowest = float(np.finfo(dtype).min)
    q = np.tile(np.array([0.0, lowest], dtype), (20, 1))
    found = summarise(case.operator, q, *case.arguments(1.0))
    expected = {"mean": lowest / 2, "epsilon_mixture": 0.05 * lowest, "log_sum_exp": 0.0, "mellowmax": -math.log(2)}
    assert np.allclose(found, expected.get(case.operator.name, 0.0), rtol=1e-6, atol=0)
    assert np.allclose(found, case.operator(q, *case.arguments(1.0)), rtol=1e-6, atol=0)


NANS = {
    np.float64: [np.array([bits], np.uint64).view(np.float64)[0] for bits in (0x7FF8000000000000, 0x7FF8000000000001)],
    np.float32: [np.array([bits], np.uint32).view(np.float32)[0] for bits in (0x7FC00000, 0x7FC00001)],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("payload", [0, 1])
def test_nan_is_reported_in_any_place_and_whatever_its_payload(case: Any, dtype: Any, payload: int) -> None:
    for row, action in ((0, 0), (0, 3), (21, 0), (21, 4), (36, 2)):
        for beta in (0.0, 1.7, 1e300):
            q = draw(37, 5, dtype)
            q[row, action] = NANS[dtype][payload]
            assert summarise(case.operator, q, *case.arguments(beta)) is None


@pytest.mark.parametrize("bad", [np.inf, "no legal action"])
def test_what_has_no_value_is_reported(case: Any, bad: Any) -> None:
    for row in (0, 36):
        q = draw(37, 5)
        q[row, 2 if bad == np.inf else slice(None)] = np.inf if bad == np.inf else -np.inf
        assert summarise(case.operator, q, *case.arguments(1.7)) is None


LARGE = np.random.default_rng(0).normal(size=(64, 64, 32))
"""Just enough values for the compiled rows."""
assert LARGE.size == COMPILED_FROM


def spied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the calls of the compiled rows."""
    from dynaboltz.operators import compiled

    calls: list[int] = []
    original = compiled.summarise

    def spy(*arguments: Any) -> Any:
        calls.append(1)
        return original(*arguments)

    monkeypatch.setattr(compiled, "summarise", spy)
    return calls


def body(case: Any, q: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    with monkeypatch.context() as patch:
        patch.setattr(operator_module, "COMPILED_FROM", 1 << 62)
        return case.operator(q, *case.arguments(1.7), **options)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("array", [np.asarray, torch.as_tensor])
def test_large_arrays_give_the_same_on_any_axis(
    case: Any, array: Any, dtype: Any, axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = spied(monkeypatch)
    q = array(LARGE.astype(dtype))
    value = case.operator(q, *case.arguments(1.7), axis=axis)
    assert len(calls) == 1
    assert (type(value), value.dtype) == (type(q), q.dtype)
    expected = body(case, q, monkeypatch, axis=axis)
    assert np.allclose(np.asarray(value), np.asarray(expected), rtol=0, atol=300 * np.finfo(dtype).eps)


def test_large_strided_arrays_give_the_same(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = spied(monkeypatch)
    q = np.random.default_rng(0).normal(size=(3, 6, 1 << 14))[::2, ::-1].transpose(2, 0, 1)[:, :, 1:]
    assert not q.flags.contiguous
    assert q.size >= COMPILED_FROM
    value = case.operator(q, *case.arguments(1.7))
    assert len(calls) == 1
    assert np.allclose(value, body(case, q, monkeypatch), rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", ["mask", "beta by row", "big endian", "half", "gradient wanted"])
def test_large_arrays_that_the_rows_cannot_serve_go_through_the_body(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dynaboltz import boltzmann

    calls = spied(monkeypatch)
    q = np.random.default_rng(0).normal(size=(1 << 15, 4))
    expected = boltzmann(q[:5], 1.7)
    match kind:
        case "mask":
            value = boltzmann(q, 1.7, mask=np.ones(4, bool))
        case "beta by row":
            value = boltzmann(q, np.full(len(q), 1.7))
        case "big endian":
            value = boltzmann(q.astype(">f8"), 1.7)
        case "half":
            value, expected = boltzmann(q.astype(np.float16), 1.7), boltzmann(q[:5].astype(np.float16), 1.7)
        case _:
            value = boltzmann(torch.as_tensor(q).requires_grad_(), 1.7).detach().numpy()
    assert not calls
    assert np.allclose(value[:5], expected)


def test_large_torch_tensors_keep_their_gradient(case: Any) -> None:
    q = torch.randn(1 << 15, 4, dtype=torch.float64, requires_grad=True)
    case.operator(q, *case.arguments(1.7)).sum().backward()
    assert q.grad is not None
    assert torch.allclose(q.grad, case.operator.gradient(q.detach(), *case.arguments(1.7)))


@pytest.mark.parametrize("rows", [3, 40])
def test_mean_of_ten_thousand_single_precision_values_stays_in_their_range(case: Any, rows: int) -> None:
    """One zero above 9842 equal values: the sum rounds to more than it may, the value must not."""
    low = np.float32(-1352163584.0)
    q = np.full((rows, 9843), low)
    q[:, 5] = 0
    for found in (case.operator(q, *case.arguments(1e-20)), summarise(case.operator, q, *case.arguments(1e-20))):
        assert (found >= low).all()
