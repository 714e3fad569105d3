"""The model itself: what it stores, in which types, and that nothing can change it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP
from dynaboltz.mdp.arrays import index_dtype


@pytest.fixture
def fork() -> MDP:
    """State 0 may go (to 1 or 2, paid 4 or 0) or wait; state 1 may only wait; state 2 is the end."""
    return MDP.from_transitions(
        [0, 0, 0, 1],
        [0, 0, 1, 1],
        [2, 1, 0, 1],
        [0.75, 0.25, 1.0, 1.0],
        [0.0, 4.0, -1.0, 0.5],
        terminal=[2],
        start=0,
        state_labels=["a", "b", "end"],
        action_labels=["go", "wait"],
    )


def test_mdp_model_keeps_rows_in_order_of_state_and_action(fork: MDP) -> None:
    assert fork.state_ptr.tolist() == [0, 2, 3, 3]
    assert fork.action.tolist() == [0, 1, 1]
    assert fork.row_ptr.tolist() == [0, 2, 3, 4]


def test_mdp_model_keeps_transitions_in_order_of_next_state(fork: MDP) -> None:
    assert fork.next_state.tolist() == [1, 2, 0, 1]
    assert fork.probability.tolist() == [0.25, 0.75, 1.0, 1.0]


def test_mdp_model_reward_is_the_mean_over_next_states(fork: MDP) -> None:
    assert fork.reward.tolist() == [1.0, -1.0, 0.5]


def test_mdp_model_keeps_the_rewards_of_transitions_that_differ_within_a_row(fork: MDP) -> None:
    assert fork.transition_reward is not None
    assert fork.transition_reward.tolist() == [4.0, 0.0, -1.0, 0.5]


def test_mdp_model_keeps_no_transition_rewards_that_say_nothing_new() -> None:
    even = MDP.from_transitions([0, 0], [0, 0], [0, 1], [0.1, 0.9], [0.3, 0.3], terminal=[1])
    assert even.transition_reward is None
    assert even.reward[0] == 0.3  # not 0.1 · 0.3 + 0.9 · 0.3, which rounds


def test_mdp_model_uses_32_bit_indices_and_64_bit_numbers(fork: MDP) -> None:
    indices = (fork.state_ptr, fork.action, fork.row_ptr, fork.next_state)
    assert {array.dtype for array in indices} == {np.dtype(np.int32)}
    assert {fork.probability.dtype, fork.reward.dtype} == {np.dtype(np.float64)}


def test_mdp_model_indices_widen_where_32_bits_do_not_do() -> None:
    assert index_dtype(2**31 - 1) is np.int32
    assert index_dtype(2**31) is np.int64


def test_mdp_model_float32_probabilities_stay_float32() -> None:
    single = MDP.from_transitions([0, 0], [0, 0], [0, 1], np.array([0.5, 0.5], np.float32), [0.0, 1.0], terminal=[1])
    assert single.probability.dtype == np.float32
    assert single.reward.dtype == np.float64


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(MDP)])
def test_mdp_model_no_array_can_be_written(fork: MDP, field: str) -> None:
    array = getattr(fork, field)
    if isinstance(array, np.ndarray):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(fork, field, None)


def test_mdp_model_differs_from_one_with_another_bit(fork: MDP) -> None:
    parts = {field.name: getattr(fork, field.name) for field in dataclasses.fields(fork)}
    other = MDP(**parts | {"reward": np.array([1.0, -1.0, np.nextafter(0.5, 1.0)]), "transition_reward": None})
    assert fork.equals(MDP(**parts))
    assert not fork.equals(other)


def test_mdp_model_repr_counts_its_parts(fork: MDP) -> None:
    assert repr(fork) == "MDP(states=3, actions=2, rows=3, transitions=4, terminal=1)"


def test_mdp_model_dense_form_has_zeros_for_missing_actions(fork: MDP) -> None:
    probabilities, rewards = fork.to_arrays()
    assert probabilities[0].tolist() == [[0, 0.25, 0.75], [1, 0, 0]]
    assert probabilities[1].tolist() == [[0, 0, 0], [0, 1, 0]]
    assert rewards.tolist() == [[1, -1], [0, 0.5], [0, 0]]


def test_mdp_model_scipy_form_shares_memory_and_backs_up_values(fork: MDP) -> None:
    matrix = fork.to_scipy()
    assert np.shares_memory(matrix.data, fork.probability)
    assert (matrix @ np.array([1.0, 2.0, 3.0])).tolist() == [2.75, 1.0, 2.0]


def test_mdp_model_row_states_repeat_each_state_for_its_actions(fork: MDP) -> None:
    assert fork.row_states().tolist() == [0, 0, 1]


def test_mdp_model_precision_changes_probabilities_only(fork: MDP) -> None:
    single = fork.with_precision(np.float32)
    assert single.probability.dtype == np.float32
    assert single.with_precision(np.float64).equals(fork)
    with pytest.raises(UserError, match="float32 or float64, got float16"):
        fork.with_precision(np.float16)


def test_mdp_model_value_map_puts_values_where_the_cells_are() -> None:
    grid = MDP.from_text("S#/.G").grid
    assert grid is not None
    assert grid.image([0.1, 0.2, 0.3], wall=9.0).tolist() == [[0.1, 9.0], [0.2, 0.3]]
    assert grid.states.tolist() == [[0, -1], [1, 2]]
    with pytest.raises(UserError, match="needs 3 values"):
        grid.image([0.1, 0.2])


def test_mdp_import_needs_no_heavy_package() -> None:
    code = (
        "import sys, dynaboltz.mdp; heavy = {'gymnasium', 'scipy', 'scipy.sparse', 'umbi', 'numba'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
