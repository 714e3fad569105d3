"""The Lipschitz constant of the Boltzmann operator as a certificate for value iteration with a fixed β."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynaboltz.errors import UserError
from dynaboltz.theory import (
    World,
    contraction_certificate,
    contraction_factor,
    is_non_expansion,
    iterate,
    largest_contracting_discount,
)


def boltzmann(q: np.ndarray, beta: float) -> float:
    w = np.exp(beta * (q - q.max()))
    return float(w @ q / w.sum())


def slopes(q: np.ndarray, beta: float) -> np.ndarray:
    w = np.exp(beta * (q - q.max()))
    p = w / w.sum()
    return np.asarray(p * (1 + beta * (q - p @ q)))


@pytest.mark.parametrize(
    ("m", "lipschitz", "discount"),
    [
        (2, 1.19968, 0.8336),
        (3, 1.32733, 0.7534),
        (4, 1.42249, 0.7030),
        (6, 1.56273, 0.6399),
        (9, 1.70963, 0.5849),
        (18, 1.97454, 0.5064),
    ],
)
def test_largest_contracting_discount_has_the_known_values(m: int, lipschitz: float, discount: float) -> None:
    assert contraction_factor(0.5, m) == pytest.approx(lipschitz / 2, abs=5e-6)
    assert largest_contracting_discount(m) == pytest.approx(discount, abs=5.1e-5)


@pytest.mark.parametrize("m", [2, 3, 9])
def test_contraction_factor_is_the_largest_slope_of_two_level_rows(m: int) -> None:
    u = np.linspace(0, 10, 4001)
    largest = max(np.abs(slopes(np.append(np.zeros(k), np.full(m - k, -x)), 1.0)).sum() for x in u for k in range(1, m))
    assert 0.5 * largest == pytest.approx(contraction_factor(0.5, m), rel=1e-6)


rows_of_four = st.lists(st.floats(-5, 5), min_size=4, max_size=4).map(np.array)


@given(rows_of_four, rows_of_four, st.floats(0.01, 50))
def test_boltzmann_stretches_distances_by_at_most_the_factor(x: np.ndarray, y: np.ndarray, beta: float) -> None:
    stretch = contraction_factor(0.5, 4) / 0.5
    assert abs(boltzmann(x, beta) - boltzmann(y, beta)) <= stretch * np.abs(x - y).max() * (1 + 1e-9) + 1e-13


@given(rows_of_four, rows_of_four)
def test_boltzmann_is_a_non_expansion_between_rows_of_small_spread(x: np.ndarray, y: np.ndarray) -> None:
    spread = max(float(np.ptp(x)), float(np.ptp(y)), 1e-6)
    beta = 0.999 / spread
    assert is_non_expansion(beta, spread)
    assert abs(boltzmann(x, beta) - boltzmann(y, beta)) <= np.abs(x - y).max() * (1 + 1e-9) + 1e-13


def test_boltzmann_with_a_larger_spread_is_not_a_non_expansion() -> None:
    x, y = np.array([0.0, 3.0]), np.array([0.0, 4.0])
    assert not is_non_expansion(1.0, 4.0)
    assert abs(boltzmann(x, 1.0) - boltzmann(y, 1.0)) > np.abs(x - y).max()


def test_one_contraction_certificate_bounds_the_distance_to_the_fixed_point() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        states, m = int(rng.integers(1, 5)), int(rng.integers(2, 7))
        discount = 0.98 * largest_contracting_discount(m)
        transitions = rng.dirichlet(np.full(states, 0.3), size=(states, m))
        beta = float(10.0 ** rng.uniform(-1, 2))
        world = World(rng.normal(size=(states, m)), transitions, discount, 5 * rng.normal(size=states))
        values = iterate(world, [beta] * 800)
        certificate = contraction_certificate(float(np.abs(values[1] - values[0]).max()), discount, m)
        assert certificate.contracts
        assert np.abs(values[0] - values[-1]).max() <= certificate.error_bound
        gaps = np.abs(np.diff(np.array(values[:20]), axis=0)).max(axis=-1)
        assert (gaps[1:] <= certificate.factor * gaps[:-1] * (1 + 1e-9) + 1e-12).all()


def test_certificate_without_a_contraction_promises_nothing() -> None:
    certificate = contraction_certificate(0.1, 0.95, 2)
    assert not certificate.contracts
    assert certificate.error_bound == math.inf


@pytest.mark.parametrize("m", [1, 2, 18])
def test_certificate_contracts_exactly_below_the_largest_discount(m: int) -> None:
    edge = largest_contracting_discount(m)
    assert contraction_certificate(1.0, edge * (1 - 1e-9), m).contracts
    if m > 1:
        assert not contraction_certificate(1.0, edge * (1 + 1e-9), m).contracts


def test_contraction_refuses_bad_arguments() -> None:
    for refuses, words in (
        (lambda: contraction_factor(1.0, 2), "discount"),
        (lambda: contraction_factor(0.5, 0), "number of actions"),
        (lambda: largest_contracting_discount(0), "number of actions"),
        (lambda: contraction_certificate(math.nan, 0.5, 2), "residual"),
        (lambda: is_non_expansion(-1.0, 1.0), "β"),
        (lambda: is_non_expansion(1.0, math.nan), "spread"),
    ):
        with pytest.raises(UserError, match=words):
            refuses()
