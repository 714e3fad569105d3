"""Streams, noisy layers and atoms: the network, its gradients, and the settings that go together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynaboltz.cli import main
from dynaboltz.deep import PRESETS, AgentConfig, memory
from dynaboltz.deep.architecture import architecture_of
from dynaboltz.deep.engine import engine_name, make_engine
from dynaboltz.deep.noise import Noise
from dynaboltz.deep.presets import SCALES
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError

SPECS = {
    "mlp": Spec(shape=(4,), dtype="float32", n_actions=3),
    "minatar": Spec(shape=(10, 10, 4), dtype="bool", n_actions=3),
    "nature": Spec(shape=(84, 84), dtype="uint8", n_actions=3, stack=4),
}
PARTS: dict[str, dict[str, Any]] = {
    "duelling": {"duelling": True},
    "noisy": {"noisy": 0.5},
    "atoms": {"atoms": 5, "value_range": (-2.0, 2.0)},
    "duelling, noisy": {"duelling": True, "noisy": 0.5},
    "all": {"duelling": True, "noisy": 0.5, "atoms": 5, "value_range": (-2.0, 2.0)},
}
each_network = pytest.mark.parametrize("network", SPECS)
each_part = pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
N = 6


def build(network: str, parts: dict[str, Any], dtype: str = "float64", **more: Any) -> tuple[Any, AgentConfig, Any]:
    """An engine whose scales of noise are all different, its configuration and N inputs."""
    spec = SPECS[network]
    config = AgentConfig(network=network, dtype=dtype, hidden=(7, 5), batch_size=N, **(parts | more))
    engine, rng = make_engine(config, spec, seed=4), np.random.default_rng(0)
    high = {"bool": 2, "uint8": 256}.get(spec.dtype)
    shape = (N, spec.stack, *spec.shape)
    inputs = (rng.integers(0, high, shape) if high else rng.normal(size=shape)).astype(spec.dtype)
    for name, view in engine.parameters.layout.views(engine.parameters.online).items():
        if name.endswith("noise"):
            view[...] *= rng.uniform(0.5, 1.5, view.shape)
    return engine, config, inputs


def pictures(weights: dict[str, np.ndarray], config: AgentConfig, inputs: np.ndarray) -> np.ndarray:
    """What the dense layers are given, sum by sum where there are convolutions."""
    spec = SPECS[config.network]
    x = inputs.astype(np.float64) / (255 if spec.dtype == "uint8" else 1)
    convolutions = architecture_of(config, spec).convolutions
    if convolutions:
        x = x[:, 0] if x.ndim == 5 else np.moveaxis(x, 1, -1)
    for i, layer in enumerate(convolutions):
        windows = np.lib.stride_tricks.sliding_window_view(x, (layer.kernel, layer.kernel), axis=(1, 2))
        windows = windows[:, :: layer.stride, :: layer.stride]
        sums = np.einsum("nhwcij,oijc->nhwo", windows, weights[f"convolution.{i}.weight"], optimize=True)
        x = np.maximum(sums + weights[f"convolution.{i}.bias"], 0)
    return x.reshape(len(x), -1)


def plain(engine: Any, config: AgentConfig, inputs: np.ndarray, noise: np.ndarray | None) -> np.ndarray:
    """The network written out, with noisy weights made in full; (n, A) or (n, A, K)."""
    spec, w = SPECS[config.network], engine.parameters.weights()
    sets, at = {}, 0
    layers = architecture_of(config, spec).dense_layers()
    for layer in layers:
        sets[layer.name] = at, at + layer.inputs, at + layer.inputs + layer.units
        at = sets[layer.name][2]
    assert noise is None or at == len(noise)

    def sums(name: str, x: np.ndarray) -> np.ndarray:
        weight, bias = w[f"{name}.weight"], w[f"{name}.bias"]
        if noise is not None:
            first, middle, last = sets[name]
            into, out = noise[first:middle], noise[middle:last]
            weight = weight + w[f"{name}.weight.noise"] * np.outer(out, into)
            bias = bias + w[f"{name}.bias.noise"] * out
        found: np.ndarray = x @ weight.T + bias
        return found

    x = pictures(w, config, inputs)
    for layer in layers:
        x = np.maximum(sums(layer.name, x), 0) if layer.name.startswith("hidden") else x
    if config.duelling:
        value, advantage = (
            sums(f"{stream}.output", np.maximum(sums(f"{stream}.hidden", x), 0)).reshape(len(x), -1, config.atoms)
            for stream in ("value", "advantage")
        )
        q = value + advantage - advantage.mean(axis=1, keepdims=True)
    else:
        q = sums("output", x).reshape(len(x), -1, config.atoms)
    return np.array(q if config.atoms > 1 else q[:, :, 0])


def means(outputs: np.ndarray, config: AgentConfig) -> np.ndarray:
    if config.atoms == 1:
        return outputs
    shares = np.exp(outputs - outputs.max(-1, keepdims=True))
    found: np.ndarray = shares / shares.sum(-1, keepdims=True) @ np.linspace(*config.value_range, config.atoms)
    return found


@each_network
@each_part
def test_network_follows_its_equations_with_noise_and_without(network: str, parts: dict[str, Any]) -> None:
    engine, config, inputs = build(network, parts)
    sets = [None]
    if config.noisy:
        sets.append(Noise(config, SPECS[network], seed=2, purpose="a test").draw())  # type: ignore[arg-type]
    for noise in sets:
        expected = plain(engine, config, inputs, noise)
        np.testing.assert_allclose(engine.forward(inputs, noise), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            engine.values(inputs, "online", noise), means(expected, config), rtol=1e-9, atol=1e-12
        )
        if config.atoms > 1:
            found = engine.distributions(inputs, "online", noise)
            np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-12)
            np.testing.assert_allclose(found @ np.linspace(-2, 2, 5), means(expected, config), rtol=1e-9, atol=1e-12)
    if config.noisy:
        assert np.abs(engine.values(inputs) - engine.values(inputs, "online", sets[1])).max() > 1e-3


@each_part
def test_network_in_float32_and_rounded_is_near_that_in_float64(parts: dict[str, Any]) -> None:
    exact, config, inputs = build("minatar", parts)
    inputs = np.concatenate([inputs] * 3)  # as many as are rounded
    noise = Noise(config, SPECS["minatar"], seed=2, purpose="a test").draw() if config.noisy else None
    for autocast, error in (("off", 1e-5), ("bfloat16", 5e-2)):
        engine, _, _ = build("minatar", parts, "float32", autocast=autocast)
        drawn = None if noise is None else noise.astype(np.float32)
        assert engine.values(inputs, "online", drawn).dtype == np.float32
        np.testing.assert_allclose(
            engine.values(inputs, "online", drawn), exact.values(inputs, "online", noise), atol=error
        )


@pytest.mark.parametrize("atoms", [1, 5])
def test_duelling_streams_mean_that_advantages_average_to_nothing(atoms: int) -> None:
    """The mean over actions is the value's stream alone, and a shift of all advantages changes nothing."""
    engine, config, inputs = build("mlp", {"duelling": True} | ({"atoms": atoms} if atoms > 1 else {}))
    views = engine.parameters.layout.views(engine.parameters.online)
    before = engine.forward(inputs).copy()
    views["advantage.output.bias"] += np.tile(np.linspace(1, 2, atoms), 3)
    np.testing.assert_allclose(engine.forward(inputs), before, atol=1e-12)
    for name in ("advantage.output.weight", "advantage.output.bias"):
        views[name][...] = 0
    value = engine.forward(inputs)
    assert config.head == (("duelling", "atoms") if atoms > 1 else ("duelling",))
    np.testing.assert_allclose(value, np.broadcast_to(before.mean(axis=1, keepdims=True), value.shape), atol=1e-12)


@pytest.mark.parametrize("network", ["mlp", "minatar"])
@each_part
def test_gradients_of_every_weight_are_derivatives(network: str, parts: dict[str, Any]) -> None:
    """Along a random direction, by central differences, for a row that is whole and one that is mostly 0."""
    more = {"summary": "boltzmann(beta=power(2))", "c_learning": "corrected"}
    engine, config, inputs = build(network, parts, **more)
    rng, p = np.random.default_rng(1), engine.parameters
    actions = rng.integers(0, 3, N)
    atoms = (config.atoms,) if config.atoms > 1 else ()
    cotangents = rng.normal(size=(2, N, *atoms))
    cotangents[1, :4] = 0
    noise = Noise(config, SPECS[network], seed=2, purpose="a test").draw() if config.noisy else None
    engine.forward(inputs, noise)
    engine.gradients(actions, cotangents, (0, 2))
    direction = np.zeros_like(p.online)
    for name, view in p.layout.views(direction).items():
        view[...] = rng.normal(size=view.shape)
        assert noise is None or p.layout.views(p.gradients[0])[name].any()

    def sums(h: float) -> np.ndarray:
        before = p.online.copy()
        p.online[:] += h * direction
        chosen = engine.forward(inputs, noise)[np.arange(N), actions].copy()
        p.online[:] = before
        found: np.ndarray = (cotangents * chosen).reshape(2, -1).sum(1)
        return found

    h = 1e-8
    np.testing.assert_allclose(p.gradients[[0, 2]] @ direction, (sums(h) - sums(-h)) / (2 * h), rtol=1e-5, atol=2e-5)


def test_noise_is_the_signed_root_of_normal_numbers() -> None:
    """E f = 0 and E f² = E|x| = √(2/π); sets are independent, and their products too."""
    config, spec = AgentConfig(noisy=0.5, hidden=(64, 64), dtype="float64"), SPECS["mlp"]
    noise = Noise(config, spec, seed=0, purpose="acting")
    assert noise.size == (4 + 64) + (64 + 64) + (64 + 3)
    sets = np.array([noise.draw() for _ in range(2000)])
    error = 5 / math.sqrt(sets.size)
    assert abs(sets.mean()) < error
    assert (sets**2).mean() == pytest.approx(math.sqrt(2 / math.pi), abs=error)
    assert abs((sets[1:] * sets[:-1]).mean()) < error
    assert abs((sets[:, 1:] * sets[:, :-1]).mean()) < error


def test_noise_streams_are_apart_by_purpose_and_seed_and_go_on_from_their_state() -> None:
    config, spec = AgentConfig(noisy=0.5), SPECS["mlp"]

    def first(seed: int, purpose: str) -> bytes:
        return Noise(config, spec, seed=seed, purpose=purpose).draw().tobytes()

    assert first(0, "acting") == first(0, "acting")
    assert len({first(0, "acting"), first(0, "learning"), first(1, "acting")}) == 3
    noise, other = (Noise(config, spec, seed=seed, purpose="acting") for seed in (0, 7))
    noise.draw()
    other.restore(noise.state())
    assert other.draw().tobytes() == noise.draw().tobytes()


@each_network
def test_first_scale_of_noise_is_that_of_the_setting_over_the_root_of_the_inputs(network: str) -> None:
    spec = SPECS[network]
    config = AgentConfig(network=network, noisy=0.4, duelling=True, hidden=(16, 9))
    weights = make_engine(config, spec, seed=0).parameters.weights()
    for layer in architecture_of(config, spec).dense_layers():
        for part in ("weight", "bias"):
            found = weights[f"{layer.name}.{part}.noise"]
            np.testing.assert_allclose(found, 0.4 / math.sqrt(layer.inputs), rtol=1e-6)
            assert np.abs(weights[f"{layer.name}.{part}"]).max() <= 1 / math.sqrt(layer.inputs)
    assert not any("noise" in name for name in weights if name.startswith("convolution"))


def test_network_of_rainbow_on_atari_has_the_weights_of_its_layers() -> None:
    """Convolutions of 77,984; twice (3136·512 + 512), 512·51 + 51 and 512·6·51 + 306, and as many scales of noise."""
    spec = Spec(shape=(84, 84), dtype="uint8", n_actions=6, stack=4)
    dense = 2 * (3136 * 512 + 512) + (512 * 51 + 51) + (512 * 306 + 306)
    assert architecture_of(PRESETS["rainbow-nature"](), spec).layout().count == 77_984 + 2 * dense


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "log-sum-exp": ({"atoms": 51, "summary": "log_sum_exp(3)"}, "log_sum_exp is no weighted mean"),
    "mellowmax": ({"atoms": 51, "summary": "mellowmax(3)"}, "mellowmax is no weighted mean"),
    "soft mellowmax": ({"atoms": 2, "summary": "soft_mellowmax(alpha=1, beta=2)"}, "soft_mellowmax is no weighted"),
    "range without atoms": ({"value_range": (0, 1)}, "value_range: only atoms have one"),
    "range upside down": ({"atoms": 51, "value_range": (1, -1)}, "the lower one first"),
    "range of one": ({"atoms": 51, "value_range": (1,)}, "two numbers"),
    "range without end": ({"atoms": 51, "value_range": (0, math.inf)}, "two numbers"),
    "range as text": ({"atoms": 51, "value_range": "ab"}, "two numbers"),
    "no atoms": ({"atoms": 0}, "atoms: must be a whole number from 1"),
    "noise below 0": ({"noisy": -0.1}, "noisy: must be a number of at least 0"),
    "noise that is none": ({"noisy": math.nan}, "noisy: must be a number"),
    "duelling in words": ({"duelling": "yes"}, "duelling: must be true or false"),
    "loss": ({"atoms": 51, "loss": "squared"}, "Kullback"),
    "bound": ({"atoms": 51, "huber_bound": 2.0}, "huber_bound 2"),
    "own network": ({"network": "mine:network", "noisy": 0.5, "duelling": True}, "so duelling and noisy cannot"),
    "compiled": ({"engine": "compiled", "duelling": True}, "compiled has no duelling"),
    "as printed, atoms": (
        {"atoms": 51, "summary": "boltzmann(beta=power(2))", "c_learning": "as_printed"}, "no noise and no atoms",
    ),
    "as printed, noise": (
        {"noisy": 0.5, "summary": "boltzmann(beta=power(2))", "c_learning": "as_printed"}, "no noise and no atoms",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_parts_that_do_not_go_together_are_refused_by_name(name: str) -> None:
    settings, says = WRONG[name]
    with pytest.raises(UserError) as caught:
        AgentConfig(**settings)
    assert says in str(caught.value)


@each_part
def test_larger_heads_run_on_torch(parts: dict[str, Any]) -> None:
    assert engine_name(AgentConfig(**parts), "cpu") == "torch"
    assert engine_name(AgentConfig(), "cpu") == "compiled"


def test_engine_without_atoms_says_so() -> None:
    engine = make_engine(AgentConfig(), SPECS["mlp"], seed=0)
    with pytest.raises(UserError, match="has no atoms"):
        engine.distributions(np.zeros((1, 1, 4), np.float32))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("family", ["rainbow", "dbs-rainbow"])
def test_rainbow_has_all_its_parts_at_every_scale(family: str, scale: str) -> None:
    config = PRESETS[family if scale == "classic" else f"{family}-{scale}"]()
    assert config.head == ("duelling", "noisy", "atoms")
    assert (config.double, config.prioritised, config.n_step, config.atoms, config.noisy) == (True, True, 3, 51, 0.5)
    assert config.parsed_epsilon(10**6) == 0
    assert (config.c_learning != "off") == (family == "dbs-rainbow")


def test_presets_of_rainbow_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--list"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()}
    names = {f"{family}{scale}" for family in ("rainbow", "dbs-rainbow") for scale in ("", "-minatar", "-nature")}
    assert names <= listed


def test_memory_of_networks_and_optimiser_is_what_the_arrays_hold() -> None:
    spec = Spec(shape=(10, 10, 4), dtype="bool", n_actions=6)
    config = replace(PRESETS["dbs-rainbow-minatar"](), replay_capacity_steps=6_000)
    p, expected = make_engine(config, spec, seed=0).parameters, memory(config, spec)
    assert expected["networks"] == p.online.nbytes + p.target.nbytes
    assert expected["optimiser"] == p.first.nbytes + p.second.nbytes + p.gradients.nbytes + p.trace.nbytes
    plain = memory(replace(PRESETS["dbs-dqn-minatar"](), replay_capacity_steps=6_000, prioritised=True), spec)
    assert expected["networks"] > 4 * plain["networks"]
    assert expected["work"] > plain["work"]
    assert expected["replay"] == plain["replay"]
