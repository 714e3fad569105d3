"""Learning c with atoms, streams and noise: the closed form against autograd and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dynaboltz.deep import AgentConfig
from dynaboltz.deep.architecture import architecture_of
from dynaboltz.deep.batch import Batch
from dynaboltz.deep.engine import make_engine
from dynaboltz.deep.heads import Heads
from dynaboltz.deep.learner import LOSS, Learner, Moment
from dynaboltz.deep.noise import Noise
from dynaboltz.envs.spec import Spec

B, A, GAMMA, RATE, T = 6, 3, 0.9, 0.05, 2.0
SPEC = Spec(shape=(3,), dtype="float32", n_actions=A)
PARTS: dict[str, dict[str, Any]] = {
    "atoms": {"atoms": 11, "value_range": (-4.0, 4.0)},
    "noise": {"noisy": 0.5},
    "atoms, double": {"atoms": 11, "value_range": (-4.0, 4.0), "double": True},
    "all": {"atoms": 11, "value_range": (-4.0, 4.0), "double": True, "noisy": 0.5, "duelling": True},
}
each_part = pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)


def make_learner(**settings: Any) -> tuple[Learner, AgentConfig, Noise | None]:
    """β = 0.3·2² = 1.2; c̄ = 0.8."""
    defaults: dict[str, Any] = {
        "summary": "boltzmann(beta=power(2, c=0.3))", "c_learning": "corrected", "c_reference": 0.8, "dtype": "float64",
        "batch_size": B, "hidden": (5, 4), "learning_rate": RATE, "c_optimiser": "sgd", "c_learning_rate": 0.01,
    }  # fmt: skip
    config = AgentConfig(**(defaults | settings))
    engine = make_engine(config, SPEC, seed=3)
    p, rng = engine.parameters, np.random.default_rng(5)
    for view in p.layout.views(p.target).values():
        np.add(view, 0.5 * rng.normal(size=view.shape), out=view)
    noise = Noise(config, SPEC, seed=1, purpose="learning") if config.noisy else None
    return Learner(config, SPEC, engine, noise), config, noise


def make_batch(seed: int) -> Batch:
    rng = np.random.default_rng(seed)
    batch = Batch.empty(B, SPEC)
    for array in (batch.inputs, batch.next_inputs):
        array[...] = rng.normal(size=array.shape) * 2
    batch.action[:] = rng.integers(0, A, B)
    batch.reward[:] = rng.normal(size=B)
    batch.discount[:] = GAMMA * (rng.random(B) < 0.8)
    batch.importance[:] = rng.uniform(0.5, 1.0, B)
    return batch


def moment(update: int) -> Moment:
    return Moment(update, update, T, synced=True)


class Reference:
    """The loss of a batch by autograd, as a function of θ and β, from the state that a learner is in."""

    def __init__(self, learner: Learner, config: AgentConfig) -> None:
        self.p, self.config = learner.parameters, config
        self.architecture = architecture_of(config, SPEC)
        self.theta, self.target = torch.tensor(np.array(self.p.online)), torch.tensor(np.array(self.p.target))
        self.z = torch.linspace(*config.value_range, config.atoms, dtype=torch.float64)

    def q(self, flat: torch.Tensor, inputs: np.ndarray, noise: np.ndarray | None) -> torch.Tensor:
        network = Heads(self.architecture, SPEC, self.p.layout.views(flat), torch.float64, torch.float64)
        return network(torch.tensor(inputs), None, None if noise is None else torch.tensor(noise))

    def loss(self, flat: torch.Tensor, batch: Batch, beta: Any, noise: Noise | None) -> torch.Tensor:
        def draw() -> np.ndarray | None:
            return None if noise is None else noise.draw()

        atoms, reward, discount = self.config.atoms > 1, torch.tensor(batch.reward), torch.tensor(batch.discount)
        ahead = self.q(self.target, batch.next_inputs, draw())
        ahead = torch.softmax(ahead, -1) if atoms else ahead
        means = ahead @ self.z if atoms else ahead
        if self.config.double:
            own = self.q(flat.detach(), batch.next_inputs, draw())
            means = torch.softmax(own, -1) @ self.z if atoms else own
        weights = torch.softmax(beta * means, -1)
        q = self.q(flat, batch.inputs, draw())[torch.arange(B), torch.tensor(batch.action)]
        if atoms:
            moved = (reward[:, None] + discount[:, None] * self.z).clamp(*self.config.value_range)
            shares = (1 - (moved[:, :, None] - self.z).abs() / (self.z[1] - self.z[0])).clamp(0, 1)
            m = torch.einsum("ba,bak,bki->bi", weights, ahead, shares)
            terms = -(m * torch.log_softmax(q, -1)).sum(-1)
        else:
            error = reward + discount * (weights * ahead).sum(-1) - q
            terms = torch.where(error.abs() < 1, error**2 / 2, error.abs() - 0.5)
        return (torch.tensor(batch.importance) * terms).mean()


@each_part
@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_meta_gradient_with_a_larger_head_is_that_of_autograd(parts: dict[str, Any], rule: str) -> None:
    learner, config, noise = make_learner(**parts, optimiser=rule)
    first, second = make_batch(1), make_batch(2)
    again = Noise(config, SPEC, seed=1, purpose="learning") if noise else None
    reference = Reference(learner, config)
    assert learner.coefficient is not None
    psi = torch.tensor(learner.coefficient.psi, dtype=torch.float64, requires_grad=True)
    theta = reference.theta.clone().requires_grad_()
    (g,) = torch.autograd.grad(reference.loss(theta, first, torch.exp(psi) * T**2, again), theta, create_graph=True)
    step = g if rule == "sgd" else g / (torch.sqrt(torch.where(g == 0, 1.0, g * g)) + 1e-8)
    after = reference.theta - RATE * step

    learner.update(first, moment(1))
    np.testing.assert_allclose(np.array(learner.parameters.online), after.detach().numpy(), atol=1e-10)
    learner.update(second, moment(2))
    leaf = after.detach().requires_grad_()
    (outer,) = torch.autograd.grad(reference.loss(leaf, second, 0.8 * T**2, again), leaf)
    (expected,) = torch.autograd.grad((outer * after).sum(), psi)
    assert abs(float(expected)) > 1e-9
    assert learner.derivative == pytest.approx(float(expected), rel=1e-5)


@each_part
def test_meta_gradient_with_a_larger_head_is_that_of_finite_differences(parts: dict[str, Any]) -> None:
    """J′ of the next batch after the same update, under the same noise, at four values of ψ."""
    learner, _, noise = make_learner(**parts, optimiser="adam(epsilon=0.01)")
    first, second = make_batch(1), make_batch(2)
    assert learner.coefficient is not None
    learner.update(make_batch(3), moment(1))
    saved, psi = frozen(learner.state()), learner.coefficient.psi
    where = noise.state() if noise else {}

    def go_back(shift: float) -> None:
        learner.restore(saved)
        if noise:
            noise.restore(where)
        assert learner.coefficient is not None
        learner.coefficient.psi = psi + shift

    def objective(shift: float) -> float:
        go_back(shift)
        learner.update(first, moment(2))
        draw = noise.draw if noise else (lambda: None)
        engine = learner.engine
        following = (engine.distributions if "atoms" in parts else engine.values)(second.next_inputs, "target", draw())
        # where weights are the online network's they are data of J′, as every target is: those of no shift
        online = online_means(draw()) if "double" in parts else None
        q = engine.forward(second.inputs, draw())
        learner.targets(second, q, following, beta=0.8 * T**2, online=online)
        return float(learner.targets.counts[LOSS])

    def online_means(drawn: np.ndarray | None) -> np.ndarray:
        shifted = learner.parameters.online.copy()
        learner.parameters.online[:] = unshifted
        means = learner.engine.values(second.next_inputs, "online", drawn).copy()
        learner.parameters.online[:] = shifted
        return means

    go_back(0.0)
    learner.update(first, moment(2))
    unshifted = learner.parameters.online.copy()
    learner.update(second, moment(3))
    found, h = learner.derivative, 1e-3
    difference = (8 * (objective(h) - objective(-h)) - (objective(2 * h) - objective(-2 * h))) / (12 * h)
    assert found == pytest.approx(difference, rel=1e-6)


def frozen(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: frozen(value) for key, value in tree.items()}
    return np.array(tree) if isinstance(tree, np.ndarray) else tree
