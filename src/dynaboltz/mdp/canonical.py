"""Transitions in any order → a canonical MDP: sorted, merged, checked. Every constructor but the grid's ends here.

Rewards by (s, a, s') become the expected reward r(s, a) = Σ_{s'} p(s'|s, a) r(s, a, s'), exactly r where r does not
vary over the row; where it does, the rewards of the transitions are kept beside it, for whoever samples. Transitions
that are given twice are one: their probabilities add, and their reward is the mean weighted by probability. Transitions
of probability zero are dropped. What a terminal state may have besides nothing are reward-free loops to itself, which
are dropped too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.mdp.arrays import Bools, Floats, Ints, first, integers, pointer, reals
from dynaboltz.mdp.checks import TOLERANCE, bad_sum, busy_terminal

if TYPE_CHECKING:
    import numpy.typing as npt

    from dynaboltz.mdp.grid import Grid
    from dynaboltz.mdp.model import MDP

NORMALISABLE = 1e-3
"""How far from 1 a sum of probabilities may be for ``normalise=True`` to rescale it."""


class Names(NamedTuple):
    """Labels that may be missing, and how a message calls a state-action pair."""

    states: Sequence[str] | None = None
    actions: Sequence[str] | None = None

    def state(self, index: int) -> str:
        """``state 3 'wet'``."""
        return _called("state", self.states, int(index))

    def __call__(self, state: int, action: int) -> str:
        """``state 3 'wet', action 1 'left'``."""
        return f"{self.state(state)}, {_called('action', self.actions, int(action))}"


def _called(kind: str, labels: Sequence[str] | None, index: int) -> str:
    # The labels have not been checked yet: there may be too few.
    known = labels is not None and index < len(labels)
    return f"{kind} {index}" + (f" {labels[index]!r}" if labels is not None and known else "")


class Transitions(NamedTuple):
    """Columns of one entry a transition."""

    s: Ints
    a: Ints
    t: Ints
    p: Floats
    r: Floats

    def take(self, which: Ints | Bools) -> Transitions:
        """The transitions that ``which`` selects."""
        return Transitions(self.s[which], self.a[which], self.t[which], self.p[which], self.r[which])


def from_transitions(
    state: npt.ArrayLike,
    action: npt.ArrayLike,
    next_state: npt.ArrayLike,
    probability: npt.ArrayLike,
    reward: npt.ArrayLike,
    *,
    n_states: int | None = None,
    n_actions: int | None = None,
    terminal: npt.ArrayLike = (),
    start: npt.ArrayLike | None = None,
    state_labels: Sequence[str] | None = None,
    action_labels: Sequence[str] | None = None,
    grid: Grid | None = None,
    normalise: bool = False,
) -> MDP:
    """The MDP with these transitions, in any order; all five arrays have one entry a transition.

    Args:
        state: where the transition begins, an index from 0.
        action: an index from 0.
        next_state: where it leads.
        probability: p(s'|s, a), float64 or float32.
        reward: r(s, a, s').
        n_states: by default what the labels or the largest index say.
        n_actions: likewise.
        terminal: a boolean mask over states, or the indices of the terminal states.
        start: a state, or a distribution over states.
        state_labels: names, each used once.
        action_labels: names, each used once.
        grid: the map, if the states are cells.
        normalise: rescale rows whose sum is within 0.001 of 1.

    >>> from_transitions([0, 0], [0, 0], [1, 0], [0.25, 0.75], [4.0, 0.0], terminal=[1]).reward
    array([1.])
    """
    from dynaboltz.mdp.model import MDP

    s = integers("state", state)
    a, t = integers("action", action, size=s.size), integers("next_state", next_state, size=s.size)
    p, r = reals("probability", probability, size=s.size), reals("reward", reward, size=s.size)
    n_states = _count("n_states", n_states, state_labels, s, t)
    n_actions = _count("n_actions", n_actions, action_labels, a)
    names, given = Names(state_labels, action_labels), Transitions(s, a, t, p, r.astype(np.float64, copy=False))
    _check_entries(given, n_states, n_actions, names)
    ended = terminal_mask(terminal, n_states)
    if ended.any():
        given = given.take(~(ended[s] & ((p == 0) | ((s == t) & (given.r == 0)))))
        if (at := first(ended[given.s])) is not None:
            raise busy_terminal(names.state(given.s[at]))
    ordered = _sorted(given, n_states, n_actions)
    merged = _merged(_with_unit_sums(ordered, names, normalise=normalise))
    begins = _changes(merged.s, merged.a)
    lengths = np.diff(np.append(begins, merged.s.size))
    expected, varies = _expected(begins, lengths, merged)
    return MDP(
        state_ptr=pointer(np.bincount(merged.s[begins], minlength=n_states)),
        action=merged.a[begins],
        row_ptr=pointer(lengths),
        next_state=merged.t,
        probability=merged.p,
        reward=expected,
        n_actions=n_actions,
        terminal=ended,
        start=_start(start, n_states),
        transition_reward=merged.r if varies else None,
        state_labels=None if state_labels is None else tuple(state_labels),
        action_labels=None if action_labels is None else tuple(action_labels),
        grid=grid,
    )


def terminal_mask(terminal: npt.ArrayLike, n_states: int) -> Bools:
    """A mask over states from a mask or from indices."""
    given = np.asarray(terminal)
    if given.dtype == np.bool_:
        if given.shape != (n_states,):
            raise UserError(f"terminal as a mask must have the shape ({n_states},), got {given.shape}")
        return given.copy()
    indices = integers("terminal", terminal)
    if (at := first((indices < 0) | (indices >= n_states))) is not None:
        raise UserError(f"terminal names state {indices[at]}; states lie in 0 … {n_states - 1}")
    mask = np.zeros(n_states, np.bool_)
    mask[indices] = True
    if np.count_nonzero(mask) != indices.size:
        raise UserError("terminal names a state twice; pass a boolean array if a mask over states was meant")
    return mask


def _count(name: str, given: int | None, labels: Sequence[str] | None, *columns: Ints) -> int:
    if given is None:
        given = len(labels) if labels is not None else 1 + max((int(c.max()) for c in columns if c.size), default=0)
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
        raise UserError(f"{name} must be an integer of at least 1, got {given!r}")
    return int(given)


def _check_entries(given: Transitions, n_states: int, n_actions: int, names: Names) -> None:
    s, a, t, p, r = given
    for what, values, limit in (("state", s, n_states), ("action", a, n_actions), ("next state", t, n_states)):
        if (at := first((values < 0) | (values >= limit))) is not None:
            raise UserError(
                f"transition {at} (state {s[at]}, action {a[at]}, next state {t[at]}): "
                f"the {what} must lie in 0 … {limit - 1}"
            )
    if (at := first(~((p >= 0) & (p < np.inf)))) is not None:
        raise UserError(f"{names(s[at], a[at])}, next state {t[at]}: the probability is {p[at]}; it must lie in [0, 1]")
    if (at := first(~np.isfinite(r) & (p > 0))) is not None:
        raise UserError(
            f"{names(s[at], a[at])}, next state {t[at]}: the reward is {r[at]}, not a finite number; "
            "to forbid an action leave it out of the state's action set"
        )


def _sorted(given: Transitions, n_states: int, n_actions: int) -> Transitions:
    """By state, action and next state. A stable sort finds the runs that are in order already."""
    if n_states * n_actions * n_states < np.iinfo(np.int64).max:
        key = (given.s.astype(np.int64) * n_actions + given.a) * n_states + given.t
        if not (key[1:] < key[:-1]).any():
            return given
        return given.take(np.argsort(key, kind="stable"))
    return given.take(np.lexsort((given.t, given.a, given.s)))


def _changes(*columns: Ints) -> Ints:
    """Where a run of equal entries begins."""
    new = np.ones(columns[0].size, np.bool_)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(new)


def _with_unit_sums(given: Transitions, names: Names, *, normalise: bool) -> Transitions:
    """Checked here as well as in the MDP, because a row of zeros is gone once zeros are dropped."""
    if given.s.size == 0:
        return given
    begins, tolerance = _changes(given.s, given.a), TOLERANCE[given.p.dtype]
    sums = np.add.reduceat(given.p, begins, dtype=np.float64)
    wrong = ~(np.abs(sums - 1.0) <= (NORMALISABLE if normalise else tolerance))
    if (row := first(wrong)) is not None:
        raise bad_sum(names(given.s[begins[row]], given.a[begins[row]]), float(sums[row]), tolerance)
    if not normalise:
        return given
    # A row that is right already keeps its bits.
    scale = np.where(np.abs(sums - 1.0) <= tolerance, 1.0, sums)
    lengths = np.diff(np.append(begins, given.s.size))
    return given._replace(p=(given.p / np.repeat(scale, lengths)).astype(given.p.dtype))


def _merged(given: Transitions) -> Transitions:
    if not (given.p > 0).all():
        given = given.take(given.p > 0)
    begins = _changes(given.s, given.a, given.t)
    if begins.size == given.s.size:
        return given
    lengths = np.diff(np.append(begins, given.s.size))
    mass = np.add.reduceat(given.p, begins)
    kept = given.take(begins)
    return kept._replace(p=mass, r=_mean(begins, lengths, given, mass))


def _mean(begins: Ints, lengths: Ints, given: Transitions, mass: Floats | float) -> Floats:
    """The mean reward of each segment; taken from the first reward on, so that equal rewards keep their bits."""
    lead = given.r[begins]
    rest = (given.r - np.repeat(lead, lengths)) * given.p
    mean: Floats = lead + np.add.reduceat(rest, begins) / mass
    return mean


def _expected(begins: Ints, lengths: Ints, given: Transitions) -> tuple[Floats, bool]:
    """r(s, a) of each row, and whether r(s, a, s') varies within any."""
    if begins.size == 0:
        return np.zeros(0), False
    varies = bool((given.r != np.repeat(given.r[begins], lengths)).any())
    return (_mean(begins, lengths, given, 1.0) if varies else given.r[begins]), varies


def _start(start: npt.ArrayLike | None, n_states: int) -> Floats | None:
    if start is None:
        return None
    given = np.asarray(start)
    if given.ndim == 0 and given.dtype.kind in "iu":
        if not 0 <= int(given) < n_states:
            raise UserError(f"start is state {int(given)}; states lie in 0 … {n_states - 1}")
        distribution = np.zeros(n_states)
        distribution[int(given)] = 1.0
        return distribution
    return reals("start", start, size=n_states).astype(np.float64)
