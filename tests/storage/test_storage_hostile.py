"""Checkpoints made to do harm: passed over with a message, no code run, nothing written outside, little memory taken.

Whoever makes such a file can make its digests too, and so they are right here.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from dynaboltz.errors import StorageError
from dynaboltz.storage import Store, Weights, manifest
from dynaboltz.storage.blocks import BLOCK

MARK = "/tmp/dynaboltz-code-was-run"
Change = Callable[[dict[str, Any], Path], object]


class Payload:
    """Makes a file when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {MARK}",)


PICKLE = pickle.dumps(Payload())
BOMB = zstandard.ZstdCompressor(level=19).compress(bytes(BLOCK))


def entry(data: bytes) -> list[Any]:
    return [len(data), hashlib.sha256(data).hexdigest()]


def write_manifest(place: Path, body: bytes) -> None:
    digest = hashlib.sha256(body).hexdigest().encode()
    (place / manifest.NAME).write_bytes(manifest.HEAD + digest + manifest.MIDDLE + body + manifest.TAIL)


def set_file(name: str, data: bytes) -> Change:
    def change(described: dict[str, Any], place: Path) -> None:
        (place / name).write_bytes(data)
        described["files"][name] = [entry(data)]

    return change


def set_entry(*keys: Any, value: Any) -> Change:
    def change(described: dict[str, Any], _place: Path) -> None:
        for key in keys[:-1]:
            described = described[key]
        described[keys[-1]] = value

    return change


def bomb(described: dict[str, Any], place: Path) -> None:
    """A small file that would fill the memory: 2,000 blocks of zeros that are not marked as such."""
    (place / "arrays.zst").write_bytes(BOMB * 2000)
    described["arrays"], described["files"]["arrays.zst"] = [["|u1", [BLOCK * 2000]]], [entry(BOMB)] * 2000
    described["tree"] = {"a": ["array", 0]}


def longer_frame(described: dict[str, Any], place: Path) -> None:
    """A frame that unpacks to more than its array has."""
    data = zstandard.ZstdCompressor().compress(os.urandom(50) * 100_000)
    (place / "arrays.zst").write_bytes(data)
    described["arrays"], described["files"]["arrays.zst"] = [["|u1", [1000]]], [entry(data)]


def shorter_frame(described: dict[str, Any], place: Path) -> None:
    longer_frame(described, place)
    described["arrays"] = [["|u1", [4_999_999]]]


def wide_window(described: dict[str, Any], place: Path) -> None:
    """A frame that asks for a window of 1 GB."""
    parameters = zstandard.ZstdCompressionParameters(window_log=30, write_content_size=False)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = stream.compress(os.urandom(2000)) + stream.flush()
    (place / "arrays.zst").write_bytes(data)
    described["arrays"], described["files"]["arrays.zst"] = [["|u1", [2000]]], [entry(data)]


def link(name: str) -> Change:
    def change(_described: dict[str, Any], place: Path) -> None:
        (place / name).rename(place.parent / "elsewhere")
        (place / name).symlink_to(place.parent / "elsewhere")

    return change


def pipe(_described: dict[str, Any], place: Path) -> None:
    (place / "arrays.zst").unlink()
    os.mkfifo(place / "arrays.zst")


def folder_in_place(_described: dict[str, Any], place: Path) -> None:
    (place / "arrays.zst").unlink()
    (place / "arrays.zst").mkdir()


def safetensors(header: bytes, data: bytes = b"") -> Change:
    return set_file("w.safetensors", len(header).to_bytes(8, "little") + header + data)


def slip(name: str) -> Change:
    def change(described: dict[str, Any], _place: Path) -> None:
        described["files"][name] = described["files"].pop("w.safetensors")

    return change


HOSTILE: dict[str, Change] = {
    "pickle as arrays": set_file("arrays.zst", PICKLE),
    "pickle as weights": set_file("w.safetensors", PICKLE),
    "array of objects": set_entry("arrays", 0, value=["|O", [100]]),
    "type that is text": set_entry("arrays", 0, value=["O,os.system", [100]]),
    "bomb": bomb,
    "frame that is longer": longer_frame,
    "frame that is shorter": shorter_frame,
    "wide window": wide_window,
    "array of 4 EB": set_entry("arrays", 0, value=["<f8", [1 << 59]]),
    "array of 10^18 × 0 × 10^18": set_entry("arrays", 0, value=["<f8", [10**18, 0, 10**18]]),
    "arrays of many blocks": set_entry("arrays", value=[["|u1", [BLOCK << 22]]] * 1000),
    "negative shape": set_entry("arrays", 0, value=["<f8", [-1, -100]]),
    "negative size of a block": set_entry("files", "arrays.zst", value=[[-800, "0" * 64]]),
    "array of 1,000 dimensions": set_entry("arrays", 0, value=["<f8", [1] * 1000]),
    "header of 10^9": set_file("w.safetensors", (10**9).to_bytes(8, "little") + b"{}"),
    "header of 2^63": set_file("w.safetensors", (1 << 63).to_bytes(8, "little") + b"{}"),
    "deep JSON in weights": safetensors(b"[" * 100_000),
    "weights past the end": safetensors(b'{"x":{"dtype":"F64","shape":[1000000000],"data_offsets":[0,8000000000]}}'),
    "weights that overlap": safetensors(
        b'{"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"y":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}',
        bytes(8),
    ),
    "weights of an unknown type": safetensors(b'{"x":{"dtype":"OBJ","shape":[1],"data_offsets":[0,8]}}', bytes(8)),
    "path up": slip("../escaped"),
    "path from the root": slip("/etc/passwd"),
    "path with a null": slip("w\0.safetensors"),
    "hidden name": slip(".w.safetensors"),
    "manifest as weights": slip("manifest.json"),
    "symlink as arrays": link("arrays.zst"),
    "symlink as weights": link("w.safetensors"),
    "pipe as arrays": pipe,
    "folder as arrays": folder_in_place,
    "tree is a list": set_entry("tree", value=["list", 1]),
    "tree names no array": set_entry("tree", "a", value=["array", 7]),
    "tree names an array twice": set_entry("tree", value={"a": ["bytes", 0], "b": ["bytes", 0]}),
    "tree leaves an array out": set_entry("tree", value={}),
    "tree names no weights": set_entry("tree", "w", value=["weights", "v.safetensors", []]),
    "tree with an unknown node": set_entry("tree", "a", value=["pickle", "gASV"]),
    "tree with an empty node": set_entry("tree", "a", value=[]),
    "tree with a node of a dict": set_entry("tree", "a", value=["float", {}]),
    "tree of 1,000 levels": set_entry("tree", "a", value=json.loads('{"a":' * 900 + "1" + "}" * 900)),
    "text for files": set_entry("files", value="arrays.zst"),
    "number for about": set_entry("about", value=3),
    "step that is a text": set_entry("step", value="2"),
    "another format": set_entry("format", value="\x1b[2J"),
    "a later version": set_entry("version", value=2),
}
BODIES: dict[str, bytes] = {
    "not JSON": b"\xff\xfe",
    "deep JSON": b"[" * 1_000_000,
    "deep objects": b'{"a":' * 500_000,
    "a long number": b'{"format":' + b"9" * 1_000_000 + b"}",
    "many small objects": b"[" + b"{}," * 1_390_000 + b"{}]",
    "many small arrays": b'{"format":"dynaboltz checkpoint","version":1,"run":"one","step":2,"about":{},"tree":{},'
    b'"files":{},"arrays":[' + b'["|b1",[0]],' * 330_000 + b'["|b1",[0]]]}',
    "no number": b'{"format": NaN}',
    "a list": b"[]",
}  # fmt: skip

LARGE = [
    "bomb", "frame that is longer", "wide window", "array of 4 EB", "arrays of many blocks", "header of 10^9",
    "header of 2^63", "deep JSON in weights", "weights past the end", *BODIES,
]  # fmt: skip
"""Those that take much memory if they are believed."""


def prepare(folder: Path) -> tuple[Store, Path]:
    store = Store(folder, run="one")
    for step in (1, 2):
        store.save(step, {"a": np.arange(100.0), "w": Weights(x=np.ones(10))})
    return Store(folder, run="one"), folder / "ckpt-000000000002"


def make(name: str, place: Path) -> None:
    """Turn the checkpoint in ``place`` into the hostile one of that name."""
    if name in BODIES:
        write_manifest(place, BODIES[name])
        return
    described = json.loads((place / manifest.NAME).read_bytes())["manifest"]
    HOSTILE[name](described, place)
    write_manifest(place, json.dumps(described).encode())


@pytest.mark.parametrize("name", [*HOSTILE, *BODIES])
def test_store_passes_over_a_hostile_checkpoint(name: str, tmp_path: Path) -> None:
    store, place = prepare(tmp_path / "run")
    make(name, place)
    before = sorted(tmp_path.rglob("*"))
    found = store.load()
    assert found is not None
    if name == "array of 10^18 × 0 × 10^18":  # strange but harmless
        return
    assert (found.step, len(found.skipped)) == (1, 1)
    assert "ckpt-000000000002: it is damaged, " in found.skipped[0]
    assert found.skipped[0].isprintable()
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path(MARK).exists()


@pytest.mark.parametrize("size", [manifest.LARGEST + 1000, 10**12], ids=["large", "sparse"])
def test_store_passes_over_a_manifest_that_is_too_large(size: int, tmp_path: Path) -> None:
    store, place = prepare(tmp_path)
    os.truncate(place / manifest.NAME, size)
    found = store.load()
    assert found is not None
    assert found.step == 1
    assert f"manifest.json has {size:,} bytes" in found.skipped[0]


def test_store_refuses_zeros_that_would_not_fit(tmp_path: Path) -> None:
    """Blocks of zeros take no disk: 0.6 TB of them are a manifest of 1 MB."""
    store, place = prepare(tmp_path)
    described = json.loads((place / manifest.NAME).read_bytes())["manifest"]
    described["arrays"], described["files"]["arrays.zst"] = [["|u1", [BLOCK * 150_000]]], [[0, ""]] * 150_000
    described["tree"], described["files"] = {"a": ["array", 0]}, {"arrays.zst": described["files"]["arrays.zst"]}
    write_manifest(place, json.dumps(described, separators=(",", ":")).encode())
    with pytest.raises(StorageError, match=r"takes 629 GB of memory, and .* are free"):
        store.load()


def test_store_ignores_a_link_to_a_checkpoint(tmp_path: Path) -> None:
    store, _ = prepare(tmp_path / "run")
    prepare(tmp_path / "other")
    (tmp_path / "run" / "ckpt-000000000009").symlink_to(tmp_path / "other" / "ckpt-000000000002")
    (tmp_path / "run" / "ckpt-000000000010").write_bytes(PICKLE)
    found = store.load()
    assert found is not None
    assert (found.step, found.skipped) == (2, [])


CHILD = """
import re, sys
from pathlib import Path
import test_storage_hostile as hostile
folder = Path(sys.argv[1])
for number, name in enumerate(hostile.LARGE):
    store, place = hostile.prepare(folder / str(number))
    hostile.make(name, place)
    store.load()
    print(int(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1]) // 1024, name)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/status")
def test_store_takes_less_than_half_a_gigabyte_for_any_hostile_checkpoint(tmp_path: Path) -> None:
    command, here = [sys.executable, "-c", CHILD, str(tmp_path)], Path(__file__).parent
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    peaks = [int(line.split()[0]) for line in done.stdout.splitlines()]
    assert len(peaks) == len(LARGE)
    assert max(peaks) < 500, done.stdout
