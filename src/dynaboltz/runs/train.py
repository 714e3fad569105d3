"""The loop: act, observe, learn; rows, evaluations and checkpoints when they are due, and an end when it is asked for.

What happens at a step depends on the step alone. Checkpoints by the clock, progress and signals fall between two steps
and change nothing of what follows, so that a run comes to the same however often it is interrupted or looked at.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dynaboltz.errors import DynaboltzError, StorageError
from dynaboltz.files import write_atomically
from dynaboltz.runs.config import RunConfig
from dynaboltz.runs.digest import digest
from dynaboltz.runs.episodes import play
from dynaboltz.runs.layout import Home, home_of, read_config
from dynaboltz.runs.progress import Progress, Rate, Watch, memory_in_use
from dynaboltz.runs.rows import note
from dynaboltz.runs.session import RunWarning, Session, next_evaluation
from dynaboltz.storage import Asked, graceful, locked

LOOK_SECONDS = 0.1
"""About how long the loop runs before it looks at the clock."""

TELL_SECONDS = 1.0
"""Seconds between reports of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run came to, or where it stands."""

    folder: str
    finished: bool
    step: int
    episodes: int
    mean_return: float
    """Of the last 100 episodes of training; NaN without one."""
    evaluation: float
    """Mean return of the last evaluation; NaN without one."""
    best: float
    best_step: int
    weights: str
    """SHA-256 of the weights."""
    rows: str
    """SHA-256 of the rows, which depend on the settings alone."""


class Stopped(Exception):  # noqa: N818 - not an error: the end was asked for
    """Work that can be done again from its beginning was left."""


def train(config: RunConfig, root: Path = Path("runs"), *, force: bool = False, watch: Watch | None = None) -> Result:
    """Do the run that ``config`` describes, or what is left of it; a finished one is not run again unless ``force``.

    SIGINT, SIGTERM, SIGHUP and SIGUSR1 save a checkpoint and end the process, or raise where the caller handles them;
    a second signal acts at once.

    Raises:
        UserError: the settings are wrong, too large for the memory, or the folder is in use.
        StorageError: the disk is full or faulty.
        DynaboltzError: the environment failed, or a number is not finite; the last good checkpoint stays.
    """
    return _run(config, home_of(config, root), force=force, watch=watch)


def resume(folder: Path, *, watch: Watch | None = None) -> Result:
    """Go on with the run in ``folder``, to the same bits as without the interruption."""
    return _run(read_config(folder), Home(folder), force=False, watch=watch)


def _run(config: RunConfig, home: Home, *, force: bool, watch: Watch | None) -> Result:
    with locked(home.folder):
        if force:
            home.clear()
        record = home.record()
        if record is not None:
            return _result_of(home, record)
        home.prepare(config)
        with graceful() as asked, Session(config, home) as session:
            return Loop(session, asked, watch).run()


def _result_of(home: Home, record: dict[str, Any]) -> Result:
    """The result from its file, where NaN is null."""
    found: dict[str, Any] = {name: record.get(name) for name in Result.__slots__}
    found = {name: math.nan if value is None else value for name, value in found.items()}
    return Result(**found | {"folder": str(home.folder), "finished": True})


class Loop:
    """A session being worked off."""

    def __init__(self, session: Session, asked: Asked, watch: Watch | None) -> None:
        self.session, self.asked, self.watch = session, asked, watch
        self.config, self.home, self.marks = session.config, session.home, session.marks
        self.look_steps = self.config.n_envs
        self.told = -math.inf
        self.phase = "training"
        self.measured: dict[str, float] = {}
        self.rate = Rate(session.step)

    def run(self) -> Result:
        """Go to the end, or to where the end is asked for."""
        session = self.session
        try:
            while not self.asked:
                self._due()
                if session.step >= self.config.steps:
                    return self._end()
                self._stretch()
                self._save_if_due()
                self._tell()
        except Stopped:
            pass
        except Exception as fault:
            self._failed(fault)
            raise
        return self._interrupted()

    def _stretch(self) -> None:
        """Step until something is due, or for about as long as it takes until the clock is to be looked at."""
        session, asked = self.session, self.asked
        agent, envs = session.agent, session.envs
        act, observe, advance, n = agent.act, agent.observe, envs.step, envs.n
        step = begun = agent.steps
        until = min(self._next(), begun + self.look_steps)
        clock = time.perf_counter()
        while step < until:
            action = act()
            found = advance(action)
            observe(action, found)
            step += n
            if found.finished:
                session.finished(found.finished, step)
            if asked.signal is not None:
                break
        seconds = max(time.perf_counter() - clock, 1e-6)
        pace = (step - begun) / seconds
        self.look_steps = max(n, min(int(pace * LOOK_SECONDS), 2 * self.look_steps))

    def _next(self) -> int:
        """The step at which something is due."""
        marks, config = self.marks, self.config
        due = [config.steps, marks.next_log]
        if marks.next_evaluation >= 0:
            due.append(marks.next_evaluation)
        if config.saving.period_steps:
            due.append((self.session.saved_step or 0) + config.saving.period_steps)
        return min(mark for mark in due if mark > self.session.step)

    def _due(self) -> None:
        """What belongs to this step: the learner's state, then an evaluation. A mark moves when its row is written."""
        session, marks, config = self.session, self.marks, self.config
        if session.step >= marks.next_log and marks.next_log >= 0:
            session.agent.settle()
            agent = session.agent
            self.measured = agent.measurements()
            counts = {"updates": agent.updates, "syncs": agent.syncs, "episodes": marks.episodes}
            session.emit({"kind": "learning", "step": session.step, **counts, **self.measured})
            period = config.log_period_steps
            after = min((session.step // period + 1) * period, config.steps)
            marks.next_log = after if after > session.step else -1
        if session.step >= marks.next_evaluation >= 0:
            self._evaluate()
            marks.next_evaluation = next_evaluation(config, session.step)

    def _evaluate(self) -> None:
        session, marks, settings = self.session, self.marks, self.config.evaluation
        session.agent.settle()
        with self._at("evaluating"):
            score = play(
                self.config.env, session.agent, episodes=settings.episodes, epsilon=settings.epsilon,
                max_steps=settings.max_steps, key=(self.config.seed, session.step), tick=self._tick,
            )  # fmt: skip
            row = score.row()
            marks.last = row["mean"]
            best = not marks.best >= marks.last  # the first is better than none
            if best:
                marks.best, marks.best_step = marks.last, session.step
                self._guarded(lambda: session.keep_weights("best", marks.last))
        session.emit({"kind": "evaluation", "step": session.step, **row, "best": best})

    def _tick(self) -> None:
        if self.asked.signal is not None:
            raise Stopped
        self._tell()

    def _save_if_due(self) -> None:
        saving, session = self.config.saving, self.session
        by_steps = saving.period_steps and session.step >= (session.saved_step or 0) + saving.period_steps
        by_clock = saving.period_seconds and time.monotonic() >= session.saved_at + saving.period_seconds
        if by_steps or by_clock:
            with self._at("saving"):
                self._guarded(session.save)
            session.saved_step, session.saved_at = session.step, time.monotonic()  # a failed one is tried when next due

    def _guarded(self, work: Callable[[], None]) -> None:
        """A save that can be made up for: the run says that it failed, and goes on."""
        try:
            work()
        except StorageError as fault:
            note(self.home.journal, "not saved", step=self.session.step, reason=str(fault))
            warnings.warn(f"{fault}\n  the run goes on", RunWarning, stacklevel=3)

    def _end(self) -> Result:
        """The last row, the last checkpoint and the result."""
        session, marks = self.session, self.marks
        weights = digest(dict(session.agent.weights()))
        with self._at("saving"):
            if not marks.ended:
                session.emit({
                    "kind": "end", "step": session.step, "episodes": marks.episodes, "updates": session.agent.updates,
                    "evaluation": marks.last, "best": marks.best, "best_step": marks.best_step, "weights": weights,
                })  # fmt: skip
                marks.ended = True
                session.save()
            session.keep_weights("last", marks.last)
            result = self._result(weights, finished=True)
            record = {name: None if value != value else value for name, value in asdict(result).items()}  # noqa: PLR0124
            del record["folder"]
            write_atomically(self.home.result, json.dumps(record, indent=2) + "\n")
        note(self.home.journal, "end", step=session.step)
        self.phase = "done"
        self._tell(always=True)
        return result

    def _interrupted(self) -> Result:
        """Save and leave."""
        session = self.session
        note(self.home.journal, "signal", name=self.asked.name, step=session.step)
        with self._at("saving"):
            session.save()
        return self._result(digest(dict(session.agent.weights())), finished=False)

    def _result(self, weights: str, *, finished: bool) -> Result:
        marks = self.marks
        self.session.rows.sync()
        return Result(
            folder=str(self.home.folder), finished=finished, step=self.session.step, episodes=marks.episodes,
            mean_return=marks.mean, evaluation=marks.last, best=marks.best, best_step=marks.best_step,
            weights=weights, rows=hashlib.sha256(self.home.rows.read_bytes()).hexdigest(),
        )  # fmt: skip

    def _failed(self, fault: Exception) -> None:
        """The last row says what went wrong. The checkpoint from before stays as it is, and resume starts from it."""
        message = str(fault) if isinstance(fault, DynaboltzError) else f"{type(fault).__name__}: {fault}"
        step = self.session.step
        note(self.home.journal, "error", step=step, message=message)
        with contextlib.suppress(StorageError):  # the disk may be what went wrong
            self.session.emit({"kind": "error", "step": step, "message": message})
            self.session.rows.sync()

    @contextlib.contextmanager
    def _at(self, phase: str) -> Iterator[None]:
        before, self.phase = self.phase, phase
        self._tell(always=True)
        try:
            yield
        finally:
            self.phase = before

    def _tell(self, *, always: bool = False) -> None:
        """Show how it stands, about once a second; whoever watches and fails is not told again."""
        now = time.monotonic()
        if now < self.told + TELL_SECONDS and not always:
            return
        self.told = now
        self.session.rows.flush()
        if self.watch is None:
            return
        config, marks = self.config, self.marks
        progress = Progress(
            name=f"{config.env} {config.name} seed {config.seed}", phase=self.phase, step=self.session.step,
            steps=config.steps, rate=self.rate(self.session.step), episodes=marks.episodes, recent=marks.mean,
            evaluated=marks.last, beta=self.measured.get("beta", math.nan), c=self.measured.get("c", math.nan),
            memory=memory_in_use(),
        )  # fmt: skip
        try:
            self.watch(progress)
        except Exception as fault:  # whatever a caller's function may raise
            self.watch = None
            warnings.warn(f"the run is no longer watched: {fault!r}; it goes on", RunWarning, stacklevel=2)
