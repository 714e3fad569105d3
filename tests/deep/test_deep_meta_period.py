"""c learned from one update in k and the one after it: what is learned there, and what the others are.

What is learned is compared, to the bit, with an agent that learns c from every update, put into the same state: that it
is the derivative is tested in test_deep_meta.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dynaboltz.deep import PRESETS, AgentConfig
from dynaboltz.deep.batch import Batch
from dynaboltz.deep.engine import ENGINES, make_engine
from dynaboltz.deep.learner import Learner, Moment
from dynaboltz.deep.records import Records
from dynaboltz.envs.spec import Spec
from dynaboltz.errors import UserError

B, K, T = 6, 3, 2.0
SPEC = Spec(shape=(3,), dtype="float32", n_actions=3)


def make_learner(**settings: Any) -> Learner:
    """β = 0.3·2² = 1.2; c̄ = 0.8; the target network is not the online network."""
    defaults: dict[str, Any] = {
        "summary": "boltzmann(beta=power(2, c=0.3))", "c_learning": "corrected", "c_reference": 0.8, "dtype": "float64",
        "batch_size": B, "hidden": (5, 4), "learning_rate": 0.05, "c_optimiser": "sgd", "c_learning_rate": 0.01,
        "engine": "torch",
    }  # fmt: skip
    config = AgentConfig(**(defaults | settings))
    engine = make_engine(config, SPEC, seed=3)
    p, rng = engine.parameters, np.random.default_rng(5)
    for view in p.layout.views(p.target).values():
        np.add(view, 0.5 * rng.normal(size=view.shape), out=view)
    return Learner(config, SPEC, engine)


def make_batch(seed: int) -> Batch:
    rng = np.random.default_rng(seed)
    batch = Batch.empty(B, SPEC)
    for array in (batch.inputs, batch.next_inputs):
        array[...] = rng.normal(size=array.shape) * 2
    batch.action[:] = rng.integers(0, 3, B)
    batch.reward[:] = rng.normal(size=B)
    batch.discount[:] = 0.9 * (rng.random(B) < 0.8)
    batch.importance[:] = rng.uniform(0.5, 1.0, B)
    return batch


def moment(update: int) -> Moment:
    return Moment(update, update, T, synced=True)


def follow(learner: Learner, updates: range) -> list[tuple[float, float]]:
    """The derivative and ψ after each update."""
    found = []
    for update in updates:
        learner.update(make_batch(update), moment(update))
        assert learner.coefficient is not None
        found.append((learner.derivative, learner.coefficient.psi))
    return found


def frozen(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: frozen(value) for key, value in tree.items()}
    return np.array(tree) if isinstance(tree, np.ndarray) else tree


KINDS: dict[str, dict[str, Any]] = {
    "sgd": {"optimiser": "sgd"},
    "adam, norm clipped": {"optimiser": "adam", "gradient_clip": 0.05},
    "c itself is the reference": {"c_bar": "current", "c_reference": 0.0},
    "atoms": {"atoms": 11, "value_range": (-4.0, 4.0)},
    "as printed": {"c_learning": "as_printed"},
}
KINDS |= {engine: {"engine": engine} for engine in ENGINES}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_every_kth_update_does_is_judged_by_the_one_after_it_alone(kind: dict[str, Any]) -> None:
    """For three periods; in no other update does c move."""
    learner, moved = make_learner(c_period_updates=K, **kind), set()
    assert learner.coefficient is not None
    for n in (1, 2, 3):
        psi, between = learner.coefficient.psi, range((n - 1) * K + 2 if n > 1 else 1, n * K)
        for derivative, after in follow(learner, between):
            assert math.isnan(derivative)
            assert after == psi
        twin = make_learner(**kind)
        twin.restore(frozen(learner.state()))
        assert twin.coefficient is not None
        twin.coefficient.share = 0.0
        (before, judged), (_, expected) = (follow(one, range(n * K, n * K + 2)) for one in (learner, twin))
        assert math.isnan(before[0])
        assert before[1] == psi
        assert judged == expected
        np.testing.assert_array_equal(np.array(learner.parameters.online), np.array(twin.parameters.online))
        moved.add(judged[1])
    assert len(moved) == 3


def test_trace_decays_once_a_period() -> None:
    """With c held, z after update n·k is μ times the last one plus what that update adds to it."""
    settings: dict[str, Any] = {"c_learning_rate": 1e-300, "optimiser": "adam"}
    learner = make_learner(c_period_updates=K, c_trace=0.7, **settings)
    follow(learner, range(1, K + 1))
    held = np.array(learner.parameters.trace)
    follow(learner, range(K + 1, 2 * K))
    np.testing.assert_array_equal(np.array(learner.parameters.trace), held)
    every = make_learner(c_trace=0.7, **settings)
    last = make_learner(**settings)
    for twin in (every, last):
        twin.restore(frozen(learner.state()))
    found, expected = (follow(one, range(2 * K, 2 * K + 2))[1][0] for one in (learner, every))
    follow(last, range(2 * K, 2 * K + 1))
    added = np.array(last.parameters.trace)
    np.testing.assert_allclose(np.array(learner.parameters.trace), 0.7 * held + added, rtol=1e-12)
    assert found == expected
    assert np.abs(held).max() > 1e-3 * np.abs(added).max() > 0


def test_updates_in_between_are_those_of_a_fixed_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of gradients, no slope and no reference; and to the bit the weights of an agent that learns no c."""
    learner = make_learner(c_period_updates=K, c_learning_rate=1e-300)
    fixed = make_learner(c_learning="off")
    rows: list[tuple[int, ...]] = []
    bars: list[Any] = []
    gradients, targets = learner.engine.gradients, learner.targets

    def counted(actions: np.ndarray, cotangents: np.ndarray, wanted: tuple[int, ...]) -> None:
        assert len(cotangents) == len(wanted)
        rows.append(wanted)
        gradients(actions, cotangents, wanted)

    def noted(*given: Any, slope: float = 0.0, bar: float | None = None, **named: Any) -> None:
        bars.append((slope > 0, bar is not None))
        targets(*given, slope=slope, bar=bar, **named)

    monkeypatch.setattr(learner.engine, "gradients", counted)
    for name in ("cotangents", "counts", "error", "target"):
        setattr(noted, name, getattr(targets, name))
    monkeypatch.setattr(learner, "targets", noted)
    for update in range(1, 2 * K + 2):
        follow(learner, range(update, update + 1))
        fixed.update(make_batch(update), moment(update))
        np.testing.assert_array_equal(np.array(learner.parameters.online), np.array(fixed.parameters.online))
    changed, judged = (0, 1), (0, 2)
    assert rows == [(0,), (0,), changed, judged, (0,), changed, judged]
    assert bars == [(False, False)] * 2 + [(True, False), (False, True), (False, False), (True, False), (False, True)]


def test_period_of_one_is_what_was_before_the_setting() -> None:
    """Each update but the first has a derivative, and none is of an older one."""
    one, unset = make_learner(c_period_updates=1), make_learner()
    assert follow(one, range(1, 6))[1:] == follow(unset, range(1, 6))[1:]
    np.testing.assert_array_equal(np.array(one.parameters.trace), np.array(unset.parameters.trace))


def test_records_are_means_over_the_updates_that_have_a_derivative() -> None:
    learner, records = make_learner(c_period_updates=K), Records()
    derivatives = []
    for update in range(1, 3 * K + 2):
        derivatives += [one for one, _ in follow(learner, range(update, update + 1)) if not math.isnan(one)]
        records.add(learner)
    found = records.drain()
    assert len(derivatives) == 3
    assert learner.coefficient is not None
    assert found["meta_gradient"] == pytest.approx(sum(derivatives) / 3)
    assert found["meta_sign"] == sum(math.copysign(1, one) for one in derivatives) / 3
    assert found["c"] == learner.coefficient.c
    assert found["beta"] == learner.beta


def test_beta_follows_c_from_the_update_after() -> None:
    learner = make_learner(c_period_updates=K, c_learning_rate=5.0)
    assert learner.coefficient is not None
    betas = []
    for update in range(1, K + 4):
        c = learner.coefficient.c
        follow(learner, range(update, update + 1))
        assert learner.beta == pytest.approx(c * 2.0**2, rel=1e-15)
        betas.append(learner.beta)
    assert len(set(betas)) == 2
    assert betas[K] == betas[0] != betas[K + 1]


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two"])
def test_period_that_is_no_count_is_refused(wrong: Any) -> None:
    with pytest.raises(UserError, match="c_period_updates: must be a whole number from 1"):
        AgentConfig(c_period_updates=wrong)


def test_presets_learn_c_seldom_only_where_an_update_is_dear() -> None:
    found = {name: make().c_period_updates for name, make in PRESETS.items()}
    assert {name for name, period in found.items() if period > 1} == {"dbs-dqn-nature", "dbs-rainbow-nature"}
    assert {PRESETS[name]().c_learning for name, period in found.items() if period > 1} == {"corrected"}
