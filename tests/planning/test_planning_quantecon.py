"""QuantEcon solves the same models, independently: its values lie within our certificate, its policy is as good."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dynaboltz.mdp import MDP, build_world
from dynaboltz.planning import solve

WORLDS = {
    "garnet(states=60, actions=5, branching=6, seed=1)": 0.97,
    "garnet(states=40, actions=2, branching=40, seed=2)": 0.6,
    "paper_grid(slip=0.2)": 0.9,
    "chain(states=40, slip=0.3)": 0.99,
    "inventory(capacity=12)": 0.95,
    "maintenance()": 0.9,
}


def theirs(mdp: MDP, discount: float) -> Any:
    """Solve exactly, by policy iteration; a terminal state is a free self loop there."""
    markov = pytest.importorskip("quantecon.markov")
    ends = np.flatnonzero(mdp.terminal)
    states = np.concatenate([mdp.row_states(), ends])
    actions = np.concatenate([mdp.action, np.zeros(ends.size, mdp.action.dtype)])
    rewards = np.concatenate([mdp.reward, np.zeros(ends.size)])
    own = sp.csr_matrix((mdp.probability, mdp.next_state, mdp.row_ptr), shape=(mdp.n_rows, mdp.n_states))
    loops = sp.csr_matrix((np.ones(ends.size), (np.arange(ends.size), ends)), shape=(ends.size, mdp.n_states))
    order = np.lexsort((actions, states))
    rows = sp.csr_matrix(sp.vstack([own, loops]))[order]
    problem = markov.DiscreteDP(rewards[order], rows, discount, states[order], actions[order])
    return problem.solve(method="policy_iteration", max_iter=1000)


@pytest.mark.parametrize("world", WORLDS)
def test_planning_certificate_contains_the_values_of_quantecon(world: str) -> None:
    mdp, discount = build_world(world), WORLDS[world]
    found, ours = theirs(mdp, discount), solve(mdp, discount=discount, error=1e-8)
    rounding = 1e-12 * (1 + np.abs(found.v).max())  # of their dense solve, which the certificate says nothing of
    assert (ours.certificate.lower <= found.v + rounding).all()
    assert (found.v <= ours.certificate.upper + rounding).all()
    assert np.abs(ours.values - found.v).max() <= 1e-8 + rounding


@pytest.mark.parametrize("world", WORLDS)
def test_planning_policy_of_quantecon_loses_nothing_in_our_model(world: str) -> None:
    mdp, discount = build_world(world), WORLDS[world]
    policy, ours = theirs(mdp, discount).sigma, solve(mdp, discount=discount, error=1e-10)
    probability, reward = mdp.to_arrays()
    q = reward + discount * probability @ ours.values
    acting = np.flatnonzero(~mdp.terminal)
    np.testing.assert_allclose(q[acting, policy[acting]], ours.values[acting], rtol=0, atol=1e-8)
