"""The compiled engine: one seed's steps, for a range of seeds, without the interpreter lock.

All that a seed is lies in its rows of the arrays of ``Run``, so that it can stop at any step and go on, and what it
does depends on no other seed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numba import njit

from dynaboltz.operators import lanes
from dynaboltz.operators.compiled import SOURCES
from dynaboltz.tabular.compiled import (
    Plan,
    Run,
    U,
    World,
    borrowed,
    carries,
    decide,
    error_of,
    learn_from,
    mix,
    pick,
    uncounted,
)
from dynaboltz.tabular.layout import (
    ACTION,
    AGENT,
    BY_EPISODE_STEP,
    BY_STEP,
    BY_VISIT,
    DIVERGED,
    EPISODE,
    FINISHED,
    MARK,
    REACHED,
    RUNNING,
    STATE,
    STATUS,
    STEP,
    TOTAL,
    WORLD,
)

_INLINED = ("compiled", "kernels", "layout", "registers", "rows", "rules")
_OWN = b"".join(Path(__file__).with_name(f"{name}.py").read_bytes() for name in _INLINED)
KEY = SOURCES + hashlib.sha256(_OWN).hexdigest()
"""Digest of all code that the kernel consists of, for its cache key."""


@lanes.inlined
def _epsilon(plan: Any, episode: Any, total: Any) -> Any:
    """ε of the choice after ``total`` steps."""
    t = total - plan.epsilon_offset if plan.epsilon_clock == BY_STEP else episode
    return plan.epsilons[U(t) if plan.epsilons.size > 1 else U(0)]


@lanes.inlined
def _beta(plan: Any, episode: Any, step: Any, total: Any) -> Any:
    """β of an update, counted from 0, unless it is by visits."""
    t = episode
    if plan.beta_clock == BY_STEP:
        t = total - plan.beta_offset
    elif plan.beta_clock == BY_EPISODE_STEP:
        t = step
    return plan.betas[U(t) if plan.betas.size > 1 and plan.beta_clock != BY_VISIT else U(0)]


@lanes.inlined
def _advance(form: Any, world: Any, plan: Any, run: Any, i: Any, until: Any) -> None:  # noqa: PLR0912, PLR0915
    """One seed, up to ``until`` steps in all, or to its end."""
    q, visits, stream, counters = run.q[i], run.visits[i], run.streams[i], run.counters[i]
    m = len(world.actions)
    episode, step, total, mark = counters[EPISODE], counters[STEP], counters[TOTAL], counters[MARK]
    state, carried, gained = U(counters[STATE]), U(counters[ACTION]), run.gained[i]
    status = counters[STATUS]
    words, increment = stream[AGENT], stream[AGENT + 1]
    while status == RUNNING and total < until:
        if step == 0:
            if episode == plan.episodes:
                status = FINISHED
                break
            choice = U(0)
            if world.start.size > 1:
                stream[WORLD] += stream[WORLD + 1]
                choice = pick(world.start_cumulative, U(0), U(world.start.size), mix(stream[WORLD]))
            state, gained = U(world.start[choice]), 0.0
            if carries(form):
                words += increment
                epsilon = _epsilon(plan, episode, total)
                carried = decide(form, world.actions, q, state, epsilon, plan.random_ties, mix(words))
        stop = min(until, plan.marks[U(mark)])
        ended = False
        over = False
        while total < stop and not over:
            if carries(form):
                action = carried
            else:
                words += increment
                epsilon = _epsilon(plan, episode, total)
                action = decide(form, world.actions, q, state, epsilon, plan.random_ties, mix(words))
            at = state * U(m) + action
            outcome, last = U(world.pointer[at]), U(world.pointer[at + U(1)])
            if last - outcome > U(1):
                stream[WORLD] += stream[WORLD + 1]
                outcome = pick(world.cumulative, outcome, last, mix(stream[WORLD]))
            reward, target = world.reward[outcome], world.next_state[outcome]
            ended = target < 0
            state = U(~target if ended else target)
            beta = _beta(plan, episode, step, total)
            total += 1
            step += 1
            following = _epsilon(plan, episode, total)
            if carries(form):
                carried = U(0)
                if not ended:
                    words += increment
                    carried = decide(form, world.actions, q, state, following, plan.random_ties, mix(words))
            stream[AGENT] = words
            finite = learn_from(
                form, world.actions, plan, q, visits, at, reward, state * U(m), ended, carried, beta, following, stream
            )
            words = stream[AGENT]
            gained += reward
            over = ended or step == plan.max_steps or not finite
            if not finite:
                status = DIVERGED
                state, carried = at // U(m), at % U(m)
        if over and status == RUNNING:
            run.steps[i, episode], run.returns[i, episode] = step, gained
            episode += 1
            step = 0
        if total == plan.marks[U(mark)] and status == RUNNING:
            run.errors[i, mark] = error_of(form, world, q, plan.optimum)
            if run.errors[i, mark] <= plan.stop_error:
                status = REACHED
            mark += 1
    if status == RUNNING and step == 0 and episode == plan.episodes:
        status = FINISHED
    stream[AGENT] = words
    counters[EPISODE], counters[STEP], counters[TOTAL], counters[MARK] = episode, step, total, mark
    counters[STATE], counters[ACTION], counters[STATUS] = state, carried, status
    run.gained[i] = gained


def _build(key: str) -> tuple[Any, Any, Any]:
    @njit(nogil=True, cache=True, error_model="numpy")
    def advance(form: Any, world: Any, plan: Any, run: Any, first: Any, last: Any, until: Any) -> None:
        key  # noqa: B018  (in the cache key)
        world = World(
            uncounted(world.actions), borrowed(world.pointer), borrowed(world.next_state), borrowed(world.cumulative),
            borrowed(world.reward), borrowed(world.start), borrowed(world.start_cumulative), borrowed(world.pairs),
        )  # fmt: skip
        plan = Plan(
            plan.discount, plan.episodes, plan.max_steps, plan.scale, plan.omega, borrowed(plan.sizes),
            plan.random_ties, plan.mask_terminal, plan.beta_clock, borrowed(plan.betas), plan.beta_offset,
            plan.epsilon_clock, borrowed(plan.epsilons), plan.epsilon_offset, borrowed(plan.optimum),
            borrowed(plan.marks), plan.stop_error,
        )  # fmt: skip
        form = uncounted(form)
        run = Run(
            borrowed(run.q), borrowed(run.visits), borrowed(run.streams), borrowed(run.counters),
            borrowed(run.gained), borrowed(run.steps), borrowed(run.returns), borrowed(run.errors),
        )  # fmt: skip
        for i in range(first, last):
            _advance(form, world, plan, run, i, until)

    @njit(nogil=True, cache=True, error_model="numpy")
    def choose(form: Any, actions: Any, q: Any, state: Any, epsilon: Any, random_ties: Any, stream: Any) -> Any:
        key  # noqa: B018
        stream[AGENT] += stream[AGENT + 1]
        return decide(form, actions, q, U(state), epsilon, random_ties, mix(stream[AGENT]))

    @njit(nogil=True, cache=True, error_model="numpy")
    def update(
        form: Any, actions: Any, plan: Any, q: Any, visits: Any, state: Any, action: Any, reward: Any, target: Any,
        ended: Any, carried: Any, beta: Any, epsilon: Any, stream: Any,
    ) -> Any:  # fmt: skip
        key  # noqa: B018
        m = len(actions)
        return learn_from(
            form, actions, plan, q, visits, U(state) * U(m) + U(action), reward, U(target) * U(m), ended, U(carried),
            beta, epsilon, stream,
        )  # fmt: skip

    return advance, choose, update


advance, choose, update = _build(KEY)
"""``advance(form, world, plan, run, first, last, until)`` takes the seeds ``first:last`` on to ``until`` steps each.

``choose`` is one choice, and ``update`` one update, for those who step a world themselves."""
