"""jaxdp 0.4 defines the same four backups, independently: equal to single precision on random models."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import jaxdp
import numpy as np
import pytest
from jaxdp.operator import BellmanOptOp, BoltzmannBellmanOp, MellowMaxBellmanOptOp, SoftBellmanOptOp

from dynaboltz import Dynamic, boltzmann, hard_max, log_sum_exp, mellowmax, power

ACTIONS, STATES, GAMMA = 5, 7, 0.9


def model(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(STATES), size=(ACTIONS, STATES)).transpose(0, 2, 1)  # [a, s', s]
    return jaxdp.MDP(
        transition=jnp.asarray(transition, jnp.float32),
        reward=jnp.asarray(rng.normal(size=(ACTIONS, STATES, STATES)), jnp.float32),
        initial=jnp.full(STATES, 1 / STATES),
        terminal=jnp.zeros(STATES),
    )


def backup(mdp: Any, values: Any) -> Any:
    """Return r + γPv as (s, a), in double precision."""
    p = np.asarray(mdp.transition, float)
    reward = np.einsum("asx,axs->sa", np.asarray(mdp.reward, float), p)
    return reward + GAMMA * np.einsum("axs,x->sa", p, np.asarray(values, float))


PAIRS: dict[str, tuple[Any, Any]] = {
    "hard_max": (hard_max, lambda _: BellmanOptOp),
    "boltzmann": (boltzmann, lambda temperature: BoltzmannBellmanOp(temperature=temperature)),
    "mellowmax": (mellowmax, lambda temperature: MellowMaxBellmanOptOp(temperature=temperature)),
    "log_sum_exp": (log_sum_exp, lambda temperature: SoftBellmanOptOp(temperature=temperature)),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("beta", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_backup_of_state_values_equals_jaxdps(name: str, beta: float, seed: int) -> None:
    ours, theirs = PAIRS[name]
    mdp, v = model(seed), jnp.asarray(np.random.default_rng(seed).normal(size=STATES), jnp.float32)
    expected = theirs(1 / beta).v(mdp, v, GAMMA)
    found = ours(backup(mdp, v), *((beta,) if ours.traits.takes_beta else ()))
    assert np.allclose(found, expected, rtol=2e-5, atol=2e-5 * (1 + 1 / beta))


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("beta", [0.1, 1.0, 8.0])
def test_backup_of_action_values_equals_jaxdps(name: str, beta: float) -> None:
    ours, theirs = PAIRS[name]
    mdp, q = model(2), jnp.asarray(np.random.default_rng(3).normal(size=(ACTIONS, STATES)), jnp.float32)
    expected = theirs(1 / beta).q(mdp, q, GAMMA)
    summary = ours(q, *((beta,) if ours.traits.takes_beta else ()), axis=0)
    assert np.allclose(backup(mdp, summary).T, expected, rtol=2e-5, atol=2e-5 * (1 + 1 / beta))


def test_ten_sweeps_of_dynamic_boltzmann_value_iteration_equal_jaxdps() -> None:
    mdp = model(4)
    planner = jaxdp.DynamicBoltzmannValueIteration(gamma=GAMMA, power=2.0)
    state, values, dbs = planner.init(mdp), np.zeros(STATES), Dynamic(boltzmann, power(2))
    for t in range(1, 11):  # its first β is 1, at t = 1
        state = planner.update(mdp, state)
        values = dbs(backup(mdp, values), t)
        assert np.allclose(values, state.v_val, rtol=2e-5, atol=2e-5)
