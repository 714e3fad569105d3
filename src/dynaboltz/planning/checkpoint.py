"""A solve on disk, between two steps: all that a method carries, in a store of checkpoints that asks whose they are."""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP
from dynaboltz.planning.states import State
from dynaboltz.storage import ForeignError, Store, locked

S = TypeVar("S", bound=State)


def fingerprint(mdp: MDP) -> str:
    """A digest of everything in the model that a solver reads."""
    digest = hashlib.sha256()
    for name in ("state_ptr", "action", "row_ptr", "next_state", "probability", "reward", "terminal"):
        array = getattr(mdp, name)
        digest.update(f"{name} {array.dtype.str} {array.size} ".encode())
        digest.update(memoryview(array).cast("B"))
    return digest.hexdigest()


@contextlib.contextmanager
def opened(folder: Path, settings: Mapping[str, object]) -> Iterator[Store]:
    """The checkpoints in ``folder`` of the question that ``settings`` ask, with other processes kept out."""
    about = {name: str(value) for name, value in settings.items()}
    question = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    with locked(folder):
        yield Store(folder, run=question, about=about)


def save(store: Store, state: State) -> None:
    """Keep the state; a list of numbers or of arrays is one array."""
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    store.save(state.sweeps, {name: np.array(x) if isinstance(x, list) else x for name, x in values.items()})


def load(store: Store, start: S, mdp: MDP) -> S:
    """The newest whole state; ``start`` is that of the same question before its first step.

    A damaged checkpoint is passed over with a warning.
    """
    try:
        found = store.load()
    except ForeignError as fault:
        raise ForeignError(fault.path, fault.found, fault.wanted, "question") from None
    if found is None:
        raise UserError(f"there is no checkpoint in {store.folder}; leave out resume to start from the beginning")
    for message in found.skipped:
        warnings.warn(message, stacklevel=4)
    tree, examples = found.tree, {field.name: getattr(start, field.name) for field in fields(start)}
    if (
        tree.keys() != examples.keys()
        or not all(_fits(tree[name], example) for name, example in examples.items())
        or ((tree["choice"] < 0) | (tree["choice"] >= np.maximum(1, np.diff(mdp.state_ptr)))).any()
    ):
        raise UserError(f"checkpoint {found.path} does not hold a state of this method\n  start again without resume")
    lists = {name: list(tree[name]) for name, example in examples.items() if isinstance(example, list)}
    return type(start)(**tree | lists)


def _fits(found: object, example: object) -> bool:
    """Whether a field can be used without looking: compiled sweeps check no index and no type."""
    if isinstance(example, np.ndarray):
        return isinstance(found, np.ndarray) and (found.dtype, found.shape) == (example.dtype, example.shape)
    return isinstance(found, np.ndarray if isinstance(example, list) else int | float)
