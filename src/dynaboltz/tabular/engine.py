"""Learn: any number of seeds of one agent on one world, in compiled code on all cores, or step by step."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP
from dynaboltz.scalars import as_float
from dynaboltz.storage import cores
from dynaboltz.tabular import layout
from dynaboltz.tabular import state as states
from dynaboltz.tabular.checkpoint import Keeper
from dynaboltz.tabular.clocks import Clocks
from dynaboltz.tabular.outcome import Learned, Progress
from dynaboltz.tabular.session import Session
from dynaboltz.tabular.settings import Learning
from dynaboltz.tabular.stepping import Worlds
from dynaboltz.tabular.table import diverged

NEVER = np.iinfo(np.int64).max
MOST_SEEDS = 10**7


def learn(
    world: MDP | Callable[[], Any],
    config: Learning,
    *,
    seeds: int | Sequence[int] = 1,
    root: int = 0,
    optimum: npt.ArrayLike | None = None,
    marks: Sequence[int] | npt.NDArray[np.integer[Any]] = (),
    stop_error: float | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], object] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 60.0,
    resume: bool = False,
) -> Learned:
    """What each seed learns.

    Args:
        world: a model with a start distribution; or a function that makes a Gymnasium environment with Discrete spaces,
            whose episodes are each reset with a seed of their own. Observations may be MultiDiscrete or a Tuple of
            Discrete ones, and are then numbered, the last part fastest.
        config: the agent.
        seeds: how many (0, 1, …) or which. What a seed does depends on it and the root alone: not on the other seeds,
            the threads, the progress or the interruptions.
        root: of all randomness, at least 0.
        optimum: Q*, states × actions; what a pair that does not exist holds is not read.
        marks: steps, rising from 1 or later, at which each seed's error to the optimum is noted.
        stop_error: a seed ends at the first mark whose error is at most this.
        threads: by default as many as there are cores. Environments are stepped on one.
        progress: called with a :class:`Progress` several times a second.
        checkpoint: folder to save to, every ``checkpoint_seconds``, at the end, and when interrupted by a signal.
        checkpoint_seconds: at least 0.
        resume: go on from the newest checkpoint, to the same bits as without the interruption.

    Raises:
        UserError: a wrong argument.
        DivergedError: a value became infinite or NaN; the checkpoint from before stays.
    """
    if not isinstance(config, Learning):
        raise UserError(f"expected a Learning, such as agent('dbs'), got {config!r}")
    chosen = _seeds(seeds)
    base = _whole("root", root, 0)
    count = _threads(threads)
    interval = as_float(checkpoint_seconds)
    if interval is None or not interval >= 0:
        raise UserError(f"checkpoint_seconds must be a number of at least 0, got {checkpoint_seconds!r}")
    if progress is not None and not callable(progress):
        raise UserError(f"progress must be callable, got {progress!r}")
    if resume and checkpoint is None:
        raise UserError("resume goes on from a folder: pass checkpoint=folder too")
    model = world if isinstance(world, MDP) else None
    worlds = None if isinstance(world, MDP) else Worlds(world)
    shape = states.Shape.of(model) if model is not None else worlds.shape  # type: ignore[union-attr]
    wanted, stops, error = _optimum(optimum, shape), _marks(marks), -1.0
    if (wanted is None) != (stops.size == 0):
        raise UserError("optimum and marks belong together: the error to the optimum is noted at the marks")
    if stop_error is not None:
        found = as_float(stop_error)
        if found is None or not found >= 0 or wanted is None:
            raise UserError(f"stop_error must be a number of at least 0, with an optimum and marks, got {stop_error!r}")
        error = found
    identity = {
        "world": states.fingerprint(model) if model is not None else worlds.name,  # type: ignore[union-attr]
        **{name: str(value) for name, value in config.as_dict().items()},
        "seeds": _told(chosen), "root": str(base), "marks": repr(stops.tolist()), "stop_error": repr(stop_error),
        "optimum": "none" if wanted is None else hashlib.sha256(wanted.tobytes()).hexdigest(),
    }  # fmt: skip
    arrays = states.fresh(config, shape, chosen, base, stops.size)
    session = Session(
        config, shape, chosen, base, arrays, np.zeros(0) if wanted is None else wanted.ravel(),
        np.append(stops, NEVER), error, progress,
    )  # fmt: skip
    with Keeper(checkpoint, identity, session, interval, resume=resume) as keeper:
        if model is not None:
            _compiled(session, model, count, keeper)
        else:
            worlds.run(session, keeper)  # type: ignore[union-attr]
    return session.learned()


def _compiled(session: Session, model: MDP, threads: int, keeper: Keeper) -> None:
    """Take every seed to its end, in blocks of seeds and windows of steps that the threads share."""
    from dynaboltz.tabular import kernels
    from dynaboltz.tabular.compiled import Run

    config, shape = session.config, session.shape
    world, form, clocks = states.world_of(model, shape), states.form_of(config, shape), Clocks(config)
    run = Run(*(session.arrays[name] for name in states.ARRAYS))

    # No seed at all: it compiles, or loads what was compiled, which is no part of the speed that is told.
    kernels.advance(form, world, states.plan_of(config, clocks, 0, session.optimum, session.marks, 0.0), run, 0, 0, 0)
    session.start_clock()

    def advance(first: int, last: int) -> tuple[int, int]:
        counters = run.counters[first:last]
        total = int(counters[counters[:, layout.STATUS] == layout.RUNNING, layout.TOTAL].min())  # all in one window
        plan = states.plan_of(config, clocks, total, session.optimum, session.marks, session.stop_error)
        kernels.advance(form, world, plan, run, first, last, plan.beta_offset + clocks.window)
        return first, last

    ready: deque[tuple[int, int]] = deque(_blocks(session, clocks.window, threads))
    with closing(_worked(ready, advance, threads, keeper)) as blocks:  # closed: no thread is at work any more
        for block in blocks:
            status = run.counters[slice(*block), layout.STATUS]
            if (status == layout.DIVERGED).any():
                place = block[0] + int((status == layout.DIVERGED).argmax())
                raise diverged(config, shape, session.seeds[place], run.counters[place], run.q[place])
            if (status == layout.RUNNING).any():
                ready.append(block)
            session.notify()


def _worked(
    ready: deque[tuple[int, int]], work: Callable[[int, int], tuple[int, int]], threads: int, keeper: Keeper
) -> Generator[tuple[int, int], None, None]:
    """Work on the blocks that are ready until there are none; the caller makes them ready again."""
    if threads == 1 or len(ready) == 1:
        while ready and not keeper.asked:
            yield work(*ready.popleft())
            keeper.save_if_due()
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: set[Future[tuple[int, int]]] = set()
        while pending or (ready and not keeper.asked):
            while ready and len(pending) < 2 * threads and not keeper.asked and not keeper.due:
                pending.add(pool.submit(work, *ready.popleft()))
            done, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            if not pending:
                keeper.save_if_due()


def _blocks(session: Session, window: int, threads: int) -> list[tuple[int, int]]:
    """Ranges of seeds that still run and stand in the same window, about a window's steps together."""
    running = np.flatnonzero(session.arrays["counters"][:, layout.STATUS] == layout.RUNNING)
    if running.size == 0:
        return []
    at = session.arrays["counters"][running, layout.TOTAL] // window
    steps = min(window, session.config.episodes * session.config.max_steps)
    most = max(1, min(4 * window // steps, -(-running.size // (4 * threads))))
    blocks: list[tuple[int, int]] = []
    last = -1
    for place, stand in zip(running.tolist(), at.tolist(), strict=True):
        if blocks and blocks[-1][1] == place and place - blocks[-1][0] < most and stand == last:
            blocks[-1] = (blocks[-1][0], place + 1)
        else:
            blocks.append((place, place + 1))
        last = stand
    return blocks


def _seeds(seeds: object) -> tuple[int, ...]:
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        if _whole("seeds", seeds, 1) > MOST_SEEDS:
            raise UserError(f"seeds must be at most {MOST_SEEDS:,} in one call, got {seeds:,}; pass a list of which")
        return tuple(range(int(seeds)))
    if isinstance(seeds, str | bytes) or not isinstance(seeds, Sequence | np.ndarray):
        raise UserError(f"seeds must be a number of seeds, at least 1, or a list of them, got {seeds!r}")
    chosen = tuple(_whole("a seed", seed, 0) for seed in seeds)
    if not chosen or len(set(chosen)) < len(chosen):
        raise UserError(
            f"seeds must be at least one, each once, got {len(chosen)} of them, {len(set(chosen))} different"
        )
    return chosen


def _told(seeds: tuple[int, ...]) -> str:
    """Which seeds, as short as can be."""
    return f"0 to {len(seeds) - 1}" if seeds == tuple(range(len(seeds))) else repr(seeds)


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UserError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _threads(threads: int | None) -> int:
    if threads is not None:
        return _whole("threads", threads, 1)
    return cores()


def _marks(marks: object) -> npt.NDArray[np.int64]:
    if not isinstance(marks, Sequence | np.ndarray) or isinstance(marks, str | bytes):
        raise UserError(f"marks must be a list of steps, got {marks!r}")
    steps = np.array([_whole("a mark", mark, 1) for mark in marks], np.int64)
    if (np.diff(steps) <= 0).any():
        raise UserError(f"marks must rise, got {steps[:-1][np.diff(steps) <= 0][0]} before a smaller or equal one")
    return steps


def _optimum(optimum: npt.ArrayLike | None, shape: states.Shape) -> npt.NDArray[np.float64] | None:
    if optimum is None:
        return None
    values = np.array(optimum, np.float64)
    if values.shape != (shape.states, shape.actions):
        raise UserError(f"optimum must have shape ({shape.states}, {shape.actions}), got {values.shape}")
    if not np.isfinite(values[shape.legal]).all():
        state, action = np.argwhere(~np.isfinite(values) & shape.legal)[0]
        raise UserError(f"optimum must be finite, got {values[state, action]} at state {state}, action {action}")
    return values
