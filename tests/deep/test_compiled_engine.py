"""The compiled passes against torch's, to the rounding of float64, on every kind of input and awkward sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.engine import make_engine
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError

CASES: dict[str, tuple[str, Spec, int, tuple[int, ...]]] = {
    "vector": ("mlp", Spec(shape=(4,), dtype="float32", n_actions=2), 32, (64, 64)),
    "one unit": ("mlp", Spec(shape=(5,), dtype="float32", n_actions=3), 4, (1,)),
    "odd sizes": ("mlp", Spec(shape=(3, 5), dtype="uint8", n_actions=3, stack=2), 20, (50, 33)),
    "discrete": ("mlp", Spec(shape=(), dtype="int64", n_values=7, n_actions=3), 9, (16,)),
    "discrete stack": ("mlp", Spec(shape=(), dtype="int64", n_values=7, n_actions=3, stack=2), 1, (16,)),
    "minatar": ("minatar", Spec(shape=(10, 10, 4), dtype="bool", n_actions=6), 32, (64,)),
    "minatar stack": ("minatar", Spec(shape=(10, 10, 3), dtype="bool", n_actions=6, stack=2), 33, (64,)),
    "grey pictures": ("minatar", Spec(shape=(9, 12), dtype="uint8", n_actions=5, stack=4), 7, (64,)),
}


def drawn(spec: Spec, n: int, rng: np.random.Generator) -> Any:
    shape = (n, spec.stack, *spec.shape)
    if spec.n_values is not None:
        return rng.integers(0, spec.n_values, shape)
    if spec.dtype == "float32":
        return rng.normal(size=shape).astype(np.float32)
    return rng.integers(0, 2 if spec.dtype == "bool" else 256, shape).astype(spec.dtype)


def engine(name: str, case: str, dtype: str) -> Any:
    network, spec, n, hidden = CASES[case]
    config = AgentConfig(
        network=network, engine=name, dtype=dtype, hidden=hidden, batch_size=n, replay_start_steps=100,
        summary="boltzmann(beta=power(2))", c_learning="corrected",
    )  # fmt: skip
    return make_engine(config, spec, seed=3)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_compiled_values_and_gradients_are_those_of_torch(case: str, dtype: str) -> None:
    _, spec, n, _ = CASES[case]
    rng = np.random.default_rng(1)
    inputs = drawn(spec, n, rng)
    actions, cotangents = rng.integers(0, spec.n_actions, n), rng.normal(size=(2, n)).astype(dtype)
    found = {}
    for name in ("torch", "compiled"):
        own = engine(name, case, dtype)
        q = own.forward(inputs).copy()
        own.gradients(actions, cotangents, (0, 2))
        assert np.array_equal(own.values(inputs, "target"), q)
        found[name] = q, own.parameters.gradients.copy()
    tolerance = 50 * np.finfo(dtype).eps
    for ours, theirs in zip(found["compiled"], found["torch"], strict=True):
        assert ours.dtype == theirs.dtype == dtype
        assert np.abs(ours - theirs).max() <= tolerance * max(1.0, np.abs(theirs).max())
    assert not found["compiled"][1][1].any()


def test_compiled_values_of_a_row_do_not_depend_on_the_batch_around_it() -> None:
    _, spec, n, _ = CASES["minatar"]
    own, inputs = engine("compiled", "minatar", "float32"), drawn(spec, n, np.random.default_rng(2))
    together = own.values(inputs).copy()
    assert all(np.array_equal(own.values(inputs[i : i + 1])[0], together[i]) for i in range(n))


def test_compiled_gradients_are_of_the_last_forward_whatever_was_evaluated_since() -> None:
    _, spec, n, _ = CASES["vector"]
    own, rng = engine("compiled", "vector", "float32"), np.random.default_rng(4)
    inputs, others = drawn(spec, n, rng), drawn(spec, n, rng)
    actions, cotangents = rng.integers(0, 2, n), np.ones((1, n), np.float32)
    own.forward(inputs)
    own.gradients(actions, cotangents, (0,))
    expected = own.parameters.gradients[0].copy()
    own.forward(inputs)
    own.values(others)
    own.values(others, "target")
    own.gradients(actions, cotangents, (0,))
    assert np.array_equal(own.parameters.gradients[0], expected)


def test_compiled_passes_let_a_nan_through() -> None:
    _, spec, n, _ = CASES["minatar"]
    own = engine("compiled", "minatar", "float32")
    own.parameters.online[5] = np.nan
    assert np.isnan(own.values(drawn(spec, n, np.random.default_rng(0)))).any()


def test_compiled_engine_refuses_another_device() -> None:
    with pytest.raises(UserError, match="cpu alone"):
        make_engine(AgentConfig(engine="compiled"), CASES["vector"][1], seed=0, device="cuda")
