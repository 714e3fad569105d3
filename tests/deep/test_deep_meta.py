"""The meta-gradient of c in closed form, against autograd through the optimiser's step and finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from dynaboltz.deep import AgentConfig
from dynaboltz.deep.batch import Batch
from dynaboltz.deep.engine import ENGINES, make_engine
from dynaboltz.deep.learner import LOSS, Learner, Moment
from dynaboltz.deep.meta import Coefficient
from dynaboltz.envs.spec import Spec

B, GAMMA, RATE, T, P = 6, 0.9, 0.05, 2.0, 2.0
VECTORS = Spec(shape=(3,), dtype="float32", n_actions=3)
PICTURES = Spec(shape=(5, 4, 2), dtype="float32", n_actions=3)
RULES = ("sgd", "rmsprop(decay=0.9)", "deepmind_rmsprop(decay=0.9)", "adam")


def make_learner(spec: Spec = VECTORS, **settings: Any) -> Learner:
    """A float64 learner at β = c·t² = 1.2 at t = 2, whose target network is not the online network."""
    defaults: dict[str, Any] = {
        "summary": "boltzmann(beta=power(2, c=0.3))", "c_learning": "corrected", "dtype": "float64", "batch_size": B,
        "discount": GAMMA, "hidden": (5, 4), "learning_rate": RATE if spec is VECTORS else RATE / 50,
        "network": "mlp" if spec is VECTORS else "minatar",
        "engine": "torch", "c_optimiser": "sgd", "c_learning_rate": 0.01,
    }  # fmt: skip
    config = AgentConfig(**(defaults | settings))
    engine = make_engine(config, spec, seed=3)
    noise = np.random.default_rng(5)
    scale = 0.3 if spec is VECTORS else 0.03
    engine.parameters.target[:] += scale * noise.normal(size=engine.parameters.target.shape)
    for piece in engine.parameters.layout.pieces:
        engine.parameters.target[piece.stop : piece.stop + (-piece.stop % 64)] = 0
    return Learner(config, spec, engine)


def make_batch(seed: int, spec: Spec = VECTORS) -> Batch:
    rng = np.random.default_rng(seed)
    batch = Batch.empty(B, spec)
    for array in (batch.inputs, batch.next_inputs):
        array[...] = rng.normal(size=array.shape) * 2
    batch.action[:] = rng.integers(0, 3, B)
    batch.reward[:] = rng.normal(size=B)
    batch.discount[:] = GAMMA * (rng.random(B) < 0.8)
    batch.importance[:] = rng.uniform(0.5, 1.0, B)
    return batch


def moment(update: int) -> Moment:
    return Moment(update, update, T, synced=True)


class Reference:
    """One update by autograd, written out again: a function of ψ from the state that a learner is in."""

    def __init__(self, learner: Learner, rule: str, clip: float = math.inf) -> None:
        p = learner.parameters
        self.rate, self.layout, self.rule, self.clip = p.rate, p.layout, rule.split("(", maxsplit=1)[0], clip
        self.theta, self.target, self.first, self.second = (
            torch.tensor(np.array(flat)) for flat in (p.online, p.target, p.first, p.second)
        )
        self.k = p.updates + 1

    def q(self, flat: torch.Tensor, inputs: np.ndarray) -> torch.Tensor:
        weights = {x.name: flat[x.start : x.stop].reshape(x.shape) for x in self.layout.pieces}
        x = torch.tensor(inputs[:, 0].astype(np.float64))
        if "convolution.0.weight" in weights:
            kernel = weights["convolution.0.weight"].permute(0, 3, 1, 2)
            x = torch.conv2d(x.permute(0, 3, 1, 2), kernel, weights["convolution.0.bias"])
            x = torch.relu(x).permute(0, 2, 3, 1).flatten(1)
        names = [name.removesuffix(".weight") for name in weights if name.endswith("weight") and "conv" not in name]
        for name in names:
            x = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
            x = torch.relu(x) if name != "output" else x
        return x

    def loss(self, flat: torch.Tensor, batch: Batch, beta: Any) -> torch.Tensor:
        following = self.q(self.target, batch.next_inputs)
        weights = torch.softmax(beta * following, -1)
        target = torch.tensor(batch.reward) + torch.tensor(batch.discount) * (weights * following).sum(-1)
        error = target - self.q(flat, batch.inputs)[torch.arange(B), torch.tensor(batch.action)]
        size = error.abs()
        terms = torch.where(size < 1, error**2 / 2, size - 0.5)
        return (torch.tensor(batch.importance) * terms).mean()

    def step(self, batch: Batch, psi: torch.Tensor) -> torch.Tensor:
        theta = self.theta.clone().requires_grad_()
        # the target is held apart from θ, so ∂g/∂ψ is what autograd finds by keeping the graph
        loss = self.loss(theta, batch, torch.exp(psi) * T**P)
        (g,) = torch.autograd.grad(loss, theta, create_graph=True)
        norm = g.norm()
        if norm > self.clip:
            g = g * self.clip / norm
        k, m, n = self.k, self.first, self.second
        if self.rule == "sgd":
            move = g
        elif self.rule == "rmsprop":
            n = 0.9 * n + 0.1 * g * g
            move = g / (torch.sqrt(torch.where(n > 0, n, 1.0)) + 1e-8)
        elif self.rule == "deepmind_rmsprop":
            m, n = 0.9 * m + 0.1 * g, 0.9 * n + 0.1 * g * g
            move = g / torch.sqrt(n - m * m + 0.01)
        else:
            m, n = 0.9 * m + 0.1 * g, 0.999 * n + 0.001 * g * g
            root = torch.sqrt(torch.where(n > 0, n, 1.0) / (1 - 0.999**k))
            move = m / (1 - 0.9**k) / (root + 1e-8)
        return self.theta - self.rate * move

    def derivative(self, u: torch.Tensor, batch: Batch, psi: float) -> float:
        """⟨u, dθ′/dψ⟩."""
        variable = torch.tensor(psi, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad((u * self.step(batch, variable)).sum(), variable)
        return float(slope)

    def gradient(self, theta: torch.Tensor, batch: Batch, beta: float) -> torch.Tensor:
        theta = theta.detach().clone().requires_grad_()
        return torch.autograd.grad(self.loss(theta, batch, beta), theta)[0]


def warmed_up(learner: Learner, spec: Spec = VECTORS) -> None:
    for update in range(1, 4):
        learner.update(make_batch(100 + update, spec), moment(update))


def beta_bar(learner: Learner, policy: str) -> float:
    assert learner.coefficient is not None
    c = {"fixed": 0.3, "current": learner.coefficient.c, "infinity": 1e9}[policy]
    return float(c * T**P)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("policy", ["fixed", "current", "infinity"])
@pytest.mark.parametrize("spec", [VECTORS, PICTURES], ids=["mlp", "convolution"])
@pytest.mark.parametrize("engine", ENGINES)
def test_meta_gradient_is_that_of_autograd_through_the_optimiser(
    rule: str, policy: str, spec: Spec, engine: str
) -> None:
    learner = make_learner(spec, optimiser=rule, c_bar=policy, engine=engine)
    assert learner.coefficient is not None
    warmed_up(learner, spec)
    first, second = make_batch(1, spec), make_batch(2, spec)
    reference, psi = Reference(learner, rule), learner.coefficient.psi
    learner.update(first, moment(4))
    after = torch.tensor(np.array(learner.parameters.online))
    bar = beta_bar(learner, policy)
    learner.update(second, moment(5))
    expected = reference.derivative(reference.gradient(after, second, bar), first, psi)
    assert abs(expected) > 1e-9
    assert learner.derivative == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("spec", [VECTORS, PICTURES], ids=["mlp", "convolution"])
def test_meta_gradient_is_that_of_finite_differences(rule: str, spec: Spec) -> None:
    """J′ after the same update at four values of ψ, fourth order; an ε that smooths the kink of Adam and RMSProp."""
    smooth = {"rmsprop(decay=0.9)": "rmsprop(decay=0.9, epsilon=0.01)", "adam": "adam(epsilon=0.01)"}.get(rule, rule)
    learner = make_learner(spec, optimiser=smooth)
    assert learner.coefficient is not None
    warmed_up(learner, spec)
    first, second = make_batch(1, spec), make_batch(2, spec)
    saved, psi = _frozen(learner.state()), learner.coefficient.psi
    bar = beta_bar(learner, "fixed")

    def objective(shift: float) -> float:
        learner.restore(saved)
        assert learner.coefficient is not None
        learner.coefficient.psi = psi + shift
        learner.update(first, moment(4))
        q, following = learner.engine.values(second.inputs), learner.engine.values(second.next_inputs, "target")
        learner.targets(second, q, following, beta=bar)
        return float(learner.targets.counts[LOSS])

    h = 1e-3
    difference = (8 * (objective(h) - objective(-h)) - (objective(2 * h) - objective(-2 * h))) / (12 * h)
    learner.restore(saved)
    learner.update(first, moment(4))
    learner.update(second, moment(5))
    assert learner.derivative == pytest.approx(difference, rel=1e-6)


def _frozen(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _frozen(value) for key, value in tree.items()}
    return np.array(tree) if isinstance(tree, np.ndarray) else tree


@pytest.mark.parametrize("rule", RULES)
def test_meta_gradient_goes_through_a_clipped_norm(rule: str) -> None:
    learner = make_learner(optimiser=rule, gradient_clip=0.05)
    assert learner.coefficient is not None
    warmed_up(learner)
    first, second = make_batch(1), make_batch(2)
    reference, psi = Reference(learner, rule, clip=0.05), learner.coefficient.psi
    assert reference.gradient(reference.theta, first, math.exp(psi) * T**P).norm() > 0.05
    learner.update(first, moment(4))
    after = torch.tensor(np.array(learner.parameters.online))
    learner.update(second, moment(5))
    expected = reference.derivative(reference.gradient(after, second, 0.3 * T**P), first, psi)
    assert learner.derivative == pytest.approx(expected, rel=1e-6)


def test_trace_adds_up_decayed_derivatives_of_earlier_updates() -> None:
    learner = make_learner(optimiser="adam", c_trace=0.7, c_bar="infinity")
    assert learner.coefficient is not None
    references, psis, batches = [], [], [make_batch(seed) for seed in range(4)]
    for k, batch in enumerate(batches[:3]):
        references.append(Reference(learner, "adam"))
        psis.append(learner.coefficient.psi)
        learner.update(batch, moment(k + 1))
    after = torch.tensor(np.array(learner.parameters.online))
    learner.update(batches[3], moment(4))
    u = references[0].gradient(after, batches[3], 1e9)
    terms = [r.derivative(u, b, psi) for r, b, psi in zip(references, batches[:3], psis, strict=True)]
    expected = terms[2] + 0.7 * terms[1] + 0.49 * terms[0]
    assert abs(expected - terms[2]) > 1e-6 * abs(expected)
    assert learner.derivative == pytest.approx(expected, rel=1e-6)


def test_frozen_derivative_keeps_only_the_preconditioner() -> None:
    """For DeepMind's RMSProp: D = E^(−1/2)."""
    learner = make_learner(optimiser="deepmind_rmsprop(decay=0.9)", c_derivative="frozen")
    warmed_up(learner)
    learner.update(make_batch(1), moment(4))
    p = learner.parameters
    direct = (p.second - p.first**2 + 0.01) ** -0.5
    np.testing.assert_allclose(p.trace, RATE * direct * p.gradients[1], rtol=1e-12)


def test_as_printed_is_the_formula_of_the_paper() -> None:
    """αγ ∂boltz_{β(c̄)}(Q(s′_next))/∂c ∂Q(s, a; θ)/∂θ with s of the last batch, unclipped, whatever the optimiser."""
    learner = make_learner(c_learning="as_printed", optimiser="adam")
    assert learner.coefficient is not None
    warmed_up(learner)
    first, second = make_batch(1), make_batch(2)
    before = Reference(learner, "adam")
    learner.update(first, moment(4))
    after, c = Reference(learner, "adam"), learner.coefficient.c
    learner.update(second, moment(5))
    bar = 0.3 * T**P
    x = before.q(before.target, second.next_inputs)
    p = torch.softmax(bar * x, -1)
    mean = (p * x).sum(-1)
    variance = (p * (x - mean[:, None]) ** 2).sum(-1)
    theta = before.theta.clone().requires_grad_()
    taken = before.q(theta, first.inputs)[torch.arange(B), torch.tensor(first.action)]
    change = torch.autograd.grad((torch.tensor(second.discount) * T**P * variance * taken).mean(), theta)[0]
    theta = after.theta.clone().requires_grad_()
    taken = before.q(theta, second.inputs)[torch.arange(B), torch.tensor(second.action)]
    target = torch.tensor(second.reward) + torch.tensor(second.discount) * mean
    u = torch.autograd.grad((0.5 * (target - taken) ** 2).mean(), theta)[0]
    expected = float(RATE * (u * change).sum())
    assert learner.derivative == pytest.approx(expected, rel=1e-9)
    assert learner.coefficient.c == pytest.approx(c - 0.01 * expected, rel=1e-12)


def test_reference_that_is_c_itself_costs_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """⟨g, z⟩ with the gradient that the update needs anyway; and no pass at all where every weight is 0."""
    learner = make_learner(c_bar="current")
    rows: list[tuple[int, ...]] = []
    gradients = learner.engine.gradients

    def counted(actions: np.ndarray, cotangents: np.ndarray, wanted: tuple[int, ...]) -> None:
        rows.append(wanted)
        gradients(actions, cotangents, wanted)

    monkeypatch.setattr(learner.engine, "gradients", counted)
    learner.update(make_batch(1), moment(1))
    learner.update(make_batch(2), moment(2))
    ended = make_batch(3)
    ended.discount[:] = 0
    learner.update(ended, moment(3))
    learner.update(ended, moment(4))
    assert rows == [(0, 1), (0, 1), (0,), (0,)]
    assert math.isnan(learner.derivative)


def test_c_stays_until_the_first_sync() -> None:
    learner = make_learner()
    assert learner.coefficient is not None
    for update in range(1, 4):
        learner.update(make_batch(update), Moment(update, update, 1.0, synced=False))
    assert learner.coefficient.c == pytest.approx(0.3)
    assert not learner.parameters.trace.any()


@pytest.mark.parametrize("cap", [1.0, 1e6])
def test_beta_follows_c_up_to_its_cap_and_then_has_no_slope(cap: float) -> None:
    config = AgentConfig(summary=f"boltzmann(beta=capped(power(2, c=0.5), {cap}))", c_learning="corrected")
    coefficient = Coefficient(config)
    coefficient.psi = math.log(0.7)
    assert coefficient.beta(3) == pytest.approx(min(6.3, cap))
    assert coefficient.slope(3) == pytest.approx(6.3 if cap > 6.3 else 0)
    assert coefficient.bar(3) == pytest.approx(min(4.5, cap))
    assert coefficient.beta(1e300) == cap
    h = 1e-6
    up, down = Coefficient(config), Coefficient(config)
    up.psi, down.psi = coefficient.psi + h, coefficient.psi - h
    assert coefficient.slope(3) == pytest.approx((up.beta(3) - down.beta(3)) / (2 * h), rel=1e-8)


def test_step_of_log_c_is_limited() -> None:
    config = AgentConfig(
        summary="boltzmann(beta=power(2))", c_learning="corrected", c_optimiser="sgd", c_largest_step=0.1,
        c_learning_rate=1.0,
    )  # fmt: skip
    coefficient = Coefficient(config)
    coefficient.descend(50.0)
    assert coefficient.psi == -0.1
    coefficient.descend(-0.05)
    assert coefficient.psi == pytest.approx(-0.05)


def test_printed_step_of_c_never_leaves_the_positive_numbers() -> None:
    config = AgentConfig(summary="boltzmann(beta=power(2))", c_learning="as_printed", c_learning_rate=1.0)
    coefficient = Coefficient(config)
    for _ in range(100):
        coefficient.descend(1e9)
    assert coefficient.c == pytest.approx(math.exp(-10))
