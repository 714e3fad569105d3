"""The one target function, against equations written out and the operators' own bodies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dynaboltz.deep import AgentConfig
from dynaboltz.deep.batch import Batch
from dynaboltz.deep.target_rows import STATISTICS
from dynaboltz.deep.targets import Targets, mixture
from dynaboltz.envs.spec import Spec
from dynaboltz.operators import OPERATORS
from dynaboltz.summaries import parse_summary

SPEC = Spec(shape=(1,), dtype="float32", n_actions=3)
B = 4


def case(**settings: Any) -> tuple[AgentConfig, Targets, Batch, dict[str, np.ndarray]]:
    """Four transitions: two that bootstrap at γ = 0.9, one over two steps (0.81), one terminal."""
    config = AgentConfig(batch_size=B, dtype="float64", discount=0.9, **settings)
    batch = Batch.empty(B, SPEC)
    batch.action[:] = [0, 1, 2, 1]
    batch.reward[:] = [1.0, -0.5, 0.25, 2.0]
    batch.discount[:] = [0.9, 0.9, 0.81, 0.0]
    rng = np.random.default_rng(1)
    names = ("q", "following", "online", "here")
    return config, Targets(config, 3), batch, {name: rng.normal(size=(B, 3)) for name in names}


SPECS = {
    "hard_max": "hard_max",
    "mean": "mean",
    "boltzmann": "boltzmann(beta=5)",
    "log_sum_exp": "log_sum_exp(beta=33.333)",
    "mellowmax": "mellowmax(beta=30)",
    "soft_mellowmax": "soft_mellowmax(alpha=2, beta=5)",
    "epsilon_mixture": "epsilon_mixture(epsilon=0.3)",
}


def test_deep_targets_are_tested_for_every_operator() -> None:
    assert set(SPECS) == set(OPERATORS)


@pytest.mark.parametrize("spec", SPECS.values())
def test_targets_are_reward_plus_discounted_operator(spec: str) -> None:
    config, targets, batch, values = case(summary=spec)
    summary = config.parsed_summary
    targets(batch, values["q"], values["following"], beta=summary.beta(1))
    expected = batch.reward + batch.discount * summary(values["following"], 1)
    np.testing.assert_allclose(targets.target, expected, rtol=1e-12)
    assert targets.target[3] == 2.0


@pytest.mark.parametrize("spec", SPECS.values())
def test_double_targets_weigh_target_values_by_online_weights(spec: str) -> None:
    config, targets, batch, values = case(summary=spec, double=True)
    summary = config.parsed_summary
    beta = summary.beta(1)
    targets(batch, values["q"], values["following"], beta=beta, online=values["online"])
    weights = summary.operator.weights(values["online"], beta)
    bonus = summary.operator(values["online"], beta) - (weights * values["online"]).sum(-1)
    expected = batch.reward + batch.discount * ((weights * values["following"]).sum(-1) + bonus)
    np.testing.assert_allclose(targets.target, expected, rtol=1e-11)


def test_double_dqn_target_is_the_target_value_of_the_online_argmax() -> None:
    _, targets, batch, values = case(double=True)
    targets(batch, values["q"], values["following"], beta=None, online=values["online"])
    picked = values["following"][np.arange(B), values["online"].argmax(1)]
    np.testing.assert_allclose(targets.target, batch.reward + batch.discount * picked, rtol=1e-13)


def test_munchausen_target_is_the_equation_of_vieillard() -> None:
    """y = r + α [τ log π(a|s)] + γ Σ π(a′|s′)(q(s′, a′) − τ log π(a′|s′)), the log-policy cut at l₀."""
    tau, alpha, lowest = 0.5, 0.9, -1.0
    _, targets, batch, values = case(summary="log_sum_exp(beta=2)", munchausen=alpha, munchausen_lowest=lowest)
    targets(batch, values["q"], values["following"], beta=1 / tau, here=values["here"])

    def log_policy(q: np.ndarray) -> np.ndarray:
        below = q - q.max(-1, keepdims=True)
        logs: np.ndarray = below - tau * np.log(np.exp(below / tau).sum(-1, keepdims=True))
        return logs

    taken = log_policy(values["here"])[np.arange(B), batch.action]
    assert (taken < lowest).any()
    logs = log_policy(values["following"])
    soft = (np.exp(logs / tau) * (values["following"] - logs)).sum(-1)
    expected = batch.reward + alpha * np.maximum(taken, lowest) + batch.discount * soft
    np.testing.assert_allclose(targets.target, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "scale", "bound"),
    [({}, 0.25, 1.0), ({"loss_reduction": "sum", "huber_bound": 0.5}, 1.0, 0.5), ({"loss": "squared"}, 0.25, math.inf)],
)
def test_cotangents_are_weighted_clipped_errors(settings: dict[str, Any], scale: float, bound: float) -> None:
    _, targets, batch, values = case(**settings)
    batch.importance[:] = [1.0, 0.5, 0.25, 1.0]
    targets(batch, values["q"], values["following"], beta=None)
    delta = targets.target - values["q"][np.arange(B), batch.action]
    np.testing.assert_allclose(targets.error, delta)
    assert (np.abs(delta) > bound).any() or math.isinf(bound)
    np.testing.assert_allclose(targets.cotangents[0], -scale * batch.importance * np.clip(delta, -bound, bound))
    size = np.abs(delta)
    loss = np.where(size <= bound, delta**2 / 2, 0 if math.isinf(bound) else bound * (size - bound / 2))
    np.testing.assert_allclose(targets.counts[0], scale * (batch.importance * loss).sum())


@pytest.mark.parametrize("double", [False, True])
def test_change_is_the_derivative_of_the_gradient_by_log_c(double: bool) -> None:
    """−∂cotangent/∂ψ by finite differences of β = e^ψ; 0 where the error is clipped and at the end."""
    _, targets, batch, values = case(summary="boltzmann(beta=power(2))", c_learning="corrected", double=double)
    beta, h = 1.7, 1e-6

    def cotangents(psi: float) -> np.ndarray:
        sharp = beta * math.exp(psi)
        targets(batch, values["q"], values["following"], beta=sharp, online=values["online"], slope=sharp)
        return targets.cotangents.copy()

    change = cotangents(0.0)[1]
    difference = -(cotangents(h)[0] - cotangents(-h)[0]) / (2 * h)
    np.testing.assert_allclose(change, difference, atol=1e-9)
    clipped = np.abs(targets.error) > 1
    assert clipped.any()
    assert not change[clipped].any()
    assert change[3] == 0
    assert np.count_nonzero(change) >= 1


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("bar", [0.3, math.inf])
def test_reference_is_the_gradient_of_the_loss_under_the_reference_beta(double: bool, bar: float) -> None:
    _, targets, batch, values = case(summary="boltzmann(beta=power(2))", c_learning="corrected", double=double)
    targets(batch, values["q"], values["following"], beta=bar, online=values["online"])
    expected = targets.cotangents[0].copy()
    targets(batch, values["q"], values["following"], beta=2.0, online=values["online"], slope=2.0, bar=bar)
    np.testing.assert_allclose(targets.cotangents[2], expected, atol=1e-14)
    assert np.abs(targets.cotangents[0] - expected).max() > 1e-3


def test_statistics_are_means_over_the_states_that_bootstrap() -> None:
    config, targets, batch, values = case(summary="boltzmann(beta=2)")
    targets(batch, values["q"], values["following"], beta=2.0)
    counts = dict(zip(STATISTICS, targets.counts, strict=True))
    x = values["following"][:3]
    p = config.parsed_summary.operator.weights(x, 2.0)
    mean = (p * x).sum(-1)
    assert counts["bootstrapped"] == 3
    assert counts["gap"] == pytest.approx((x.max(-1) - mean).sum())
    assert counts["variance"] == pytest.approx((p * (x - mean[:, None]) ** 2).sum())
    assert counts["entropy"] == pytest.approx(-(p * np.log(p)).sum() / math.log(3))
    assert counts["saturated"] == 0
    targets(batch, values["q"], values["following"] * 1e4, beta=2.0)
    assert dict(zip(STATISTICS, targets.counts, strict=True))["saturated"] == 3


@pytest.mark.parametrize("spec", SPECS.values())
def test_mixture_gives_the_weights_of_the_operator(spec: str) -> None:
    summary = parse_summary(spec)
    beta = summary.beta(1) or 0.0
    greedy, uniform, soft, rate = mixture(summary.operator)
    x = np.array([0.5, 2.0, 2.0, -1.0])
    e = np.exp((rate + beta) * (x - 2.0))
    weights = greedy * (x == 2.0) / 2 + uniform / 4 + soft * e / e.sum()
    np.testing.assert_allclose(weights, summary.operator.weights(x, summary.beta(1)), rtol=1e-12)
