"""Constructors: CSR rows, dense arrays, SciPy matrices or a function → transitions → a canonical MDP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.mdp.arrays import Bools, first, integers, reals
from dynaboltz.mdp.canonical import Names, from_transitions, terminal_mask

if TYPE_CHECKING:
    import numpy.typing as npt

    from dynaboltz.mdp.model import MDP


def from_rows(
    state: npt.ArrayLike,
    action: npt.ArrayLike,
    row_ptr: npt.ArrayLike,
    next_state: npt.ArrayLike,
    probability: npt.ArrayLike,
    reward: npt.ArrayLike,
    **rest: Any,
) -> MDP:
    """The MDP with these rows, in any order; row i holds the transitions ``row_ptr[i]:row_ptr[i + 1]``.

    Args:
        state: the state of each row.
        action: the action of each row.
        row_ptr: shape (rows + 1,).
        next_state: one entry a transition.
        probability: one entry a transition.
        reward: r(s, a) of each row.
        rest: the keywords of ``MDP.from_transitions``.

    >>> from_rows([0, 0], [0, 1], [0, 2, 3], [0, 1, 1], [0.5, 0.5, 1.0], [0.0, 1.0], terminal=[1])
    MDP(states=2, actions=2, rows=2, transitions=3, terminal=1)
    """
    s = integers("state", state)
    a, r = integers("action", action, size=s.size), reals("reward", reward, size=s.size)
    t, ends = integers("next_state", next_state), integers("row_ptr", row_ptr, size=s.size + 1)
    names = Names(rest.get("state_labels"), rest.get("action_labels"))
    if ends[0] != 0 or ends[-1] != t.size:
        raise UserError(f"row_ptr must run from 0 to {t.size}, got {ends[0]} to {ends[-1]}")
    if (row := first(ends[1:] <= ends[:-1])) is not None:
        raise UserError(f"{names(s[row], a[row])}: row {row} has no transitions; the probabilities must sum to 1")
    order = np.lexsort((a, s))
    if (at := first((s[order][1:] == s[order][:-1]) & (a[order][1:] == a[order][:-1]))) is not None:
        raise UserError(f"{names(s[order[at]], a[order[at]])}: given twice, as row {order[at]} and {order[at + 1]}")
    lengths = np.diff(ends)
    return from_transitions(np.repeat(s, lengths), np.repeat(a, lengths), t, probability, np.repeat(r, lengths), **rest)


def from_arrays(
    P: npt.ArrayLike,
    R: npt.ArrayLike,
    *,
    layout: str | None = None,
    available: npt.ArrayLike | None = None,
    terminal: npt.ArrayLike = (),
    **rest: Any,
) -> MDP:
    """The MDP of dense arrays, ``P[A, S, S]`` or ``P[S, A, S]``.

    Args:
        P: probabilities; the layout is read off the shape, and must be said where there are as many actions as states.
        R: r(s, a) of shape (S, A), or r(s, a, s') of the shape of P.
        layout: ``"ass"`` or ``"sas"``.
        available: which actions a state has, a boolean array of shape (S, A); by default all. A row of zeros for an
            available action is an error, not a missing action.
        terminal: as in ``MDP.from_transitions``.
        rest: the other keywords of ``MDP.from_transitions``.

    >>> from_arrays([[[0.0, 1.0], [1.0, 0.0]]], [[1.0], [0.0]])
    MDP(states=2, actions=1, rows=2, transitions=2, terminal=0)
    """
    p, r = _table("P", P), _table("R", R)
    if p.ndim != 3 or 0 in p.shape:
        raise UserError(f"P must have the shape (A, S, S) or (S, A, S), got {p.shape}")
    action_first = _layout(p.shape, layout) == "ass"
    if r.ndim == 3 and r.shape != p.shape:
        raise UserError(f"R of shape {r.shape} must have the shape of P, {p.shape}, or be of shape (S, A)")
    if action_first:
        p, r = p.swapaxes(0, 1), r.swapaxes(0, 1) if r.ndim == 3 else r
    n_states, n_actions = p.shape[:2]
    if r.ndim != 3 and r.shape != (n_states, n_actions):
        raise UserError(f"R must have the shape (S, A) = ({n_states}, {n_actions}) or that of P, got {r.shape}")
    s, a, t = p.nonzero()
    present = np.zeros((n_states, n_actions), np.bool_)
    present[s, a] = True
    _check_available(present, available, terminal_mask(terminal, n_states), rest)
    rewards = r[s, a] if r.ndim == 2 else r[s, a, t]
    sizes = {"n_states": n_states, "n_actions": n_actions, "terminal": terminal}
    return from_transitions(s, a, t, p[s, a, t], rewards, **sizes, **rest)


def from_scipy(
    P: Sequence[Any],
    R: Any,
    *,
    available: npt.ArrayLike | None = None,
    terminal: npt.ArrayLike = (),
    **rest: Any,
) -> MDP:
    """The MDP of one sparse transition matrix (S × S) for each action.

    Args:
        P: sparse matrices or arrays of ``scipy.sparse``.
        R: r(s, a) of shape (S, A), or a sequence of sparse matrices r(s, a, s'), one an action; 0 where not stored.
        available: as in ``MDP.from_arrays``.
        terminal: as in ``MDP.from_transitions``.
        rest: the other keywords of ``MDP.from_transitions``.
    """
    from scipy.sparse import csr_array, issparse

    matrices = list(P)
    if not matrices or not all(issparse(matrix) for matrix in matrices):
        raise UserError("P must be a sequence of SciPy sparse matrices, one for each action")
    n_states, n_actions = matrices[0].shape[0], len(matrices)
    by_transition = isinstance(R, Sequence) and len(R) > 0 and all(issparse(matrix) for matrix in R)
    if by_transition and len(R) != n_actions:
        raise UserError(f"R must hold one matrix for each of the {n_actions} actions, got {len(R)}")
    table = None if by_transition else _table("R", R)
    if table is not None and table.shape != (n_states, n_actions):
        raise UserError(f"R must have the shape (S, A) = ({n_states}, {n_actions}), got {table.shape}")
    columns = []
    for action, matrix in enumerate(matrices):
        for name, given in (("P", matrix), ("R", R[action] if by_transition else matrix)):
            if given.shape != (n_states, n_states):
                raise UserError(
                    f"{name} of action {action} must have the shape ({n_states}, {n_states}), got {given.shape}"
                )
        parts = matrix.tocoo()
        s, t = parts.coords if hasattr(parts, "coords") else (parts.row, parts.col)
        rewards = table[s, action] if table is not None else np.asarray(csr_array(R[action])[s, t]).ravel()
        columns.append((s, np.full(s.size, action), t, parts.data, rewards))
    s, a, t, p, r = (np.concatenate(column) for column in zip(*columns, strict=True))
    present = np.zeros((n_states, n_actions), np.bool_)
    present[s[p != 0], a[p != 0]] = True
    _check_available(present, available, terminal_mask(terminal, n_states), rest)
    return from_transitions(s, a, t, p, r, n_states=n_states, n_actions=n_actions, terminal=terminal, **rest)


def from_function(
    states: Iterable[Hashable],
    actions: Iterable[Hashable] | Callable[[Any], Iterable[Hashable]],
    step: Callable[[Any, Any], Iterable[tuple[float, Hashable, float]]],
    *,
    terminal: Collection[Hashable] = (),
    start: Hashable | None = None,
    normalise: bool = False,
) -> MDP:
    """The MDP that ``step(state, action) → [(probability, next state, reward), …]`` describes.

    Args:
        states: anything hashable, each once; ``str`` of them become the labels.
        actions: the actions of every state, or a function from a state to its actions.
        step: called once for each action of each state that is not terminal.
        terminal: the states where episodes end.
        start: the first state.
        normalise: as in ``MDP.from_transitions``.

    >>> from_function("ab", ["go"], lambda s, a: [(1.0, "b", 1.0)], terminal="b", start="a").state_labels
    ('a', 'b')
    """
    listed = list(states)
    index = {state: number for number, state in enumerate(listed)}
    for state in listed if len(index) != len(listed) else ():
        if listed.count(state) > 1:
            raise UserError(f"state {state!r} is listed {listed.count(state)} times")
    for what, given in (("terminal", terminal), ("start", () if start is None else (start,))):
        for state in given:
            if state not in index:
                raise UserError(f"{what} names {state!r}, which is not one of the states")
    common = None if callable(actions) else list(actions)
    numbers: dict[Hashable, int] = {} if common is None else {act: number for number, act in enumerate(common)}
    records: list[tuple[int, int, int, float, float]] = []
    for state in listed:
        if state in terminal:
            continue
        for act in actions(state) if callable(actions) else common or ():
            number = numbers.setdefault(act, len(numbers))
            outcomes = list(step(state, act))
            if not outcomes:
                raise UserError(f"state {state!r}, action {act!r}: step returned no transitions")
            for outcome in outcomes:
                if len(outcome) != 3 or outcome[1] not in index:
                    raise UserError(
                        f"state {state!r}, action {act!r}: step returned {outcome!r}, "
                        "which is not (probability, one of the states, reward)"
                    )
                records.append((index[state], number, index[outcome[1]], float(outcome[0]), float(outcome[2])))
    s, a, t, p, r = (list(column) for column in zip(*records, strict=True)) if records else ([], [], [], [], [])
    return from_transitions(
        s,
        a,
        t,
        p,
        r,
        terminal=np.array([state in terminal for state in listed], np.bool_),
        start=None if start is None else index[start],
        state_labels=[str(state) for state in listed],
        action_labels=[str(act) for act in numbers] or None,
        normalise=normalise,
    )


def _table(name: str, values: Any) -> Any:
    try:
        table = np.asarray(values)
    except ValueError as fault:
        raise UserError(f"{name} is not a table of numbers: its rows differ in length") from fault
    if table.dtype.kind not in "fiub":
        raise UserError(f"{name} must hold real numbers, got values of type {table.dtype}")
    return table if table.dtype.kind == "f" else table.astype(np.float64)


def _layout(shape: tuple[int, ...], layout: str | None) -> str:
    possible = [name for name, (i, j) in {"ass": (1, 2), "sas": (0, 2)}.items() if shape[i] == shape[j]]
    if layout is not None and layout in possible:
        return layout
    if layout not in (None, "ass", "sas"):
        raise UserError(f"layout must be 'ass' for P[A, S, S] or 'sas' for P[S, A, S], got {layout!r}")
    if layout is None and len(possible) == 1:
        return possible[0]
    if possible and layout is None:
        raise UserError(f"P of shape {shape} may be P[A, S, S] or P[S, A, S]: pass layout='ass' or layout='sas'")
    raise UserError(f"P of shape {shape} is not of the shape {'(A, S, S)' if layout != 'sas' else '(S, A, S)'}")


def _check_available(present: Bools, available: npt.ArrayLike | None, ended: Bools, rest: dict[str, Any]) -> None:
    """Each available action of a state that is not terminal has transitions, and no other has."""
    wanted = np.ones_like(present) if available is None else np.asarray(available)
    if wanted.dtype != np.bool_ or wanted.shape != present.shape:
        raise UserError(
            f"available must be a boolean array of the shape (S, A) = {present.shape}, "
            f"got {wanted.dtype} of shape {wanted.shape}"
        )
    names = Names(rest.get("state_labels"), rest.get("action_labels"))
    for wrong, message in (
        (wanted & ~present & ~ended[:, None], "all probabilities are 0; if the action does not exist, pass available="),
        (present & ~wanted, "has probabilities, but available says that the action does not exist"),
    ):
        if wrong.any():
            state, action = np.argwhere(wrong)[0]
            raise UserError(f"{names(state, action)}: {message}")
