"""The Corollary against Song et al.: both bounds hold, and the true set of β is not the printed one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynaboltz.errors import UserError
from dynaboltz.theory import (
    World,
    beta_range_printed,
    beta_range_true,
    corollary_first_term,
    corollary_printed,
    corollary_second_term,
    corollary_sharp,
    improvement_limit,
    improvement_ratio,
    informative_beta,
    iterate,
    optimal_values,
    song_bound,
    value_span_bound,
)

DISCOUNTS = (0.85, 0.9, 0.95, 0.99)
BETAS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)


def limit_errors(world: World, beta: float, steps: int = 400) -> tuple[float, float]:
    """The largest errors of V and of Q over the last iterates."""
    best = optimal_values(world)
    tail = iterate(world, [beta] * steps)[-50:]
    best_q = world.action_values(best)
    return (
        max(float(np.abs(v - best).max()) for v in tail),
        max(float(np.abs(world.action_values(v) - best_q).max()) for v in tail),
    )


def random_worlds(count: int, seed: int) -> list[tuple[World, float]]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        states, actions = int(rng.integers(1, 6)), int(rng.integers(2, 10))
        transitions = rng.dirichlet(np.full(states, 0.3), size=(states, actions))
        rewards = rng.uniform(-1, 1, size=(states, actions)) * 10.0 ** rng.uniform(-2, 1)
        world = World(rewards, transitions, float(rng.uniform(0.1, 0.95)), np.zeros(states))
        found.append((world, float(10.0 ** rng.uniform(-2, 2))))
    return found


def test_fixed_beta_errors_never_exceed_any_of_the_bounds_on_values() -> None:
    for world, beta in random_worlds(150, seed=0):
        v_error, q_error = limit_errors(world, beta)
        m, bound = world.rewards.shape[1], float(np.abs(world.rewards).max())
        sharp = corollary_sharp(beta, m, world.discount, float(np.ptp(world.rewards)))
        slack = 1e-9 * bound + 2 * world.discount**350 * bound / (1 - world.discount)
        assert v_error <= sharp + slack
        assert q_error <= world.discount * sharp + slack
        assert v_error <= corollary_printed(beta, m, world.discount, bound) + slack


def test_fixed_beta_errors_never_exceed_the_bound_of_song_et_al() -> None:
    for world, beta in random_worlds(150, seed=1):
        _, q_error = limit_errors(world, beta)
        bound = float(np.abs(world.rewards).max())
        slack = 1e-9 * bound + 2 * world.discount**350 * bound / (1 - world.discount)
        assert q_error <= song_bound(beta, world.rewards.shape[1], world.discount, bound) + slack


@given(st.floats(1e-3, 1e3), st.integers(1, 30), st.floats(0, 0.99), st.floats(0.01, 10))
def test_sharp_corollary_never_exceeds_the_printed_one(beta: float, m: int, discount: float, r: float) -> None:
    sharp = corollary_sharp(beta, m, discount, reward_range=2 * r)
    assert sharp <= corollary_printed(beta, m, discount, r) * (1 + 1e-12)


def test_second_term_of_the_corollary_is_vacuous() -> None:
    assert corollary_second_term(0.9, 1.0) == pytest.approx(200)
    assert corollary_sharp(0.0, 4, 0.9, reward_range=2.0) == pytest.approx(20)


@given(st.integers(2, 30), st.floats(0.01, 10), st.floats(0, 0.99))
def test_informative_beta_is_where_the_sharp_first_term_meets_the_trivial_bound(
    m: int, reward_range: float, discount: float
) -> None:
    beta = informative_beta(m, reward_range)
    trivial = corollary_sharp(0.0, m, discount, reward_range)
    assert corollary_sharp(beta * 0.99, m, discount, reward_range) == trivial
    assert corollary_sharp(beta * 1.01, m, discount, reward_range) < trivial


@pytest.mark.parametrize("m", [2, 18])
def test_printed_corollary_is_informative_from_log_m_over_twice_the_reward_bound(m: int) -> None:
    assert informative_beta(m, 2.0, "paper") == math.log(m) / 2


def test_value_span_bound_holds_for_fixed_and_growing_beta() -> None:
    rng = np.random.default_rng(2)
    for world, beta in random_worlds(40, seed=3):
        start = World(world.rewards, world.transitions, world.discount, rng.normal(size=world.initial.shape))
        reach, span = float(np.ptp(world.rewards)), float(np.ptp(start.initial))
        for betas in ([beta] * 30, [float(t**2) for t in range(30)]):
            for t, values in enumerate(iterate(start, betas)):
                assert np.ptp(values) <= value_span_bound(t, world.discount, reach, span) * (1 + 1e-9)


@given(st.floats(0, 700), st.integers(1, 20), st.floats(0, 0.99), st.floats(0, 10))
def test_song_bound_is_its_formula(beta: float, m: int, discount: float, r: float) -> None:
    largest = r / (1 - discount)
    formula = discount * (m - 1) / (1 - discount) * max(1 / (beta + 2), 2 * largest / (1 + math.exp(beta)))
    assert song_bound(beta, m, discount, r) == pytest.approx(formula, rel=1e-12)


def test_song_bound_depends_on_the_unit_of_the_rewards_and_the_corollary_does_not() -> None:
    """In cents instead of euros every value is 100 times as large and β 100 times as small."""
    assert corollary_first_term(0.05, 2, 0.9) == pytest.approx(100 * corollary_first_term(5.0, 2, 0.9))
    assert song_bound(0.05, 2, 0.9, 100.0) > 200 * song_bound(5.0, 2, 0.9, 1.0)


TRUE_THRESHOLDS = {
    3: (0.1021, 0.0630, 0.0293, 0.0056),
    4: (0.0852, 0.0527, 0.0246, 0.0047),
    6: (0.0654, 0.0406, 0.0190, 0.0036),
    9: (0.0497, 0.0310, 0.0146, 0.0028),
    18: (0.0305, 0.0191, 0.0090, 0.0017),
}
PRINTED_THRESHOLDS = {
    3: (0.0923, 0.0571, 0.0267, 0.0051),
    4: (0.0606, 0.0377, 0.0177, 0.0034),
    6: (0.0359, 0.0225, 0.0106, 0.0020),
    9: (0.0223, 0.0140, 0.0066, 0.0013),
    18: (0.0104, 0.0066, 0.0031, 0.0006),
}


@pytest.mark.parametrize("m", TRUE_THRESHOLDS)
def test_true_beta_range_is_a_half_line_for_three_or_more_actions(m: int) -> None:
    for discount, threshold in zip(DISCOUNTS, TRUE_THRESHOLDS[m], strict=True):
        [(low, high)] = beta_range_true(m, discount)
        assert low == pytest.approx(threshold, abs=5.1e-5)
        assert high == math.inf


@pytest.mark.parametrize("m", PRINTED_THRESHOLDS)
def test_printed_beta_range_starts_too_early(m: int) -> None:
    for discount, threshold in zip(DISCOUNTS, PRINTED_THRESHOLDS[m], strict=True):
        printed = beta_range_printed(m, discount)
        assert printed == pytest.approx(threshold, abs=5.1e-5)
        assert printed < beta_range_true(m, discount)[0][0]
        assert corollary_first_term(printed, m, discount) > song_bound(printed, m, discount, 1.0)


@pytest.mark.parametrize(
    ("discount", "expected"),
    [
        (0.85, [(0.1309, 4.219), (8.838, math.inf)]),
        (0.90, [(0.0802, 4.822), (6.702, math.inf)]),
        (0.95, [(0.0372, math.inf)]),
        (0.99, [(0.0070, math.inf)]),
    ],
)
def test_true_beta_range_for_two_actions_has_a_hole_unless_the_discount_is_high(
    discount: float, expected: list[tuple[float, float]]
) -> None:
    found = beta_range_true(2, discount)
    assert len(found) == len(expected)
    assert np.ravel(found) == pytest.approx(np.ravel(expected), abs=5.1e-4)


@pytest.mark.parametrize(
    ("m", "discount", "beta", "ours", "theirs"),
    [(3, 0.9, 0.06, 183.10, 174.60), (2, 0.9, 5.0, 1.386, 1.286), (2, 0.85, 6.0, 0.770, 0.708)],
)
def test_printed_beta_range_contains_a_beta_where_song_et_al_are_tighter(
    m: int, discount: float, beta: float, ours: float, theirs: float
) -> None:
    assert beta >= beta_range_printed(m, discount)
    assert corollary_first_term(beta, m, discount) == pytest.approx(ours, rel=1e-3)
    assert song_bound(beta, m, discount, 1.0) == pytest.approx(theirs, rel=1e-3)


def test_printed_threshold_for_eighteen_actions_is_off_by_three() -> None:
    printed = beta_range_printed(18, 0.99)
    assert printed == pytest.approx(0.00059, abs=5e-6)
    assert corollary_first_term(printed, 18, 0.99) == pytest.approx(486_305, abs=1)
    assert song_bound(printed, 18, 0.99, 1.0) == pytest.approx(168_250, abs=1)


@pytest.mark.parametrize("m", [4, 5, 6, 9, 18])
@pytest.mark.parametrize("discount", DISCOUNTS)
def test_with_its_second_term_the_corollary_is_tighter_at_every_beta(m: int, discount: float) -> None:
    assert beta_range_true(m, discount, with_min=True) == [(0.0, math.inf)]


def test_like_for_like_the_hole_for_two_actions_closes_at_a_discount_of_nine_tenths() -> None:
    below = beta_range_true(2, 0.85, like_for_like=True)
    assert below[1][0] == pytest.approx(4.52, abs=0.005)
    assert len(below) == 2
    assert all(len(beta_range_true(2, discount, like_for_like=True)) == 1 for discount in DISCOUNTS[1:])


@given(
    st.integers(2, 20),
    st.floats(0, 0.995),
    st.floats(0.01, 100),
    st.tuples(st.booleans(), st.booleans()),
    st.floats(-4, 2.5).map(lambda x: 10**x),
)
def test_true_beta_range_holds_exactly_the_betas_where_the_corollary_is_tighter(
    m: int, discount: float, r: float, options: tuple[bool, bool], beta: float
) -> None:
    like_for_like, with_min = options
    ours = (corollary_printed if with_min else lambda b, m, g, _: corollary_first_term(b, m, g))(beta, m, discount, r)
    theirs = song_bound(beta, m, discount, r)
    if like_for_like:
        ours *= discount
    intervals = beta_range_true(m, discount, r, like_for_like=like_for_like, with_min=with_min)
    inside = any(low <= beta <= high for low, high in intervals)
    near_an_end = any(abs(beta - end) < 1e-6 * beta for pair in intervals for end in pair)
    if not near_an_end and discount > 0:
        assert inside == (ours <= theirs)


@given(st.integers(2, 20), st.floats(0, 0.999), st.floats(1e-3, 1e3))
def test_true_beta_range_is_sorted_and_disjoint(m: int, discount: float, r: float) -> None:
    ends = np.ravel(beta_range_true(m, discount, r))
    assert (np.diff(ends) > 0).all()


def test_without_a_discount_song_et_al_are_exact_and_never_looser() -> None:
    assert beta_range_true(5, 0.0) == []


@pytest.mark.parametrize(
    ("m", "discount", "percent"),
    [
        (4, 0.90, (46, 86, 90, 89, 28, 38, 44, 47)),
        (4, 0.99, (95, 99, 99, 99, 93, 44, 49, 51)),
        (18, 0.90, (86, 95, 96, 96, 74, 77, 79, 80)),
        (18, 0.99, (98, 99.5, 99.7, 99.6, 97, 79, 81, 82)),
        (3, 0.90, (36, 84, 89, 87, 15, 27, 33, 37)),
    ],
)
def test_improvement_ratio_has_the_known_values(m: int, discount: float, percent: tuple[float, ...]) -> None:
    found = [improvement_ratio(beta, m, discount) for beta in BETAS]
    assert found == pytest.approx(percent, abs=0.505)


def test_improvement_ratio_is_negative_in_the_hole_for_two_actions() -> None:
    assert improvement_ratio(5.0, 2, 0.9) < 0


@given(st.integers(2, 30), st.floats(0.1, 0.99))
def test_improvement_ratio_tends_to_its_limit(m: int, discount: float) -> None:
    assert improvement_ratio(1e9, m, discount) == pytest.approx(improvement_limit(m, discount), abs=1e-4)


@pytest.mark.parametrize("bad", [-0.1, 1.0, math.nan])
def test_fixed_beta_bounds_refuse_a_discount_outside_their_range(bad: float) -> None:
    for refuses in (
        lambda: corollary_first_term(1.0, 2, bad),
        lambda: corollary_second_term(bad, 1.0),
        lambda: corollary_sharp(1.0, 2, bad, 1.0),
        lambda: song_bound(1.0, 2, bad, 1.0),
        lambda: beta_range_printed(2, bad),
        lambda: beta_range_true(2, bad),
        lambda: improvement_ratio(1.0, 2, bad),
        lambda: improvement_limit(2, bad),
        lambda: value_span_bound(1, bad, 1.0),
    ):
        with pytest.raises(UserError, match="discount"):
            refuses()


def test_comparisons_refuse_a_single_action() -> None:
    for refuses in (
        lambda: beta_range_printed(1, 0.9),
        lambda: beta_range_true(1, 0.9),
        lambda: improvement_ratio(1.0, 1, 0.9),
        lambda: improvement_limit(1, 0.9),
    ):
        with pytest.raises(UserError, match="at least 2"):
            refuses()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan])
def test_the_printed_corollary_refuses_a_beta_that_is_not_positive(bad: float) -> None:
    with pytest.raises(UserError, match="β must be"):
        corollary_printed(bad, 2, 0.9, 1.0)
    with pytest.raises(UserError, match="β must be"):
        improvement_ratio(bad, 2, 0.9)
