"""What the formats of model checkers share: states with choices, labels on states, one number as a choice's reward.

A terminal state is written as a reward-free loop with the state label ``deadlock``, which is what PRISM and Storm make
of a state without choices; it is read back from either form. First states carry the label ``init``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.mdp.arrays import Bools, Floats, Ints
from dynaboltz.mdp.canonical import from_transitions

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

NUMBERED = re.compile(r"a(\d{1,9})")
"""How an action without a label is called where it must have a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """A model in the model checkers' terms; the loops of terminal states are choices like the others."""

    choice_ptr: Ints
    """The choices of state s are ``choice_ptr[s]:choice_ptr[s + 1]``."""
    names: list[str | None]
    """The action of each choice."""
    branch_ptr: Ints
    target: Ints
    probability: Floats
    reward: Floats
    """One a branch when read (a choice's reward may vary over them), one a choice when written."""
    init: Bools
    deadlock: Bools
    actions: tuple[str, ...] | None = None
    """Action labels in their order, where the format keeps it."""
    n_actions: int | None = None
    """The number of actions, where the format keeps it and they have no labels."""


def to_choices(mdp: MDP, path: Path) -> Choices:
    """``mdp`` as choices, to be written to ``path``."""
    init = np.zeros(mdp.n_states, np.bool_) if mdp.start is None else mdp.start > 0
    if mdp.start is not None and np.unique(mdp.start[init]).size > 1:
        raise UserError(
            f"cannot write {path}: the format holds a set of first states, not their probabilities; use .npz"
        )
    for label in mdp.action_labels or ():
        if not re.fullmatch(r"[^\s\"\[\]]+", label):
            raise UserError(f"cannot write {path}: the action label {label!r} has a space, quote or bracket; use .npz")
    ended = np.flatnonzero(mdp.terminal)
    at_row = mdp.state_ptr[ended]
    at_entry = mdp.row_ptr[at_row]
    position = np.arange(mdp.n_rows) - np.repeat(mdp.state_ptr[:-1], np.diff(mdp.state_ptr))
    if mdp.action_labels is not None:
        names: list[str | None] = [mdp.action_labels[action] for action in mdp.action]
    else:
        numbered = not np.array_equal(position, mdp.action)
        names = [f"a{action}" if numbered else None for action in mdp.action]
    return Choices(
        choice_ptr=mdp.state_ptr + np.concatenate([[0], np.cumsum(mdp.terminal)]),
        names=np.insert(np.array(names, object), at_row, np.array(None)).tolist(),
        branch_ptr=np.concatenate([[0], np.cumsum(np.insert(np.diff(mdp.row_ptr), at_row, 1))]),
        target=np.insert(mdp.next_state, at_entry, ended),
        probability=np.insert(mdp.probability.astype(np.float64), at_entry, 1.0),
        reward=np.insert(mdp.reward, at_row, 0.0),
        init=init,
        deadlock=mdp.terminal,
        actions=mdp.action_labels,
    )


def from_choices(read: Choices, path: Path) -> MDP:
    """The MDP of choices that were read from ``path``."""
    n_states = read.choice_ptr.size - 1
    branches = np.diff(read.branch_ptr)
    choice_state = np.repeat(np.arange(n_states), np.diff(read.choice_ptr))
    state = np.repeat(choice_state, branches)
    leaves = (read.target != state) | (read.reward != 0)
    busy = np.zeros(n_states, np.bool_)
    busy[state[leaves]] = True
    ended = (read.deadlock & ~busy) | (np.diff(read.choice_ptr) == 0)
    action, labels = _actions(read, choice_state, ended)
    kept = ~ended[state]
    try:
        return from_transitions(
            state[kept],
            np.repeat(action, branches)[kept],
            read.target[kept],
            read.probability[kept],
            read.reward[kept],
            n_states=n_states,
            n_actions=None if labels is not None else read.n_actions,
            terminal=ended,
            start=read.init / np.count_nonzero(read.init) if read.init.any() else None,
            action_labels=labels,
        )
    except UserError as fault:
        raise UserError(f"{path}: {fault}") from fault


def _actions(read: Choices, choice_state: Ints, ended: Bools) -> tuple[Ints, tuple[str, ...] | None]:
    """The action of each choice, and the labels. Names that do not tell a state's choices apart are dropped."""
    position = np.arange(choice_state.size) - read.choice_ptr[choice_state]
    live = [(int(s), name) for s, name in zip(choice_state, read.names, strict=True) if not ended[s]]
    named = [name for _, name in live if name is not None]
    if len(named) < len(live) or len(set(live)) < len(live) or not named:
        return position, None
    if read.actions is None and all(NUMBERED.fullmatch(name) for name in named):
        return np.array([int(name[1:]) if name and NUMBERED.fullmatch(name) else 0 for name in read.names]), None
    labels = read.actions if read.actions is not None else tuple(dict.fromkeys(named))
    number = {label: index for index, label in enumerate(labels)}
    return np.array([number.get(name or "", 0) for name in read.names]), labels
