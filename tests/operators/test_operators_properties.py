"""What the theory says of the operators: invariances, order, limits, and every trait."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynaboltz import boltzmann, hard_max, log_sum_exp, mean, mellowmax, soft_mellowmax
from dynaboltz.operators import gap_constant, lipschitz_constant

rows = st.lists(st.floats(-50, 50), min_size=1, max_size=12).map(np.array)
betas = st.floats(1e-3, 1e3)
eps = float(np.finfo(float).eps)


def rounding(operator: Any, q: Any, beta: float) -> float:
    """Return the stated bound on the rounding error."""
    m = len(q)
    return 4 * (m + 8) * eps * (float(np.abs(q).max()) + float(operator.traits.overshoot(beta, m)))


@given(q=rows, beta=betas, c=st.floats(-1e3, 1e3))
def test_adding_a_constant_to_the_values_adds_it_to_the_operator(case: Any, q: Any, beta: float, c: float) -> None:
    shifted = case.operator(q + c, *case.arguments(beta))
    assert shifted == pytest.approx(
        case.operator(q, *case.arguments(beta)) + c, abs=4 * rounding(case.operator, np.append(q, 2e3), beta), rel=0
    )


@given(q=rows, beta=betas, random=st.randoms(use_true_random=False))
def test_order_of_the_actions_does_not_matter(case: Any, q: Any, beta: float, random: Any) -> None:
    order = list(range(len(q)))
    random.shuffle(order)
    tolerance = 2 * rounding(case.operator, q, beta)
    value = case.operator(q, *case.arguments(beta))
    assert case.operator(q[order], *case.arguments(beta)) == pytest.approx(value, abs=tolerance, rel=0)


@given(q=rows, beta=betas, c=st.floats(1e-3, 1e3))
def test_scaling_the_values_is_scaling_the_operator_at_beta_over_the_scale(
    case: Any, q: Any, beta: float, c: float
) -> None:
    if case.operator.name == "soft_mellowmax":
        scaled = soft_mellowmax(2.0 / c)(c * q, beta / c)  # its α is an inverse temperature too
    else:
        scaled = case.operator(c * q, *case.arguments(beta / c))
    tolerance = 10 * rounding(case.operator, q, beta) * c + 1e-300
    assert scaled == pytest.approx(c * case.operator(q, *case.arguments(beta)), abs=tolerance, rel=0)


@given(q=rows, beta=betas, factor=st.floats(1, 1e3))
def test_value_rises_with_beta_and_falls_for_log_sum_exp(sharp_case: Any, q: Any, beta: float, factor: float) -> None:
    operator = sharp_case.operator
    change = operator(q, beta * factor) - operator(q, beta)
    sign = -1 if operator is log_sum_exp else 1
    assert sign * change >= -2 * rounding(operator, q, beta)


@given(q=rows)
def test_beta_zero_is_the_mean(q: Any) -> None:
    for operator in (boltzmann, mellowmax):
        assert operator(q, 0.0) == pytest.approx(q.mean(), abs=rounding(mean, q, 0), rel=0)


@given(q=rows)
def test_soft_mellowmax_at_beta_zero_is_boltzmann_at_alpha(q: Any) -> None:
    assert soft_mellowmax(2.0)(q, 0.0) == pytest.approx(boltzmann(q, 2.0), abs=2 * rounding(boltzmann, q, 2.0), rel=0)


@given(q=rows, beta=betas)
def test_soft_mellowmax_with_alpha_zero_is_mellowmax(q: Any, beta: float) -> None:
    tolerance = 2 * rounding(mellowmax, q, beta)
    assert soft_mellowmax(0.0)(q, beta) == pytest.approx(mellowmax(q, beta), abs=tolerance, rel=0)


@given(q=rows)
def test_beta_infinity_is_the_maximum(sharp_case: Any, q: Any) -> None:
    assert sharp_case.operator(q, math.inf) == pytest.approx(q.max(), rel=0, abs=1e-300)


@pytest.mark.parametrize("beta", [1e6, 1e300, math.inf])
def test_large_beta_never_loses_the_maximum(sharp_case: Any, library: Any, beta: float) -> None:
    q = library.array([[1.0, 0.5, -3.0], [7.0, 7.0, 7.0], [2.0, -np.inf, 1.0]])
    assert np.allclose(library.numpy(sharp_case.operator(q, beta)), [1.0, 7.0, 2.0], rtol=0, atol=2e-6)


@given(q=rows, beta=betas)
def test_mean_mellowmax_boltzmann_max_and_log_sum_exp_are_in_this_order(q: Any, beta: float) -> None:
    chain = [mean(q), mellowmax(q, beta), boltzmann(q, beta), hard_max(q), log_sum_exp(q, beta)]
    steps = np.diff([float(value) for value in chain])
    assert steps.min() >= -2 * rounding(mellowmax, q, beta)


def test_the_order_is_strict_for_unequal_values() -> None:
    q = [0.0, 1.0, 3.0]
    chain = [mean(q), mellowmax(q, 1.0), boltzmann(q, 1.0), hard_max(q), log_sum_exp(q, 1.0)]
    assert np.diff([float(value) for value in chain]).min() > 0.05


@given(q=rows, beta=betas)
def test_soft_mellowmax_is_between_boltzmann_at_alpha_and_the_maximum(q: Any, beta: float) -> None:
    value = soft_mellowmax(2.0)(q, beta)
    assert boltzmann(q, 2.0) - 2 * rounding(mean, q, beta) <= value <= q.max()


@given(q=rows, beta=betas)
def test_value_is_within_the_values_where_bounded_by_the_maximum(case: Any, q: Any, beta: float) -> None:
    value = case.operator(q, *case.arguments(beta))
    assert q.min() <= value
    assert not case.operator.traits.bounded_by_max or value <= q.max()


def test_only_log_sum_exp_is_not_bounded_by_the_maximum(case: Any) -> None:
    value = case.operator(np.zeros(4), *case.arguments(1.0))
    assert case.operator.traits.bounded_by_max == (value <= 0.0)


@given(q=rows, beta=betas)
def test_gap_to_the_maximum_is_at_most_the_traits_gap(case: Any, q: Any, beta: float) -> None:
    gap = case.operator.traits.gap(beta, len(q))
    value = case.operator(q, *case.arguments(beta))
    assert q.max() - value <= gap + rounding(case.operator, q, beta)


@given(q=rows, beta=betas)
def test_overshoot_is_at_most_the_traits_overshoot(case: Any, q: Any, beta: float) -> None:
    overshoot = case.operator.traits.overshoot(beta, len(q))
    value = case.operator(q, *case.arguments(beta))
    assert value - q.max() <= overshoot + rounding(case.operator, q, beta)


@pytest.mark.parametrize("m", [2, 3, 9, 18])
@pytest.mark.parametrize("beta", [0.3, 5.0])
def test_gap_is_attained_where_the_trait_says_so(case: Any, m: int, beta: float) -> None:
    """By one value on top and the others equal: at boltzmann's distance, far below, or as far as one likes."""
    traits = case.operator.traits
    if not traits.gap_is_attained:
        return
    distances = [(1 + gap_constant(m)) / beta, 1e3 / beta, 1e9]
    gaps = []
    for distance in distances:
        q = np.full(m, -distance)
        q[0] = 0.0
        gaps.append(-float(case.operator(q, *case.arguments(beta))))
    gap = traits.gap(beta, m)
    assert max(gaps) == pytest.approx(gap, rel=1e-9) if math.isfinite(gap) else max(gaps) > 1e7


@pytest.mark.parametrize("m", [2, 9])
def test_overshoot_is_attained_by_equal_values(case: Any, m: int) -> None:
    value = float(case.operator(np.zeros(m), *case.arguments(5.0)))
    assert value == pytest.approx(case.operator.traits.overshoot(5.0, m), rel=1e-14)


def test_gap_and_overshoot_of_a_single_action_are_zero(case: Any) -> None:
    assert case.operator.traits.gap(5.0, 1) == case.operator.traits.overshoot(5.0, 1) == 0.0


def test_gap_at_beta_zero_is_infinite_unless_alpha_bounds_it(sharp_case: Any) -> None:
    expected = {"boltzmann": math.inf, "mellowmax": math.inf, "log_sum_exp": 0.0, "soft_mellowmax": gap_constant(3) / 2}
    assert sharp_case.operator.traits.gap(0.0, 3) == expected[sharp_case.operator.name]


@settings(max_examples=150)
@given(pair=st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5)), min_size=1, max_size=6), beta=st.floats(1e-2, 1e2))
def test_distance_grows_by_at_most_the_lipschitz_constant(case: Any, pair: Any, beta: float) -> None:
    x, y = np.array(pair).T
    traits = case.operator.traits
    moved = abs(case.operator(x, *case.arguments(beta)) - case.operator(y, *case.arguments(beta)))
    constant = traits.lipschitz(len(x))
    assert not traits.non_expansion or constant == 1.0
    if math.isfinite(constant):
        assert moved <= constant * np.abs(x - y).max() + 2 * rounding(case.operator, np.append(x, y), beta)


def test_boltzmann_with_fixed_beta_is_not_a_non_expansion() -> None:
    """The paper's premise: a distance of 1 becomes 1.07."""
    x, y = np.array([0.0, 3.0]), np.array([0.0, 4.0])
    moved = abs(boltzmann(x, 1.0) - boltzmann(y, 1.0))
    assert moved == pytest.approx(1.0703, abs=5e-5)
    assert moved > np.abs(x - y).max()
    assert not boltzmann.traits.non_expansion


def test_soft_mellowmax_expands_some_pair_so_it_claims_no_lipschitz_constant() -> None:
    operator = soft_mellowmax(2.0)
    gradient = operator.gradient(np.array([0.0, 1.2]), 0.1)
    assert np.abs(gradient).sum() > 1.1  # the sup-norm slope
    assert not operator.traits.non_expansion
    assert operator.traits.lipschitz(2) == math.inf


@pytest.mark.parametrize("m", [2, 3, 4, 6, 9, 18])
@pytest.mark.parametrize("beta", [0.4, 7.0])
def test_lipschitz_constant_of_boltzmann_is_attained(m: int, beta: float) -> None:
    """The 1-norm of the gradient, over one value on top and m − 1 equal ones, has its maximum L(m) at every β."""
    drop = np.linspace(0.01, 8, 40_000) / beta
    q = np.zeros((len(drop), m))
    q[:, 1:] = -drop[:, None]
    slope = np.abs(boltzmann.gradient(q, beta)).sum(axis=-1).max()
    assert slope == pytest.approx(lipschitz_constant(m), rel=1e-6)


L = {2: 1.19968, 3: 1.32733, 4: 1.42249, 6: 1.56273, 9: 1.70963, 18: 1.97454}
W = {2: 0.278465, 3: 0.463056, 4: 0.603546, 6: 0.814553, 9: 1.040113, 18: 1.456901, 100: 2.62865}
VARIANCE = {2: 0.43923, 3: 0.76180, 4: 1.02349, 6: 1.44213, 9: 1.92284, 18: 2.89883}


@pytest.mark.parametrize(("m", "value"), L.items())
def test_lipschitz_constant_is_the_table(m: int, value: float) -> None:
    assert lipschitz_constant(m) == pytest.approx(value, abs=6e-6)
    assert boltzmann.traits.lipschitz(m) == lipschitz_constant(m)


@pytest.mark.parametrize(("m", "value"), W.items())
def test_gap_constant_is_the_table(m: int, value: float) -> None:
    assert gap_constant(m) == pytest.approx(value, abs=6e-6)


@pytest.mark.parametrize("m", W)
def test_gap_constant_solves_lamberts_equation(m: int) -> None:
    w = gap_constant(m)
    assert w * math.exp(w) == pytest.approx((m - 1) / math.e, rel=1e-14)


@pytest.mark.parametrize(("m", "value"), VARIANCE.items())
def test_supremum_of_beta_squared_times_the_beta_derivative_is_the_table(m: int, value: float) -> None:
    """sup β²·Var = L(m)² − 1, over one value on top and m − 1 equal ones."""
    beta = 3.0
    q = np.zeros((40_000, m))
    q[:, 1:] = -np.linspace(0.01, 12, len(q))[:, None] / beta
    supremum = beta**2 * boltzmann.beta_derivative(q, beta).max()
    assert supremum == pytest.approx(value, abs=6e-6)
    assert supremum == pytest.approx(lipschitz_constant(m) ** 2 - 1, rel=1e-6)


@given(q=rows, beta=betas)
def test_beta_derivative_of_boltzmann_is_between_zero_and_its_supremum(q: Any, beta: float) -> None:
    scaled = beta**2 * boltzmann.beta_derivative(q, beta)
    assert 0 <= scaled <= (lipschitz_constant(len(q)) ** 2 - 1) * (1 + 1e-9) + 1e-30


@given(q=st.lists(st.floats(0, 1), min_size=2, max_size=8).map(np.array), beta=st.floats(0.1, 10))
def test_boltzmann_does_not_expand_where_beta_times_spread_is_at_most_one(q: Any, beta: float) -> None:
    assert boltzmann.gradient(q / beta, beta).min() >= -1e-12


@pytest.mark.parametrize("constant", [gap_constant, lipschitz_constant])
@pytest.mark.parametrize("m", [0, -1, 2.0, True, "3"])
def test_constants_refuse_what_is_no_number_of_actions(constant: Any, m: Any) -> None:
    with pytest.raises(ValueError, match="number of actions m must be an integer of at least 1"):
        constant(m)
