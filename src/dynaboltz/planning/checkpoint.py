"""A solve on disk, between two steps: one ``.npz`` without pickle, replaced whole, with a digest of all of it.

The digest is the archive's comment, so that NumPy reads the file too. Whatever a bit flip or a lost end does to a
file, the digest does not match and nothing of it is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import signal
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.files import opened, replacing
from dynaboltz.mdp import MDP
from dynaboltz.planning.states import State

VERSION = 1
DIGEST_CHARACTERS = 64
END_RECORD = 22
"""Bytes of a zip file's last record, whose last two say how long the comment after it is."""

S = TypeVar("S", bound=State)


def fingerprint(mdp: MDP) -> str:
    """A digest of everything in the model that a solver reads."""
    digest = hashlib.sha256()
    for name in ("state_ptr", "action", "row_ptr", "next_state", "probability", "reward", "terminal"):
        array = getattr(mdp, name)
        digest.update(f"{name} {array.dtype.str} {array.size} ".encode())
        digest.update(memoryview(array).cast("B"))
    return digest.hexdigest()


def save(path: Path, settings: dict[str, Any], state: State) -> None:
    """Write the state and the settings it belongs to."""
    numbers: dict[str, Any] = {}
    arrays: dict[str, Any] = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, list):
            arrays[field.name] = np.array(value, np.float64)
        else:
            numbers[field.name] = value
    meta = {"format": "dynaboltz checkpoint", "version": VERSION, "settings": settings, "numbers": numbers}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    content = bytearray(buffer.getbuffer())
    content[-2:] = DIGEST_CHARACTERS.to_bytes(2, "little")
    with replacing(path) as file:
        file.write(content)
        file.write(hashlib.sha256(content).hexdigest().encode())


def load(path: Path, settings: dict[str, Any], kind: type[S]) -> S:
    """The state in ``path``, if it is whole and belongs to ``settings``."""
    with opened(path) as file:
        data = file.read()
    content, digest = data[:-DIGEST_CHARACTERS], data[-DIGEST_CHARACTERS:]
    if len(content) < END_RECORD or hashlib.sha256(content).hexdigest().encode() != digest:
        raise UserError(
            f"checkpoint {path} is damaged: its digest does not match its {len(data):,} bytes\n"
            "  start again without resume"
        )
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        meta = json.loads(arrays.pop("meta").tobytes())
        numbers, found = meta["numbers"], meta["settings"]
    except (KeyError, ValueError, TypeError, zipfile.BadZipFile) as fault:
        raise UserError(f"{path} is not a checkpoint of a solver: {fault}") from fault
    if meta.get("version") != VERSION:
        raise UserError(f"checkpoint {path} has version {meta.get('version')!r}; this release reads {VERSION}")
    for name, wanted in settings.items():
        if found.get(name) != wanted:
            raise UserError(
                f"checkpoint {path} belongs to another question: its {name} is {_short(found.get(name))}, "
                f"not {_short(wanted)}\n  resume with the same model and settings, or start again without resume"
            )
    if arrays.keys() | numbers.keys() != {field.name for field in fields(kind)}:
        raise UserError(f"checkpoint {path} does not hold the state of {found.get('method')}")
    everything: dict[str, Any] = {**arrays, **numbers}
    for field in fields(kind):
        if field.default_factory is list:
            everything[field.name] = list(everything[field.name])
    return kind(**everything)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:12]}…"


class Interrupted:
    """Which signal has asked for an end; false as long as none has."""

    signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextlib.contextmanager
def deferred_signals(active: bool) -> Iterator[Interrupted]:
    """Hold back SIGINT and SIGTERM until the block is left, then let them do what they do; a second one acts at once.

    Only the main thread gets signals; elsewhere, and where not ``active``, nothing is changed.
    """
    asked = Interrupted()
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        before.clear()

    def note(number: int, _frame: object) -> None:
        asked.signal = number
        restore()

    if active and threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler is not None:  # None: set by something that is not Python, and cannot be put back
                before[number] = handler
                signal.signal(number, note)
    try:
        yield asked
    finally:
        restore()
    if asked.signal is not None:
        signal.raise_signal(asked.signal)
