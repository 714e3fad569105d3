"""The contract of every world, and the fact that each of them is there for."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

from dynaboltz.errors import UnknownNameError
from dynaboltz.mdp import MDP, WORLDS, build_world, load
from dynaboltz.mdp.worlds.small import garnet

TEXTS = {name: name for name in WORLDS} | {"map": "map(text='S.#/..G', slip=0.1)"}
VARIANTS = [
    "grid(rows=3, cols=4, slip=0.1)",
    "chain(states=5, slip=0.25)",
    "garnet(states=3, actions=2, branching=3, seed=5)",
    "garnet(states=50, actions=2, branching=3)",
    "tight_bandit(beta=2.0, m=6)",
    "inventory(capacity=3, demand=0.5)",
    "maintenance(levels=2)",
]


@pytest.mark.parametrize("text", [*TEXTS.values(), *VARIANTS])
def test_mdp_world_is_valid_and_says_where_it_starts(text: str) -> None:
    world = build_world(text)
    sums = np.add.reduceat(world.probability, world.row_ptr[:-1])
    assert np.abs(sums - 1).max() < 1e-14
    assert world.start is not None
    assert world.start[world.terminal].sum() == 0


@pytest.mark.parametrize("text", [*TEXTS.values(), *VARIANTS])
def test_mdp_world_is_the_same_twice(text: str) -> None:
    assert build_world(text).equals(load(text))


@pytest.mark.parametrize("factory", WORLDS.values(), ids=WORLDS)
def test_mdp_world_parameters_are_keywords(factory: object) -> None:
    assert callable(factory)
    kinds = {parameter.kind for parameter in inspect.signature(factory).parameters.values()}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}


def test_mdp_world_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'garnet'"):
        build_world("garnett(states=5)")


def test_mdp_world_unknown_parameter_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'states'"):
        build_world("garnet(state=5)")


def test_mdp_world_text_runs_no_code(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("grid(rows=print('run'))", "print('run')", "grid(rows=(lambda: print('run'))())"):
        with pytest.raises(Exception, match=r"needs its key|unknown world|cannot read|in quotes"):
            build_world(text)
    assert capsys.readouterr().out == ""


def test_mdp_chain_value_falls_by_gamma_a_state() -> None:
    p, r = build_world("chain(states=6)").to_arrays()
    v = np.zeros(6)
    for _ in range(6):
        v = (r + 0.5 * p @ v).max(axis=1)
    assert v.tolist() == [0.5**4, 0.5**3, 0.5**2, 0.5, 1.0, 0.0]


def test_mdp_chain_slip_goes_the_other_way() -> None:
    p, _ = build_world("chain(states=3, slip=0.25)").to_arrays()
    assert p[1].tolist() == [[0.75, 0, 0.25], [0.25, 0, 0.75]]


@pytest.mark.parametrize(("states", "branching"), [(40, 3), (6, 5), (5, 5), (4, 1)])
def test_mdp_garnet_rows_have_exactly_their_branching(states: int, branching: int) -> None:
    world = garnet(states=states, actions=3, branching=branching, seed=1)
    assert np.diff(world.row_ptr).tolist() == [branching] * (3 * states)


@pytest.mark.parametrize("branching", [2, 6])
def test_mdp_garnet_next_states_are_uniform(branching: int) -> None:
    """Both ways of drawing a set: each of 20 states is hit by branching/20 of 40,000 rows, within five deviations."""
    world = garnet(states=20, actions=2000, branching=branching, seed=3)
    hits = np.bincount(world.next_state, minlength=20)
    expected = 40_000 * branching / 20
    assert np.abs(hits - expected).max() < 5 * math.sqrt(expected)


def test_mdp_garnet_follows_its_seed() -> None:
    assert garnet(seed=1).equals(garnet(seed=1))
    assert not garnet(seed=1).equals(garnet(seed=2))


def test_mdp_two_cycle_oscillates_under_a_fixed_beta() -> None:
    p, r = build_world("two_cycle").to_arrays()
    v = np.array([0.1, 0.0])
    orbit = []
    for _ in range(2000):
        q = r + 0.95 * p @ v
        weights = np.exp(3.0 * (q - q.max(axis=1, keepdims=True)))
        v = (weights * q).sum(axis=1) / weights.sum(axis=1)
        orbit.append(v)
    assert np.round(orbit[-1], 3).tolist() in ([19.863, 18.948], [18.948, 19.863])
    assert np.allclose(orbit[-1], orbit[-2][::-1], atol=1e-9)


def test_mdp_tight_bandit_attains_the_bound_on_the_error_of_fixed_beta() -> None:
    world = build_world("tight_bandit(beta=5.0, m=2)")
    v, gamma = 0.0, 0.9
    for _ in range(500):
        q = world.reward + gamma * v
        weights = np.exp(5.0 * (q - q.max()))
        v = float((weights * q).sum() / weights.sum())
    assert abs(-v - 0.556929) < 1e-6  # V* is 0


def test_mdp_bandit_rewards_are_those_given() -> None:
    assert build_world("bandit(rewards=[0.0, -0.5])").reward.tolist() == [0.0, -0.5]


def test_mdp_maintenance_failed_machine_can_only_be_replaced() -> None:
    world = build_world("maintenance(levels=3, wear=0.25, profit=2.0, replacement=4.0, failure=10.0)")
    p, r = world.to_arrays()
    assert world.action.tolist() == [0, 1, 0, 1, 1]
    assert r.tolist() == [[2.0, -4.0], [1.0, -4.0], [0.0, -14.0]]
    assert p[1].tolist() == [[0, 0.75, 0.25], [1, 0, 0]]


def test_mdp_inventory_reward_is_the_expectation_over_demand() -> None:
    """Against a sum over the demands themselves, far into the tail."""
    capacity, mean = 4, 1.5
    world = build_world(f"inventory(capacity={capacity}, demand={mean})")
    p, r = world.to_arrays()
    chances = [math.exp(-mean) * mean**d / math.factorial(d) for d in range(60)]
    for s in range(capacity + 1):
        for a in range(capacity + 1 - s):
            stock = s + a
            income = sum(chance * 4.0 * min(d, stock) for d, chance in enumerate(chances))
            assert r[s, a] == pytest.approx(income - 2.0 * a - 3.0 * (a > 0) - 0.1 * stock, abs=1e-12)
            nexts = np.zeros(capacity + 1)
            for d, chance in enumerate(chances):
                nexts[max(stock - d, 0)] += chance
            assert np.allclose(p[s, a], nexts, atol=1e-14)


def test_mdp_inventory_orders_fit_the_shop() -> None:
    world = build_world("inventory(capacity=3)")
    assert np.diff(world.state_ptr).tolist() == [4, 3, 2, 1]


def test_mdp_load_tells_files_worlds_and_environments_apart(tmp_path: object) -> None:
    assert load("pgq_grid").equals(WORLDS["pgq_grid"]())
    assert load("FrozenLake-v1(is_slippery=False)").n_transitions == 11 * 4
    path = f"{tmp_path}/m.npz"
    from dynaboltz.mdp import write

    write(load("chain"), path)
    assert isinstance(load(path), MDP)
    assert load(path).equals(load("chain"))
