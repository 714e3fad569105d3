"""Every wrong argument is refused by a message that names it and says what is allowed."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from dynaboltz import UserError, boltzmann, epsilon_mixture, hard_max, log_sum_exp, mellowmax, soft_mellowmax
from dynaboltz.operators.operator import COMPILED_FROM

Q = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
LARGE = np.zeros((COMPILED_FROM // 4, 4))


@pytest.mark.parametrize("q", [Q, torch.as_tensor(Q), jnp.asarray(Q, jnp.float32), LARGE], ids=type)
@pytest.mark.parametrize("beta", [-1.0, -1e-300, -math.inf, math.nan, -1, np.float32(-2), -(10**400)])
def test_negative_or_nan_beta_is_refused(sharp_case: Any, q: Any, beta: Any) -> None:
    with pytest.raises(UserError, match=r"beta must be at least 0 \(0 is the mean, inf the maximum\), got -|got nan"):
        sharp_case.operator(q, beta)


@pytest.mark.parametrize("bad", [-1.0, math.nan])
@pytest.mark.parametrize("array", [np.asarray, torch.tensor, jnp.asarray])
def test_beta_array_with_a_wrong_entry_is_refused(bad: float, array: Any) -> None:
    q = array(Q.tolist())
    with pytest.raises(UserError, match="beta must be at least 0"):
        boltzmann(q, array([1.0, bad]))


@pytest.mark.parametrize(
    "beta",
    [True, np.True_, "2", np.str_("2"), 1j, np.complex64(2), [1.0, 2.0], np.array([True, False]), np.array(["1"] * 2)],
)
def test_beta_that_is_no_number_is_refused(beta: Any) -> None:
    with pytest.raises(UserError, match="beta must be a number of at least 0 or an array of them, got"):
        boltzmann(Q, beta)


@pytest.mark.parametrize("shape", [(3,), (2, 1), (2, 3), (1, 1, 2)])
def test_beta_that_does_not_fit_the_rows_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match=r"must broadcast to one number a row, shape \(2,\)"):
        boltzmann(Q, np.ones(shape))


def test_an_integer_beyond_the_largest_float_is_an_infinite_beta() -> None:
    assert boltzmann([1.0, 2.0], 10**400) == 2.0


def test_missing_beta_is_asked_for(sharp_case: Any) -> None:
    name = sharp_case.operator.name
    for method in ("__call__", "weights", "gradient", "beta_derivative"):
        with pytest.raises(UserError, match=rf"{name} needs a beta, for instance {name}\(q, 5.0\)"):
            getattr(sharp_case.operator, method)(Q)


def test_superfluous_beta_is_refused(case: Any) -> None:
    if not case.operator.traits.takes_beta:
        for method in ("__call__", "weights", "gradient", "beta_derivative"):
            with pytest.raises(
                UserError, match=rf"{case.operator.name} has no beta, got beta=2.0; call {case.operator.name}\(q\)"
            ):
                getattr(case.operator, method)(Q, 2.0)


@pytest.mark.parametrize("q", [Q, LARGE, torch.as_tensor(Q), jnp.asarray(Q, jnp.float32)], ids=type)
@pytest.mark.parametrize("beta", [0, 0.0, 1e-310])
def test_log_sum_exp_at_beta_zero_is_refused_and_mellowmax_recommended(q: Any, beta: float) -> None:
    with pytest.raises(
        UserError, match=r"log_sum_exp is infinite at beta = 0 .*; use mellowmax, which is the mean there"
    ):
        log_sum_exp(q, beta)


def test_log_sum_exp_at_a_beta_that_is_zero_in_single_precision_is_refused() -> None:
    for m in (1, 2):
        with pytest.raises(UserError, match="beyond float32 at a beta as small as 1e-300"):
            log_sum_exp(np.ones(m, np.float32), 1e-300)


def test_log_sum_exp_with_one_zero_in_the_beta_array_is_refused() -> None:
    with pytest.raises(UserError, match="infinite at beta = 0"):
        log_sum_exp(Q, np.array([1.0, 0.0]))


@pytest.mark.parametrize("array", [np.asarray, torch.as_tensor, jnp.asarray])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused_with_their_place(case: Any, array: Any, bad: float) -> None:
    q = Q.astype(np.float32)
    q[1, 2] = bad
    with pytest.raises(UserError, match=rf"must be finite .*, got {bad} in row \(1,\), action 2"):
        case.operator(array(q), *case.arguments(1.0))


@pytest.mark.parametrize("array", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_found_in_large_arrays(case: Any, array: Any, bad: float) -> None:
    q = LARGE.copy()
    q[4321, 2] = bad
    with pytest.raises(UserError, match=rf"got {bad} in row \(4321,\), action 2"):
        case.operator(array(q), *case.arguments(1.0))


def test_nan_with_a_payload_is_found_in_large_arrays(case: Any) -> None:
    q = LARGE.copy()
    q.view(np.uint64)[4321, 2] = 0x7FF8000000000001
    with pytest.raises(UserError, match=r"got nan in row \(4321,\), action 2"):
        case.operator(q, *case.arguments(1.0))


def test_row_without_a_legal_action_is_refused_with_advice(case: Any) -> None:
    q = Q.copy()
    q[1] = -np.inf
    message = r"no legal action in row \(1,\): all 3 values are masked or -inf\n.*give it the value 0 instead"
    with pytest.raises(UserError, match=message):
        case.operator(q, *case.arguments(1.0))
    with pytest.raises(UserError, match=message):
        case.operator(Q, *case.arguments(1.0), mask=np.array([[True] * 3, [False] * 3]))


def test_row_without_a_legal_action_is_found_in_large_arrays(case: Any) -> None:
    q = LARGE.copy()
    q[77] = -np.inf
    with pytest.raises(UserError, match=r"no legal action in row \(77,\)"):
        case.operator(q, *case.arguments(1.0))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0)])
def test_empty_action_axis_is_refused(case: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match=r"the action axis is empty: shape .*, axis -1"):
        case.operator(np.zeros(shape), *case.arguments(1.0))


@pytest.mark.parametrize("q", [np.array(1.0), np.float64(1.0), torch.tensor(1.0), jnp.asarray(1.0)], ids=type)
def test_single_number_is_refused(q: Any) -> None:
    with pytest.raises(UserError, match="need an action axis, got a single number; wrap it in a list"):
        hard_max(q)


@pytest.mark.parametrize("q", [1.0, "abc", None, {0.0, 1.0}, {"a": 1.0}, slice(2)], ids=str)
def test_values_that_are_no_array_are_refused(q: Any) -> None:
    with pytest.raises(UserError, match=f"must be an array .* or a list of floats, got {type(q).__name__}"):
        hard_max(q)


@pytest.mark.parametrize("dtype", [int, np.uint8, bool, complex, object, "U3"])
def test_values_that_are_not_real_floats_are_refused(dtype: Any) -> None:
    with pytest.raises(UserError, match=r"must be real floating-point numbers, got .*; convert them first"):
        hard_max(np.ones((2, 3)).astype(dtype))


def test_torch_and_jax_integers_are_refused() -> None:
    for q in (torch.ones(3, dtype=torch.int64), jnp.ones(3, jnp.int32), torch.ones(3, dtype=torch.complex64)):
        with pytest.raises(UserError, match=r"must be real floating-point numbers"):
            hard_max(q)


def test_lists_of_integers_are_refused_like_integer_arrays() -> None:
    with pytest.raises(UserError, match="got int64; convert them first"):
        hard_max([0, 1, 2])


def test_ragged_list_is_refused_with_advice() -> None:
    with pytest.raises(UserError, match=r"rows of one length[\s\S]*pad the shorter rows with -inf"):
        hard_max([[1.0, 2.0], [1.0]])


@pytest.mark.parametrize("q", [Q, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("axis", [2, -3, 1.0, "x", None, True, (0, 1)])
def test_wrong_axis_is_refused(q: Any, axis: Any) -> None:
    for method in (boltzmann, boltzmann.weights, boltzmann.gradient, boltzmann.beta_derivative):
        with pytest.raises(UserError, match=r"axis must be an integer from -2 to 1 for shape \(\d+, \d\), got"):
            method(q, 1.0, axis=axis)


@pytest.mark.parametrize("mask", [[1, 1, 0], [1.0, 1.0, 0.0], ["a", "b", "c"]])
def test_mask_that_is_not_boolean_is_refused(mask: Any) -> None:
    with pytest.raises(UserError, match=r"mask must be boolean \(True is a legal action\), got"):
        hard_max(Q, mask=np.array(mask))


@pytest.mark.parametrize("shape", [(2,), (3, 3), (3, 2), (1, 2, 3), (4,)])
def test_mask_of_a_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match=r"must broadcast to the action values' \(2, 3\)"):
        hard_max(Q, mask=np.ones(shape, bool))


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, math.nan, math.inf, True, "0.1", None, 10**400])
def test_epsilon_outside_zero_and_one_is_refused(epsilon: Any) -> None:
    with pytest.raises(UserError, match="epsilon_mixture: epsilon must be a finite number from 0 to 1, got"):
        epsilon_mixture(epsilon)


@pytest.mark.parametrize("alpha", [-0.1, math.nan, math.inf, True, "0.1", None, 10**400])
def test_alpha_that_is_negative_or_not_finite_is_refused(alpha: Any) -> None:
    with pytest.raises(UserError, match="soft_mellowmax: alpha must be a finite number from 0 up, got"):
        soft_mellowmax(alpha)


def test_numpy_scalars_are_numbers() -> None:
    half: Any = np.float32(0.5)
    assert epsilon_mixture(half) == epsilon_mixture(0.5)
    assert mellowmax(Q, np.int64(2)).tolist() == mellowmax(Q, 2.0).tolist()
