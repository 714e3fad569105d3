"""The newest weights of a run, without the rest of a checkpoint: a replay of gigabytes stays where it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dynaboltz.errors import StorageError
from dynaboltz.runs import Home
from dynaboltz.storage import Weights
from dynaboltz.storage import folder as checkpoints
from dynaboltz.storage import manifest as manifests
from dynaboltz.storage.manifest import Manifest
from dynaboltz.storage.store import NAME
from dynaboltz.storage.tree import Damaged

IN_CHECKPOINT = ("agent", "learner", "parameters", "online")
KEPT = ("weights",)
"""Where the network stands in a checkpoint, and in what is kept as ``best`` and as ``last``."""
WHICH = ("last", "best")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Weights on disk."""

    step: int
    """Of the training."""
    path: Path
    within: tuple[str, ...]


def newest(home: Home, which: str, *, besides: Place | None = None, run: str) -> tuple[Place, Weights] | None:
    """The newest whole weights of the run; None if there are none yet, or they are those at ``besides``.

    Args:
        home: where the run lives.
        which: ``last``, the newest of all, or ``best``, those with the best evaluation.
        besides: the place of those that are known.
        run: the run's identity.

    Raises:
        StorageError: there are some, but they cannot be read.
    """
    faults: list[str] = []
    for place in sorted(_places(home, which), reverse=True):
        if place == besides:
            return None
        name = f"{place.path.parent.name}/{place.path.name}"
        try:
            manifest = manifests.read(place.path)
            if manifest.run == run:
                return place, _read(place, manifest)
            faults.append(f"{name}: it is of other settings than those in {home.config.name}")
        except (Damaged, OSError) as fault:
            if place.path.exists():  # not just removed by the training, for a newer one
                faults.append(f"{name}: {fault}")
    if faults:
        raise StorageError("no weights can be read\n  " + "\n  ".join(faults))
    return None


def _places(home: Home, which: str) -> Iterator[Place]:
    folders: list[tuple[Path, tuple[str, ...]]] = [(home.best, KEPT)]
    if which == "last":
        folders += [(home.last, KEPT), (home.checkpoints, IN_CHECKPOINT)]
    for folder, within in folders:
        try:
            paths = [path for path in folder.iterdir() if not path.is_symlink()]
        except OSError:  # not there yet
            continue
        for path in paths:
            found = NAME.fullmatch(path.name)
            if found is not None:
                yield Place(int(found[1]), path, within)


def _read(place: Place, manifest: Manifest) -> Weights:
    """The weights alone: a manifest that names nothing else reads nothing else."""
    node = manifest.tree
    for name in place.within:
        node = node.get(name) if isinstance(node, dict) else None
    if not isinstance(node, list) or len(node) != 3 or node[0] != "weights" or node[1] not in manifest.files:
        raise Damaged("it holds no network of this kind of agent")
    alone = Manifest(
        run=manifest.run, step=manifest.step, files={node[1]: manifest.files[node[1]]}, tree={"weights": node}
    )
    found: Weights = checkpoints.read(place.path, alone)["weights"]
    return found
