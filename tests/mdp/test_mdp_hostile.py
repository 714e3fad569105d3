"""Hostile files: no code runs, nothing is written, and each is refused in under two seconds and little memory."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.errors import UserError
from dynaboltz.mdp import build_world, read, write

Members = dict[str, bytes]


class Bomb:
    """Unpickling it would create the file ``pwned``."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch pwned",)


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), allow_pickle=True)
    return buffer.getvalue()


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    length = len(text).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + text.encode("latin1")


def good(tmp_path: Path) -> Members:
    write(build_world("two_cycle"), tmp_path / "good.npz")
    with zipfile.ZipFile(tmp_path / "good.npz") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path: Path, members: Members, compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def meta(**changes: Any) -> bytes:
    given: dict[str, Any] = {"format": "dynaboltz mdp", "version": 1, "n_actions": 2}
    text = json.dumps(given | {"state_labels": None, "action_labels": None} | changes)
    return npy(np.frombuffer(text.encode(), np.uint8))


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
NPZ: dict[str, tuple[Callable[[Members], Members], str]] = {
    "an object array": (lambda m: m | {"reward.npy": npy(np.array([Bomb()], object))}, "'reward' has the type object"),
    "an object array as meta": (
        lambda m: m | {"meta.npy": npy(np.array([Bomb()], object))},
        "'meta' has the type object",
    ),
    "a structured array": (lambda m: m | {"reward.npy": npy(np.zeros(4, [("x", "f8")]))}, "'reward' has the type"),
    "a text array": (lambda m: m | {"action.npy": npy(np.array(["a"]))}, "'action' has the type <U1"),
    "a pickle as a member": (lambda m: m | {"reward.npy": pickle.dumps(Bomb())}, "'reward' has no readable header"),
    "a header of a trillion numbers": (
        lambda m: m | {"reward.npy": header(HUGE)},
        "'reward' says .*8,000,000,000,000 bytes, but has 0",
    ),
    "a header of a billion bytes": (
        lambda m: m | {"reward.npy": b"\x93NUMPY\x02\x00" + (10**9).to_bytes(4, "little")},
        "'reward' has no readable header",
    ),
    "a long header": (
        lambda m: m | {"reward.npy": header("(" * 100_000, b"\x02\x00")},
        "'reward' has no readable header",
    ),
    "a nested header": (lambda m: m | {"reward.npy": header("(" * 9_000)}, "'reward' has no readable header"),
    "an unknown header version": (
        lambda m: m | {"reward.npy": b"\x93NUMPY\x09\x00" + b" " * 80},
        "'reward' has no readable header",
    ),
    "a negative shape": (
        lambda m: m | {"reward.npy": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }")},
        "'reward' has the shape",
    ),
    "two dimensions": (lambda m: m | {"reward.npy": npy(np.zeros((2, 2)))}, r"'reward' has the shape \(2, 2\)"),
    "a member cut short": (lambda m: m | {"reward.npy": m["reward.npy"][:-8]}, "32 bytes, but has 24"),
    "a member too long": (lambda m: m | {"reward.npy": m["reward.npy"] + b"x"}, "32 bytes, but has 33"),
    "an empty member": (lambda m: m | {"reward.npy": b""}, "'reward' has no readable header"),
    "a member missing": (lambda m: {k: v for k, v in m.items() if k != "action.npy"}, "'action' is missing"),
    "an unknown member": (lambda m: m | {"extra.npy": npy(np.zeros(1))}, "unexpected member 'extra.npy'"),
    "a path upwards": (
        lambda m: m | {"../../escaped.npy": npy(np.zeros(1))},
        r"unexpected member '\.\./\.\./escaped.npy'",
    ),
    "an absolute path": (lambda m: m | {"/tmp/escaped.npy": npy(np.zeros(1))}, "unexpected member '/tmp/escaped.npy'"),
    "a wrong kind of number": (lambda m: m | {"action.npy": npy(np.zeros(4))}, "'action' has the type float64"),
    "a pointer into the blue": (
        lambda m: m | {"row_ptr.npy": npy(np.array([0, 9, -7, 3, 4]))},
        "row_ptr must not decrease",
    ),
    "next states into the blue": (
        lambda m: m | {"next_state.npy": npy(np.array([1, 0, 0, 10**12]))},
        "next state 1000000000000",
    ),
    "rewards that are not numbers": (
        lambda m: m | {"reward.npy": npy(np.full(4, np.nan))},
        "state 0, action 0 'switch': the reward is nan",
    ),
    "meta that is no JSON": (lambda m: m | {"meta.npy": npy(np.frombuffer(b"{", np.uint8))}, "'meta' is not JSON"),
    "meta of deep JSON": (
        lambda m: m | {"meta.npy": npy(np.frombuffer(b"[" * 200_000, np.uint8))},
        "'meta' is not JSON",
    ),
    "meta that is a list": (lambda m: m | {"meta.npy": npy(np.frombuffer(b"[1]", np.uint8))}, "not a dynaboltz mdp"),
    "meta of the future": (lambda m: m | {"meta.npy": meta(version=99)}, "format version 99; this release reads 1"),
    "meta with text for a number": (lambda m: m | {"meta.npy": meta(n_actions="2")}, "n_actions must be an integer"),
    "meta with a number for labels": (lambda m: m | {"meta.npy": meta(state_labels=7)}, "state_labels must be a tuple"),
    "meta with too few labels": (
        lambda m: m | {"meta.npy": meta(state_labels=["a"])},
        "state_labels must have 2 entries",
    ),
    "meta without a key": (
        lambda m: m | {"meta.npy": npy(np.frombuffer(b'{"format": "dynaboltz mdp", "version": 1}', np.uint8))},
        "lacks action_labels",
    ),
    "a map that does not fit": (lambda m: m | {"cells.npy": npy(np.full((50, 50), 46, np.uint8))}, "2500 free cells"),
    "a map of control characters": (lambda m: m | {"cells.npy": npy(np.full((1, 2), 27, np.uint8))}, "printable ASCII"),
}


def refused(path: Path, says: str) -> None:
    """Reading ``path`` fails as it should, soon, in little memory, and leaves nothing behind."""
    before = sorted(path.parent.rglob("*"))
    tracemalloc.start()
    begin = time.perf_counter()
    try:
        with pytest.raises(UserError, match=says):
            read(path)
        assert time.perf_counter() - begin < 2.0
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
    assert sorted(path.parent.rglob("*")) == before
    assert not Path("pwned").exists()


@pytest.mark.parametrize("case", NPZ)
def test_mdp_hostile_npz_is_refused(case: str, tmp_path: Path) -> None:
    change, says = NPZ[case]
    pack(tmp_path / "m.npz", change(good(tmp_path)))
    refused(tmp_path / "m.npz", says)


def test_mdp_hostile_npz_is_good_where_nothing_is_changed(tmp_path: Path) -> None:
    pack(tmp_path / "m.npz", good(tmp_path))
    assert read(tmp_path / "m.npz").equals(build_world("two_cycle"))


def test_mdp_hostile_npz_bomb_is_refused_before_it_unpacks(tmp_path: Path) -> None:
    pack(tmp_path / "m.npz", good(tmp_path) | {"reward.npy": npy(np.zeros(1 << 24))}, zipfile.ZIP_DEFLATED)
    assert (tmp_path / "m.npz").stat().st_size < 1 << 20
    refused(tmp_path / "m.npz", "bytes that unpack to .* are refused")


def test_mdp_hostile_npz_with_a_member_twice_is_refused(tmp_path: Path) -> None:
    members = good(tmp_path)
    pack(tmp_path / "m.npz", members)
    with zipfile.ZipFile(tmp_path / "m.npz", "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("reward.npy", members["reward.npy"])
    refused(tmp_path / "m.npz", "unexpected member 'reward.npy'")


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_mdp_hostile_npz_of_unusual_compression_is_refused(compression: int, tmp_path: Path) -> None:
    pack(tmp_path / "m.npz", good(tmp_path), compression)
    refused(tmp_path / "m.npz", "compressed in an unusual way")


def test_mdp_hostile_npz_cut_anywhere_is_refused(tmp_path: Path) -> None:
    good(tmp_path)
    whole = (tmp_path / "good.npz").read_bytes()
    for size in range(0, len(whole), 97):
        (tmp_path / "m.npz").write_bytes(whole[:size])
        with pytest.raises(UserError, match="not a readable"):
            read(tmp_path / "m.npz")


def test_mdp_hostile_npz_with_one_bit_flipped_never_gives_another_model(tmp_path: Path) -> None:
    """The archive's checksums cover the data; its headers may change without meaning."""
    model = build_world("garnet(states=6)")
    write(model, tmp_path / "good.npz")
    whole = (tmp_path / "good.npz").read_bytes()
    caught = 0
    for position in np.random.default_rng(0).integers(0, 8 * len(whole), 300).tolist():
        bits = bytearray(whole)
        bits[position // 8] ^= 1 << position % 8
        (tmp_path / "m.npz").write_bytes(bits)
        try:
            assert read(tmp_path / "m.npz").equals(model)
        except UserError:
            caught += 1
    assert caught > 100


@pytest.mark.parametrize("suffix", [".npz", ".umb", ".drn", ".tra", ".txt"])
@pytest.mark.parametrize(
    "content", [b"", b"\x80\x04cos\nsystem\n", b"PK\x03\x04" + b"\0" * 40, b"\x1f\x8b\x08", bytes(range(256))]
)
def test_mdp_hostile_bytes_are_refused_by_every_format(suffix: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / f"m{suffix}").write_bytes(content)
    refused(tmp_path / f"m{suffix}", "m")


def test_mdp_hostile_pickle_under_our_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.npz").write_bytes(pickle.dumps(Bomb()))
    refused(tmp_path / "m.npz", "not a readable .npz")


@pytest.mark.parametrize("suffix", [".npz", ".umb", ".drn", ".tra", ".txt"])
def test_mdp_hostile_pipe_device_and_directory_are_refused(suffix: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    (tmp_path / f"folder{suffix}").mkdir()
    for name in ("pipe", "zero", "folder"):
        refused(tmp_path / f"{name}{suffix}", "not a regular file")


def tar(members: Members) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def index(**changes: Any) -> bytes:
    system = {"time": "discrete", "#players": 1, "#states": 1, "#initial-states": 0, "#choices": 1, "#branches": 1}
    system |= {"#choice-actions": 0, "#branch-actions": 0, "#observations": 0} | changes
    return json.dumps({"format-version": 1, "format-revision": 0, "transition-system": system}).encode()


UMB: dict[str, tuple[bytes, str]] = {
    "a bomb": (gzip.compress(bytes(1 << 27)), "bytes that unpack to more than"),
    "no index": (tar({"other": b"x"}), "holds one index.json"),
    "an index of a trillion states": (
        tar({"index.json": index(**{"#states": 10**12})}),
        "#states = 1000000000000, which",
    ),
    "an index of minus one": (tar({"index.json": index(**{"#choices": -1})}), "#choices = -1"),
    "an index of text": (tar({"index.json": index(**{"#branches": "many"})}), "#branches = 'many'"),
    "an index without a system": (tar({"index.json": b"{}"}), "no transition-system"),
    "a deep index": (tar({"index.json": b"[" * 200_000}), "not a readable UMB file"),
    "a long index": (tar({"index.json": b" " * (1 << 21)}), "holds one index.json of at most"),
    "files missing": (gzip.compress(tar({"index.json": index(), "pad": bytes(64)})), "m.umb"),
    "a cut archive": (gzip.compress(tar({"index.json": index()}))[:60], "not a readable UMB file"),
}


@pytest.mark.parametrize("case", UMB)
def test_mdp_hostile_umb_is_refused(case: str, tmp_path: Path) -> None:
    pytest.importorskip("umbi")
    content, says = UMB[case]
    (tmp_path / "m.umb").write_bytes(content)
    refused(tmp_path / "m.umb", says)


def test_mdp_hostile_names_in_messages_are_cut_short(tmp_path: Path) -> None:
    (tmp_path / "m.drn").write_text("@" + "x" * 1_000_000 + "\n")
    with pytest.raises(UserError) as caught:
        read(tmp_path / "m.drn")
    assert len(str(caught.value)) < 1000
