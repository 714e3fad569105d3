"""What holds for every operator in every array library, whatever its formula."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch

BETAS = (0.0, 0.5, 3.0)


def draw(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape) * 2


def close(library: Any, a: Any, b: Any) -> bool:
    return np.allclose(library.numpy(a), b, rtol=50 * library.eps, atol=50 * library.eps)


@pytest.mark.parametrize("beta", BETAS)
def test_value_is_the_definition(case: Any, library: Any, beta: float) -> None:
    q = draw(4, 5)
    beta = beta if case.allows(beta) else 0.01
    value = case.operator(library.array(q), *case.arguments(beta))
    assert np.allclose(library.numpy(value), case.reference(q, beta), rtol=1e2 * library.eps, atol=1e2 * library.eps)


def test_value_keeps_library_and_precision(case: Any, library: Any) -> None:
    assert library.owns(case.operator(library.array(draw(4, 5)), *case.arguments(2.0)))


def test_weights_and_derivatives_keep_library_and_precision(case: Any, library: Any) -> None:
    q = library.array(draw(4, 5))
    for method in (case.operator.weights, case.operator.gradient, case.operator.beta_derivative):
        assert library.owns(method(q, *case.arguments(2.0)))


@pytest.mark.parametrize("axis", [0, -2])
def test_value_over_any_axis_is_that_of_the_moved_axis(case: Any, library: Any, axis: int) -> None:
    q = draw(2, 3, 4)
    value = case.operator(library.array(q), *case.arguments(1.5), axis=axis)
    assert close(library, value, case.reference(np.moveaxis(q, axis, -1), 1.5))


@pytest.mark.parametrize("axis", [0, -2])
def test_weights_and_gradient_have_the_shape_of_the_values_on_any_axis(case: Any, library: Any, axis: int) -> None:
    q = draw(2, 3, 4)
    moved = library.array(np.moveaxis(q, axis, -1))
    for method in (case.operator.weights, case.operator.gradient):
        found = library.numpy(method(library.array(q), *case.arguments(1.5), axis=axis))
        assert found.shape == q.shape
        assert close(library, method(moved, *case.arguments(1.5)), np.moveaxis(found, axis, -1))


@pytest.mark.parametrize("shape", [(4,), (0, 4), (2, 3, 4)])
def test_value_has_the_leading_shape(case: Any, library: Any, shape: tuple[int, ...]) -> None:
    value = case.operator(library.array(draw(*shape)), *case.arguments(1.5))
    assert tuple(value.shape) == shape[:-1]


def test_beta_derivative_has_the_leading_shape(case: Any, library: Any) -> None:
    assert tuple(case.operator.beta_derivative(library.array(draw(4, 5)), *case.arguments(1.5)).shape) == (4,)


def test_value_of_one_action_is_its_value(case: Any, library: Any) -> None:
    q = library.array(draw(7, 1))
    assert (library.numpy(case.operator(q, *case.arguments(3.0))) == library.numpy(q)[:, 0]).all()


def test_beta_by_row_is_the_scalar_of_each_row(sharp_case: Any, library: Any) -> None:
    q, betas = library.array(draw(4, 5)), np.array([0.25, 1.0, 7.0, 9.0])
    value = library.numpy(sharp_case.operator(q, library.array(betas)))
    for i, beta in enumerate(betas):
        assert close(library, sharp_case.operator(q, float(beta)), value) is False
        assert np.isclose(library.numpy(sharp_case.operator(q, float(beta)))[i], value[i], rtol=50 * library.eps)


@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (2, 3)])
def test_beta_broadcasts_over_the_leading_shape(sharp_case: Any, library: Any, shape: tuple[int, ...]) -> None:
    q = draw(2, 3, 4)
    beta = np.random.default_rng(1).uniform(0.5, 3, shape)
    value = library.numpy(sharp_case.operator(library.array(q), library.array(beta)))
    full = np.broadcast_to(beta, (2, 3))
    expected = [[sharp_case.naive(q[i, j].tolist(), full[i, j]) for j in range(3)] for i in range(2)]
    assert np.allclose(value, expected, rtol=50 * library.eps, atol=50 * library.eps)


def test_beta_by_row_follows_the_rows_when_the_axis_is_another(sharp_case: Any, library: Any) -> None:
    q, beta = draw(5, 4), np.array([0.25, 1.0, 7.0, 9.0])
    value = sharp_case.operator(library.array(q), library.array(beta), axis=0)
    assert close(library, value, library.numpy(sharp_case.operator(library.array(q.T.copy()), library.array(beta))))


def test_numpy_beta_serves_every_library(sharp_case: Any, library: Any) -> None:
    q, beta = library.array(draw(4, 5)), np.array([0.5, 1.0, 2.0, 3.0])
    value = sharp_case.operator(q, beta)
    assert library.owns(value)
    assert close(library, value, library.numpy(sharp_case.operator(q, library.array(beta))))


def masked() -> tuple[Any, Any]:
    legal = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1], [0, 1, 1, 0, 0]], bool)
    return draw(4, 5), legal


def test_masked_action_is_as_good_as_dropped(case: Any, library: Any) -> None:
    q, legal = masked()
    expected = [case.naive(row[keep].tolist(), 1.5) for row, keep in zip(q, legal, strict=True)]
    value = case.operator(library.array(q), *case.arguments(1.5), mask=library.flags(legal))
    assert close(library, value, expected)


def test_minus_infinity_is_as_good_as_masked(case: Any, library: Any) -> None:
    q, legal = masked()
    for name in ("__call__", "weights", "gradient", "beta_derivative"):
        method = getattr(case.operator, name)
        by_mask = method(library.array(q), *case.arguments(1.5), mask=library.flags(legal))
        by_value = method(library.array(np.where(legal, q, -np.inf)), *case.arguments(1.5))
        assert (library.numpy(by_mask) == library.numpy(by_value)).all()


def test_value_under_a_mask_may_be_anything(case: Any, library: Any) -> None:
    q, legal = masked()
    q[~legal] = np.resize([np.nan, np.inf, -np.inf, 1e30], int((~legal).sum()))
    value = case.operator(library.array(q), *case.arguments(1.5), mask=library.flags(legal))
    assert close(library, value, [case.naive(r[k].tolist(), 1.5) for r, k in zip(q, legal, strict=True)])


def test_mask_of_one_row_serves_all_rows(case: Any, library: Any) -> None:
    q, keep = draw(4, 5), np.array([True, False, True, True, False])
    value = case.operator(library.array(q), *case.arguments(1.5), mask=library.flags(keep))
    assert close(library, value, case.reference(q[:, keep], 1.5))


def test_numpy_mask_and_list_mask_serve_every_library(case: Any, library: Any) -> None:
    q, legal = masked()
    values = [
        library.numpy(case.operator(library.array(q), *case.arguments(1.5), mask=mask))
        for mask in (legal, legal.tolist(), library.flags(legal))
    ]
    assert (values[0] == values[1]).all()
    assert (values[0] == values[2]).all()


def test_mask_follows_the_axis(case: Any, library: Any) -> None:
    q, legal = masked()
    value = case.operator(library.array(q.T), *case.arguments(1.5), axis=0, mask=library.flags(legal.T))
    assert close(library, value, [case.naive(r[k].tolist(), 1.5) for r, k in zip(q, legal, strict=True)])


@pytest.mark.parametrize("beta", [0.0, 1.0, 1e300, np.inf])
def test_weights_are_a_distribution_on_the_legal_actions(case: Any, library: Any, beta: float) -> None:
    q, legal = masked()
    beta = beta if case.allows(beta) else 0.01
    w = library.numpy(case.operator.weights(library.array(q), *case.arguments(beta), mask=library.flags(legal)))
    assert (w[~legal] == 0).all()
    assert (w >= 0).all()
    assert np.allclose(w.sum(axis=-1), 1, atol=10 * library.eps)


def test_weights_of_hard_max_are_shared_by_the_maximisers(library: Any) -> None:
    from dynaboltz import hard_max

    assert library.numpy(hard_max.weights(library.array([0, 3, 1, 3]))).tolist() == [0, 0.5, 0, 0.5]


def test_value_is_the_weighted_mean_for_averages(case: Any, library: Any) -> None:
    if case.operator.name in ("hard_max", "mean", "boltzmann", "epsilon_mixture"):
        q = draw(4, 5)
        w = library.numpy(case.operator.weights(library.array(q), *case.arguments(1.5)))
        assert close(library, case.operator(library.array(q), *case.arguments(1.5)), (w * q).sum(axis=-1))


def test_value_is_the_weighted_mean_plus_entropy_over_beta_for_log_sum_exp(library: Any) -> None:
    from dynaboltz import log_sum_exp

    q = draw(4, 5)
    w = library.numpy(log_sum_exp.weights(library.array(q), 1.5))
    expected = (w * q).sum(axis=-1) - (w * np.log(w)).sum(axis=-1) / 1.5
    assert close(library, log_sum_exp(library.array(q), 1.5), expected)


def test_value_is_the_weighted_mean_minus_divergence_over_beta_for_mellowmax_and_its_soft_form(library: Any) -> None:
    from dynaboltz import boltzmann, mellowmax, soft_mellowmax

    q = draw(4, 5)
    bases = {mellowmax: np.full(q.shape, 0.2), soft_mellowmax(2.0): boltzmann.weights(q, 2.0)}
    for operator, base in bases.items():
        w = library.numpy(operator.weights(library.array(q), 1.5))
        expected = (w * q).sum(axis=-1) - (w * np.log(w / base)).sum(axis=-1) / 1.5
        assert close(library, operator(library.array(q), 1.5), expected)


def test_a_list_is_a_numpy_array(case: Any) -> None:
    value = case.operator([[0.0, 1.0], [2.0, 5.0]], *case.arguments(1.0))
    assert isinstance(value, np.ndarray)
    assert (value == case.operator(np.array([[0.0, 1.0], [2.0, 5.0]]), *case.arguments(1.0))).all()


def test_arguments_are_left_as_they_were(case: Any, library: Any) -> None:
    q = library.array(draw(4, 5))
    before = library.numpy(q).copy()
    case.operator(q, *case.arguments(1.5), mask=library.flags(masked()[1]))
    case.operator.gradient(q, *case.arguments(1.5))
    assert (library.numpy(q) == before).all()


def test_jit_gives_the_same_value_for_a_traced_beta(sharp_case: Any) -> None:
    with jax.enable_x64(new_val=True):
        q = jax.numpy.asarray(draw(4, 5))
        for beta in (0.5, np.inf):
            assert np.allclose(jax.jit(sharp_case.operator)(q, beta), sharp_case.operator(q, beta), rtol=1e-13)


def test_jit_gives_the_same_value_under_a_traced_mask(case: Any) -> None:
    q, legal = masked()
    with jax.enable_x64(new_val=True):
        jitted = jax.jit(lambda q, mask: case.operator(q, *case.arguments(1.5), mask=mask))
        assert np.allclose(jitted(q, legal), case.operator(q, *case.arguments(1.5), mask=legal), rtol=1e-13)


def test_jax_vmap_over_rows_and_betas_is_the_batched_call(sharp_case: Any) -> None:
    q, beta = draw(4, 5), np.array([0.5, 1.0, 2.0, 4.0])
    with jax.enable_x64(new_val=True):
        for name in ("__call__", "gradient", "weights", "beta_derivative"):
            method = getattr(sharp_case.operator, name)
            assert np.allclose(jax.vmap(method)(q, beta), method(q, beta), rtol=1e-13, atol=1e-14)


def test_torch_vmap_over_rows_and_betas_is_the_batched_call(sharp_case: Any) -> None:
    q, beta = torch.as_tensor(draw(4, 5)), torch.tensor([0.5, 1.0, 2.0, 4.0], dtype=torch.float64)
    for name in ("__call__", "gradient", "weights", "beta_derivative"):
        method = getattr(sharp_case.operator, name)
        assert torch.allclose(torch.func.vmap(method)(q, beta), method(q, beta), rtol=1e-13, atol=1e-14)


def test_torch_meta_tensors_give_shapes(case: Any) -> None:
    q = torch.empty(3, 4, device="meta")
    value = case.operator(q, *case.arguments(1.5))
    assert (tuple(value.shape), value.device.type) == ((3,), "meta")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_within_its_eps(case: Any, dtype: torch.dtype) -> None:
    q = torch.as_tensor(draw(4, 5)).to(dtype)
    value = case.operator(q, *case.arguments(1.5))
    assert value.dtype == dtype
    expected = case.reference(q.double().numpy(), 1.5)
    assert np.allclose(value.double().numpy(), expected, atol=20 * torch.finfo(dtype).eps)
