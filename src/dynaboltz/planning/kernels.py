"""The compiled passes over a model, each for a range of states, without the interpreter lock.

A pass touches every transition once: gather the next values, back up, summarise, and take the extremes of what
changed. States go through the operator eight at a time, one a lane; a state with fewer actions than its neighbours is
padded with −inf, and a terminal state is one action worth 0. What a state gets does not depend on the states beside
it, and minima and maxima do not depend on order, so any split of the states into ranges gives the same bits.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numba import njit

from dynaboltz.operators import lanes
from dynaboltz.operators.compiled import SOURCES, values_of

Model = namedtuple("Model", "state_ptr row_ptr next_state probability reward")
"""The arrays of an MDP that a pass reads."""

LANES = 8
"""States side by side: float64 values in a register of 512 bits."""

_U = np.uintp
"""Unsigned indices: a signed one costs Numba a test for negative numbers at every access."""


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def action_value(model: Any, row: Any, first: Any, last: Any, discount: Any, values: Any) -> Any:
    """Q of one row, ``r + γ Σ p·V``, whose transitions are ``first:last``."""
    total = 0.0
    for k in range(first, last):
        total += model.probability[_U(k)] * values[_U(model.next_state[_U(k)])]
    return model.reward[row] + discount * total


@njit(forceinline=True)
def fill(model: Any, start: Any, last: Any, discount: Any, values: Any, tile: Any) -> Any:
    """Put the action values of eight states side by side into ``tile``; returns the number of actions.

    Beyond ``last`` the last state is repeated.
    """
    most, fewest = _U(1), _U(model.row_ptr.size)
    for lane in range(LANES):
        s = min(start + _U(lane), last - _U(1))
        count = _U(model.state_ptr[s + _U(1)]) - _U(model.state_ptr[s])
        most, fewest = max(most, count), min(fewest, count)
    if fewest < most:
        tile[: most * _U(LANES)] = -np.inf
    for lane in range(LANES):
        s = min(start + _U(lane), last - _U(1))
        at, end_row = _U(lane), _U(model.state_ptr[s + _U(1)])
        row = _U(model.state_ptr[s])
        if row == end_row:
            tile[at] = 0.0
            continue
        k = _U(model.row_ptr[row])
        while row < end_row:
            end = _U(model.row_ptr[row + _U(1)])
            tile[at] = action_value(model, row, k, end, discount, values)
            k, row, at = end, row + _U(1), at + _U(LANES)
    return most


@njit(forceinline=True)
def smallest(value: Any) -> Any:
    """The smallest lane."""
    result = lanes.extract(value, 0)
    for lane in range(1, LANES):
        result = min(result, lanes.extract(value, lane))
    return result


@njit(forceinline=True)
def aligned(size: Any) -> Any:
    """Memory for ``size`` float64 that starts on a cache line, so that no register straddles two."""
    buffer = np.empty(size + LANES)
    return buffer[_U((-buffer.ctypes.data % 64) // 8) :]


def _build(sources: str) -> tuple[Any, Any]:
    @njit(nogil=True, cache=True, error_model="numpy")
    def sweep(
        p: Any, model: Any, first: Any, last: Any, width: Any, discount: Any, beta: Any, old: Any, new: Any
    ) -> Any:
        sources  # noqa: B018  (in the cache key)
        begin, stop = _U(first), _U(last)
        tile, spare = aligned(width * LANES), aligned(LANES)
        like = lanes.wide(old)
        low = lag_low = step_low = lanes.splat(like, np.inf)
        high = lag_high = step_high = largest = lanes.splat(like, -np.inf)
        for group in range((stop - begin + _U(LANES - 1)) // _U(LANES)):
            s = begin + _U(group) * _U(LANES)
            whole = s + _U(LANES) <= stop
            actions = fill(model, s, stop, discount, old, tile)
            value = values_of(p, tile, _U(0), actions, like, beta)
            top = lanes.load(tile, _U(0), like)
            for a in range(1, actions):
                x = lanes.load(tile, _U(a) * _U(LANES), like)
                top = lanes.where_less(top, x, x, top)
            if whole:
                before = lanes.load(old, s, like)
                lanes.store(new, s, value)
            else:
                lanes.store(spare, _U(0), value)
                for lane in range(stop - s):
                    new[s + _U(lane)] = spare[_U(lane)]
                for lane in range(LANES):
                    spare[_U(lane)] = old[min(s + _U(lane), stop - _U(1))]
                before = lanes.load(spare, _U(0), like)
            gain, lag, step = top - before, top - value, value - before
            low, high = lanes.where_less(gain, low, gain, low), lanes.where_less(high, gain, gain, high)
            lag_low = lanes.where_less(lag, lag_low, lag, lag_low)
            lag_high = lanes.where_less(lag_high, lag, lag, lag_high)
            step_low = lanes.where_less(step, step_low, step, step_low)
            step_high = lanes.where_less(step_high, step, step, step_high)
            size = lanes.where_less(value, value * -1.0, value * -1.0, value)
            largest = lanes.where_less(largest, size, size, largest)
        return (
            smallest(low), -smallest(high * -1.0), smallest(lag_low), -smallest(lag_high * -1.0),
            smallest(step_low), -smallest(step_high * -1.0), -smallest(largest * -1.0),
        )  # fmt: skip

    @njit(nogil=True, cache=True, error_model="numpy")
    def sweeps(
        p: Any, model: Any, width: Any, discount: Any, betas: Any, old: Any, new: Any, found: Any, stop: Any
    ) -> Any:
        sources  # noqa: B018
        n = old.size
        for t in range(betas.size):
            row = found[t]
            row[0], row[1], row[2], row[3], row[4], row[5], row[6] = sweep(
                p, model, 0, n, width, discount, betas[t], old, new
            )
            old, new = new, old
            if max(-row[0], row[1]) * stop[0] + row[3] <= stop[2] or max(-row[4], row[5]) * stop[1] <= stop[2]:
                return t + 1
        return betas.size

    return sweep, sweeps


sweep, sweeps = _build(SOURCES)
"""``sweep(p, model, first, last, width, discount, beta, old, new)`` puts T_op old into ``new``.

It returns seven numbers: the least and the largest of T_m old − old, of T_m old − new and of new − old, and max |new|.

``sweeps(…)`` makes several of a whole model into the rows of ``found``, ends early where (error to V*)·stop[0] or
step·stop[1] is down to stop[2], and returns their number; the last values are in ``new`` if that is odd."""


@njit(nogil=True, cache=True, error_model="numpy")
def improve(
    model: Any, first: Any, last: Any, discount: Any, values: Any, backup: Any, choice: Any
) -> tuple[float, float, float]:
    """One max backup of ``values`` with its greedy rows; returns the extremes of the change and the largest size.

    ``choice`` counts from the state's first row. A choice that ties with the best is kept.
    """
    low, high, largest = np.inf, -np.inf, 0.0
    for i in range(first, last):
        s = _U(i)
        row, end_row = _U(model.state_ptr[s]), _U(model.state_ptr[s + _U(1)])
        best = 0.0
        if row < end_row:
            first_row, chosen, kept = row, row, -np.inf
            wanted = row + _U(choice[s])
            best = -np.inf
            k = _U(model.row_ptr[row])
            while row < end_row:
                end = _U(model.row_ptr[row + _U(1)])
                x = action_value(model, row, k, end, discount, values)
                kept = x if row == wanted else kept
                chosen = row if x > best else chosen
                best = x if x > best else best
                k, row = end, row + _U(1)
            if kept != best:
                choice[s] = chosen - first_row
        backup[s] = best
        change = best - values[s]
        low, high, largest = min(low, change), max(high, change), max(largest, abs(best))
    return low, high, largest


@njit(nogil=True, cache=True, error_model="numpy")
def relax(model: Any, first: Any, last: Any, forward: Any, discount: Any, old: Any, values: Any) -> float:
    """Max backups of ``first:last`` in place, one after the other; returns the largest change.

    Next states inside the range are read as they are now, those outside from ``old``.
    """
    largest, low, high = 0.0, _U(first), _U(last)
    for i in range(last - first):
        s = low + _U(i) if forward else high - _U(1) - _U(i)
        row, end_row = _U(model.state_ptr[s]), _U(model.state_ptr[s + _U(1)])
        if row == end_row:
            continue
        best = -np.inf
        k = _U(model.row_ptr[row])
        while row < end_row:
            end = _U(model.row_ptr[row + _U(1)])
            total = 0.0
            for j in range(k, end):
                t = _U(model.next_state[_U(j)])
                total += model.probability[_U(j)] * (values[t] if t - low < high - low else old[t])
            best = max(best, model.reward[row] + discount * total)
            k, row = end, row + _U(1)
        largest = max(largest, abs(best - values[s]))
        values[s] = best
    return largest


@njit(nogil=True, cache=True, error_model="numpy")
def row_sums(model: Any, first: Any, last: Any) -> tuple[float, float, int]:
    """The smallest and largest sum of a row's probabilities, and the length of the longest row."""
    low, high, longest = np.inf, -np.inf, _U(0)
    k = _U(model.row_ptr[model.state_ptr[first]])
    for i in range(model.state_ptr[first], model.state_ptr[last]):
        end = _U(model.row_ptr[_U(i) + _U(1)])
        total, longest = 0.0, max(longest, end - k)
        while k < end:
            total += model.probability[k]
            k += _U(1)
        low, high = total if total < low else low, total if total > high else high
    return low, high, int(longest)


@njit(nogil=True, cache=True)
def can_stay_for_ever(model: Any, row_state: Any, into_ptr: Any, into_row: Any) -> Any:
    """Which states have a policy that never ends the episode: the largest set where some row of each stays inside.

    States are struck out one by one; ``into_row`` lists the rows that lead to a state.
    """
    n = model.state_ptr.size - 1
    rows_left = np.empty(n, np.int64)
    leaves = np.zeros(model.row_ptr.size - 1, np.bool_)
    inside = np.ones(n, np.bool_)
    struck = np.empty(n, np.int64)
    count = 0
    for s in range(n):
        rows_left[s] = model.state_ptr[s + 1] - model.state_ptr[s]
        if rows_left[s] == 0:
            inside[s] = False
            struck[count] = s
            count += 1
    at = 0
    while at < count:
        for k in range(into_ptr[struck[at]], into_ptr[struck[at] + 1]):
            row = into_row[k]
            if not leaves[row]:
                leaves[row] = True
                s = row_state[row]
                rows_left[s] -= 1
                if rows_left[s] == 0:
                    inside[s] = False
                    struck[count] = s
                    count += 1
        at += 1
    return inside
