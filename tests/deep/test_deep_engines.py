"""What every engine promises, and the optimisers on flat arrays against their equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from dynaboltz.deep import AgentConfig
from dynaboltz.deep.architecture import ALIGNMENT, Layout, architecture_of
from dynaboltz.deep.device import DeviceParameters
from dynaboltz.deep.engine import ENGINES, make_engine
from dynaboltz.deep.parameters import HostParameters, Parameters
from dynaboltz.deep.pictures import interleave
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError

SPECS = {
    "mlp": Spec(shape=(4,), dtype="float32", n_actions=3),
    "mlp, stacked": Spec(shape=(2, 3), dtype="uint8", n_actions=2, stack=3),
    "mlp, discrete": Spec(shape=(), dtype="int64", n_values=5, n_actions=4, stack=2),
    "minatar": Spec(shape=(10, 10, 4), dtype="bool", n_actions=6),
    "minatar, stacked": Spec(shape=(7, 6, 2), dtype="bool", n_actions=3, stack=2),
    "minatar, channels first": Spec(shape=(4, 10, 10), dtype="bool", n_actions=6),
    "minatar, as many channels as rows": Spec(shape=(10, 10, 10), dtype="bool", n_actions=6, stack=2),
    "nature": Spec(shape=(84, 84), dtype="uint8", n_actions=4, stack=4),
}
CASES = [
    (name, case) for name in ENGINES for case in SPECS if name == "torch" or case.split(",")[0] in ("mlp", "minatar")
]
contract = pytest.mark.parametrize(("engine", "case"), CASES)


def make(engine: str, case: str, dtype: str = "float64", **settings: Any) -> tuple[Any, Spec, np.ndarray]:
    spec = SPECS[case]
    config = AgentConfig(
        engine=engine, network=case.split(",", maxsplit=1)[0], dtype=dtype, hidden=(7, 5), batch_size=6, **settings
    )
    rng = np.random.default_rng(0)
    shape = (6, spec.stack, *spec.shape)
    high = spec.n_values or {"bool": 2, "uint8": 256}.get(spec.dtype)
    drawn = rng.integers(0, high, shape) if high else rng.normal(size=shape)
    return make_engine(config, spec, seed=4), spec, drawn.astype(spec.dtype)


def plain(weights: dict[str, np.ndarray], spec: Spec, inputs: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """The forward pass written out, sum by sum where it convolves."""
    x = inputs.astype(np.float64) / (255 if spec.dtype == "uint8" else 1)
    if spec.n_values:
        x = np.eye(spec.n_values)[inputs]
    if strides:
        x = x if x.ndim == 5 else x[..., None]
        x = np.moveaxis(x, 2, -1) if spec.shape[-1] >= spec.shape[0] and len(spec.shape) == 3 else x
        x = np.concatenate(list(np.moveaxis(x, 1, 0)), axis=-1)
    for i, stride in enumerate(strides):
        kernel, bias = weights[f"convolution.{i}.weight"], weights[f"convolution.{i}.bias"]
        size = kernel.shape[1]
        windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))[:, ::stride, ::stride]
        x = np.maximum(np.einsum("nhwcij,oijc->nhwo", windows, kernel) + bias, 0)
    x = x.reshape(len(x), -1)
    for name in [name.removesuffix(".weight") for name in weights if name.endswith(".weight")]:
        if not name.startswith("convolution"):
            x = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
            x = x if name == "output" else np.maximum(x, 0)
    return x


STRIDES = {"mlp": (), "minatar": (1,), "nature": (4, 2, 1)}


@contract
def test_engine_values_are_the_networks_equations(engine: str, case: str) -> None:
    made, spec, inputs = make(engine, case)
    expected = plain(made.parameters.weights(), spec, inputs, STRIDES[case.split(",", maxsplit=1)[0]])
    np.testing.assert_allclose(made.values(inputs), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(made.values(inputs, "target"), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(made.forward(inputs), expected, rtol=1e-9, atol=1e-12)


@contract
def test_engine_gradients_are_derivatives_of_its_values(engine: str, case: str) -> None:
    """Σ_j e_j Q(s_j, a_j) along a random direction, by central differences, for two cotangents of one pass."""
    made, spec, inputs = make(engine, case, summary="boltzmann(beta=power(2))", c_learning="corrected")
    rng, p = np.random.default_rng(1), made.parameters
    actions = rng.integers(0, spec.n_actions, 6)
    cotangents = rng.normal(size=(2, 6))
    cotangents[1, :4] = 0
    made.forward(inputs)
    made.gradients(actions, cotangents, (0, 2))
    direction = np.zeros_like(p.online)
    for view in p.layout.views(direction).values():
        view[...] = rng.normal(size=view.shape)

    def sums(h: float) -> np.ndarray:
        before = p.online.copy()
        p.online[:] += h * direction
        values: np.ndarray = cotangents @ made.values(inputs)[np.arange(6), actions]
        p.online[:] = before
        return values

    h = 1e-9  # few of a hundred thousand rectifiers switch within it
    expected = (sums(h) - sums(-h)) / (2 * h)
    np.testing.assert_allclose(p.gradients[[0, 2]] @ direction, expected, rtol=1e-5, atol=2e-5)
    gaps = np.ones(p.layout.size, bool)
    for piece in p.layout.pieces:
        gaps[piece.start : piece.stop] = False
    assert not p.gradients[:, gaps].any()


@contract
def test_engine_starts_from_the_same_weights_and_loads_the_states_of_others(engine: str, case: str) -> None:
    made, _, inputs = make(engine, case, dtype="float32")
    other, _, _ = make("torch", case, dtype="float32")
    for name, array in other.parameters.weights().items():
        np.testing.assert_array_equal(made.parameters.weights()[name], array)
    other.parameters.online[: other.parameters.layout.pieces[0].stop] *= 2
    made.parameters.restore(other.parameters.state())
    np.testing.assert_allclose(made.values(inputs), other.values(inputs), rtol=2e-5, atol=2e-6)
    assert np.abs(made.values(inputs) - made.values(inputs, "target")).max() > 1e-4


@contract
def test_engine_gives_the_same_bits_again(engine: str, case: str) -> None:
    bits = []
    for _ in range(2):
        made, spec, inputs = make(engine, case, dtype="float32")
        made.forward(inputs)
        made.gradients(np.arange(6) % spec.n_actions, np.linspace(-1, 1, 6, dtype=np.float32)[None], (0,))
        made.parameters.step()
        bits.append(made.parameters.online.tobytes() + made.values(inputs[:1]).tobytes())
    assert bits[0] == bits[1]


@contract
def test_engine_sync_copies_the_online_network(engine: str, case: str) -> None:
    made, _, inputs = make(engine, case)
    made.parameters.online[: made.parameters.layout.pieces[0].stop] += 0.5
    assert (made.values(inputs) != made.values(inputs, "target")).any()
    made.parameters.sync()
    np.testing.assert_array_equal(made.values(inputs), made.values(inputs, "target"))


@pytest.mark.parametrize("engine", ENGINES)
def test_engine_without_target_network_has_one_set_of_weights(engine: str) -> None:
    made, _, inputs = make(engine, "mlp", target_period="none")
    made.parameters.online[:4] += 0.5
    np.testing.assert_array_equal(made.values(inputs), made.values(inputs, "target"))


def reference_steps(rule: str, gradients: np.ndarray, rate: float) -> np.ndarray:
    """The path of one weight from 0, by the equations."""
    theta = m = n = 0.0
    path = []
    for k, g in enumerate(gradients, 1):
        if rule == "sgd":
            theta -= rate * g
        elif rule == "rmsprop":
            n = 0.99 * n + 0.01 * g * g
            theta -= rate * g / (np.sqrt(n) + 1e-8)
        elif rule == "deepmind_rmsprop":
            m, n = 0.95 * m + 0.05 * g, 0.95 * n + 0.05 * g * g
            theta -= rate * g / np.sqrt(n - m * m + 0.01)
        else:
            m, n = 0.9 * m + 0.1 * g, 0.999 * n + 0.001 * g * g
            theta -= rate * m / (1 - 0.9**k) / (np.sqrt(n / (1 - 0.999**k)) + 1e-8)
        path.append(theta)
    return np.array(path)


def host(config: AgentConfig, layout: Layout) -> Parameters:
    return HostParameters(config, layout)


def device(config: AgentConfig, layout: Layout) -> Parameters:
    return DeviceParameters(config, layout, torch.device("cpu"))


@pytest.mark.parametrize("kind", [host, device])
@pytest.mark.parametrize("rule", ["sgd", "rmsprop", "deepmind_rmsprop", "adam"])
@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-12), ("float32", 2e-5)])
def test_optimiser_follows_its_equations(kind: Callable[..., Parameters], rule: str, dtype: str, error: float) -> None:
    """Twenty steps of many weights, each with gradients of its own; padding stays 0."""
    layout = Layout.of({"a": ((3, 7), 7), "b": ((70,), 1)})
    p = kind(AgentConfig(optimiser=rule, learning_rate=0.1, dtype=dtype), layout)
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(20, layout.count)).astype(dtype)
    inside = np.concatenate([np.arange(piece.start, piece.stop) for piece in layout.pieces])
    for g in gradients:
        flat = np.zeros(layout.size, dtype)
        flat[inside] = g
        p.fill(p.gradients[0], flat)
        assert p.step()
    found = p.host(p.online)
    expected = [reference_steps(rule, column, 0.1)[-1] for column in gradients.T.astype(np.float64)]
    np.testing.assert_allclose(found[inside], expected, rtol=error, atol=error)
    assert not np.delete(found, inside).any()


@pytest.mark.parametrize("rule", ["rmsprop", "deepmind_rmsprop", "adam"])
def test_moments_without_gradients_end_at_zero_and_not_below_the_normal_numbers(rule: str) -> None:
    p = host(AgentConfig(optimiser=rule), Layout.of({"a": ((64,), 1)}))
    p.first[:], p.second[:] = 1e-36, 1e-36
    for _ in range(4000):
        p.step()
    assert rule == "rmsprop" or not p.first.any()
    assert rule == "adam" or not p.second.any()


@pytest.mark.parametrize("rule", ["sgd", "rmsprop", "deepmind_rmsprop", "adam"])
def test_device_parameters_trace_what_host_parameters_trace(rule: str) -> None:
    layout = Layout.of({"a": ((100,), 1)})
    config = AgentConfig(
        optimiser=rule, dtype="float64", gradient_clip=5.0, summary="boltzmann(beta=power(2))", c_learning="corrected"
    )
    both = host(config, layout), device(config, layout)
    rng = np.random.default_rng(0)
    for decay in (0.0, 0.5, 0.5):
        drawn = rng.normal(size=(3, layout.size))
        for p in both:
            for row in range(3):
                p.fill(p.gradients[row], drawn[row])
            assert p.step_and_trace(decay)
    ours, theirs = (p.host(p.trace) for p in both)
    assert np.abs(ours).max() > 0
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("kind", [host, device])
def test_gradient_clip_scales_the_whole_gradient_to_its_norm(kind: Callable[..., Parameters]) -> None:
    layout = Layout.of({"a": ((64,), 1)})
    p = kind(AgentConfig(optimiser="sgd", learning_rate=1.0, dtype="float64", gradient_clip=2.0), layout)
    p.fill(p.gradients[0], np.full(64, 3.0))
    p.step()
    assert np.linalg.norm(p.host(p.online)) == pytest.approx(2.0)


@pytest.mark.parametrize("kind", [host, device])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_step_tells_of_a_gradient_that_is_not_finite(kind: Callable[..., Parameters], wrong: float) -> None:
    layout = Layout.of({"a": ((64,), 1), "b": ((3,), 1)})
    p = kind(AgentConfig(), layout)
    bad = np.zeros(layout.size, np.float32)
    bad[65] = wrong
    p.fill(p.gradients[0], bad)
    assert not p.step()
    found = p.not_finite()
    assert found is not None
    assert found[0] == "gradient of b"


def test_layout_names_every_weight_once_and_aligns_them() -> None:
    layout = architecture_of(AgentConfig(network="minatar"), SPECS["minatar"]).layout()
    assert {piece.name: piece.shape for piece in layout.pieces} == {
        "convolution.0.weight": (16, 3, 3, 4), "convolution.0.bias": (16,), "hidden.0.weight": (128, 1024),
        "hidden.0.bias": (128,), "output.weight": (6, 128), "output.bias": (6,),
    }  # fmt: skip
    assert all(piece.start % ALIGNMENT == 0 for piece in layout.pieces)


def test_nature_network_has_the_published_number_of_weights() -> None:
    """Mnih et al. (2015) with 4 actions: 1,686,180."""
    assert architecture_of(AgentConfig(network="nature"), SPECS["nature"]).layout().count == 1_686_180


@pytest.mark.parametrize("initialisation", ["torch", "he"])
def test_first_weights_are_uniform_within_their_bound(initialisation: str) -> None:
    drawn = (
        architecture_of(AgentConfig(network="minatar"), SPECS["minatar"])
        .layout()
        .draw(initialisation, np.random.default_rng(0))
    )
    bound = np.sqrt((6 if initialisation == "he" else 1) / 1024)
    weight, bias = drawn["hidden.0.weight"], drawn["hidden.0.bias"]
    assert 0.999 * bound < np.abs(weight).max() <= bound
    assert weight.std() == pytest.approx(bound / np.sqrt(3), rel=0.01)
    assert bias.any() == (initialisation == "torch")


@pytest.mark.parametrize(
    ("network", "shape", "says"),
    [("nature", (4,), "shape (4,)"), ("minatar", (2, 2, 1), "too small"), ("nature", (30, 30), "layer 3")],
)
def test_network_that_does_not_fit_the_observations_is_refused(network: str, shape: tuple[int, ...], says: str) -> None:
    with pytest.raises(UserError) as caught:
        architecture_of(AgentConfig(network=network), Spec(shape=shape, dtype="uint8", n_actions=2))
    assert says in str(caught.value)


def test_bfloat16_passes_stay_near_those_of_float32() -> None:
    """Two digits; the output layer is in float32, so values are no bfloat16 numbers; a few inputs are not rounded."""
    exact, _, inputs = make("torch", "nature", dtype="float32")
    rounded, _, _ = make("torch", "nature", dtype="float32", autocast="bfloat16")
    many = np.tile(inputs, (3, 1, 1, 1))
    expected, found = exact.values(many), rounded.values(many)
    assert 0 < np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    assert (found.view(np.uint32) & 0xFFFF).any()
    np.testing.assert_allclose(rounded.values(inputs), exact.values(inputs), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("channels", [4, 8])
def test_frames_are_interleaved_exactly(channels: int) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (3, channels, 5, 7), np.uint8)
    words = np.zeros((3, 35, channels // 4), np.uint64)
    interleave(frames.reshape(3, channels, 35), words)
    found = torch.from_numpy(words.view(np.int16)).view(torch.bfloat16).reshape(3, 5, 7, channels)
    expected = torch.from_numpy(frames).permute(0, 2, 3, 1)
    assert torch.equal(found, expected.to(torch.bfloat16))
    assert torch.equal(found.to(torch.uint8), expected)
