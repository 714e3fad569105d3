"""Constructors: one model through every representation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array, csr_matrix

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP

Table = npt.NDArray[np.float64]

P = np.array([[[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]], [[0, 0, 1], [0.25, 0, 0.75], [0, 0, 1]]])
R = np.array([[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]])
SMALL = MDP.from_arrays(P, R, terminal=[2])


def _step(state: str, action: int) -> list[tuple[float, str, float]]:
    s = "abc".index(state)
    return [(P[action, s, t], "abc"[t], R[s, action]) for t in range(3) if P[action, s, t]]


def test_mdp_build_arrays_hold_the_transitions_of_the_states_that_go_on() -> None:
    assert SMALL.next_state.tolist() == [0, 1, 2, 1, 0, 2]
    assert SMALL.probability.tolist() == [0.5, 0.5, 1.0, 1.0, 0.25, 0.75]
    assert SMALL.reward.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_mdp_build_arrays_of_either_layout_agree() -> None:
    assert MDP.from_arrays(P.swapaxes(0, 1), R, terminal=[2]).equals(SMALL)


def test_mdp_build_arrays_ask_for_the_layout_where_the_shape_does_not_say_it() -> None:
    square = np.array([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])
    with pytest.raises(UserError, match="layout='ass' or layout='sas'"):
        MDP.from_arrays(square, np.zeros((2, 2)))
    action_first = MDP.from_arrays(square, np.zeros((2, 2)), layout="ass")
    state_first = MDP.from_arrays(square, np.zeros((2, 2)), layout="sas")
    assert action_first.to_arrays()[0].tolist() == square.swapaxes(0, 1).tolist()
    assert state_first.to_arrays()[0].tolist() == square.tolist()


@pytest.mark.parametrize("kind", [csr_array, csr_matrix, coo_array])
def test_mdp_build_scipy_matrices_of_any_kind_agree_with_arrays(kind: Any) -> None:
    assert MDP.from_scipy([kind(p) for p in P], R, terminal=[2]).equals(SMALL)


def test_mdp_build_scipy_rewards_by_transition_agree_with_arrays() -> None:
    by_transition = np.arange(18.0).reshape(2, 3, 3) * (P > 0)
    by_transition[:, 2] = 0
    dense = MDP.from_arrays(P, by_transition, terminal=[2])
    sparse = MDP.from_scipy([csr_array(p) for p in P], [csr_array(r) for r in by_transition], terminal=[2])
    assert dense.transition_reward is not None
    assert sparse.equals(dense)


def test_mdp_build_function_agrees_with_arrays() -> None:
    described = MDP.from_function("abc", [0, 1], _step, terminal="c", start="a")
    labelled = MDP.from_arrays(P, R, terminal=[2], start=0, state_labels=list("abc"), action_labels=["0", "1"])
    assert described.equals(labelled)


def test_mdp_build_function_lets_actions_depend_on_the_state() -> None:
    two = MDP.from_function([1, 2], lambda s: range(2 - s, 2), lambda s, a: [(1.0, 3 - s, float(a))], start=1)
    assert two.row_states().tolist() == [0, 1, 1]
    assert two.action_labels == ("1", "0")


def test_mdp_build_rows_in_any_order_agree_with_arrays() -> None:
    rows = MDP.from_rows(
        [1, 0, 1, 0],
        [1, 0, 0, 1],
        [0, 2, 4, 5, 6],
        [2, 0, 1, 0, 1, 2],
        [0.75, 0.25, 0.5, 0.5, 1.0, 1.0],
        [4.0, 1.0, 3.0, 2.0],
        terminal=[2],
    )
    assert rows.equals(SMALL)


def test_mdp_build_repeated_transitions_add_up() -> None:
    doubled = MDP.from_transitions([0, 0, 0], [0, 0, 0], [0, 1, 0], [0.25, 0.25, 0.5], [6.0, 1.0, 0.0], terminal=[1])
    assert doubled.probability.tolist() == [0.75, 0.25]
    assert doubled.transition_reward is not None
    assert doubled.transition_reward.tolist() == [2.0, 1.0]
    assert doubled.reward.tolist() == [0.25 * 6 + 0.25 * 1]


def test_mdp_build_equal_rewards_keep_their_bits() -> None:
    """A mean taken as Σ p·r would give 0.9000000000000001 for 0.9; another row varies, so means are taken."""
    model = MDP.from_transitions(
        [0, 0, 0, 1, 1], [0] * 5, [0, 1, 1, 0, 1], [0.5, 0.2, 0.3, 0.5, 0.5], [0.9, 0.9, 0.9, 1.0, 0.0]
    )
    assert 0.5 * 0.9 + (0.2 * 0.9 + 0.3 * 0.9) != 0.9
    assert model.reward.tolist() == [0.9, 0.5]
    assert model.transition_reward is not None
    assert model.transition_reward.tolist() == [0.9, 0.9, 1.0, 0.0]


def test_mdp_build_transitions_of_probability_zero_are_dropped() -> None:
    assert MDP.from_transitions([0, 0], [0, 0], [0, 1], [1.0, 0.0], [1.0, np.inf], n_states=2, terminal=[1]).equals(
        MDP.from_transitions([0], [0], [0], [1.0], [1.0], n_states=2, terminal=[1])
    )


def test_mdp_build_terminal_is_a_mask_or_indices() -> None:
    assert MDP.from_arrays(P, R, terminal=np.array([False, False, True])).equals(SMALL)


def test_mdp_build_available_leaves_actions_out() -> None:
    holes = P.copy()
    holes[1, 1] = 0
    available = np.array([[True, True], [True, False], [True, True]])
    model = MDP.from_arrays(holes, R, terminal=[2], available=available)
    assert model.action.tolist() == [0, 1, 0]
    with pytest.raises(UserError, match="state 1, action 1: all probabilities are 0"):
        MDP.from_arrays(holes, R, terminal=[2])


def test_mdp_build_start_is_a_state_or_a_distribution() -> None:
    at = MDP.from_arrays(P, R, terminal=[2], start=1)
    spread = MDP.from_arrays(P, R, terminal=[2], start=[0.0, 1.0, 0.0])
    assert at.start is not None
    assert at.start.tolist() == [0.0, 1.0, 0.0]
    assert spread.equals(at)


def test_mdp_build_normalise_rescales_sums_close_to_one() -> None:
    rounded = ([0, 0, 0], [0, 0, 0], [0, 1, 2], [0.3333, 0.3333, 0.3333], [0.0, 0.0, 0.0])
    with pytest.raises(UserError, match="pass normalise=True"):
        MDP.from_transitions(*rounded, terminal=[1, 2])
    model = MDP.from_transitions(*rounded, terminal=[1, 2], normalise=True)
    assert model.probability.tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)
    with pytest.raises(UserError, match=r"sum to 0\.9"):
        MDP.from_transitions([0], [0], [0], [0.9], [0.0], normalise=True)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, Table]:
    states, actions = draw(st.integers(1, 5)), draw(st.integers(1, 4).filter(bool))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = rng.random((states, actions, states)) * (rng.random((states, actions, states)) < 0.6)
    weights[weights.sum(axis=2) == 0, 0] = 1.0
    return weights / weights.sum(axis=2, keepdims=True), rng.normal(size=(states, actions, states))


@settings(deadline=None, max_examples=60)
@given(tables(), st.randoms(use_true_random=False))
def test_mdp_build_order_of_transitions_does_not_matter(table: tuple[Table, Table], random: Any) -> None:
    p, r = table
    s, a, t = p.nonzero()
    order = list(range(s.size))
    random.shuffle(order)
    columns = [column[order] for column in (s, a, t, p[s, a, t], r[s, a, t])]
    sizes = {"n_states": p.shape[0], "n_actions": p.shape[1]}
    assert MDP.from_transitions(*columns, **sizes).equals(MDP.from_arrays(p, r, layout="sas"))


@settings(deadline=None, max_examples=60)
@given(tables())
def test_mdp_build_dense_form_is_what_was_given(table: tuple[Table, Table]) -> None:
    p, r = table
    probabilities, rewards = MDP.from_arrays(p, r, layout="sas").to_arrays()
    assert np.array_equal(probabilities, p)
    assert np.allclose(rewards, (p * r).sum(axis=2), atol=1e-14)
