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


@njit(nogil=True, cache=True, error_model="numpy")
def whole(flags: Any, age: Any, first: Any, count: Any, at: Any, n_step: Any) -> Any:
    """How many steps the transition at the ``at``-th slot from the oldest has; 0 if it is not whole.

    It is whole if its action was taken, its stacked frames are all there, and so are ``n_step`` steps after it, or all
    steps to the end of the episode.
    """
    capacity = flags.size
    slot = (first + at) % capacity
    if flags[slot] & LAST or age[slot] > at:
        return 0
    for k in range(n_step):
        here = flags[(slot + k) % capacity]
        if here & (TERMINAL | OVER) and at + k < count:
            return k + 1
    return n_step if at + n_step <= count else 0


@njit(nogil=True, cache=True, error_model="numpy")
def copy_stack(frames: Any, age: Any, slot: Any, out: Any) -> None:
    """The frame of a slot and those before it in its episode, the newest last; zeros before the first."""
    stack, capacity = out.shape[0], frames.shape[0]
    for k in range(stack):
        back = stack - 1 - k
        if back > age[slot]:
            out[k, :] = 0
        else:
            source = (slot - back) % capacity
            for i in range(out.shape[1]):
                out[k, i] = frames[source, i]


@njit(nogil=True, cache=True, error_model="numpy")
def gather(
    frames: Any, action: Any, reward: Any, flags: Any, age: Any, first: Any, at: Any, steps: Any, discount: Any,
    row: Any, inputs: Any, next_inputs: Any, actions: Any, rewards: Any, discounts: Any,
) -> None:  # fmt: skip
    """The transition of ``steps`` steps at the ``at``-th slot from the oldest into one row of a batch."""
    capacity = flags.size
    slot = (first + at) % capacity
    total, factor = 0.0, 1.0
    for k in range(steps):
        total += factor * reward[(slot + k) % capacity]
        factor *= discount
    last = (slot + steps - 1) % capacity
    terminal = flags[last] & TERMINAL
    actions[row], rewards[row], discounts[row] = action[slot], total, 0.0 if terminal else factor
    copy_stack(frames, age, slot, inputs[row])
    copy_stack(frames, age, last if terminal else (last + 1) % capacity, next_inputs[row])


@njit(nogil=True, cache=True, error_model="numpy")
def uniform(
    frames: Any, action: Any, reward: Any, flags: Any, age: Any, first: Any, count: Any, draws: Any, n_step: Any,
    discount: Any, filled: Any, inputs: Any, next_inputs: Any, actions: Any, rewards: Any, discounts: Any, slots: Any,
) -> Any:  # fmt: skip
    """Fill a batch from row ``filled`` on by slots drawn at random, passing over those that are not whole.

    Arrays of the memory are (environments, capacity, …). Returns how many rows are filled.
    """
    total = count.sum()
    for d in range(draws.size):
        at = np.int64(draws[d] * total)
        env = 0
        while at >= count[env]:
            at -= count[env]
            env += 1
        steps = whole(flags[env], age[env], first[env], count[env], at, n_step)
        if steps == 0:
            continue
        gather(
            frames[env], action[env], reward[env], flags[env], age[env], first[env], at, steps, discount,
            filled, inputs, next_inputs, actions, rewards, discounts,
        )  # fmt: skip
        slots[filled] = env * flags.shape[1] + (first[env] + at) % flags.shape[1]
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
    capacity, leaves = flags.shape[1], tree.size // 2
    stratum = tree[1] / draws.size
    for d in range(draws.size):
        slot = find(tree, (d + draws[d]) * stratum)
        env, position = slot // capacity, slot % capacity
        if env >= count.size or tree[leaves + slot] == 0.0:
            continue
        at = (position - first[env]) % capacity
        steps = whole(flags[env], age[env], first[env], count[env], at, n_step) if at < count[env] else 0
        if steps == 0:
            continue
        gather(
            frames[env], action[env], reward[env], flags[env], age[env], first[env], at, steps, discount,
            filled, inputs, next_inputs, actions, rewards, discounts,
        )  # fmt: skip
        slots[filled] = slot
        mass[filled] = tree[leaves + slot]
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
