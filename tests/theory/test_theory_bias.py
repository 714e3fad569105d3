"""Theorem 4: signed biases are ordered, absolute ones are not, and quadrature agrees with sampling."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynaboltz.errors import UserError
from dynaboltz.theory import (
    BIAS_OPERATORS,
    max_bias,
    monte_carlo_bias_difference,
    monte_carlo_biases,
    noise_free_biases,
    two_arm_biases,
)

ORDER = ("mellowmax", "boltzmann", "max", "log_sum_exp")
EQUAL, STAIRS = np.zeros(10), -np.arange(10) / 10
means = st.lists(st.floats(-3, 3), min_size=1, max_size=8)


def test_the_order_names_every_operator() -> None:
    assert sorted(ORDER) == sorted(BIAS_OPERATORS)


@given(means, st.floats(0.01, 100))
def test_operators_without_noise_are_ordered(mu: list[float], beta: float) -> None:
    biases = noise_free_biases(mu, beta)
    values = [biases[name] for name in ORDER]
    assert all(low <= high + 1e-12 for low, high in pairwise(values))


def test_without_noise_boltzmann_is_more_biased_than_max() -> None:
    biases = noise_free_biases([0.0, -1.0], 1.0)
    assert biases["boltzmann"] == pytest.approx(-1 / (1 + math.e))
    assert biases["boltzmann"] == pytest.approx(-0.269, abs=5e-4)
    assert biases["max"] == 0.0


@given(means, st.floats(0, 2), st.floats(0.05, 20), st.integers(0, 2**32))
def test_sampled_biases_are_ordered_in_every_sample(mu: list[float], sd: float, beta: float, seed: int) -> None:
    found = monte_carlo_biases(mu, sd, beta, samples=50, rng=np.random.default_rng(seed))
    values = [found[name].value for name in ORDER]
    assert all(low <= high + 1e-12 for low, high in pairwise(values))


@pytest.mark.parametrize(
    ("mu", "beta", "expected"),
    [
        (EQUAL, 3.0, {"boltzmann": 0.2222, "max": 0.4616, "log_sum_exp": 0.8840, "mellowmax": 0.1165}),
        (STAIRS, 1.0, {"boltzmann": -0.2902, "max": 0.2015, "log_sum_exp": 1.9333, "mellowmax": -0.3693}),
    ],
)
def test_biases_of_ten_arms_have_the_known_values(mu: np.ndarray, beta: float, expected: dict[str, float]) -> None:
    found = monte_carlo_biases(mu, 0.3, beta, samples=200_000, rng=np.random.default_rng(0))
    for name, value in expected.items():
        assert found[name].standard_error < 5e-4
        assert found[name].value == pytest.approx(value, abs=4 * found[name].standard_error + 2e-4)


def test_boltzmann_can_be_more_biased_than_max_in_absolute_value() -> None:
    found = monte_carlo_biases(STAIRS, 0.3, 1.0, samples=50_000, rng=np.random.default_rng(1))
    assert found["boltzmann"].high < 0 < found["max"].low
    assert found["boltzmann"].absolute - found["max"].absolute > 0.05


def test_bias_of_boltzmann_tends_to_that_of_max() -> None:
    rng = np.random.default_rng(2)
    differences = [
        -monte_carlo_bias_difference("boltzmann", "max", EQUAL, 0.3, beta, samples=20_000, rng=rng).value
        for beta in (1.0, 10.0, 100.0, 1000.0)
    ]
    assert differences == sorted(differences, reverse=True)
    assert 0 < differences[-1] < 0.01 * differences[0]


def test_paired_difference_is_that_of_the_biases_and_far_more_precise() -> None:
    options = {"samples": 20_000}
    both = monte_carlo_biases(EQUAL, 0.3, 30.0, rng=np.random.default_rng(3), **options)
    paired = monte_carlo_bias_difference("boltzmann", "max", EQUAL, 0.3, 30.0, rng=np.random.default_rng(3), **options)
    assert paired.value == pytest.approx(both["boltzmann"].value - both["max"].value)
    unpaired = math.hypot(both["boltzmann"].standard_error, both["max"].standard_error)
    assert paired.standard_error < unpaired / 5


def test_confidence_interval_covers_the_exact_bias_as_often_as_it_says() -> None:
    exact = max_bias([0.0, 0.0], 1.0)
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(400):
        found = monte_carlo_biases([0.0, 0.0], 1.0, 1.0, samples=400, rng=rng, confidence=0.9)["max"]
        covered += found.low <= exact <= found.high
    assert 400 * 0.9 - 4 * math.sqrt(400 * 0.09) < covered < 400 * 0.9 + 4 * math.sqrt(400 * 0.09)


def test_estimates_depend_on_the_generator_alone() -> None:
    first, second, other = (
        monte_carlo_biases(STAIRS, 0.3, 1.0, samples=100, rng=np.random.default_rng(seed)) for seed in (5, 5, 6)
    )
    assert first == second
    assert first != other


def test_samples_without_noise_give_the_exact_bias() -> None:
    found = monte_carlo_biases(STAIRS, 0.0, 2.0, samples=3, rng=np.random.default_rng(0))
    exact = noise_free_biases(STAIRS, 2.0)
    assert {name: estimate.value for name, estimate in found.items()} == pytest.approx(exact)
    assert all(estimate.standard_error < 1e-15 for estimate in found.values())


@pytest.mark.parametrize(("mu", "expected"), [(EQUAL, 0.3 * 1.5387527308351729), (STAIRS, None)])
def test_exact_max_bias_of_ten_arms_agrees_with_order_statistics_and_sampling(
    mu: np.ndarray, expected: float | None
) -> None:
    exact = max_bias(mu, 0.3)
    if expected is not None:  # the mean of the largest of ten standard normals, tabulated
        assert exact == pytest.approx(expected, rel=1e-12)
    found = monte_carlo_biases(mu, 0.3, 1.0, samples=100_000, rng=np.random.default_rng(7))["max"]
    assert abs(found.value - exact) < 4 * found.standard_error


@given(st.floats(-2, 2), st.floats(0.01, 2), st.floats(0.01, 2))
def test_exact_max_bias_of_two_arms_is_clarks_formula(offset: float, first: float, second: float) -> None:
    theta = math.hypot(first, second)
    z = offset / theta
    upper = 0.5 * math.erfc(-z / math.sqrt(2))
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    clark = offset * upper + theta * density - max(offset, 0.0)
    assert max_bias([offset, 0.0], [first, second]) == pytest.approx(clark, abs=1e-11)


@given(means, st.lists(st.floats(0, 3), min_size=8, max_size=8))
def test_exact_max_bias_is_never_negative(mu: list[float], sds: list[float]) -> None:
    assert max_bias(mu, sds[: len(mu)]) >= -1e-12


def test_exact_max_bias_allows_arms_without_noise() -> None:
    assert max_bias([0.0, 0.5, -1.0], 0.0) == pytest.approx(0.0, abs=1e-15)
    assert max_bias([0.0, 0.0], [1.0, 0.0]) == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-12)
    assert max_bias([1.0], 2.0) == pytest.approx(0.0, abs=1e-12)


@given(st.floats(-2, 2), st.floats(0.05, 2), st.floats(0.05, 2), st.floats(0.05, 50))
def test_exact_max_bias_of_two_arms_agrees_between_both_quadratures(
    offset: float, first: float, second: float, beta: float
) -> None:
    found = two_arm_biases([offset, 0.0], [first, second], beta)
    assert found["max"] == pytest.approx(max_bias([offset, 0.0], [first, second]), abs=1e-11)


@pytest.mark.parametrize(
    ("mu", "sds", "beta"),
    [([0.0, 0.0], [1.0, 1.0], 1.0), ([0.3, -0.5], [0.4, 1.5], 7.0), ([0.0, 2.0], [1.0, 0.0], 300.0)],
)
def test_exact_biases_of_two_arms_are_those_of_adaptive_integration(
    mu: list[float], sds: list[float], beta: float
) -> None:
    from scipy.integrate import quad
    from scipy.stats import norm

    law = norm(mu[0] - mu[1], math.hypot(*sds))
    low, high = law.ppf(1e-18), law.isf(1e-18)

    def expectation(f: Callable[[float], float]) -> float:
        return float(
            quad(
                lambda d: law.pdf(d) * f(d),
                low,
                high,
                points=[-1 / beta, 0, 1 / beta],
                limit=500,
                epsabs=1e-13,
            )[0]
        )

    base = (mu[0] + mu[1]) / 2 - max(mu)
    found = two_arm_biases(mu, sds, beta)
    boltzmann = base + expectation(lambda d: d / 2 * math.tanh(beta * d / 2))
    log_sum_exp = base + expectation(lambda d: np.logaddexp(beta * d / 2, -beta * d / 2) / beta)
    assert found["boltzmann"] == pytest.approx(boltzmann, abs=1e-11)
    assert found["log_sum_exp"] == pytest.approx(log_sum_exp, abs=1e-11)
    assert found["mellowmax"] == pytest.approx(log_sum_exp - math.log(2) / beta, abs=1e-11)


def test_exact_biases_of_two_arms_agree_with_sampling() -> None:
    mu, sds, beta = [0.2, -0.1], [0.5, 1.0], 2.0
    exact = two_arm_biases(mu, sds, beta)
    found = monte_carlo_biases(mu, sds, beta, samples=100_000, rng=np.random.default_rng(8))
    for name in BIAS_OPERATORS:
        assert abs(found[name].value - exact[name]) < 4 * found[name].standard_error


@pytest.mark.parametrize("sd", [1e-20, 5e-324])
def test_exact_biases_with_vanishing_noise_are_the_noise_free_ones(sd: float) -> None:
    exact = noise_free_biases([0.0, -1.0], 1.0)
    assert two_arm_biases([0.0, -1.0], sd, 1.0) == pytest.approx(exact, abs=1e-14)
    assert max_bias([0.0, -1.0], sd) == pytest.approx(0.0, abs=1e-14)


def test_exact_biases_of_two_arms_without_noise_are_the_noise_free_ones() -> None:
    assert two_arm_biases([0.0, -1.0], 0.0, 1.0) == noise_free_biases([0.0, -1.0], 1.0)


@given(st.floats(-2, 2), st.floats(0.05, 2), st.floats(0.05, 50))
def test_exact_biases_of_two_arms_are_ordered(offset: float, sd: float, beta: float) -> None:
    found = two_arm_biases([offset, 0.0], sd, beta)
    values = [found[name] for name in ORDER]
    assert all(low <= high + 1e-12 for low, high in pairwise(values))


def test_bias_functions_refuse_bad_arguments() -> None:
    rng = np.random.default_rng(0)
    for refuses, words in (
        (lambda: noise_free_biases([[0.0]], 1.0), "shape"),
        (lambda: noise_free_biases([math.nan], 1.0), "finite"),
        (lambda: noise_free_biases([0.0], 0.0), "β"),
        (lambda: two_arm_biases([0.0], 1.0, 1.0), "two means"),
        (lambda: two_arm_biases([0.0, 0.0], 1.0, math.inf), "β"),
        (lambda: max_bias([0.0, 1.0], [1.0, 1.0, 1.0]), "one or 2"),
        (lambda: max_bias([0.0, 1.0], -1.0), "at least 0"),
        (lambda: max_bias([0.0, 1.0], math.nan), "finite"),
        (lambda: monte_carlo_biases([0.0], 1.0, 1.0, 1, rng), "at least 2"),
        (lambda: monte_carlo_biases([0.0], 1.0, 1.0, 9, rng, confidence=1.0), "confidence"),
        (
            lambda: monte_carlo_bias_difference("max", "maxx", [0.0], 1.0, 1.0, samples=9, rng=rng),
            "did you mean",
        ),
    ):
        with pytest.raises(UserError, match=words):
            refuses()
