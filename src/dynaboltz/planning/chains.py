"""The compiled passes over the chain of a policy: its rows alone, which are copied out of the model when they change.

Each state has room for its longest row, so a row is replaced where it lies. An action value is the same to the bit,
read from the chain or from the model.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numba import njit

from dynaboltz.planning.kernels import action_value

Chain = namedtuple("Chain", "room length next_state probability reward")
"""The row of state s is ``room[s] : room[s] + length[s]``; a terminal state has none, and the reward 0."""

_U = np.uintp


@njit(nogil=True, cache=True)
def rooms_of(model: Any, room: Any) -> None:
    """Where the room of each state begins, and where the last one ends."""
    room[0] = 0
    for i in range(room.size - 1):
        s = _U(i)
        longest = _U(0)
        for j in range(model.state_ptr[s], model.state_ptr[s + _U(1)]):
            row = _U(j)
            longest = max(longest, _U(model.row_ptr[row + _U(1)]) - _U(model.row_ptr[row]))
        room[s + _U(1)] = _U(room[s]) + longest


@njit(forceinline=True)
def put(model: Any, chain: Any, s: Any, row: Any) -> None:
    """Make ``row`` that of state s."""
    at, k, end = _U(chain.room[s]), _U(model.row_ptr[row]), _U(model.row_ptr[row + _U(1)])
    chain.reward[s], chain.length[s] = model.reward[row], end - k
    while k < end:
        chain.next_state[at], chain.probability[at] = model.next_state[k], model.probability[k]
        at, k = at + _U(1), k + _U(1)


@njit(nogil=True, cache=True)
def best_rewards(model: Any, first: Any, last: Any, choice: Any) -> None:
    """Choose the row with the largest reward: what is greedy where no state is worth anything."""
    for i in range(first, last):
        s = _U(i)
        row, end_row = _U(model.state_ptr[s]), _U(model.state_ptr[s + _U(1)])
        best, at = -np.inf, row
        while row < end_row:
            at = row if model.reward[row] > best else at
            best = max(best, model.reward[row])
            row += _U(1)
        choice[s] = at - _U(model.state_ptr[s])


@njit(nogil=True, cache=True)
def follow(model: Any, chain: Any, first: Any, last: Any, choice: Any) -> None:
    """Put the chosen row of every state."""
    for i in range(first, last):
        s = _U(i)
        row = _U(model.state_ptr[s])
        if row < _U(model.state_ptr[s + _U(1)]):
            put(model, chain, s, row + _U(choice[s]))


@njit(nogil=True, cache=True, error_model="numpy")
def evaluate(chain: Any, first: Any, last: Any, discount: Any, old: Any, new: Any) -> tuple[float, float]:
    """T_μ old into ``new``; returns the extremes of ``new − old``."""
    low, high = np.inf, -np.inf
    for i in range(first, last):
        s = _U(i)
        k = _U(chain.room[s])
        new[s] = action_value(chain, s, k, k + _U(chain.length[s]), discount, old)
        change = new[s] - old[s]
        low, high = change if change < low else low, change if change > high else high
    return low, high


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def evaluate_in_place(chain: Any, first: Any, last: Any, forward: Any, discount: Any, old: Any, values: Any) -> None:
    """T_μ, one state after the other, with the reading rule of :func:`~dynaboltz.planning.kernels.relax`."""
    low, high = _U(first), _U(last)
    for i in range(last - first):
        s = low + _U(i) if forward else high - _U(1) - _U(i)
        total = 0.0
        k = _U(chain.room[s])
        for j in range(k, k + _U(chain.length[s])):
            t = _U(chain.next_state[_U(j)])
            total += chain.probability[_U(j)] * (values[t] if t - low < high - low else old[t])
        values[s] = chain.reward[s] + discount * total


@njit(nogil=True, cache=True, error_model="numpy")
def moved(first: Any, last: Any, values: Any, before: Any) -> tuple[float, float]:
    """The largest entry of ``values − before`` and the largest size of a value; ``before`` becomes ``values``."""
    high, largest = -np.inf, 0.0
    for i in range(first, last):
        s = _U(i)
        value, size = values[s], abs(values[s])
        change = value - before[s]
        high, largest = change if change > high else high, size if size > largest else largest
        before[s] = value
    return high, largest


@njit(forceinline=True, error_model="numpy")
def list_rows(
    model: Any, begin: Any, end: Any, choice: Any, bound: Any, most: Any, rise: Any, best: Any, rows: Any
) -> Any:
    """The rows that may be worth more than the chosen one, which is worth ``best`` and given its bound.

    Returns their number.
    """
    count = _U(0)
    for i in range(begin, end):
        s = _U(i)
        if most[s] + rise > best[s]:
            row, end_row = _U(model.state_ptr[s]), _U(model.state_ptr[s + _U(1)])
            wanted = row + _U(choice[s])
            bound[wanted] = best[s] - rise
            while row < end_row:
                rows[count] = row
                count += _U((bound[row] + rise > best[s]) & (row != wanted))
                row += _U(1)
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def improve(
    model: Any, chain: Any, first: Any, last: Any, width: Any, discount: Any, values: Any, backup: Any, choice: Any,
    bound: Any, most: Any, rise: Any,
) -> tuple[float, float, float, int]:  # fmt: skip
    """As :func:`~dynaboltz.planning.kernels.improve`, leaving out rows whose ``bound + rise`` is not above the chosen.

    Returns how many those were, too. ``most`` is the largest bound of the rows that are not chosen, ``width`` the
    largest number of actions. States go through in tiles, so that no branch waits for memory.
    """
    low, high, largest = np.inf, -np.inf, 0.0
    left_out = _U(model.state_ptr[last]) - _U(model.state_ptr[first])
    tile = max(_U(1), min(_U(256), _U(4096) // _U(width)))
    rows, found = np.empty(tile * _U(width) + _U(1), np.uintp), np.empty(tile * _U(width))
    for begin in range(_U(first), _U(last), tile):
        end = min(_U(begin) + tile, _U(last))
        evaluate(chain, begin, end, discount, values, backup)
        count = list_rows(model, begin, end, choice, bound, most, rise, backup, rows)
        for i in range(count):
            row = rows[_U(i)]
            found[_U(i)] = action_value(
                model, row, _U(model.row_ptr[row]), _U(model.row_ptr[row + _U(1)]), discount, values
            )
        left_out -= count
        at = _U(0)
        rows[count] = model.row_ptr.size  # no row, so that none is found after the last
        for i in range(begin, end):
            s = _U(i)
            best = backup[s]
            if most[s] + rise > best:
                row, end_row = _U(model.state_ptr[s]), _U(model.state_ptr[s + _U(1)])
                wanted, others = row + _U(choice[s]), -np.inf
                chosen = wanted
                while row < end_row:
                    if row == rows[at]:
                        x = found[at]
                        at += _U(1)
                        bound[row] = x - rise
                        others = max(others, min(x, best) - rise)
                        chosen = row if x > best else chosen
                        best = x if x > best else best
                    elif row != wanted:
                        others = max(others, bound[row])
                    row += _U(1)
                most[s] = others
                if chosen != wanted:
                    choice[s] = chosen - _U(model.state_ptr[s])
                    put(model, chain, s, chosen)
                backup[s] = best
            change = best - values[s]
            low, high = change if change < low else low, change if change > high else high
            largest = abs(best) if abs(best) > largest else largest
    return low, high, largest, int(left_out)


@njit(nogil=True, cache=True, error_model="numpy")
def improve_all(
    model: Any, chain: Any, first: Any, last: Any, _width: Any, discount: Any, values: Any, backup: Any, choice: Any,
    bound: Any, most: Any, rise: Any,
) -> tuple[float, float, float, int]:  # fmt: skip
    """As :func:`improve`, but reads every row, which is faster while few can be left out."""
    low, high, largest, left_out = np.inf, -np.inf, 0.0, 0
    for i in range(first, last):
        s = _U(i)
        row, end_row = _U(model.state_ptr[s]), _U(model.state_ptr[s + _U(1)])
        best = 0.0
        if row < end_row:
            first_row, chosen, kept = row, row, -np.inf
            wanted = row + _U(choice[s])
            best = others = -np.inf
            k = _U(model.row_ptr[row])
            while row < end_row:
                end = _U(model.row_ptr[row + _U(1)])
                x = action_value(model, row, k, end, discount, values)
                left_out += bound[row] + rise <= best
                bound[row] = x - rise
                others = max(others, min(x, best))
                kept = x if row == wanted else kept
                chosen = row if x > best else chosen
                best = x if x > best else best
                k, row = end, row + _U(1)
            most[s] = others - rise
            if kept != best:
                choice[s] = chosen - first_row
                put(model, chain, s, chosen)
        backup[s] = best
        change = best - values[s]
        low, high = change if change < low else low, change if change > high else high
        largest = abs(best) if abs(best) > largest else largest
    return low, high, largest, left_out
