"""One small table of numbers per equation, each to be checked with a pocket calculator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dynaboltz import boltzmann, epsilon_mixture, hard_max, log_sum_exp, mean, mellowmax, soft_mellowmax

LN2, LN3 = math.log(2), math.log(3)


def test_hard_max_of_three() -> None:
    assert hard_max([1.0, -2.0, 0.5]).item() == 1.0


def test_mean_of_four() -> None:
    assert mean([1.0, 2.0, 3.0, 6.0]).item() == 3.0


def test_boltzmann_with_weights_one_and_three_quarters() -> None:
    """At β = ln 3, e^{βq} of (0, 1) is (1, 3)."""
    assert boltzmann.weights([0.0, 1.0], LN3) == pytest.approx([0.25, 0.75])
    assert boltzmann([0.0, 1.0], LN3).item() == pytest.approx(0.75)


def test_boltzmann_of_song_et_al() -> None:
    """Song, Parr & Carin (2019): Σ_a softmax(τq)_a q_a. At τ = ln 2, (0, 1, 2) has weights (1, 2, 4)/7."""
    assert boltzmann([0.0, 1.0, 2.0], LN2).item() == pytest.approx(10 / 7)


def test_boltzmann_gradient_by_hand() -> None:
    """p = (¼, ¾), b = ¾: p_i (1 + β(q_i − b)) = ¼(1 − ¾ ln 3), ¾(1 + ¼ ln 3)."""
    expected = [0.25 * (1 - 0.75 * LN3), 0.75 * (1 + 0.25 * LN3)]
    assert boltzmann.gradient([0.0, 1.0], LN3) == pytest.approx(expected)


def test_boltzmann_beta_derivative_by_hand() -> None:
    """The variance of a coin with ¾: 3/16."""
    assert boltzmann.beta_derivative([0.0, 1.0], LN3).item() == pytest.approx(3 / 16)


def test_log_sum_exp_by_hand() -> None:
    """(1/ln 3)·log(1 + 3)."""
    assert log_sum_exp([0.0, 1.0], LN3).item() == pytest.approx(math.log(4) / LN3)


def test_log_sum_exp_of_zeros_is_log_m_over_beta() -> None:
    """Why a terminal state must not be summarised: its values are 0, and this is not."""
    assert log_sum_exp(np.zeros(4), 2.0).item() == pytest.approx(math.log(4) / 2)


def test_mellowmax_by_hand() -> None:
    """(1/ln 3)·log((1 + 3)/2) (Asadi & Littman 2017)."""
    assert mellowmax([0.0, 1.0], LN3).item() == pytest.approx(LN2 / LN3)


def test_soft_mellowmax_by_hand() -> None:
    """α = β = ln 2: base weights (1, 2)/3, so (1/ln 2)·log((1·1 + 2·2)/3) (Gan, Zhang & Tan 2021)."""
    assert soft_mellowmax(LN2)([0.0, 1.0], LN2).item() == pytest.approx(math.log(5 / 3) / LN2)


def test_epsilon_mixture_by_hand() -> None:
    """¾·3 + ¼·1."""
    assert epsilon_mixture(0.25)([0.0, 0.0, 3.0]).item() == pytest.approx(0.75 * 3 + 0.25 * 1)


def test_epsilon_mixture_weights_are_the_epsilon_greedy_policy() -> None:
    assert epsilon_mixture(0.3)([[0.0, 2.0, 1.0]]).shape == (1,)
    assert epsilon_mixture(0.3).weights([0.0, 2.0, 1.0]) == pytest.approx([0.1, 0.8, 0.1])


@pytest.mark.parametrize("beta", [0.2, 1.0, 30.0])
def test_mellowmax_is_log_sum_exp_minus_log_m_over_beta(beta: float) -> None:
    """G-learning's backup with a uniform prior (Fox, Pakman & Tishby 2016, Eq. 18)."""
    q = np.random.default_rng(0).normal(size=(50, 6))
    prior = np.log((np.exp(beta * q) / 6).sum(axis=-1)) / beta
    assert np.allclose(mellowmax(q, beta), prior, rtol=1e-12)
    assert np.allclose(mellowmax(q, beta), log_sum_exp(q, beta) - math.log(6) / beta, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("beta", [0.2, 1.0, 30.0])
def test_log_sum_exp_exceeds_boltzmann_by_the_entropy_over_beta(beta: float) -> None:
    """Pan et al. (2020), Proposition 1."""
    q = np.random.default_rng(0).normal(size=(50, 6))
    p = boltzmann.weights(q, beta)
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=-1)
    assert np.allclose(log_sum_exp(q, beta) - boltzmann(q, beta), entropy / beta, rtol=1e-11, atol=1e-14)


def test_maximum_exceeds_boltzmann_by_at_most_half_the_papers_constant_at_two_actions() -> None:
    """The row that attains W(1/e)/β = 0.278465/β, where log(2)/β is 0.693/β."""
    u = 1.278464542761074
    assert -boltzmann([0.0, -u / 5.0], 5.0).item() == pytest.approx(0.2784645427610738 / 5.0, rel=1e-12)


@pytest.mark.parametrize(("q", "beta", "bias"), [((0.0, -1.0), 1.0, -0.268941)])
def test_boltzmann_underestimates_the_maximum_without_any_noise(q: Any, beta: float, bias: float) -> None:
    assert boltzmann(list(q), beta).item() - max(q) == pytest.approx(bias, abs=1e-6)


def test_operators_print_as_their_spec() -> None:
    found = [str(operator) for operator in (hard_max, boltzmann, soft_mellowmax(2.0), epsilon_mixture(0.125))]
    assert found == ["hard_max", "boltzmann", "soft_mellowmax(alpha=2)", "epsilon_mixture(epsilon=0.125)"]
