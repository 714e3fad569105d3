"""The finite MDP: frozen sparse arrays made for compiled sweeps.

A *row* is one available action of one state. The rows of state ``s`` are ``state_ptr[s]:state_ptr[s + 1]``, in
increasing order of action; the transitions of row ``i`` are ``row_ptr[i]:row_ptr[i + 1]``, in increasing order of next
state, each with positive probability. So

    Q(s, a) = reward[i] + γ Σ_{k = row_ptr[i]}^{row_ptr[i+1]−1} probability[k] · V[next_state[k]].

A terminal state has no rows, and its value is 0. The discount belongs to the question asked, not to the model.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.mdp import build, canonical, checks, grids
from dynaboltz.mdp.arrays import Bools, Floats, Ints, frozen, index_dtype
from dynaboltz.mdp.grid import Grid

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class MDP:
    """A finite Markov decision process, checked and immutable.

    The arrays given are taken over, not copied, and can no longer be written to. They must be in the canonical order of
    the module docstring; ``MDP.from_rows`` and the other constructors bring them there.

    >>> line = MDP.from_text("S.G")
    >>> line
    MDP(states=3, actions=4, rows=8, transitions=8, terminal=1)
    >>> line.next_state
    array([0, 1, 0, 0, 1, 2, 1, 0], dtype=int32)
    """

    state_ptr: Ints
    """The rows of state s are ``state_ptr[s]:state_ptr[s + 1]``; shape (states + 1,)."""
    action: Ints
    """The action of each row."""
    row_ptr: Ints
    """The transitions of row i are ``row_ptr[i]:row_ptr[i + 1]``; shape (rows + 1,)."""
    next_state: Ints
    """The next state of each transition; int32 where it fits."""
    probability: Floats
    """The probability of each transition, float64 or float32."""
    reward: Floats
    """r(s, a) of each row: the expected reward, float64."""
    n_actions: int
    """The number of actions that exist; a state need not offer them all."""
    terminal: Bools
    """Which states are terminal."""
    start: Floats | None = None
    """The distribution of the first state."""
    transition_reward: Floats | None = None
    """r(s, a, s') of each transition where it is not the same over a row; planners need only ``reward``."""
    state_labels: tuple[str, ...] | None = None
    """One name a state."""
    action_labels: tuple[str, ...] | None = None
    """One name an action."""
    grid: Grid | None = None
    """The map, if the states are cells of a grid."""

    from_rows = staticmethod(build.from_rows)
    from_transitions = staticmethod(canonical.from_transitions)
    from_arrays = staticmethod(build.from_arrays)
    from_scipy = staticmethod(build.from_scipy)
    from_function = staticmethod(build.from_function)
    from_text = staticmethod(grids.from_text)

    def __post_init__(self) -> None:
        checks.check(self)
        largest = {
            "state_ptr": self.action.size,
            "action": self.n_actions,
            "row_ptr": self.next_state.size,
            "next_state": self.terminal.size,
        }
        for name, limit in largest.items():
            self._set(name, getattr(self, name).astype(index_dtype(limit), copy=False))
        self._set("reward", self.reward.astype(np.float64, copy=False))
        if self.start is not None:
            self._set("start", self.start.astype(np.float64, copy=False))
        if self.transition_reward is not None:
            self._set("transition_reward", self.transition_reward.astype(self.probability.dtype, copy=False))
        for field in fields(self):
            if isinstance(array := getattr(self, field.name), np.ndarray):
                self._set(field.name, frozen(array))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return (
            f"MDP(states={self.n_states}, actions={self.n_actions}, rows={self.n_rows}, "
            f"transitions={self.n_transitions}, terminal={int(np.count_nonzero(self.terminal))})"
        )

    @property
    def n_states(self) -> int:
        """The number of states."""
        return int(self.terminal.size)

    @property
    def n_rows(self) -> int:
        """The number of rows: the available actions of all states together."""
        return int(self.action.size)

    @property
    def n_transitions(self) -> int:
        """The number of stored transitions."""
        return int(self.next_state.size)

    @property
    def nbytes(self) -> int:
        """The memory the arrays take, in bytes."""
        values = (getattr(self, field.name) for field in fields(self))
        return sum(value.nbytes for value in values if isinstance(value, np.ndarray))

    def row_states(self) -> Ints:
        """The state of each row, shape (rows,)."""
        states = np.arange(self.n_states, dtype=index_dtype(self.n_states))
        return np.repeat(states, np.diff(self.state_ptr))

    def state_name(self, state: int) -> str:
        """``state 3`` or ``state 3 'wet'``: how messages speak of a state."""
        return f"state {state}" + (f" {self.state_labels[state]!r}" if self.state_labels else "")

    def action_name(self, action: int) -> str:
        """``action 1`` or ``action 1 'left'``: how messages speak of an action."""
        return f"action {action}" + (f" {self.action_labels[action]!r}" if self.action_labels else "")

    def to_arrays(self) -> tuple[Floats, Floats]:
        """Dense ``P[S, A, S]`` and ``R[S, A]``; an action that a state lacks has a row of zeros. For small models."""
        if (size := self.n_states * self.n_actions * (self.n_states + 1) * 8) > 1 << 30:
            raise UserError(f"the dense form of {self!r} needs {size / 2**30:.0f} GiB; use to_scipy()")
        shape = (self.n_states, self.n_actions)
        probabilities, rewards = np.zeros((*shape, self.n_states)), np.zeros(shape)
        state = self.row_states()
        rewards[state, self.action] = self.reward
        row = np.repeat(np.arange(self.n_rows), np.diff(self.row_ptr))
        probabilities[state[row], self.action[row], self.next_state] = self.probability
        return probabilities, rewards

    def to_scipy(self) -> Any:
        """The transitions as a ``scipy.sparse.csr_array`` of shape (rows, states) that shares memory."""
        from scipy.sparse import csr_array

        return csr_array(
            (self.probability, self.next_state, self.row_ptr), shape=(self.n_rows, self.n_states), copy=False
        )

    def with_precision(self, dtype: npt.DTypeLike) -> MDP:
        """The same model with probabilities of the given float type, which must be float32 or float64."""
        if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise UserError(f"probabilities are float32 or float64, got {np.dtype(dtype)}")
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return MDP(**parts | {"probability": self.probability.astype(dtype)})

    def equals(self, other: MDP) -> bool:
        """Whether both models hold the same bits: arrays with their types, labels and map."""
        return all(_same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))


def _same(a: object, b: object) -> bool:
    if isinstance(a, Grid) and isinstance(b, Grid):
        a, b = a.cells, b.cells
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b
