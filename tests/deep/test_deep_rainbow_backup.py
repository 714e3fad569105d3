"""The backup of distributions: projection, mixture, divergence, and what c does to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dynaboltz.deep import AgentConfig
from dynaboltz.deep.batch import Batch
from dynaboltz.deep.distributions import Distributions
from dynaboltz.deep.learner import LOSS
from dynaboltz.deep.target_rows import CHANGE, GRADIENT, REFERENCE, STATISTICS
from dynaboltz.envs.spec import Spec
from dynaboltz.operators import boltzmann

B, A, K = 5, 3, 7
SPEC = Spec(shape=(1,), dtype="float32", n_actions=A)
Z = np.linspace(-1, 1, K)


def make(size: int = B, atoms: int = K, ends: tuple[float, float] = (-1.0, 1.0), **changes: Any) -> Distributions:
    defaults: dict[str, Any] = {
        "batch_size": size, "atoms": atoms, "value_range": ends, "dtype": "float64", "summary": "boltzmann(beta=1)",
    }  # fmt: skip
    return Distributions(AgentConfig(**(defaults | changes)), A)


def make_batch(size: int = B, *, reward: Any = 0.0, discount: Any = 1.0) -> Batch:
    batch = Batch.empty(size, SPEC)
    batch.reward[:], batch.discount[:] = reward, discount
    batch.action[:] = np.arange(size) % A
    return batch


def rows(seed: int, size: int = B, atoms: int = K, sharp: float = 1.0) -> np.ndarray:
    """Distributions (B, A, K)."""
    drawn = np.exp(sharp * np.random.default_rng(seed).normal(size=(size, A, atoms)))
    found: np.ndarray = drawn / drawn.sum(-1, keepdims=True)
    return found


def test_projection_shares_a_mass_between_the_atoms_around_it() -> None:
    """Atoms −1, 0, 1 with masses 0.2, 0.3, 0.5 go to 0, 0.5, 1, so 0.3 splits in half."""
    targets = make(1, 3)
    following = np.broadcast_to([0.2, 0.3, 0.5], (1, A, 3))
    targets(make_batch(1, reward=0.5, discount=0.5), np.zeros((1, A, 3)), following, beta=1.0)
    np.testing.assert_allclose(targets.target, [[0.0, 0.35, 0.65]], atol=1e-15)


@pytest.mark.parametrize(
    ("reward", "expected"), [(0.25, [0, 0.75, 0.25]), (-1.0, [1, 0, 0]), (7.0, [0, 0, 1]), (-1e308, [1, 0, 0])]
)
def test_projection_of_an_end_is_the_reward_itself_clipped_to_the_range(reward: float, expected: list[float]) -> None:
    targets = make(1, 3)
    targets(make_batch(1, reward=reward, discount=0.0), np.zeros((1, A, 3)), rows(0, 1, 3), beta=1.0)
    np.testing.assert_allclose(targets.target, [expected], atol=1e-15)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32), reward=st.floats(-50, 50), discount=st.floats(0, 1), beta=st.floats(0, 1e9),
    sharp=st.floats(0, 30), double=st.booleans(),
)  # fmt: skip
def test_projection_keeps_mass_and_where_nothing_is_clipped_the_mean(
    seed: int, reward: float, discount: float, beta: float, sharp: float, double: bool
) -> None:
    """The range of ± 100 holds r + γ z for every z up to 50; the mean is r + γ Σ w x with the weights of boltz."""
    targets = make(atoms=41, ends=(-100.0, 100.0), double=double)
    following = rows(seed, atoms=41, sharp=sharp)
    following[:, :, np.abs(targets.support) > 50] = 0
    following /= following.sum(-1, keepdims=True)
    online = np.random.default_rng(seed).normal(size=(B, A)) if double else None
    targets(make_batch(reward=reward, discount=discount), np.zeros((B, A, 41)), following, beta=beta, online=online)
    np.testing.assert_allclose(targets.target.sum(1), 1, rtol=1e-12)
    assert (targets.target >= 0).all()
    means = following @ targets.support
    weights = boltzmann.weights(means if online is None else online, beta)
    expected = reward + discount * (weights * means).sum(-1)
    np.testing.assert_allclose(targets.target @ targets.support, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), beta=st.floats(0, 1e6))
def test_mixture_has_the_mean_that_boltz_gives_the_means(seed: int, beta: float) -> None:
    targets, following = make(), rows(seed, sharp=3.0)
    targets(make_batch(), np.zeros((B, A, K)), following, beta=beta)
    np.testing.assert_allclose(targets.target @ Z, boltzmann(following @ Z, beta), rtol=1e-10, atol=1e-12)


def test_mixture_is_of_distributions_and_not_of_their_means() -> None:
    """Two actions that surely give −1 and 1 mix to both ends; at β = 0 in thirds with one that gives 0."""
    targets = make(1, 3, summary="mean")
    following = np.eye(3)[None]
    targets(make_batch(1), np.zeros((1, A, 3)), following, beta=None)
    np.testing.assert_allclose(targets.target, [[1 / 3, 1 / 3, 1 / 3]])


def test_backup_of_hard_max_is_that_of_c51() -> None:
    """The chosen action's distribution alone, projected by the formula written out."""
    targets, following = make(summary="hard_max"), rows(3)
    reward, discount = np.linspace(-0.5, 0.8, B), 0.7
    targets(make_batch(reward=reward, discount=discount), np.zeros((B, A, K)), following, beta=None)
    expected, step = np.zeros((B, K)), 2 / (K - 1)
    for j in range(B):
        best = (following[j] @ Z).argmax()
        moved = np.clip(reward[j] + discount * Z, -1, 1)
        for i in range(K):
            expected[j, i] = (np.clip(1 - np.abs(moved - Z[i]) / step, 0, 1) * following[j, best]).sum()
    np.testing.assert_allclose(targets.target, expected, atol=1e-14)


def test_double_weights_are_those_of_the_online_means() -> None:
    targets, following = make(summary="hard_max", double=True), rows(4)
    online = np.array([[0.0, 1.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 1e-9], [0.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    targets(make_batch(), np.zeros((B, A, K)), following, beta=None, online=online)
    np.testing.assert_allclose(targets.target, following[np.arange(B), online.argmax(1)], atol=1e-14)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_loss_is_the_divergence_and_its_cotangents_are_those_of_autograd(reduction: str) -> None:
    targets = make(loss_reduction=reduction)
    batch = make_batch(reward=0.1, discount=np.array([0.9, 0.9, 0.0, 0.5, 0.9]))
    batch.importance[:] = np.linspace(0.2, 1, B)
    logits = np.random.default_rng(0).normal(size=(B, A, K)) * 3
    targets(batch, logits, rows(5), beta=2.0)
    q = torch.tensor(logits, requires_grad=True)
    chosen = torch.log_softmax(q, -1)[torch.arange(B), torch.tensor(batch.action)]
    m = torch.tensor(targets.target)
    divergence = (torch.xlogy(m, m) - m * chosen).sum(1)
    loss = (torch.tensor(batch.importance) * divergence).sum() / (B if reduction == "mean" else 1)
    loss.backward()  # type: ignore[no-untyped-call]
    assert q.grad is not None
    assert targets.counts[LOSS] == pytest.approx(float(loss.detach()), rel=1e-12)
    np.testing.assert_allclose(targets.error, divergence.detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(
        targets.cotangents[GRADIENT], q.grad[torch.arange(B), torch.tensor(batch.action)].numpy(), atol=1e-14
    )


def test_error_is_nothing_where_the_prediction_is_the_target() -> None:
    targets, following = make(), rows(6)
    batch = make_batch()
    targets(batch, np.zeros((B, A, K)), following, beta=1.0)
    logits = np.zeros((B, A, K))
    logits[np.arange(B), batch.action] = np.log(targets.target)
    targets(batch, logits, following, beta=1.0)
    np.testing.assert_allclose(targets.error, 0, atol=1e-14)
    np.testing.assert_allclose(targets.cotangents[GRADIENT], 0, atol=1e-15)
    assert (targets.error >= 0).all()


@pytest.mark.parametrize("double", [False, True])
def test_cotangents_of_c_are_finite_differences_of_those_of_the_loss(double: bool) -> None:
    """With slope dβ/dψ: −∂(gradient)/∂ψ in the second row, and the gradient under β̄ in the third."""
    targets = make(summary="boltzmann(beta=power(2))", c_learning="corrected", double=double)
    batch = make_batch(reward=0.1, discount=np.array([0.9, 0.9, 0.0, 0.5, 0.9]))
    batch.importance[:] = np.linspace(0.2, 1, B)
    logits, following = np.random.default_rng(0).normal(size=(B, A, K)), rows(7, sharp=2.0)
    online = np.random.default_rng(1).normal(size=(B, A)) if double else None
    beta, slope, bar, h = 1.3, 0.7, 4.0, 1e-5

    def gradient(at: float) -> np.ndarray:
        targets(batch, logits, following, beta=at, online=online)
        return np.array(targets.cotangents[GRADIENT])

    change, reference = (gradient(beta + h) - gradient(beta - h)) / (2 * h), gradient(bar)
    targets(batch, logits, following, beta=beta, online=online, slope=slope, bar=bar)
    np.testing.assert_allclose(targets.cotangents[CHANGE], -slope * change, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(targets.cotangents[REFERENCE], reference, atol=1e-14)
    assert np.abs(targets.cotangents[CHANGE]).max() > 1e-3
    assert targets.counts[STATISTICS.index("learning")] == 4


def test_statistics_are_of_means_and_weights() -> None:
    targets, following = make(), rows(8, sharp=2.0)
    batch = make_batch(discount=np.array([1.0, 1.0, 0.0, 1.0, 1.0]))
    logits = np.random.default_rng(0).normal(size=(B, A, K))
    targets(batch, logits, following, beta=2.0)
    found = dict(zip(STATISTICS, targets.counts.tolist(), strict=True))
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    q = (probabilities @ Z)[np.arange(B), batch.action]
    assert found["q_mean"] == pytest.approx(q.sum())
    assert found["td_error"] == pytest.approx(np.abs(targets.target @ Z - q).sum())
    means = (following @ Z)[batch.discount > 0]
    assert found["gap"] == pytest.approx((means.max(-1) - boltzmann(means, 2.0)).sum())
    assert found["variance"] == pytest.approx(boltzmann.beta_derivative(means, 2.0).sum())
    assert found["bootstrapped"] == 4


def test_logits_that_are_not_finite_make_the_loss_so() -> None:
    targets = make()
    logits = np.zeros((B, A, K))
    logits[0, 0, 2] = math.nan
    targets(make_batch(), logits, rows(9), beta=1.0)
    assert math.isnan(targets.counts[LOSS])
