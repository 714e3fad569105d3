"""The compiled half of :mod:`~dynaboltz.deep.replay`: which slots hold a whole transition, and a batch gathered.

A ring holds ``count`` slots from ``first`` on; the slot after them holds the present frame, whose action is to come.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

TERMINAL, OVER, LAST = 1, 2, 4
"""Flags of a slot: no value after its action; its episode ended with it; it is the last frame of a truncated episode,
in which no action was taken."""


def inlined(function: Any) -> Any:
    """The function compiled into every kernel that calls it."""
    return njit(nogil=True, error_model="numpy", forceinline=True)(function)


@inlined
def whole(flags: Any, age: Any, ring: Any, capacity: Any, first: Any, count: Any, at: Any, n_step: Any) -> Any:
    """How many steps the transition at the ``at``-th slot from the oldest has; 0 if it is not whole.

    It is whole if its action was taken, its stacked frames are all there, and so are ``n_step`` steps after it, or all
    steps to the end of the episode. The ring is ``capacity`` slots from ``ring`` on.
    """
    slot = (first + at) % capacity
    if flags[ring + slot] & LAST or age[ring + slot] > at:
        return 0
    for k in range(n_step):
        here = flags[ring + (slot + k) % capacity]
        if here & (TERMINAL | OVER) and at + k < count:
            return k + 1
    return n_step if at + n_step <= count else 0


@inlined
def copy_stack(frames: Any, ring: Any, capacity: Any, age: Any, slot: Any, row: Any, out: Any) -> None:
    """The frame of a slot and those before it in its episode, the newest last; zeros before the first."""
    stack = out.shape[1]
    for k in range(stack):
        back = stack - 1 - k
        if back > age:
            for i in range(out.shape[2]):
                out[row, k, i] = 0
        else:
            source = ring + (slot - back) % capacity
            for i in range(out.shape[2]):
                out[row, k, i] = frames[source, i]


@inlined
def gather(
    frames: Any, action: Any, reward: Any, flags: Any, age: Any, ring: Any, capacity: Any, slot: Any, steps: Any,
    discount: Any, row: Any, inputs: Any, next_inputs: Any, actions: Any, rewards: Any, discounts: Any,
) -> None:  # fmt: skip
    """The transition of ``steps`` steps at a slot into one row of a batch."""
    total, factor = 0.0, 1.0
    for k in range(steps):
        total += factor * reward[ring + (slot + k) % capacity]
        factor *= discount
    last = (slot + steps - 1) % capacity
    terminal = flags[ring + last] & TERMINAL
    actions[row], rewards[row], discounts[row] = action[ring + slot], total, 0.0 if terminal else factor
    copy_stack(frames, ring, capacity, age[ring + slot], slot, row, inputs)
    following = last if terminal else (last + 1) % capacity
    copy_stack(frames, ring, capacity, age[ring + following], following, row, next_inputs)


@njit(nogil=True, cache=True, error_model="numpy")
def uniform(
    frames: Any, action: Any, reward: Any, flags: Any, age: Any, first: Any, count: Any, draws: Any, n_step: Any,
    discount: Any, filled: Any, inputs: Any, next_inputs: Any, actions: Any, rewards: Any, discounts: Any, slots: Any,
) -> Any:  # fmt: skip
    """Fill a batch from row ``filled`` on by slots drawn at random, passing over those that are not whole.

    Arrays of the memory are flat, one ring after another. Returns how many rows are filled.
    """
    total, capacity = count.sum(), flags.size // count.size
    for d in range(draws.size):
        at = np.int64(draws[d] * total)
        env = 0
        while at >= count[env]:
            at -= count[env]
            env += 1
        ring = env * capacity
        steps = whole(flags, age, ring, capacity, first[env], count[env], at, n_step)
        if steps == 0:
            continue
        slot = (first[env] + at) % capacity
        gather(
            frames, action, reward, flags, age, ring, capacity, slot, steps, discount, filled, inputs, next_inputs,
            actions, rewards, discounts,
        )  # fmt: skip
        slots[filled] = ring + slot
        filled += 1
        if filled == actions.size:
            break
    return filled


@njit(nogil=True, cache=True, error_model="numpy")
def prioritised(
    frames: Any, action: Any, reward: Any, flags: Any, age: Any, first: Any, count: Any, draws: Any, n_step: Any,
    discount: Any, filled: Any, inputs: Any, next_inputs: Any, actions: Any, rewards: Any, discounts: Any, slots: Any,
    tree: Any, mass: Any,
) -> Any:  # fmt: skip
    """As :func:`uniform`, by slots drawn in proportion to their priority; ``mass`` takes those of the rows filled."""
    capacity, leaves = flags.size // count.size, tree.size // 2
    stratum = tree[1] / draws.size
    for d in range(draws.size):
        leaf = find(tree, (d + draws[d]) * stratum)
        env, slot = leaf // capacity, leaf % capacity
        if env >= count.size or tree[leaves + leaf] == 0.0:
            continue
        ring, at = env * capacity, (slot - first[env]) % capacity
        steps = whole(flags, age, ring, capacity, first[env], count[env], at, n_step) if at < count[env] else 0
        if steps == 0:
            continue
        gather(
            frames, action, reward, flags, age, ring, capacity, slot, steps, discount, filled, inputs, next_inputs,
            actions, rewards, discounts,
        )  # fmt: skip
        slots[filled] = leaf
        mass[filled] = tree[leaves + leaf]
        filled += 1
        if filled == actions.size:
            break
    return filled


@njit(nogil=True, cache=True, error_model="numpy")
def find(tree: Any, mass: Any) -> Any:
    """The leaf at which the running sum of the leaves passes ``mass``; ``tree[i] = tree[2i] + tree[2i+1]``."""
    leaves, node = tree.size // 2, 1
    while node < leaves:
        node *= 2
        if mass >= tree[node]:
            mass -= tree[node]
            node += 1
    return node - leaves


@njit(nogil=True, cache=True, error_model="numpy")
def put(tree: Any, leaf: Any, value: Any) -> None:
    """Set one leaf and the sums above it, which are added up anew, so that they never drift."""
    node = tree.size // 2 + leaf
    tree[node] = value
    node //= 2
    while node >= 1:
        tree[node] = tree[2 * node] + tree[2 * node + 1]
        node //= 2


@njit(nogil=True, cache=True, error_model="numpy")
def put_errors(tree: Any, slots: Any, errors: Any, smallest: Any, exponent: Any, largest: Any) -> Any:
    """Set leaves to (|error| + smallest)^exponent; returns the largest priority so far."""
    for j in range(slots.size):
        priority = (abs(errors[j]) + smallest) ** exponent
        largest = max(largest, priority)
        put(tree, slots[j], priority)
    return largest
