"""The newest weights of a run: the right ones, alone, and never half of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.errors import StorageError
from dynaboltz.runs import Home
from dynaboltz.storage import Store, folder, manifest
from dynaboltz.watch.weights import newest


@pytest.fixture
def copy(trained: Any, tmp_path: Path) -> Home:
    """Of the finished run, to be damaged."""
    shutil.copytree(trained.home.folder, tmp_path / "run")
    return Home(tmp_path / "run")


def newest_in(home: Home, trained: Any, which: str = "last", **given: Any) -> Any:
    return newest(home, which, run=trained.config.identity, **given)


def test_newest_weights_of_a_finished_run_are_its_last(trained: Any) -> None:
    place, found = newest_in(trained.home, trained)
    kept = Store(trained.home.last, run=trained.config.identity).load()
    assert kept is not None
    assert (place.step, place.path.parent.name) == (700, "last")
    assert found.keys() == kept.tree["weights"].keys() != set()
    assert all(np.array_equal(found[name], kept.tree["weights"][name]) for name in found)


def test_newest_weights_before_the_end_are_those_of_the_last_checkpoint(copy: Home, trained: Any) -> None:
    _, last = newest_in(copy, trained)
    shutil.rmtree(copy.last)
    shutil.rmtree(copy.best)
    place, found = newest_in(copy, trained)
    assert (place.step, place.path.parent.name) == (700, "checkpoints")
    assert all(np.array_equal(found[name], last[name]) for name in last)


def test_newest_weights_leave_the_rest_of_a_checkpoint_where_it_is(
    copy: Home, trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(copy.last)
    shutil.rmtree(copy.best)
    read, files = folder.read, []

    def noted(path: Path, described: manifest.Manifest) -> Any:
        files.append(len(described.files))
        return read(path, described)

    monkeypatch.setattr(folder, "read", noted)
    place, _ = newest_in(copy, trained)
    assert files == [1] != [len(manifest.read(place.path).files)]


def test_best_weights_are_those_of_the_best_evaluation(trained: Any) -> None:
    place, _ = newest_in(trained.home, trained, "best")
    assert (place.step, place.path.parent.name) == (trained.result.best_step, "best")


def test_newest_weights_that_are_known_are_not_read_again(trained: Any) -> None:
    place, _ = newest_in(trained.home, trained)
    assert newest_in(trained.home, trained, besides=place) is None


def test_newest_weights_of_a_run_without_any_are_none(begun: Any) -> None:
    assert newest(begun[0], "last", run=begun[1].identity) is None


def test_newest_weights_are_older_ones_where_the_newest_are_damaged(copy: Home, trained: Any) -> None:
    shutil.rmtree(copy.best)
    for path in copy.folder.glob("*/ckpt-000000000700*/manifest.json"):
        path.write_bytes(b"{")
    place, _ = newest_in(copy, trained)
    assert (place.step, place.path.parent.name) == (600, "checkpoints")


def test_newest_weights_that_are_all_damaged_are_an_error_that_names_each(copy: Home, trained: Any) -> None:
    shutil.rmtree(copy.checkpoints)
    for path in (*copy.last.glob("*/manifest.json"), *copy.best.glob("*/manifest.json")):
        path.write_bytes(b"{")
    with pytest.raises(StorageError, match=r"no weights can be read\n  last/ckpt-000000000700: .*\n  best/ckpt-0000"):
        newest_in(copy, trained)


def test_newest_weights_of_other_settings_are_refused(copy: Home) -> None:
    with pytest.raises(StorageError, match="it is of other settings than those in config"):
        newest(copy, "last", run="0" * 64)


def test_newest_weights_follow_no_link(copy: Home, trained: Any, tmp_path: Path) -> None:
    shutil.rmtree(copy.checkpoints)
    shutil.rmtree(copy.best)
    moved = copy.last.rename(tmp_path / "elsewhere")
    copy.last.mkdir()
    (copy.last / "ckpt-000000000700").symlink_to(moved / "ckpt-000000000700")
    assert newest_in(copy, trained) is None


def test_newest_weights_that_are_removed_meanwhile_are_no_fault(
    copy: Home, trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training that goes on removes the checkpoint before the last."""
    read = manifest.read

    def late(path: Path) -> Any:
        shutil.rmtree(path)
        return read(path)

    monkeypatch.setattr(manifest, "read", late)
    assert newest_in(copy, trained) is None
