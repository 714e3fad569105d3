"""The learning claims measure what they say they measure."""

from __future__ import annotations

import numpy as np
import pytest

from dynaboltz.mdp import build_world
from dynaboltz.paper import settings_map
from dynaboltz.paper.algorithm_1 import ALPHA, plain, shortest, ways
from dynaboltz.paper.figure_q_learning import agreement, compare, fewer, more
from dynaboltz.paper.learners import AGENTS, SETTING, Q, dbs, soft, steps
from dynaboltz.paper.learning_curves import LOOKS
from dynaboltz.paper.sample_complexity import SOFT, Lab, arriving, exponent, fixed, name_of, summary_of
from dynaboltz.paper.theorem_3 import BROKEN, errors_of, exponents, marks, worlds
from dynaboltz.paper.worlds import DISCOUNT, LAYOUTS
from dynaboltz.tabular import Learning, learn
from dynaboltz.tabular.streams import generator


def test_plain_loop_makes_the_updates_that_are_made_by_hand() -> None:
    """Three cells in a row: first the reward is learned, then what the middle is worth by boltz with β_2 = 2."""
    model = build_world("map(text='S.G')")
    start = np.zeros((3, 4))
    start[:2, 1] = 0.1  # go right
    q, taken = plain(model, start, p=1, episodes=1)
    assert taken == [2]
    middle = 0.1 * np.exp(0.1) / (3 + np.exp(0.1))
    first, second = 0.1 + ALPHA * (DISCOUNT * middle - 0.1), 0.1 + ALPHA * (1 - 0.1)
    assert q[:2, 1] == pytest.approx([first, second])
    q, taken = plain(model, start, p=1, episodes=2)
    middle = second * np.exp(2 * second) / (3 + np.exp(2 * second))
    assert q[0, 1] == pytest.approx(first + ALPHA * (DISCOUNT * middle - first))


def test_learning_is_the_plain_loop_over_the_lines_of_algorithm_1() -> None:
    model = build_world("map(text='S.#/.../#.G')")
    config = Learning(
        summary="boltzmann(beta=power(2))", episodes=40, discount=DISCOUNT, epsilon=0.0, ties="lowest",
        step_size=ALPHA, initial=SETTING["initial"],
    )  # fmt: skip
    found = learn(model, config, seeds=[7], root=5)
    first = config.parsed_initial.draw(generator(5, 7), (1, model.n_states, model.n_actions))[0]
    q, taken = plain(model, first, p=2, episodes=40)
    assert taken == found.steps[0].tolist()
    assert taken[-1] == 4
    np.testing.assert_allclose(q, found.q[0], rtol=0, atol=1e-14)


def test_ways_are_as_long_as_the_greedy_policy_walks() -> None:
    model = build_world("map(text='S./.G')")
    right, lost = np.zeros((4, 4)), np.zeros((4, 4))
    right[0, 1] = right[1, 2] = 1.0  # right, then down
    lost[0, 0] = 1.0  # up, into the border
    assert ways(model, np.array([right, lost])).tolist() == [2.0, np.inf]
    assert [shortest(layout) for layout in LAYOUTS] == [18, 28]


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_of_the_figures_can_be_made(name: str) -> None:
    assert Learning(**{**SETTING, **AGENTS[name]}).discount == 0.9
    assert name in LOOKS


def test_agents_have_random_numbers_of_their_own_and_the_same_ones_again() -> None:
    def run(name: str, root: int = 1) -> list[float]:
        found: list[float] = steps("no walls", name, seeds=3, episodes=4, root=root).ravel().tolist()
        return found

    assert run(Q) == run(Q)
    assert run(Q) != run(dbs(10)) != run(Q, 2)


def test_dbs_from_zeros_does_what_q_learning_does() -> None:
    assert agreement(20, 30, 1) > 0.95


def test_comparison_tells_fewer_from_more_and_from_neither() -> None:
    rng = np.random.default_rng(0)
    low, high = rng.normal(50, 5, (40, 3)), rng.normal(60, 5, (40, 3))
    runs = {(layout, name): of for layout in LAYOUTS for name, of in (("a", low), ("b", high), ("c", low[::-1]))}
    found = compare(runs, [("a", "b"), ("b", "a"), ("a", "c")])
    for layout in LAYOUTS:
        assert fewer(found[layout, "a", "b"])
        assert more(found[layout, "b", "a"])
        assert not fewer(found[layout, "a", "c"])
        assert not more(found[layout, "a", "c"])


def test_soft_q_learning_with_the_smallest_beta_does_not_find_the_apple() -> None:
    assert steps("two walls", soft(2), seeds=4, episodes=20, root=0).mean() > 299


def test_judge_says_which_way_a_statement_comes_out() -> None:
    rng = np.random.default_rng(0)
    cell = ("no walls", "zeros", 0.1, 0.1)
    names = [*AGENTS, settings_map.BEST, settings_map.RIVAL]
    means = {name: rng.normal(100, 5, 50) for name in names}
    means[dbs(2)] -= 20
    means[dbs(1)] -= 20
    found = settings_map.judge({cell: means})
    by_statement = {statement.replace("\n", " "): one.outcome for (_, statement), one in found.items()}
    assert by_statement["DBS t² better than Q-learning"] == "as the paper says"
    assert by_statement["DBS t¹ worse than Q-learning"] == "reversed"
    assert by_statement["soft 10⁵ better than Q-learning"] == "undecided"
    assert found[cell, settings_map.HEADLINE].effect.value > 2
    assert found[cell, settings_map.HEADLINE].effect.low > 0


def test_ties_are_no_setting_where_no_two_values_are_equal() -> None:
    assert settings_map.tie_share(4, 10, 0) == 1.0


def test_errors_are_noted_at_every_mark_and_fall() -> None:
    model = worlds()["slippery grid"]
    at = marks(20_000)
    errors = errors_of(model, {}, steps=20_000, seeds=6, root=0)
    assert errors.shape == (6, at.size)
    assert exponents(errors, at).high < 0
    stuck = errors_of(model, BROKEN["ε = 0"], steps=20_000, seeds=6, root=0)
    assert (stuck[:, -1] > 5 * errors[:, -1]).all()


def test_arrival_is_for_good_and_no_first_crossing() -> None:
    lab = Lab(instances=1, seeds=2, root=0)
    errors = np.array([[[1.0, 0.05, 0.3, 0.1, 0.05], [0.1, 0.1, 0.1, 0.1, 0.3]]])
    lab._kept["max", 4, 0.8] = np.array([1.0, 2.0, 4.0, 8.0, 16.0]), errors
    assert np.isinf(lab.arrivals("max", 0.2)).all()  # the second seed ends outside
    lab._kept["max", 4, 0.8] = np.array([1.0, 2.0, 4.0, 8.0, 16.0]), errors[:, :1]
    assert np.exp(lab.arrivals("max", 0.2)) == pytest.approx(8.0)
    assert np.exp(lab.arrivals("max", 2.0)) == pytest.approx(1.0)


def test_exponent_of_a_power_is_that_power() -> None:
    x = [1.0, 2.0, 8.0]
    logs = [np.array([0.0, 0.1]) + 1.5 * np.log(value) for value in x]
    found = exponent(logs, x, np.random.default_rng(0))
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))
    assert exponent([*logs[:2], np.array([0.0, np.inf])], x, np.random.default_rng(0)) is None


def test_names_of_dbs_and_their_summaries_belong_together() -> None:
    for p in (0.5, 1, 2, 10):
        assert summary_of(name_of(p)) == f"boltzmann(beta=power({p:g}))"
    assert summary_of("max") == "hard_max"


def test_exponent_of_runs_of_which_the_last_do_not_arrive_is_that_of_the_first() -> None:
    x = [1.0, 2.0, 4.0, 8.0]
    logs = [np.array([0.0, 0.1]) + 2.0 * np.log(value) for value in x]
    logs[3] = np.array([1.0, np.inf])
    found = exponent(logs, x, np.random.default_rng(0))
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert arriving(logs) == 3
    assert arriving(logs[3:]) == 0


@pytest.mark.parametrize("name", SOFT)
def test_other_operators_with_the_schedule_of_dbs_converge_as_they_do_not_with_a_fixed_beta(name: str) -> None:
    lab = Lab(instances=2, seeds=2, root=0)
    assert np.isfinite(lab.arrivals(name)).all()
    assert np.isinf(lab.arrivals(fixed(SOFT[name].split("(")[0]))).all()
