"""The agent in compiled code: how it chooses, and how it learns from what came of it."""

# ruff: noqa: ARG001, ARG005  (overloads have the signatures of what they stand for)
from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import overload

from dynaboltz.operators import lanes
from dynaboltz.tabular.layout import AGENT, BY_VISIT
from dynaboltz.tabular.registers import NTH, at_least, largest, register, set_bits, width_of
from dynaboltz.tabular.rows import LOWEST
from dynaboltz.tabular.rules import RULES, GLearningForm

World = namedtuple("World", "actions pointer next_state cumulative reward start start_cumulative pairs")
"""A model for sampling: pair s·m + a has the outcomes ``pointer[pair]:pointer[pair + 1]``; ~t is a terminal t.

``len(actions)`` is m; a tuple makes it a constant of the compiled code. ``pairs`` are those that exist."""

Plan = namedtuple(
    "Plan",
    "discount episodes max_steps scale omega sizes random_ties mask_terminal beta_clock betas beta_offset "
    "epsilon_clock epsilons epsilon_offset optimum marks stop_error",
)
"""The settings; ``betas[t − 1 − beta_offset]`` is β_t, and ``sizes[n]`` is α for the n-th update."""

Run = namedtuple("Run", "q visits streams counters gained steps returns errors")
"""The state of all seeds, one row each."""

U, U64 = np.uintp, np.uint64
_RULE_OF = {entry.form: entry for entry in RULES.values()}
_HALF, _LOW = U64(32), U64(0xFFFFFFFF)


@lanes.primitive
def borrowed(typing: Any, array: Any) -> Any:
    """The array without its reference counter, for loops in which counting would take most of the time."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        struct: Any = cgutils.create_struct_proxy
        view = struct(signature.args[0])(context, builder, value=args[0])
        view.meminfo = view.meminfo.type(None)
        return view._getvalue()

    return array(array), code


def uncounted(value: Any) -> Any:
    """Actions or a form, borrowed where there is an array in them."""
    raise NotImplementedError


@overload(uncounted, strict=False, jit_options=lanes.INLINE)
def _uncounted_overload(value: Any) -> Any:
    if isinstance(value, types.Array):
        return lambda value: borrowed(value)  # noqa: PLW0108  (the names must match)
    if isinstance(value, types.NamedTuple) and value.instance_class is GLearningForm:
        return lambda value: GLearningForm(borrowed(value.prior))
    return lambda value: value


def _next_value(*arguments: Any) -> Any:
    raise NotImplementedError


@overload(_next_value, strict=False, jit_options=lanes.INLINE)
def _next_value_overload(
    form: Any,
    q: Any,
    own: Any,
    other: Any,
    row: Any,
    m: Any,
    like: Any,
    beta: Any,
    action: Any,
    epsilon: Any,
) -> Any:
    value = lanes.inlined(_RULE_OF[form.instance_class].code())
    return lambda form, q, own, other, row, m, like, beta, action, epsilon: value(  # noqa: PLW0108
        form, q, own, other, row, m, like, beta, action, epsilon
    )


def _doubles(form: Any) -> bool:
    raise NotImplementedError


@overload(_doubles, strict=False, jit_options=lanes.INLINE)
def _doubles_overload(form: Any) -> Any:
    return (lambda form: True) if _RULE_OF[form.instance_class].tables == 2 else (lambda form: False)


def carries(form: Any) -> bool:
    """Whether the rule chooses the next action before the update."""
    raise NotImplementedError


@overload(carries, strict=False, jit_options=lanes.INLINE)
def _carries_overload(form: Any) -> Any:
    return (lambda form: True) if _RULE_OF[form.instance_class].carries else (lambda form: False)


@lanes.inlined
def mix(word: Any) -> Any:
    """The finaliser of SplitMix64."""
    word = (word ^ (word >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U64(27))) * U64(0x94D049BB133111EB)
    return word ^ (word >> U64(31))


@lanes.inlined
def pick(cumulative: Any, first: Any, last: Any, word: Any) -> Any:
    """The outcome in ``first:last`` that a random word means; what rounding leaves over is the last one's."""
    share = (word >> U64(11)) * 2.0**-53 * cumulative[last - U(1)]
    last -= U(1)
    while last - first > U(16):
        middle = (first + last) >> U(1)
        if cumulative[middle] <= share:
            first = middle + U(1)
        else:
            last = middle
    while first < last and cumulative[first] <= share:
        first += U(1)
    return first


@lanes.inlined
def acting_value(form: Any, q: Any, at: Any) -> Any:
    """What is greedy maximises this: Q, or the sum of both tables."""
    return q[at] + q[at + (U(q.size) >> U(1))] if _doubles(form) else q[at]


@lanes.inlined
def decide(form: Any, actions: Any, q: Any, state: Any, epsilon: Any, random_ties: Any, word: Any) -> Any:
    """The ε-greedy action.

    The upper half of the word says whether to explore, the lower half which of the actions that are in question: those
    there are, or those of the greatest value.
    """
    explore = word >> _HALF < U64(epsilon * 4294967296.0 + 0.5)
    part = word & _LOW if explore or random_ties else U64(0)
    return _one_of(form, actions, q, state * U(len(actions)), explore, part)


def _one_of(form: Any, actions: Any, q: Any, at: Any, explore: Any, part: Any) -> Any:
    """Action number ``part·count/2³²`` of the count in question."""
    raise NotImplementedError


@overload(_one_of, strict=False, jit_options=lanes.INLINE)
def _one_of_overload(form: Any, actions: Any, q: Any, at: Any, explore: Any, part: Any) -> Any:
    if width_of(actions) > 1:

        def in_register(form: Any, actions: Any, q: Any, at: Any, explore: Any, part: Any) -> Any:
            like = register(actions, q)
            x = lanes.load(q, at, like)
            if _doubles(form):
                x = x + lanes.load(q, at + (U(q.size) >> U(1)), like)
            mask = at_least(x, lanes.splat(like, LOWEST if explore else largest(x)))
            return U(NTH[(mask << U64(3)) + ((part * set_bits(mask)) >> _HALF)])

        return in_register

    def one_by_one(form: Any, actions: Any, q: Any, at: Any, explore: Any, part: Any) -> Any:
        m = len(actions)
        top = acting_value(form, q, at)
        for a in range(1, m):
            x = acting_value(form, q, at + U(a))
            top = x if x > top else top
        least = LOWEST if explore else top
        count = U64(0)
        for a in range(m):
            count += U64(acting_value(form, q, at + U(a)) >= least)
        wanted = (part * count) >> _HALF
        seen = action = U64(0)
        for a in range(m):
            seen += U64(acting_value(form, q, at + U(a)) >= least)
            action += U64(seen <= wanted)
        return action

    return one_by_one


@lanes.inlined
def learn_from(
    form: Any, actions: Any, plan: Any, q: Any, visits: Any, at: Any, reward: Any, row: Any, ended: Any, action: Any,
    beta: Any, epsilon: Any, stream: Any,
) -> Any:  # fmt: skip
    """Update the entry ``at`` of the table (of one of the two); returns whether the new value is finite.

    ``row`` is where the next state begins; β by visits is looked up here, any other is given.
    """
    like = register(actions, q)
    m = len(actions)
    own = other = U(0)
    if _doubles(form):
        half = U(q.size) >> U(1)
        stream[AGENT] += stream[AGENT + 1]
        own = half if mix(stream[AGENT]) >> U64(63) else U(0)
        other = half - own
    entry = own + at
    visits[entry] += 1
    n = visits[entry]
    if plan.beta_clock == BY_VISIT:
        beta = plan.betas[U(n + visits[other + at] if _doubles(form) else n) - U(1)]
    alpha = plan.scale
    if plan.omega != 0.0:
        alpha = plan.sizes[U(n)] if n < plan.sizes.size else plan.scale * float(n) ** -plan.omega
    value = 0.0
    if not (ended and plan.mask_terminal):
        value = _next_value(form, q, own, other, row, m, like, beta, action, epsilon)
    old = q[entry]
    new = old + alpha * (reward + plan.discount * value - old)
    q[entry] = new
    return abs(new) < np.inf


@lanes.inlined
def error_of(form: Any, world: Any, q: Any, optimum: Any) -> Any:
    """‖Q − Q*‖ over the pairs that exist; of two tables the mean counts."""
    largest = 0.0
    for i in range(world.pairs.size):
        at = U(world.pairs[U(i)])
        value = acting_value(form, q, at)
        value = 0.5 * value if _doubles(form) else value
        largest = max(largest, abs(value - optimum[at]))
    return largest
