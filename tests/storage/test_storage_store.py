"""The order in which a save does its work, what it removes and when, and what is found after damage."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.errors import StorageError
from dynaboltz.storage import ForeignError, Store, Weights, folder


def content(step: int, run: str = "one") -> dict[str, Any]:
    rng = np.random.default_rng([step, *run.encode()])
    return {"values": rng.normal(size=100), "online": Weights(x=rng.normal(size=10))}


def kept(place: Path, run: str = "one", *, steps: tuple[int, ...] = (1, 2)) -> Store:
    found = Store(place, run=run, about={"seed": run})
    for step in steps:
        found.save(step, content(step, run))
    return found


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_store_of_an_empty_or_missing_folder_holds_none(tmp_path: Path) -> None:
    assert Store(tmp_path, run="one").load() is None
    assert Store(tmp_path / "missing", run="one").load() is None


def test_store_keeps_the_newest_two(tmp_path: Path) -> None:
    assert kept(tmp_path, steps=(1, 5, 12, 13)).steps() == [12, 13]
    assert names(tmp_path) == ["ckpt-000000000012", "ckpt-000000000013"]


def test_store_keeps_as_many_as_it_is_told(tmp_path: Path) -> None:
    for keep in (1, 3):
        for step in range(5):
            Store(tmp_path / str(keep), run="one", keep=keep).save(step, {})
        assert len(names(tmp_path / str(keep))) == keep


def test_store_saves_a_step_twice_and_finds_the_later(tmp_path: Path) -> None:
    for number in range(4):
        Store(tmp_path, run="one").save(7, {"number": number})
        found = Store(tmp_path, run="one").load()
        assert found is not None
        assert (found.step, found.tree) == (7, {"number": number})
    assert names(tmp_path) == ["ckpt-000000000007-3", "ckpt-000000000007-4"]


def test_store_gives_up_the_future_of_an_earlier_step(tmp_path: Path) -> None:
    found = kept(tmp_path, steps=(10, 20, 30))
    found.save(5, content(5))
    assert found.steps() == [5]


def test_save_syncs_all_before_the_rename_and_the_rename_before_it_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power cut may undo is what has not been synced."""
    mine, done = kept(tmp_path), []
    fsync, rename, remove, verify = os.fsync, Path.rename, shutil.rmtree, folder.verify

    def noted_fsync(handle: int) -> None:
        done.append(("sync", Path(f"/proc/self/fd/{handle}").readlink()))
        fsync(handle)

    def noted_rename(path: Path, target: Path) -> Path:
        done.append(("rename", path))
        return rename(path, target)

    def noted_remove(path: Path, **options: Any) -> None:
        done.append(("remove", path))
        remove(path, **options)

    def noted_verify(path: Path) -> None:
        done.append(("verify", path))
        verify(path)

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc to tell which file is synced")
    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    monkeypatch.setattr(shutil, "rmtree", noted_remove)
    monkeypatch.setattr(folder, "verify", noted_verify)
    place = mine.save(3, content(3))
    step = next(index for index, (what, _) in enumerate(done) if what == "rename")
    temporary = done[step][1]
    written = [*(temporary / path.name for path in place.iterdir()), temporary]
    assert sorted(path for what, path in done[:step] if what == "sync") == sorted(written)
    assert done[step - 1] == ("sync", temporary), "the folder after the files in it"
    assert done[step + 1] == ("sync", tmp_path)
    rest = [(what, path) for what, path in done[step + 2 :] if path != temporary]
    assert rest[0] == ("verify", place)
    assert rest[1] == ("rename", tmp_path / "ckpt-000000000001")
    assert [what for what, _ in rest[2:]] == ["remove"]


def test_save_that_does_not_read_back_is_refused_and_the_older_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, write = kept(tmp_path), folder.write

    def faulty(place: Path, *rest: Any) -> None:
        write(place, *rest)
        flip(place / "arrays.zst")

    monkeypatch.setattr(folder, "write", faulty)
    with pytest.raises(StorageError, match="was written but does not read back"):
        mine.save(3, content(3))
    assert mine.steps() == [1, 2]
    assert len(names(tmp_path)) == 2


def test_damaged_checkpoint_does_not_count_as_one_to_fall_back_to(tmp_path: Path) -> None:
    """With 1 whole and 2 damaged, saving 3 must keep 1: else damage to 3 would leave nothing."""
    kept(tmp_path)
    flip(tmp_path / "ckpt-000000000002" / "arrays.zst")
    mine = Store(tmp_path, run="one")
    found = mine.load()
    assert found is not None
    assert found.step == 1
    assert "ckpt-000000000002: it is damaged, a block does not match its digest" in found.skipped[0]
    mine.save(3, content(3))
    assert mine.steps() == [1, 3]


def test_blocks_of_another_run_that_fit_are_recognised(tmp_path: Path) -> None:
    """Frames of the same size, each whole: only the digest tells them apart."""
    kept(tmp_path / "a")
    kept(tmp_path / "b", "two")
    mine, other = (tmp_path / name / "ckpt-000000000002" / "arrays.zst" for name in "ab")
    assert mine.stat().st_size == other.stat().st_size
    shutil.copy(other, mine)
    found = Store(tmp_path / "a", run="one").load()
    assert found is not None
    assert found.step == 1


def test_checkpoint_of_another_run_is_named_and_neither_used_nor_removed(tmp_path: Path) -> None:
    kept(tmp_path, "another", steps=(1, 9))
    with pytest.raises(ForeignError, match="belongs to another run: its seed is another, not one") as refused:
        kept(tmp_path, steps=()).load()
    assert refused.value.exit_code == 2
    mine = kept(tmp_path, steps=(2, 3, 4))
    found = mine.load()
    assert found is not None
    assert found.step == 4
    assert "it belongs to another run" in found.skipped[0]
    assert mine.steps() == [1, 3, 4, 9]


def test_store_without_a_whole_checkpoint_lists_what_is_wrong_with_each(tmp_path: Path) -> None:
    mine = kept(tmp_path)
    flip(tmp_path / "ckpt-000000000001" / "manifest.json")
    (tmp_path / "ckpt-000000000002" / "online.safetensors").unlink()
    with pytest.raises(StorageError) as refused:
        mine.load()
    assert refused.value.exit_code == 1
    assert "ckpt-000000000001: it is damaged, manifest.json does not match its digest" in str(refused.value)
    assert "ckpt-000000000002: it is damaged, online.safetensors is missing" in str(refused.value)


def test_store_does_not_remove_what_it_cannot_tell_to_be_its_own(tmp_path: Path) -> None:
    mine = kept(tmp_path)
    flip(tmp_path / "ckpt-000000000001" / "manifest.json")
    (tmp_path / "ckpt-note.txt").write_text("mine")
    for step in (3, 4):
        mine.save(step, content(step))
    assert names(tmp_path) == ["ckpt-000000000001", "ckpt-000000000003", "ckpt-000000000004", "ckpt-note.txt"]


def test_store_sweeps_what_a_killed_save_left(tmp_path: Path) -> None:
    mine = kept(tmp_path)
    shutil.copytree(tmp_path / "ckpt-000000000002", tmp_path / "ckpt-000000000003.tmp-0123abcd")
    assert mine.load() is not None
    mine.save(4, content(4))
    assert names(tmp_path) == ["ckpt-000000000002", "ckpt-000000000004"]


def test_load_looks_again_if_a_checkpoint_goes_while_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever evaluates a run that is going on must not be told of damage."""
    calls: list[str] = []
    mine, read = kept(tmp_path), folder.read

    def slow(place: Path, manifest: Any) -> Any:
        if not calls:
            for step in (3, 4):
                mine.save(step, content(step))
        calls.append(place.name)
        return read(place, manifest)

    monkeypatch.setattr(folder, "read", slow)
    found = Store(tmp_path, run="one").load()
    assert found is not None
    assert (found.step, found.skipped) == (4, [])
    assert calls == ["ckpt-000000000002", "ckpt-000000000004"]


def test_load_that_does_not_fit_is_refused_before_memory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = kept(tmp_path)
    monkeypatch.setattr(folder, "available_bytes", lambda: 900)
    with pytest.raises(StorageError, match=r"takes 1\.\d+ kB of memory, and 900 bytes are free"):
        mine.load()


@pytest.mark.parametrize("fault", [errno.EDQUOT, errno.EIO, errno.EROFS])
def test_save_names_the_fault_of_the_disk(fault: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = kept(tmp_path)

    def fail(_handle: int) -> None:
        raise OSError(fault, os.strerror(fault))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(StorageError) as refused:
            mine.save(3, content(3))
    assert os.strerror(fault) in str(refused.value)
    assert "the checkpoints from before are untouched" in str(refused.value)
    found = mine.load()
    assert found is not None
    assert (found.step, found.skipped, len(names(tmp_path))) == (2, [], 2)


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_save_over_the_limit_of_a_files_size_is_refused(tmp_path: Path) -> None:
    """A fault of the kernel's own, which needs no other user and no other disk."""
    import resource

    mine, (soft, hard) = kept(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, hard))
    try:
        with pytest.raises(StorageError, match="File too large"):
            mine.save(3, content(3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert mine.steps() == [1, 2]
    assert len(names(tmp_path)) == 2
