"""Hostile rows: the small version of ``benchmarks/faults_operators.py``, and its worst corners by name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz import boltzmann, log_sum_exp, mellowmax, soft_mellowmax

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults_operators.py"


@pytest.fixture(scope="module")
def faults() -> Any:
    spec = importlib.util.spec_from_file_location("faults_operators", FAULTS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["faults_operators"] = module
    spec.loader.exec_module(module)
    return module


def test_hostile_rows_have_no_nan_stay_in_range_and_within_the_stated_bound(faults: Any) -> None:
    totals: dict[tuple[str, str], Any] = {}
    for _, _, tallies in faults.measure(cases=1000, seed=5):
        for tally in tallies:
            totals.setdefault((tally.operator, tally.form), faults.Tally(tally.operator, tally.form)).add(tally)
    assert {name for name, _ in totals} == {operator.name for operator in faults.OPERATORS}
    assert [(t.operator, t.form, t.worst_case) for t in totals.values() if t.failed] == []
    assert min(t.mpmath for t in totals.values()) > 400


def test_the_check_of_hostile_rows_finds_an_error_above_the_bound(faults: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    original = faults.summarise
    monkeypatch.setattr(faults, "summarise", lambda *a: original(*a) * (1 + 3e-3))
    tallies = [t for i in range(6) for t in faults.measure_block(5, i) if t.form == "compiled"]
    assert any(t.above_bound for t in tallies)
    assert any(t.out_of_bounds for t in tallies)


def test_the_check_of_hostile_rows_finds_nan(faults: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "summarise", lambda *_: None)
    assert all(t.nan == t.cases for t in faults.measure_block(5, 0) if t.form == "compiled")


@pytest.mark.parametrize("beta", [0.0, 5e-324, 1e-300, 1.0, 1e300, np.inf])
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1.0, 1e30])
def test_equal_values_of_any_size_are_their_own_summary(beta: float, scale: float) -> None:
    for operator in (boltzmann, mellowmax, soft_mellowmax(2.0)):
        assert operator(np.full(7, scale), beta) == scale
        assert operator.beta_derivative(np.full(7, scale), beta) == pytest.approx(0, abs=1e-30 * scale)


@pytest.mark.parametrize("beta", [1e-300, 1e-6, 1.0, 1e300])
def test_derivatives_are_finite_at_any_scale_and_beta(sharp_case: Any, beta: float) -> None:
    q = np.random.default_rng(0).normal(size=(9, 4)) * 10.0 ** np.arange(-30, 31, 7.5)[:, None]
    if sharp_case.operator is not log_sum_exp or beta >= 1e-6:
        assert np.isfinite(sharp_case.operator.gradient(q, beta)).all()
        assert np.isfinite(sharp_case.operator.beta_derivative(q, beta)).all()


def test_naive_formula_overflows_where_the_operators_do_not() -> None:
    """Why the maximum is subtracted before β multiplies: e^{1000} is beyond double precision."""
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(1.0 * 1000.0))
    assert boltzmann([1000.0, 0.0], 1.0) == 1000.0
    assert log_sum_exp([1000.0, 1000.0], 1.0) == pytest.approx(1000.0 + np.log(2), rel=1e-15)
