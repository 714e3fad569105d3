"""Tiny worlds that isolate one thing each: a value, the discount, the choice of actions, the end, β and its clock."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dynaboltz.mdp import MDP, build_world
from dynaboltz.operators import boltzmann, log_sum_exp
from dynaboltz.tabular import Learned, Learning, agent, learn


def world(*rows: tuple[int, int, int, float], end: int) -> MDP:
    """Deterministic: (state, action, next state, reward). Four actions exist; what is not given a state lacks."""
    s, a, t, r = (list(column) for column in zip(*rows, strict=True))
    return MDP.from_transitions(s, a, t, np.ones(len(s)), r, terminal=[end], start=0, n_actions=4)


ONE_REWARD = world((0, 0, 1, 2.0), end=1)
TWO_STEPS = world((0, 0, 1, 0.0), (1, 0, 2, 1.0), end=2)
TWO_ARMS = world((0, 0, 1, 0.0), (0, 1, 1, 1.0), end=1)
BETA = world((0, 0, 1, 0.0), (0, 1, 1, 0.0), (1, 0, 2, 0.0), (1, 1, 2, 1.0), end=2)
"""One step to a state whose actions are worth 0 and 1."""
LOOP = world((0, 0, 0, 1.0), (0, 1, 0, 1.0), (1, 0, 2, 0.0), end=2)
"""It never ends, and pays 1 a step."""


def run(model: MDP, **changes: Any) -> Learned:
    return learn(model, Learning(**{"episodes": 50, "step_size": 1.0, "epsilon": 1.0} | changes), threads=1)


def test_value_of_a_constant_reward_is_approached_by_the_factor_of_one_minus_alpha() -> None:
    q = run(ONE_REWARD, episodes=3, step_size=0.25).q[0, 0, 0]
    assert q == 2.0 * (1 - 0.75**3)


def test_value_with_averaging_step_sizes_forgets_where_it_began() -> None:
    assert run(ONE_REWARD, initial=100.0, step_size="visits(1)").q[0, 0, 0] == 2.0


def test_value_with_step_size_n_to_minus_omega_is_the_product_of_its_factors() -> None:
    q = run(ONE_REWARD, episodes=3, step_size="visits(0.5)", initial=10.0).q[0, 0, 0]
    assert q == 2.0  # the first step size is 1
    q = run(ONE_REWARD, episodes=2, step_size=0.5, initial=10.0).q[0, 0, 0]
    assert q == 4.0


def test_discount_is_applied_once_a_step() -> None:
    assert run(TWO_STEPS, discount=0.5).q[0, :, 0].tolist() == [0.5, 1.0, 0.0]


def test_action_of_the_greater_value_is_taken_once_it_is_known() -> None:
    found = run(TWO_ARMS, initial=0.5, epsilon=0.0, ties="lowest")
    assert found.visits[0, 0].tolist() == [1, 49, 0, 0]
    assert found.policy()[0].tolist() == [1, -1]


def test_ties_lowest_takes_the_first_and_random_takes_both() -> None:
    flat = world((0, 0, 1, 0.0), (0, 1, 1, 0.0), end=1)
    assert run(flat, epsilon=0.0, ties="lowest").visits[0, 0].tolist() == [50, 0, 0, 0]
    assert (run(flat, epsilon=0.0, ties="random").visits[0, 0, :2] > 10).all()


def test_epsilon_one_takes_every_action_equally_often_and_zero_none_but_the_best() -> None:
    found = run(TWO_ARMS, episodes=20_000, epsilon=0.3, initial=0.5, step_size=0.5)
    share = found.visits[0, 0, 0] / 20_000
    assert abs(share - 0.15) < 4 * math.sqrt(0.15 * 0.85 / 20_000)


def test_epsilon_follows_its_schedule_by_episode_and_by_step() -> None:
    early = "piecewise(((3, 1), (4, 0)))"
    by_episode = run(TWO_STEPS, epsilon=early)
    assert by_episode.visits[0].sum() == 100
    found = run(BETA, epsilon=early, initial=0.5, ties="lowest", episodes=1000)
    steps = run(BETA, epsilon="piecewise(((1500, 1), (1501, 0)))", epsilon_clock="step", initial=0.5, episodes=1000)
    assert found.visits[0, 1, 0] <= 3
    assert abs(int(steps.visits[0, 1, 0]) - 375) < 4 * math.sqrt(1500 / 4)


def test_terminal_state_is_worth_nothing_unless_unmasked() -> None:
    soft: dict[str, Any] = {"summary": "log_sum_exp(beta=2)", "discount": 0.5}
    two_actions = world((0, 0, 1, 2.0), (0, 1, 1, 2.0), end=1)
    assert run(two_actions, **soft).q[0, 0].tolist() == [2.0, 2.0, -math.inf, -math.inf]
    unmasked = run(two_actions, mask_terminal=False, **soft).q[0]
    np.testing.assert_allclose(unmasked[0, :2], 2.0 + 0.5 * math.log(4) / 2, rtol=1e-15)
    assert (unmasked[1] == 0.0).all()


def test_terminal_state_of_an_average_is_worth_nothing_masked_or_not() -> None:
    for mask in (True, False):
        assert run(ONE_REWARD, summary="boltzmann(beta=3)", mask_terminal=mask, initial=7.0).q[0, 0, 0] == 2.0


def test_cut_off_episode_still_looks_ahead() -> None:
    found = run(LOOP, episodes=400, max_steps=1, discount=0.5)
    assert found.steps.max() == 1
    np.testing.assert_allclose(found.q[0, 0, :2], 2.0, rtol=1e-12)


def test_sarsa_values_what_it_does_and_q_learning_what_it_could_do() -> None:
    cliff = world((0, 0, 1, 0.0), (1, 0, 2, 0.0), (1, 1, 2, -10.0), end=2)
    exploring: dict[str, Any] = {"discount": 1.0, "episodes": 20_000, "step_size": "visits(1)"}
    assert run(cliff, **exploring).q[0, 0, 0] == 0.0
    assert abs(run(cliff, rule="sarsa", **exploring).q[0, 0, 0] + 5.0) < 0.2
    expected = run(cliff, rule="expected_sarsa", **{**exploring, "step_size": 1.0}).q[0, 0, 0]
    assert expected == -5.0


def test_initial_values_are_drawn_within_their_bounds_and_end_at_zero() -> None:
    model = build_world("grid(rows=2, cols=3)")
    q = learn(model, agent("q", initial="uniform(2, 3)", episodes=1, max_steps=1), seeds=50).q
    assert (((q[:, :-1] >= 1.7) & (q[:, :-1] < 3)) | np.isneginf(q[:, :-1])).all()
    assert len(np.unique(q[:, 1, 1])) == 50
    assert (q[:, -1] == 0).all()


@pytest.mark.parametrize(("clock", "moment"), [("episode", 200), ("step", 399), ("episode_step", 1), ("visit", None)])
def test_beta_is_that_of_the_clock(clock: str, moment: int | None) -> None:
    found = run(BETA, episodes=200, summary="boltzmann(beta=linear(0.01))", clock=clock, discount=0.5)
    for action in range(2):
        t = moment if moment is not None else int(found.visits[0, 0, action])
        last = {"episode": 200, "step": 399}.get(clock)
        value = 0.5 * float(boltzmann(np.array([0.0, 1.0]), 0.01 * t))
        if last is None:
            assert found.q[0, 0, action] == pytest.approx(value, rel=1e-14)
    if clock in ("episode", "step"):  # the action that was taken in the last episode knows the last β
        assert max(found.q[0, 0]) == pytest.approx(0.5 * float(boltzmann(np.array([0.0, 1.0]), 0.01 * (moment or 0))))


def test_beta_beyond_every_gap_gives_the_maximum_to_the_last_bit_and_none_gives_the_mean() -> None:
    for beta, value in (("inf", 0.5), ("1e300", 0.5), ("0", 0.25)):
        assert (run(BETA, summary=f"boltzmann(beta={beta})", discount=0.5).q[0, 0, :2] == value).all()


def test_skipped_exponentials_change_no_bit() -> None:
    """Around the sharpness where the engine stops computing weights it agrees with the operator."""
    for beta in (30.0, 36.0, 40.0, 63.9, 64.1, 70.0, 744.0, 746.0):
        found = run(BETA, summary=f"boltzmann(beta={beta})", discount=1.0).q[0, 0, 0]
        assert found == float(boltzmann(np.array([0.0, 1.0]), beta))
    negative = world((0, 0, 1, 0.0), (0, 1, 1, 0.0), (1, 0, 2, -1.0), (1, 1, 2, 0.0), end=2)
    for beta in (64.1, 300.0, 744.0, 800.0):  # the maximum is 0: every bit below it counts
        found = run(negative, summary=f"boltzmann(beta={beta})", discount=1.0).q[0, 0, 0]
        assert found == pytest.approx(-math.exp(-beta), rel=1e-12, abs=1e-308)


def test_soft_q_learning_is_above_the_maximum_by_its_entropy() -> None:
    found = run(BETA, summary="log_sum_exp(beta=3)", discount=1.0).q[0, 0, 0]
    assert found == pytest.approx(float(log_sum_exp(np.array([0.0, 1.0]), 3.0)), rel=1e-14)


def test_prior_weighs_the_actions_that_a_state_has() -> None:
    found = run(BETA, rule="g_learning", prior=(0.9, 0.1, 7, 3), summary="mellowmax(beta=2)", discount=1.0).q[0, 0, 0]
    assert found == pytest.approx(math.log(0.9 + 0.1 * math.exp(2)) / 2, rel=1e-14)


def test_double_q_learning_overestimates_less_than_q_learning() -> None:
    """Four equal arms of reward ±1: the maximum of their estimates is far above 0, which is what each is worth."""
    rows = [(1, arm, 2 if sign > 0 else 3, 0.5, sign) for arm in range(4) for sign in (1.0, -1.0)]
    s, a, t, p, r = (list(column) for column in zip((0, 0, 1, 1.0, 0.0), *rows, strict=True))
    model = MDP.from_transitions(s, a, t, p, r, terminal=[2, 3], start=0, n_actions=4)
    settings: dict[str, Any] = {"episodes": 300, "step_size": 0.1, "epsilon": 1.0, "discount": 1.0}
    single = learn(model, agent("q", **settings), seeds=200).q[:, 0, 0].mean()
    double = learn(model, agent("double_q", **settings), seeds=200).q[:, 0, 0].mean()
    assert single > 0.1
    assert abs(double) < 0.05
