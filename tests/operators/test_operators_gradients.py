"""Gradients and β-derivatives: the formulas, the libraries' own differentiation, and difference quotients agree."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
import torch

from dynaboltz import boltzmann, hard_max, log_sum_exp, mellowmax, soft_mellowmax

BETAS = (0.0, 1e-9, 1e-4, 0.7, 20.0, 1e6, 1e300, math.inf)
ROWS = np.array([[1.0, 1.0, 0.0, -2.0], [1.0, 1.0, 1.0, 1.0], [3.0, -1.0, 2.0, 0.5]])
"""A tie of the maximum, a tie of all, and none."""


def draw(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape) * 2


def close(a: Any, b: Any, eps: float, scale: Any = 1.0) -> bool:
    return bool((np.abs(a - b) <= 200 * eps * (scale + np.abs(b))).all())


@pytest.mark.parametrize("beta", [0.0, 1e-4, 0.7, 5.0])
def test_gradient_is_the_difference_quotient(case: Any, beta: float) -> None:
    beta = beta if case.allows(beta) else 0.01
    q, h = draw(6, 5), 1e-6
    steps = np.eye(5) * h
    quotient = [
        (case.operator(q + step, *case.arguments(beta)) - case.operator(q - step, *case.arguments(beta))) / (2 * h)
        for step in steps
    ]
    assert np.allclose(case.operator.gradient(q, *case.arguments(beta)), np.stack(quotient, axis=-1), atol=1e-8)


@pytest.mark.parametrize("beta", [1e-4, 0.1, 0.7, 5.0])
def test_beta_derivative_is_the_difference_quotient(sharp_case: Any, beta: float) -> None:
    q, h = draw(6, 5), 1e-5 * beta
    quotient = (sharp_case.operator(q, beta + h) - sharp_case.operator(q, beta - h)) / (2 * h)
    tolerance = 1e-14 * 10 / h + 1e-6  # the quotient's own rounding error
    if sharp_case.operator is log_sum_exp:
        tolerance /= beta
    assert np.allclose(sharp_case.operator.beta_derivative(q, beta), quotient, rtol=1e-6, atol=tolerance)


def test_beta_derivative_is_zero_for_operators_without_beta(case: Any) -> None:
    if not case.operator.traits.takes_beta:
        assert (case.operator.beta_derivative(draw(6, 5)) == 0).all()


def every_beta(case: Any, q: Any, smallest: float = 0.0) -> tuple[Any, tuple[Any, ...]]:
    """Return the rows of ``q`` once for every β, and the operator's arguments: β by block of rows, or nothing."""
    betas = np.array([beta for beta in BETAS if case.allows(beta) and beta >= smallest])
    return np.repeat(q[None], len(betas), axis=0), case.arguments(betas[:, None])


def test_gradient_sums_to_one(case: Any, library: Any) -> None:
    q, betas = every_beta(case, ROWS)
    gradient = library.numpy(case.operator.gradient(library.array(q), *map(library.array, betas)))
    assert np.allclose(gradient.sum(axis=-1), 1, atol=100 * library.eps)


def test_gradient_is_the_same_in_every_library(case: Any, autograd: Any) -> None:
    q, betas = every_beta(case, ROWS)
    found = autograd.numpy(case.operator.gradient(autograd.array(q), *map(autograd.array, betas)))
    assert close(found, case.operator.gradient(q, *betas), autograd.eps)


def test_autograd_is_the_gradient(case: Any, autograd: Any) -> None:
    q, betas = every_beta(case, ROWS)
    found = autograd.gradient(case.operator, autograd.array(q), *map(autograd.array, betas))
    assert close(found, case.operator.gradient(q, *betas), autograd.eps)


@pytest.mark.parametrize("beta", [0.0, math.inf])
def test_autograd_is_the_gradient_for_a_plain_number_as_beta(sharp_case: Any, autograd: Any, beta: float) -> None:
    if sharp_case.allows(beta):
        found = autograd.gradient(lambda q: sharp_case.operator(q, beta), autograd.array(ROWS))
        assert close(found, sharp_case.operator.gradient(ROWS, beta), autograd.eps)


def test_autograd_by_beta_is_the_beta_derivative(sharp_case: Any, autograd: Any) -> None:
    """Log-sum-exp from β = 1e-4 on: log(m)/β² leaves single precision below."""
    q, (beta,) = every_beta(sharp_case, ROWS, smallest=1e-4 if sharp_case.operator is log_sum_exp else 0.0)
    beta = np.broadcast_to(beta, q.shape[:-1])
    found = autograd.gradient(sharp_case.operator, autograd.array(q), autograd.array(beta), of=1)
    scale = np.ones_like(beta) if sharp_case.operator is boltzmann else 1 / np.clip(beta, 1e-3, 1)
    if sharp_case.operator is log_sum_exp:
        scale = scale**2
    assert close(found, sharp_case.operator.beta_derivative(q, beta), autograd.eps, scale)


LEGAL = np.array([[1, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1]], bool)


def test_autograd_with_a_mask_is_that_of_the_legal_actions_alone(case: Any, autograd: Any) -> None:
    q, betas = every_beta(case, ROWS)
    mask = autograd.flags(LEGAL)
    found = autograd.gradient(lambda *a: case.operator(*a, mask=mask), autograd.array(q), *map(autograd.array, betas))
    assert (found[:, ~LEGAL] == 0).all()
    for i, keep in enumerate(LEGAL):
        alone = case.operator.gradient(q[:, i, keep], *(beta[:, 0] for beta in betas))
        assert close(found[:, i, keep], alone, autograd.eps)


@pytest.mark.parametrize("of", [0, 1])
def test_autograd_with_minus_infinity_is_finite(sharp_case: Any, autograd: Any, of: int) -> None:
    q, betas = every_beta(sharp_case, ROWS, smallest=1e-4 if sharp_case.operator is log_sum_exp else 0.0)
    q[:, ~LEGAL] = -np.inf
    assert np.isfinite(autograd.gradient(sharp_case.operator, autograd.array(q), autograd.array(betas[0]), of=of)).all()


def test_second_derivatives_are_finite(sharp_case: Any, autograd: Any) -> None:
    """Up to β = 1e6, at ties and −inf too; they grow with β², which leaves the type from β = 1e154 (1e19) on."""
    betas = np.array([0.0, 1e-4, 0.7, 1e6] if sharp_case.allows(0.0) else [1e-2, 0.7, 1e6])
    q = np.repeat(np.concatenate([ROWS, np.where(LEGAL, ROWS, -np.inf)])[None], len(betas), axis=0)
    arguments = autograd.array(q), autograd.array(betas[:, None])
    for gradient in autograd.second_gradients(sharp_case.operator, *arguments):
        assert np.isfinite(gradient).all()


def test_hessian_of_log_sum_exp_is_beta_times_the_covariance() -> None:
    q = draw(4)
    p = log_sum_exp.weights(q, 1.5)
    hessian = torch.func.hessian(lambda q: log_sum_exp(q, 1.5))(torch.as_tensor(q))
    assert np.allclose(hessian, 1.5 * (np.diag(p) - np.outer(p, p)), atol=1e-13)


@pytest.mark.parametrize("beta", [0.0, 0.3, 4.0])
def test_beta_derivative_of_boltzmann_is_the_variance_under_its_weights(library: Any, beta: float) -> None:
    q = draw(9, 6)
    p = boltzmann.weights(q, beta)
    variance = (p * q**2).sum(axis=-1) - (p * q).sum(axis=-1) ** 2
    found = library.numpy(boltzmann.beta_derivative(library.array(q), beta))
    assert np.allclose(found, variance, rtol=100 * library.eps, atol=100 * library.eps)


@pytest.mark.parametrize("beta", [0.3, 4.0])
def test_gradient_of_boltzmann_is_the_weight_times_one_plus_beta_times_the_advantage(beta: float) -> None:
    q = draw(9, 6)
    p = boltzmann.weights(q, beta)
    expected = p * (1 + beta * (q - boltzmann(q, beta)[:, None]))
    assert np.allclose(boltzmann.gradient(q, beta), expected, atol=1e-13)
    assert expected.min() < 0  # so the operator is not monotone in q


def test_gradient_of_log_sum_exp_and_mellowmax_is_the_softmax(sharp_case: Any) -> None:
    if sharp_case.operator in (log_sum_exp, mellowmax):
        q = draw(9, 6)
        e = np.exp(2.5 * q)
        assert np.allclose(sharp_case.operator.gradient(q, 2.5), e / e.sum(axis=-1, keepdims=True), atol=1e-14)


def test_beta_derivative_of_log_sum_exp_is_minus_entropy_over_beta_squared() -> None:
    q = draw(9, 6)
    p = log_sum_exp.weights(q, 2.5)
    assert np.allclose(log_sum_exp.beta_derivative(q, 2.5), (p * np.log(p)).sum(axis=-1) / 2.5**2, rtol=1e-12)


def test_beta_derivative_of_mellowmax_at_zero_is_half_the_variance() -> None:
    q = draw(9, 6)
    assert np.allclose(mellowmax.beta_derivative(q, 0.0), q.var(axis=-1) / 2, rtol=1e-13)


def test_gradient_of_soft_mellowmax_at_zero_is_that_of_boltzmann_at_alpha() -> None:
    q = draw(9, 6)
    assert np.allclose(soft_mellowmax(2.0).gradient(q, 0.0), boltzmann.gradient(q, 2.0), atol=1e-14)


@pytest.mark.parametrize("product", [1e-7, 5.9e-6, 6.2e-6, 1e-4])
def test_derivatives_of_the_mellowmax_family_do_not_jump_where_the_series_takes_over(
    sharp_case: Any, product: float
) -> None:
    """Expected: mpmath, by differentiating the definition with 60 digits."""
    if sharp_case.operator not in (mellowmax, soft_mellowmax(2.0)):
        return
    import mpmath

    q = [0.0, 0.3, 1.0]
    base = [mpmath.exp((2 if sharp_case.operator is not mellowmax else 0) * x) for x in q]

    def exact(beta: Any) -> Any:
        return (
            mpmath.log(mpmath.fsum(w * mpmath.exp(beta * x) for w, x in zip(base, q, strict=True)) / sum(base)) / beta
        )

    with mpmath.workdps(60):
        slope = float(mpmath.diff(exact, mpmath.mpf(product)))
    assert sharp_case.operator.beta_derivative(q, product) == pytest.approx(slope, rel=3e-10)


def test_gradient_of_hard_max_at_a_tie_is_shared(autograd: Any) -> None:
    found = autograd.gradient(hard_max, autograd.array([2.0, 1.0, 2.0]))
    assert found.tolist() == [0.5, 0.0, 0.5]


def test_torch_backward_reaches_values_and_beta() -> None:
    q = torch.tensor([[0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    beta = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    boltzmann(q, beta).sum().backward()
    assert q.grad is not None
    assert torch.allclose(q.grad, boltzmann.gradient(q.detach(), 2.0))
    assert beta.grad == pytest.approx(boltzmann.beta_derivative(q.detach(), 2.0).item())


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_forward_mode_is_the_gradient_times_the_direction(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for arrays that are large enough for the compiled rows, which know no tangents."""
    forward: Any = torch.autograd.forward_ad
    monkeypatch.setattr("dynaboltz.operators.operator.COMPILED_FROM", 4)
    q, direction = torch.as_tensor(draw(6, 5)), torch.as_tensor(draw(2, 6, 5)[1])
    with forward.dual_level():
        value = case.operator(forward.make_dual(q, direction), *case.arguments(1.5))
        tangent = forward.unpack_dual(value).tangent
    expected = (case.operator.gradient(q, *case.arguments(1.5)) * direction).sum(dim=-1)
    assert torch.allclose(tangent, expected)


def test_jax_forward_and_reverse_mode_agree_outside_of_jit() -> None:
    with jax.enable_x64(new_val=True):
        q, direction = jax.numpy.asarray(ROWS[2]), jax.numpy.asarray(ROWS[0])
        _, tangent = jax.jvp(lambda q: boltzmann(q, 1.5), (q,), (direction,))
        assert np.allclose(tangent, jax.grad(boltzmann)(q, 1.5) @ direction, atol=1e-14)
