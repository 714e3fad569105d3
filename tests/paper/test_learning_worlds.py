"""The worlds of the learning claims are what they are said to be, and their exact values are exact."""

from __future__ import annotations

import numpy as np
import pytest

from dynaboltz.mdp import build_world
from dynaboltz.operators import boltzmann
from dynaboltz.paper.learning_worlds import action_values, distance, endless, noisy_garnet, scaled
from dynaboltz.paper.overestimation import BETS, roulette
from dynaboltz.planning import solve

GRID = "map(text='S..#/.#../...G', slip=0.3)"


@pytest.mark.parametrize("model", [noisy_garnet(), build_world(GRID)], ids=["garnet", "grid"])
def test_action_values_of_max_are_those_of_planning(model: object) -> None:
    found = action_values(model, 0.8).max(axis=1)  # type: ignore[arg-type]
    assert distance(found, solve(model, discount=0.8, error=1e-12).values) < 1e-9  # type: ignore[arg-type]


def test_action_values_of_an_operator_are_its_fixed_point_by_hand() -> None:
    """One state, two actions that stay, rewards 0 and 1: Q = r + γ boltz(Q), so that boltz(Q) = boltz(r)/(1 − γ)."""
    model = build_world("bandit(rewards=(0.0, 1.0))")
    value = float(boltzmann(np.array([0.0, 1.0]), 3.0)) / 0.5
    assert distance(action_values(model, 0.5, "boltzmann(beta=3)"), np.array([[0.5 * value, 1 + 0.5 * value]])) < 1e-9


def test_noise_leaves_the_mean_rewards_as_they_are_and_each_transition_has_its_own() -> None:
    quiet, noisy = build_world("garnet(states=10, actions=4, branching=3, seed=2)"), noisy_garnet(seed=2)
    np.testing.assert_allclose(noisy.reward, quiet.reward, atol=1e-12)
    assert noisy.transition_reward is not None
    assert np.ptp(noisy.transition_reward[noisy.row_ptr[0] : noisy.row_ptr[1]]) > 0


def test_scaled_rewards_scale_the_values() -> None:
    model = noisy_garnet(seed=1)
    np.testing.assert_allclose(action_values(scaled(model, 0.25), 0.8), action_values(model, 0.8) / 4, atol=1e-9)


def test_endless_world_goes_on_at_the_start_where_the_other_ended() -> None:
    model = build_world("map(text='SG')")
    again = endless(model)
    assert (again.n_states, bool(again.terminal.any())) == (1, False)
    assert action_values(again, 0.5).max() == pytest.approx(2.0)  # a reward of 1 at every step


def test_bets_at_the_roulette_lose_two_in_38_and_walking_away_nothing() -> None:
    values = action_values(roulette(), 0.95)
    np.testing.assert_allclose(values[:2, :BETS], -2 / 38, atol=1e-12)
    assert (values[:2, BETS] == 0).all()
