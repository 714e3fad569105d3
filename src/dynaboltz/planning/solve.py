"""Solve a finite MDP: sweep until the certificate, not the step, is within the error that was asked for.

>>> from dynaboltz.mdp import build_world
>>> from dynaboltz.planning import solve
>>> solution = solve(build_world("chain(states=4)"), discount=0.5, error=1e-9)
>>> solution.policy.tolist(), solution.values.round(6).tolist(), solution.converged
([1, 1, 1, -1], [0.25, 0.5, 1.0, 0.0], True)
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP
from dynaboltz.planning import checkpoint as disk
from dynaboltz.planning.method import Method, Task
from dynaboltz.planning.methods import parse_method
from dynaboltz.planning.outcome import Progress, Solution, bits, finish, remaining
from dynaboltz.planning.problem import LARGEST_VALUE, Floats, Problem
from dynaboltz.planning.states import State
from dynaboltz.planning.target import target_of
from dynaboltz.scalars import as_float
from dynaboltz.storage import Store, graceful
from dynaboltz.summaries import Dynamic, Fixed, Summary, parse_summary


def solve(
    mdp: MDP,
    *,
    discount: float,
    summary: Summary | str = "hard_max",
    method: Method | str = "auto",
    error: float = 1e-6,
    max_sweeps: int = 1_000_000,
    initial: npt.ArrayLike | None = None,
    trace: bool | Literal["values"] = False,
    optimum: npt.ArrayLike | None = None,
    progress: Callable[[Progress], object] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
    threads: int | None = None,
) -> Solution:
    """The values and the greedy policy of a model, with what is proven of them.

    The truth that the certificate speaks of is the model with its probabilities and rewards exactly as they are stored.
    ``error`` is the distance to V*, in the sup norm; for a summary whose sharpness stays finite and whose sweeps are
    proven to contract it is the distance to the summary's own fixed point.

    Args:
        mdp: the model.
        discount: γ in [0, 1]; 1 only where every policy reaches a terminal state.
        summary: what turns action values into a state value, or its text form; β is indexed from sweep 1.
        method: a method or its text form, see ``METHODS``. ``auto`` is ``jacobi`` for any summary but the maximum.
        error: the error to prove, above 0.
        max_sweeps: sweeps after which to give up.
        initial: V_0, zero by default; terminal states count as 0.
        trace: note every sweep; ``"values"`` keeps the values too. Method ``jacobi`` only.
        optimum: V*, for the trace's loss.
        progress: called with a :class:`Progress` after every step.
        checkpoint: folder to keep the last two states in: one every ``checkpoint_seconds``, one when a signal asks for
            an end (SIGINT, SIGTERM, SIGHUP, SIGUSR1), and one at the end.
        checkpoint_seconds: at least 0.
        resume: go on from ``checkpoint``, to the same bits as without the interruption.
        threads: by default as many as there are cores; the result does not depend on it.

    Raises:
        UserError: a wrong argument; or a question without an answer, such as γ = 1 where a policy need not end.
        StorageError: a checkpoint cannot be saved, or none is whole.
    """
    if not isinstance(mdp, MDP):
        raise UserError(f"expected an MDP, got {type(mdp).__name__}; dynaboltz.mdp.load reads one")
    gamma = _number("discount", discount, 0.0, 1.0)
    wanted = _number("error", error, 5e-324, LARGEST_VALUE)
    most = _whole("max_sweeps", max_sweeps)
    interval = _number("checkpoint_seconds", checkpoint_seconds, 0.0, math.inf)
    chosen = _summary(summary)
    way = _method(method, chosen, trace)
    path = _path(checkpoint, resume)
    values = _vector("initial", initial, mdp) if initial is not None else np.zeros(mdp.n_states)
    known = None if optimum is None else _vector("optimum", optimum, mdp)
    if known is not None and not trace:
        raise UserError("optimum is for the trace; pass trace=True")
    if progress is not None and not callable(progress):
        raise UserError(f"progress must be callable, got {progress!r}")
    if threads is not None:
        _whole("threads", threads)
    with Problem(mdp, gamma, threads=threads) as problem:
        task = Task(
            problem, chosen, target_of(problem, chosen), wanted,
            traced=bool(trace), keep_values=trace == "values", optimum=known,
        )  # fmt: skip
        task.parameters = problem.parameters(chosen.operator)
        state = way.start(task, values)
        if path is None:
            return _run(task, way, state, most, progress, None, interval)
        settings = {
            "model": disk.fingerprint(mdp), "discount": gamma, "summary": chosen, "method": way,
            "initial": hashlib.sha256(bits(values)).hexdigest(), "trace": trace,
        }  # fmt: skip
        with disk.opened(path, settings) as store:
            if resume:
                state = disk.load(store, state, mdp)
            return _run(task, way, state, most, progress, store, interval)


def _run(
    task: Task,
    method: Method,
    state: State,
    most: int,
    progress: Callable[[Progress], object] | None,
    store: Store | None,
    interval: float,
) -> Solution:
    began = time.perf_counter() - state.seconds
    saved = time.perf_counter()
    history: list[tuple[float, float]] = []
    reason = None
    with graceful(store is not None) as asked:
        while (reason := _why_stop(task, state, most)) is None:
            method.advance(task, state, most - state.sweeps)
            now = time.perf_counter()
            state.seconds = now - began
            if store is not None and (asked or now - saved >= interval):
                disk.save(store, state)
                saved = time.perf_counter()
            if asked:
                break
            if progress is not None:
                if 0.0 < state.bound < math.inf:
                    history.append((state.seconds, state.bound))
                left = remaining(history, task.error)
                try:
                    progress(Progress(state.sweeps, state.bound, task.error, state.seconds, left))
                except BaseException:
                    if store is not None:
                        disk.save(store, state)
                    raise
    solution = finish(task, method, state, reason or "")
    if store is not None:
        disk.save(store, state)
    return solution


def _why_stop(task: Task, state: State, most: int) -> str | None:
    """The reason to stop, or None to go on."""
    if state.bound <= task.error:
        return "reached"
    if state.bound < math.inf and state.bound - state.allowance <= state.allowance:
        return f"rounding in float64 may be as large as {state.allowance:.3g}"
    if state.stuck:
        return "another sweep changes nothing"
    if state.sweeps >= most:
        return f"max_sweeps = {most} sweeps are done"
    return None


def _number(name: str, value: object, low: float, high: float) -> float:
    number = as_float(value)
    if number is None or not low <= number <= high:
        least = "above 0" if low == 5e-324 else f"from {low:g}"
        raise UserError(f"{name} must be a number {least} to {high:g}, got {value!r}")
    return number


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise UserError(f"{name} must be an integer of at least 1, got {value!r}")
    return int(value)


def _summary(summary: object) -> Summary:
    if isinstance(summary, str):
        return parse_summary(summary)
    if not isinstance(summary, Fixed | Dynamic):
        raise UserError(f"summary must be a Fixed or Dynamic summary or its text, got {summary!r}")
    return summary


def _method(method: object, summary: Summary, trace: object) -> Method:
    if trace not in (False, True, "values") or (isinstance(trace, int) and not isinstance(trace, bool)):
        raise UserError(f"trace must be True, False or 'values', got {trace!r}")
    if not isinstance(method, str | Method):
        raise UserError(f"method must be a method or its text, such as 'auto', got {method!r}")
    chosen = parse_method(method, summary)
    if trace and not chosen.any_summary:
        raise UserError(f"a trace is of method 'jacobi', sweep by sweep; method {chosen.name!r} has none")
    return chosen


def _path(checkpoint: object, resume: object) -> Path | None:
    if not isinstance(resume, bool):
        raise UserError(f"resume must be True or False, got {resume!r}")
    if checkpoint is None:
        if resume:
            raise UserError("resume needs the checkpoint to go on from; pass checkpoint=path")
        return None
    if not isinstance(checkpoint, str | Path):
        raise UserError(f"checkpoint must be a path, got {checkpoint!r}")
    path = Path(checkpoint)
    if resume and not path.exists():
        raise UserError(f"there is no checkpoint {path} to resume; leave out resume to start from the beginning")
    if not path.parent.is_dir():
        raise UserError(f"the folder of checkpoint {path} does not exist")
    if path.exists() and not path.is_dir():
        raise UserError(f"checkpoint {path} is a file; name a folder, which is made if it is not there")
    return path


def _vector(name: str, values: npt.ArrayLike, mdp: MDP) -> Floats:
    try:
        vector = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{name} must be numbers, one a state") from None
    if vector.shape != (mdp.n_states,):
        raise UserError(f"{name} must have the shape ({mdp.n_states},), one value a state, got {vector.shape}")
    bad = ~(np.abs(vector) <= LARGEST_VALUE)
    if bad.any():
        state = int(bad.argmax())
        raise UserError(
            f"{name} must be finite and of a size up to {LARGEST_VALUE:g}, "
            f"got {vector[state]} in {mdp.state_name(state)}"
        )
    vector[mdp.terminal] = 0.0
    return vector
