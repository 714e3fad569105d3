"""A session on disk: saved between two pieces of work, now and then, at the end and when a signal asks for an end."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from dynaboltz.errors import StorageError, UserError
from dynaboltz.storage import Asked, Store, graceful, locked
from dynaboltz.tabular import state as states
from dynaboltz.tabular.outcome import DivergedError
from dynaboltz.tabular.session import Session


class Keeper:
    """A context that keeps a session in a folder; without a folder it keeps nothing and signals act as always."""

    def __init__(
        self, folder: str | Path | None, identity: dict[str, str], session: Session, interval: float, *, resume: bool
    ) -> None:
        if folder is not None and not isinstance(folder, str | Path):
            raise UserError(f"checkpoint must be a folder, got {folder!r}")
        self.session, self.interval, self.resume = session, interval, resume
        self.store: Store | None = None
        if folder is not None:
            run = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
            self.store = Store(Path(folder), run=run, about=identity)
        self.asked = Asked()
        self._open = ExitStack()
        self._saved = time.perf_counter()

    def __enter__(self) -> Self:
        if self.store is not None:
            with ExitStack() as stack:
                self.asked = stack.enter_context(graceful())
                stack.enter_context(locked(self.store.folder))
                if self.resume:
                    self._load(self.store)
                self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._open:
            if kind is None or not issubclass(kind, DivergedError | StorageError):
                self.save()

    @property
    def due(self) -> bool:
        """Whether it is time to save."""
        return self.store is not None and time.perf_counter() - self._saved >= self.interval

    def save_if_due(self) -> None:
        """Save if it is time."""
        if self.due:
            self.save()

    def save(self) -> None:
        """Save, if there is where to; the arrays must be at rest."""
        if self.store is not None:
            session = self.session
            tree: dict[str, Any] = {name: session.arrays[name] for name in states.ARRAYS}
            self.store.save(session.total, {**tree, "seconds": session.seconds})
            self._saved = time.perf_counter()

    def _load(self, store: Store) -> None:
        found = store.load()
        if found is None:
            raise UserError(f"nothing to resume in {store.folder}; leave resume out to begin")
        session = self.session
        for name in states.ARRAYS:
            saved, own = found.tree.get(name), session.arrays[name]
            if not isinstance(saved, np.ndarray) or saved.shape != own.shape or saved.dtype != own.dtype:
                raise UserError(
                    f"the checkpoint in {store.folder} has no {name} of this session; start again without resume"
                )
            own[...] = saved
        session.seconds_before, session.steps_before = float(found.tree["seconds"]), session.total
