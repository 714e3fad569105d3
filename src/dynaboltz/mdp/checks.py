"""What every MDP must satisfy; the first violation is reported with its state, its action and the value found.

All checks run over whole arrays (in blocks where a temporary would be large), so that ten million states are checked in
seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.mdp.arrays import Bools, Ints, blocks, first
from dynaboltz.mdp.grid import Grid

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-6}
"""How far the probabilities of a row may sum from 1."""


def check(model: MDP) -> None:
    """Raise a ``UserError`` that names the place unless ``model`` is a valid MDP in canonical form."""
    _shapes(model)
    _labels("state", model.state_labels, model.n_states)
    _labels("action", model.action_labels, model.n_actions)
    _pointer("state_ptr", model.state_ptr, model.n_rows)
    _pointer("row_ptr", model.row_ptr, model.n_transitions)
    _action_sets(model)
    _transitions(model)
    _rewards(model)
    _start(model)
    if model.grid is not None and model.grid.n_states > model.n_states:
        raise UserError(f"the map has {model.grid.n_states} free cells, but the model has {model.n_states} states")


def row_place(model: MDP, row: int) -> str:
    """``state 3 'wet', action 1 'left'`` of a row."""
    state = int(np.searchsorted(model.state_ptr, row, side="right")) - 1
    return f"{model.state_name(state)}, {model.action_name(int(model.action[row]))}"


def transition_place(model: MDP, index: int) -> str:
    """The row of a transition and the state it leads to."""
    row = int(np.searchsorted(model.row_ptr, index, side="right")) - 1
    return f"{row_place(model, row)}, next state {model.next_state[index]}"


def _shapes(model: MDP) -> None:
    kinds = {"state_ptr": "iu", "action": "iu", "row_ptr": "iu", "next_state": "iu", "reward": "f", "terminal": "b"}
    kinds |= {"probability": "f", "start": "f", "transition_reward": "f"}
    for name, kind in kinds.items():
        array = getattr(model, name)
        if array is None and name in ("start", "transition_reward"):
            continue
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in kind:
            found = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            meaning = {"iu": "integers", "f": "floats", "b": "booleans"}[kind]
            raise UserError(f"{name} must be a one-dimensional array of {meaning}, got {found}")
    if model.probability.dtype not in TOLERANCE:
        raise UserError(f"probability must be float64 or float32, got {model.probability.dtype}")
    sizes = {
        "state_ptr": model.n_states + 1,
        "row_ptr": model.n_rows + 1,
        "reward": model.n_rows,
        "probability": model.n_transitions,
        "transition_reward": model.n_transitions,
        "start": model.n_states,
    }
    for name, size in sizes.items():
        array = getattr(model, name)
        if array is not None and array.size != size:
            raise UserError(f"{name} must have {size} entries, got {array.size}")
    if model.n_states == 0 or model.n_rows == 0:
        raise UserError("an MDP needs at least one state that has an action")
    if isinstance(model.n_actions, bool) or not isinstance(model.n_actions, int) or model.n_actions < 1:
        raise UserError(f"n_actions must be an integer of at least 1, got {model.n_actions!r}")
    if model.grid is not None and not isinstance(model.grid, Grid):
        raise UserError(f"grid must be a Grid, got {type(model.grid).__name__}")


def _labels(kind: str, labels: tuple[str, ...] | None, size: int) -> None:
    if labels is None:
        return
    if not isinstance(labels, tuple) or not all(isinstance(label, str) for label in labels):
        raise UserError(f"{kind}_labels must be a tuple of strings, one for each {kind}")
    if len(labels) != size:
        raise UserError(f"{kind}_labels must have {size} entries, one for each {kind}, got {len(labels)}")
    seen: dict[str, int] = {}
    for index, label in enumerate(labels):
        if label in seen:
            raise UserError(f"{kind} {index} has the label {label!r}, which {kind} {seen[label]} has already")
        seen[label] = index


def _pointer(name: str, pointer: Ints, entries: int) -> None:
    if pointer[0] != 0 or pointer[-1] != entries:
        raise UserError(f"{name} must run from 0 to {entries}, got {pointer[0]} to {pointer[-1]}")
    if (at := first(pointer[1:] < pointer[:-1])) is not None:
        raise UserError(f"{name} must not decrease, but entry {at + 1} is {pointer[at + 1]} after {pointer[at]}")


def _action_sets(model: MDP) -> None:
    empty = model.state_ptr[1:] == model.state_ptr[:-1]
    if (state := first(empty & ~model.terminal)) is not None:
        raise UserError(
            f"{model.state_name(state)} has no actions and is not terminal; give it an action or list it in terminal"
        )
    if (state := first(~empty & model.terminal)) is not None:
        raise busy_terminal(model.state_name(state))
    bad = (model.action < 0) | (model.action >= model.n_actions)
    if (row := first(bad)) is not None:
        state = int(np.searchsorted(model.state_ptr, row, side="right")) - 1
        raise UserError(f"{model.state_name(state)}: action {model.action[row]} is outside 0 … {model.n_actions - 1}")
    if (row := _not_increasing(model.action, model.state_ptr)) is not None:
        raise UserError(f"{row_place(model, row)}: the actions of a state must be in increasing order, each once")


def _transitions(model: MDP) -> None:
    if (row := first(model.row_ptr[1:] == model.row_ptr[:-1])) is not None:
        raise UserError(f"{row_place(model, row)}: no transitions; the probabilities must sum to 1")
    if model.next_state.min() < 0 or model.next_state.max() >= model.n_states:
        at = int(((model.next_state < 0) | (model.next_state >= model.n_states)).argmax())
        raise UserError(f"{transition_place(model, at)}: next states must lie in 0 … {model.n_states - 1}")
    if (at_order := _not_increasing(model.next_state, model.row_ptr)) is not None:
        raise UserError(
            f"{transition_place(model, at_order)}: the next states of a row must be in increasing order, each once; "
            "MDP.from_rows sorts them and adds the probabilities of repeated ones"
        )
    tolerance = TOLERANCE[model.probability.dtype]
    # min and max pass NaN on, and a comparison with NaN is false: one test for all three faults, without temporaries.
    if not (model.probability.min() > 0 and model.probability.max() <= 1 + tolerance):
        at = int((~((model.probability > 0) & (model.probability <= 1 + tolerance))).argmax())
        raise UserError(f"{transition_place(model, at)}: the probability is {model.probability[at]}, not in (0, 1]")
    for rows, entries, starts in blocks(model.row_ptr):
        sums = np.add.reduceat(model.probability[entries], starts, dtype=np.float64)
        if (row := first(~(np.abs(sums - 1.0) <= tolerance))) is not None:
            raise bad_sum(row_place(model, rows.start + row), float(sums[row]), tolerance)


def busy_terminal(state: str) -> UserError:
    """The error for a terminal state where something can be done."""
    return UserError(
        f"{state} is terminal but has actions; "
        "a terminal state may have none, or only reward-free loops to itself, which are dropped"
    )


def bad_sum(place: str, found: float, tolerance: float) -> UserError:
    """The error for probabilities that do not sum to 1."""
    return UserError(
        f"{place}: the probabilities sum to {found!r}, not to 1 within {tolerance:g}; "
        "correct them, or pass normalise=True to rescale sums within 0.001 of 1"
    )


def _rewards(model: MDP) -> None:
    if (row := first(~np.isfinite(model.reward))) is not None:
        raise UserError(
            f"{row_place(model, row)}: the reward is {model.reward[row]}, not a finite number; "
            "to forbid an action leave it out of the state's action set"
        )
    if model.transition_reward is None:
        return
    if (at := first(~np.isfinite(model.transition_reward))) is not None:
        raise UserError(f"{transition_place(model, at)}: the reward is {model.transition_reward[at]}, not finite")
    for rows, entries, starts in blocks(model.row_ptr):
        products = model.probability[entries].astype(np.float64) * model.transition_reward[entries]
        expected = np.add.reduceat(products, starts)
        scale = 1.0 + np.add.reduceat(np.abs(products), starts)
        wrong = np.abs(expected - model.reward[rows]) > 10 * TOLERANCE[model.probability.dtype] * scale
        if (row := first(wrong)) is not None:
            place = row_place(model, rows.start + row)
            raise UserError(
                f"{place}: the reward is {model.reward[rows.start + row]}, but the transition rewards average "
                f"{expected[row]}"
            )


def _start(model: MDP) -> None:
    if model.start is None:
        return
    if (state := first(~(model.start >= 0))) is not None:
        raise UserError(f"the start probability of {model.state_name(state)} is {model.start[state]}, not in [0, 1]")
    if not abs(float(model.start.sum()) - 1.0) <= TOLERANCE[np.dtype(np.float64)]:
        raise UserError(f"the start probabilities sum to {float(model.start.sum())!r}, not to 1")


def _not_increasing(values: Ints, pointer: Ints) -> int | None:
    """The first entry that does not exceed the one before it in its segment, or None."""
    ordered: Bools = values[1:] > values[:-1]
    inner = pointer[1:-1]
    ordered[inner[(inner > 0) & (inner < values.size)] - 1] = True
    at = first(~ordered)
    return None if at is None else at + 1
