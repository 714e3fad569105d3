"""Checkpoints in a folder: each whole or not there, and never the last good one in danger.

A checkpoint is written beside its place, moved there in one step, read again from disk, and only then an older one may
go. Loading starts from the newest and walks back past every one that is damaged.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynaboltz.errors import StorageError, UserError
from dynaboltz.files import sync_directory
from dynaboltz.storage import folder as checkpoints
from dynaboltz.storage import manifest as manifests
from dynaboltz.storage.foreign import ForeignError
from dynaboltz.storage.manifest import Manifest
from dynaboltz.storage.tree import Damaged, Tree, take_apart

NAME = re.compile(r"ckpt-([0-9]{12,})(?:-([0-9]+))?")
"""A step, and a number where there is a second checkpoint of that step."""
LEFT_OVER = re.compile(r"ckpt-[0-9-]+\.tmp-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a checkpoint is: the second and later ones of a step are numbered."""

    step: int
    number: int
    folder: Path

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.folder / f"ckpt-{self.step:012d}{f'-{self.number}' if self.number > 1 else ''}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found."""

    step: int
    tree: dict[str, Any]
    skipped: list[str] = field(default_factory=list)
    """A message for each newer checkpoint that was passed over, for the user to see."""
    path: Path | None = None


class Store:
    """The checkpoints of one run. Whoever saves keeps other processes out with ``locked``, here or further up.

    Args:
        folder: where they are; made by the first save.
        run: whose they are, such as a hash of the settings: those of another run are never used, nor removed.
        keep: how many good ones stay, at least 1; with 2, damage to one costs no more than an interval.
        about: the settings behind ``run``, by which a stranger is told what differs.
    """

    def __init__(self, folder: Path, *, run: str, keep: int = 2, about: Mapping[str, str] | None = None) -> None:
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
            raise UserError(f"keep must be a whole number of at least 1, got {keep!r}")
        self.folder, self.run, self.keep, self.about = Path(folder), run, keep, dict(about or {})
        self._whole: set[Path] = set()
        """What this process has read to the last byte."""

    def steps(self) -> list[int]:
        """The steps there is something of, in order; whether it is whole shows in loading it."""
        return sorted({place.step for place in self._found()})

    def save(self, step: int, tree: Tree) -> Path:
        """Commit ``tree`` as the state after ``step``: once this returns, ``load`` finds it, whatever happens.

        A later step that was saved before is of a future that has been given up, and is removed. So is what is damaged;
        what belongs to another run, or cannot be told to belong to this one, stays.

        Raises:
            StorageError: the disk is full or faulty, the folder cannot be written; what was there before is untouched.
            UserError: the tree holds something that cannot be saved.
        """
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 1 << 62:
            raise UserError(f"step must be a whole number from 0 on, got {step!r}")
        parts = take_apart(tree)
        numbers = [place.number for place in self._found() if place.step == step]
        place = Place(step, max(numbers, default=0) + 1, self.folder)
        temporary = _beside(place.path)
        try:
            self._make_folder()
            self._sweep()
            checkpoints.write(temporary, parts, Manifest(run=self.run, step=step, about=self.about))
            temporary.rename(place.path)
            sync_directory(self.folder)
        except OSError as fault:
            raise StorageError(
                f"cannot save checkpoint {place.path}: {fault.strerror or fault}\n"
                "  the checkpoints from before are untouched; free some space or choose another folder"
            ) from fault
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        try:
            checkpoints.verify(place.path)
        except (Damaged, OSError) as fault:
            _remove(place.path)
            raise StorageError(
                f"checkpoint {place.path} was written but does not read back: {fault}\n"
                "  the checkpoints from before are untouched; the disk or the memory may be faulty"
            ) from fault
        self._whole.add(place.path)
        self._prune(place)
        return place.path

    def load(self) -> Loaded | None:
        """The newest whole checkpoint of this run; None if there is none at all.

        Raises:
            ForeignError: all that are whole belong to another run.
            StorageError: all are damaged; or there is less memory than the newest whole one needs.
        """
        skipped: list[str] = []
        foreign: ForeignError | None = None
        damaged = False
        for place in reversed(self._found()):
            path = place.path
            try:
                manifest = _manifest(place)
                if manifest.run != self.run:
                    foreign = foreign or ForeignError(path, manifest.about, self.about)
                    skipped.append(f"passed over {path}: it belongs to another run")
                    continue
                tree = checkpoints.read(path, manifest)
            except (Damaged, OSError) as fault:
                if not path.exists():  # removed, after a newer one was saved, by the process whose run this is
                    return self.load()
                damaged = True
                skipped.append(f"passed over {path}: it is damaged, {fault}")
            else:
                self._whole.add(path)
                return Loaded(place.step, tree, skipped, path)
        if not skipped:
            return None
        if foreign is not None and not damaged:
            raise foreign
        listed = "\n  ".join(skipped)
        raise StorageError(f"no checkpoint in {self.folder} is whole\n  {listed}\n  start again without resume")

    def _found(self) -> list[Place]:
        """In order, the newest last."""
        try:
            paths = [path for path in self.folder.iterdir() if path.is_dir() and not path.is_symlink()]
        except FileNotFoundError:
            return []
        except OSError as fault:
            raise UserError(f"cannot read the folder {self.folder}: {fault.strerror or fault}") from fault
        matches = (NAME.fullmatch(path.name) for path in paths)
        places = {Place(int(match[1]), int(match[2] or 1), self.folder) for match in matches if match}
        return sorted(place for place in places if place.path in paths)

    def _make_folder(self) -> None:
        made = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)
        for folder in made:
            sync_directory(folder.parent)

    def _sweep(self) -> None:
        """Remove what a killed process has left behind."""
        for path in self.folder.iterdir():
            if LEFT_OVER.fullmatch(path.name):
                shutil.rmtree(path, ignore_errors=True)

    def _prune(self, newest: Place) -> None:
        """Remove what ``newest``, which has just been verified, makes needless: all but ``keep`` that are whole."""
        kept = 0
        for place in reversed(self._found()):
            path = place.path
            try:
                if _manifest(place).run != self.run:
                    continue
            except (Damaged, OSError):  # whose it is cannot be told
                continue
            if place > newest or kept == self.keep:
                _remove(path)
            elif path in self._whole:
                kept += 1
            else:
                kept += self._keep_if_whole(path)

    def _keep_if_whole(self, path: Path) -> bool:
        """Remove an older checkpoint of this run if it is damaged: it must not count as one to fall back to."""
        try:
            checkpoints.verify(path)
        except Damaged:
            _remove(path)
        except OSError:  # cannot be read at the moment
            return False
        else:
            self._whole.add(path)
        return path in self._whole


def _manifest(place: Place) -> Manifest:
    """The manifest of a checkpoint, which must be of the step its name says."""
    manifest = manifests.read(place.path)
    if manifest.step != place.step:
        raise Damaged(f"its name says step {place.step}, its manifest {manifest.step}")
    return manifest


def _remove(path: Path) -> None:
    """Take a checkpoint away in one step; what cannot be removed does no harm but its size."""
    with contextlib.suppress(OSError):
        temporary = _beside(path)
        path.rename(temporary)
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(place: Path) -> Path:
    return place.with_name(f"{place.name}.tmp-{secrets.token_hex(4)}")
