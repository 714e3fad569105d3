"""A study at work: every run that is not finished is submitted, looked after and, if killed or hung, begun again.

The folders of the runs are the truth: a run is done when its result is there. So a driver that is killed at any moment,
its machine with it, loses nothing: the next one does what is left, and a run goes on from its own checkpoint.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynaboltz.errors import UserError
from dynaboltz.runs import RunConfig
from dynaboltz.storage import Asked, graceful, locked
from dynaboltz.studies.cost import BASE_BYTES, Sizes
from dynaboltz.studies.executors import Ended, Executor, Job
from dynaboltz.studies.ledger import Ledger, read_ledger
from dynaboltz.studies.place import IN_USE, Place, read_beat, stood_in_line
from dynaboltz.studies.study import label

TRIES = 4
"""How often a run is begun without coming further, before it is given up."""

FURTHER = 0.01
"""Share of a run's steps that counts as further."""

SILENT_SECONDS = 60.0
"""A run that has said nothing for so long hangs; it speaks every second, even while it evaluates."""

START_SECONDS = 300.0
"""As long as the first word, and the first step, may take: libraries are imported and kernels compiled before it."""

STOP_SECONDS = 10.0
"""How long runs that were asked to stop may save before they are killed, those on a queue excepted."""

BUSY_SECONDS = 2.0
"""Between two tries of a run whose folder another process holds."""

LOOK_SECONDS = 0.05


@dataclass(slots=True)
class Task:
    """One run of the study, and how it stands."""

    config: RunConfig
    state: str = "waiting"
    """waiting, running, done, failed"""
    tries: int = 0
    """Since it last came further."""
    begun: int = 0
    """How often its process was begun by this driver."""
    furthest: int = 0
    handle: str = ""
    size: int = 0
    beat: dict[str, Any] = field(default_factory=dict)
    heard_at: float = 0.0
    line: float = 0.0
    """Seconds for which its process had stood in line for a core when it was heard."""
    not_before: float = 0.0
    hung: bool = False
    fault: str = ""
    code: int = 0
    record: dict[str, Any] | None = None
    found: bool = False
    """Whether it was finished before this driver began."""

    @property
    def step(self) -> int:
        """As far as is known."""
        return self.config.steps if self.state == "done" else int(self.beat.get("step", self.furthest) or 0)


Look = Callable[[Sequence[Task], str], None]
"""Whoever wants to know how the study stands: all tasks, and what has just happened, or nothing."""


class Driver:
    """The one process that works a study off."""

    def __init__(
        self, configs: Sequence[RunConfig], place: Place, make: Callable[[], Executor], *, jobs: int | None = None,
        tries: int = TRIES, silent_seconds: float = SILENT_SECONDS, look: Look | None = None,
        every: Sequence[RunConfig] = (),
    ) -> None:  # fmt: skip
        """``make`` is called when there is something to do; ``every`` are the study's runs, if ``configs`` are some."""
        self.tasks = [Task(config) for config in configs]
        self.every = every or configs
        self.place, self.make, self.jobs = place, make, jobs
        self.tries, self.silent_seconds, self.look = tries, silent_seconds, look
        self.sizes = Sizes()

    def run(self) -> list[Task]:
        """Work all off; the tasks as they then stand. A signal that asks for an end has the runs save and leave."""
        with locked(self.place.folder), Ledger(self.place.ledger) as self.ledger, graceful() as asked:
            self.place.prepare()
            handles = self._find_finished()
            try:
                if any(task.state != "done" for task in self.tasks):
                    self._work(asked, handles)
            finally:
                self.place.write_results(self.every)
        return self.tasks

    def _work(self, asked: Asked, handles: Mapping[str, str]) -> None:
        """Until all is done, or the end is asked for."""
        self.executor = self.make()
        try:
            self._adopt(handles)
            while not asked and any(task.state in ("waiting", "running") for task in self.tasks):
                self._fill()
                self._poll()
                self._tell("")
                time.sleep(LOOK_SECONDS)
            if asked and not self.executor.outlives:
                self._stop()
        finally:
            self.executor.close()

    def _find_finished(self) -> dict[str, str]:
        """Ask the folders of the runs; what the ledger knows of jobs that may still be in a queue."""
        handles: dict[str, str] = {}
        told: set[str] = set()
        for entry in read_ledger(self.place.ledger):
            if entry["event"] == "submitted":
                handles[entry["run"]] = str(entry.get("job", ""))
            elif entry["event"] == "done":
                told.add(entry["run"])
        for task in self.tasks:
            run = task.config.identity
            task.record = self.place.finished(task.config)
            if task.record is not None:
                task.state, task.found = "done", True
                if run not in told:
                    self.ledger.write("done", run, name=label(task.config), note="found finished")
        self._tell("")
        return handles

    def _adopt(self, handles: Mapping[str, str]) -> None:
        """Take up the jobs that an earlier driver has left in a queue."""
        for task in self.tasks:
            run = task.config.identity
            if (
                task.state == "waiting"
                and self.executor.outlives
                and run in handles
                and self.executor.adopt(handles[run])
            ):
                task.state, task.handle, task.heard_at = "running", handles[run], time.monotonic()
                self.ledger.write("adopted", run, job=task.handle)

    def _fill(self) -> None:
        """Submit as many as there is room for, in their order."""
        now = time.monotonic()
        waiting = deque(task for task in self.tasks if task.state == "waiting" and task.not_before <= now)
        while waiting:
            try:
                if not self._room(waiting[0]):
                    return
                self._submit(waiting[0])
            except UserError as fault:  # no such environment, or more memory than any machine has
                self._fail(waiting[0], str(fault), fault.exit_code)
            waiting.popleft()

    def _room(self, task: Task) -> bool:
        running = [one for one in self.tasks if one.state == "running"]
        if self.jobs is not None and len(running) >= self.jobs:
            return False
        threads = sum(one.config.agent.threads for one in running)
        if running and threads + task.config.agent.threads > self.executor.cores:
            return False
        task.size = task.size or BASE_BYTES + self.sizes(task.config)
        left = sum(max(0, one.size - int(one.beat.get("memory", 0))) for one in running)
        return self.executor.room(self._job(task), left)

    def _job(self, task: Task) -> Job:
        config = task.config
        return Job(
            name=label(config), request=self.place.request(config), log=self.place.log(config),
            threads=config.agent.threads, size=task.size,
        )  # fmt: skip

    def _submit(self, task: Task) -> None:
        self.place.ask(task.config)
        task.beat, task.hung = {}, False
        task.handle = self.executor.submit(self._job(task))
        task.state, task.heard_at = "running", time.monotonic()
        task.begun += 1
        self.ledger.write("submitted", task.config.identity, name=label(task.config), job=task.handle, begun=task.begun)

    def _poll(self) -> None:
        """Take up what the runs have said, and what has become of them."""
        for task in self.tasks:
            if task.state == "running":
                ended = self.executor.poll(task.handle)
                self._hear(task)
                if ended is not None:
                    self._ended(task, ended)
                elif self._hangs(task):
                    task.hung = True
                    self.executor.cancel(task.handle)
                    task.heard_at = time.monotonic()  # it is killed again only if that does nothing

    def _hear(self, task: Task) -> None:
        beat = read_beat(self.place.beat(task.config))
        if beat is not None and (beat.get("count"), beat.get("pid")) != (task.beat.get("count"), task.beat.get("pid")):
            task.beat, task.heard_at, task.line = beat, time.monotonic(), stood_in_line(beat)

    def _hangs(self, task: Task) -> bool:
        if not task.beat and not self.executor.prompt:
            return False  # it may wait in a queue
        spoken = task.beat and task.beat.get("phase") != "starting"
        silent = time.monotonic() - task.heard_at - (self.silent_seconds if spoken else START_SECONDS)
        return silent > 0 and silent > stood_in_line(task.beat) - task.line

    def _ended(self, task: Task, ended: Ended) -> None:
        """Its process is gone: done, failed for good, or to be begun again."""
        task.handle = ""
        task.record = self.place.finished(task.config)
        beat, run, name = task.beat, task.config.identity, label(task.config)
        if task.record is not None:
            task.state = "done"
            steps, seconds = task.config.steps - int(beat.get("first", 0)), float(beat.get("seconds", 0.0))
            self.ledger.write("done", run, name=name, steps=steps, seconds=seconds, rows=task.record.get("rows"))
            self._tell(f"{name} is done")
            return
        if ended.code == IN_USE:
            task.state, task.not_before = "waiting", time.monotonic() + BUSY_SECONDS
            return
        if beat.get("phase") == "failed":
            self._fail(task, str(beat.get("fault", "")), int(beat.get("code", 1)))
        elif ended.code in (1, 2):
            self._fail(task, f"{_last_line(self.place, task) or ended.how}\n  see {self.place.log(task.config)}", 1)
        else:
            self._again(task, self._how(task, ended))

    def _how(self, task: Task, ended: Ended) -> str:
        if task.hung:
            return f"said nothing for {self.silent_seconds:.0f} s and was ended"
        if ended.code is None:
            return ended.how
        number = -ended.code if ended.code < 0 else ended.code - 128
        name = signal.Signals(number).name if number in signal.valid_signals() else f"code {ended.code}"
        return f"was ended by {name}{ended.how and f' ({ended.how})'}"

    def _again(self, task: Task, how: str) -> None:
        name, run, step = label(task.config), task.config.identity, int(task.beat.get("step", 0) or 0)
        further = step >= task.furthest + max(1.0, FURTHER * task.config.steps)
        task.tries = 1 if further else task.tries + 1
        task.furthest = max(task.furthest, step)
        if task.tries >= self.tries:
            self._fail(task, f"its process {how}, {task.tries} times at step {step:,} or before", 1)
            return
        self.ledger.write("killed", run, name=name, how=how, step=step)
        task.state = "waiting"
        self._tell(f"{name} {how}; it goes on from its checkpoint")

    def _fail(self, task: Task, fault: str, code: int) -> None:
        task.state, task.fault, task.code = "failed", fault, code
        self.ledger.write("failed", task.config.identity, name=label(task.config), fault=fault, code=code)
        self._tell(f"{label(task.config)} failed: {fault}")

    def _stop(self) -> None:
        """Have all that run save and leave."""
        self.place.stop.touch()
        until = time.monotonic() + STOP_SECONDS
        while time.monotonic() < until:
            running = [task for task in self.tasks if task.state == "running"]
            for task in running:
                if self.executor.poll(task.handle) is not None:
                    task.state, task.record = "waiting", self.place.finished(task.config)
                    if task.record is not None:
                        task.state = "done"
            if not running:
                break
            time.sleep(LOOK_SECONDS)
        self.place.stop.unlink(missing_ok=True)

    def _tell(self, event: str) -> None:
        if self.look is not None:
            self.look(self.tasks, event)


def _last_line(place: Place, task: Task) -> str:
    """The last words of a process that ended with an error that is not ours."""
    try:
        text = place.log(task.config).read_bytes()[-4000:].decode(errors="replace")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
