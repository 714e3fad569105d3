"""Saves that are killed, run out of disk, or whose files are damaged afterwards: what is found then.

    python benchmarks/faults_storage.py             # the full counts, a few minutes; a real full disk where it may mount one

R1  A save is killed with SIGKILL before its k-th call of the operating system, for every k until it gets through: before
    every such call that Python makes, and, where ptrace is allowed, at every system call the process makes. What is
    found then must be, bit for bit, the newest committed state or the one that was being saved; the next save must work.
R3  The k-th call that writes fails with "no space left on device", for every k; then a real disk (a tmpfs) with every
    number of free pages from 0 on, until the save fits. The save must end with a StorageError or not at all, the older
    checkpoints must be whole, and a save with space again must work.
R4  One bit of the newest checkpoint is flipped. R5  A file of it is cut, emptied, removed, overwritten, or exchanged;
    or the checkpoint is another run's or step's. Loading must find the older one and say what it passed over.
Exit code 1 if anything does not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz import archive
from dynaboltz.errors import DynaboltzError, StorageError, UserError
from dynaboltz.storage import Store, Weights, blocks, manifest
from dynaboltz.storage import folder as folders

BLOCK = 1 << 16
"""Bytes of a block here, so that a small array has several."""
WRITING = {"write", "mkdir", "open", "fsync", "rename", "replace", "flush", "close"}
LAYOUT = archive.Layout(
    kind="solution", version=1, needed={"values": "f"}, optional={}, tables=frozenset(), meta=frozenset({"step"})
)


def same(a: Any, b: Any) -> bool:
    """Whether two trees agree in every bit."""
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return bool(a == b)


class Kept:
    """A store of one run, with arrays of several blocks, and weights if asked for."""

    files = 2

    def __init__(self, weights: bool) -> None:
        self.weights = weights

    def content(self, step: int, run: str = "this") -> dict[str, Any]:
        rng = np.random.default_rng([step, len(run)])
        sparse = np.zeros(3 * BLOCK, np.uint8)
        sparse[:2000] = sparse[-2000:] = rng.integers(0, 256, 2000)
        tree: dict[str, Any] = {
            "replay": sparse, "values": rng.normal(size=4000), "streams": {"policy": rng.bit_generator.state},
            "clock": step, "c": float(rng.normal()),
        }  # fmt: skip
        if self.weights:
            tree["online"] = Weights(first=rng.normal(size=(50, 60)).astype(np.float32), last=rng.normal(size=7))
        return tree

    def save(self, folder: Path, step: int, run: str = "this") -> None:
        Store(folder, run=run).save(step, self.content(step, run))

    def find(self, folder: Path) -> tuple[int, bool]:
        """The step that is found, and whether anything is said; -1 if it is not to the bit what was saved."""
        found = Store(folder, run="this").load()
        assert found is not None
        return found.step if same(self.content(found.step), found.tree) else -1, bool(found.skipped)


class Solution:
    """One ``.npz`` file that is replaced."""

    files = 1

    def content(self, step: int) -> Any:
        return np.random.default_rng(step).normal(size=5000)

    def save(self, folder: Path, step: int) -> None:
        archive.write(folder / "solution.npz", LAYOUT, {"values": self.content(step)}, {"step": step})

    def find(self, folder: Path) -> tuple[int, bool]:
        arrays, meta = archive.read(folder / "solution.npz", LAYOUT)
        return meta["step"] if same(self.content(meta["step"]), arrays["values"]) else -1, False


FORMATS: dict[str, Kept | Solution] = {
    ".npz solution": Solution(), "arrays": Kept(weights=False), "arrays and safetensors": Kept(weights=True),
}  # fmt: skip


@dataclass
class Row:
    """A line of the table."""

    id: str
    what: str
    tries: int = 0
    failures: list[str] = field(default_factory=list)

    def count(self, fault: str, where: str) -> None:
        self.tries += 1
        self.failures += [f"{where}: {fault}"] * bool(fault)

    @property
    def survived(self) -> int:
        return self.tries - len(self.failures)


@contextlib.contextmanager
def prepared(form: Kept | Solution, base: Path) -> Iterator[Callable[[], Path]]:
    """A maker of folders in which steps 1 and 2 have been committed."""
    with tempfile.TemporaryDirectory(dir=base) as name:
        template, place = Path(name) / "template", Path(name) / "place"
        template.mkdir()
        for step in (1, 2):
            form.save(template, step)

        def fresh() -> Path:
            shutil.rmtree(place, ignore_errors=True)
            return Path(shutil.copytree(template, place))

        yield fresh


def wrong(form: Kept | Solution, folder: Path, allowed: set[int]) -> str:
    """What does not hold in a folder after a fault, and after the save that comes next; empty if all does."""
    try:
        step, _ = form.find(folder)
        if step not in allowed:
            return f"found {step}, not one of {sorted(allowed)}"
        form.save(folder, 4)
        step, said = form.find(folder)
    except DynaboltzError as fault:
        return f"{type(fault).__name__}: {fault}"
    if step != 4 or said:
        return f"found {step} after the next save"
    left = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    return "" if len(left) == form.files else f"left behind {left}"


def calls_the_system(function: Any) -> bool:
    """Whether a built-in function calls the operating system, as far as its module tells."""
    itself = getattr(function, "__self__", None)
    return (
        not isinstance(itself, io.BytesIO)
        and (getattr(function, "__module__", None) or type(itself).__module__)
        in (
            "posix",
            "_io",
            "io",
        )
        and function.__name__ != "fspath"
    )


@contextlib.contextmanager
def before_call(number: int, act: Callable[[], object], names: set[str] | None = None) -> Iterator[list[int]]:
    """Call ``act`` before the ``number``-th call of the operating system that Python makes in this thread."""
    seen = [0]

    def hook(_frame: object, event: str, function: Any) -> None:
        if event == "c_call" and calls_the_system(function) and (names is None or function.__name__ in names):
            seen[0] += 1
            if seen[0] == number:
                act()

    sys.setprofile(hook)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def in_child(work: Callable[[], object]) -> int:
    """Fork, and do ``work`` in the child, which then ends with 0, or 1 if it raises."""
    if child := os.fork():
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def killed_before_call(form: Kept | Solution, folder: Path, number: int) -> bool:
    """Whether the save got through before the call at which it would have been killed."""

    def work() -> None:
        with before_call(number, lambda: os.kill(os.getpid(), signal.SIGKILL)):
            form.save(folder, 3)

    status = os.waitstatus_to_exitcode(os.waitpid(in_child(work), 0)[1])
    assert status in (0, -signal.SIGKILL), f"the save itself failed with {status}"
    return status == 0


def killed_at_system_call(form: Kept | Solution, folder: Path, number: int) -> bool | None:
    """The same, where the calls are those that the kernel sees; None if it lets no process be traced."""
    trace = ctypes.CDLL(None, use_errno=True).ptrace
    trace.argtypes = [ctypes.c_long] * 4
    traceme, go_on, set_options, mark_calls, kill_on_exit = 0, 24, 0x4200, 1, 1 << 20

    def work() -> None:
        if trace(traceme, 0, 0, 0):
            os._exit(77)
        os.kill(os.getpid(), signal.SIGSTOP)
        form.save(folder, 3)

    child = in_child(work)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        return None
    trace(set_options, child, 0, mark_calls | kill_on_exit)
    for _ in range(2 * number - 1):  # it stops as it enters a call and as it leaves one
        trace(go_on, child, 0, 0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert not status, "the save itself failed"
            return True
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def kills(name: str, base: Path, way: Callable[..., bool | None], what: str) -> Row:
    """R1: every k until the save gets through."""
    form, row = FORMATS[name], Row("R1", f"killed before each {what}: {name}")
    with prepared(form, base) as fresh:
        through: bool | None = False
        while through is False:
            folder = fresh()
            through = way(form, folder, row.tries + 1)
            if through is not None:
                row.count(wrong(form, folder, {3} if through else {2, 3}), f"{name}, call {row.tries + 1}")
    return row


def attempt(form: Kept | Solution, folder: Path) -> bool:
    """Whether step 3 could be saved; anything but a clear refusal is passed on."""
    try:
        form.save(folder, 3)
    except (StorageError, UserError) as fault:
        if "No space left" not in str(fault):
            raise
        return False
    return True


def full_disk(name: str, base: Path) -> Row:
    """R3: the k-th call that writes fails, for every k."""
    form, row = FORMATS[name], Row("R3", f"no space at each writing call: {name}")

    def fail() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with prepared(form, base) as fresh:
        number, seen = 0, [0]
        while seen[0] == number:
            number, folder = number + 1, fresh()
            with before_call(number, fail, WRITING) as seen:
                saved = attempt(form, folder)
            row.count(wrong(form, folder, {3} if saved else {2, 3}), f"{name}, write {number}")
    return row


def real_full_disk(name: str) -> Row:
    """R3 on a file system of a few MB; no tries where none may be mounted."""
    form, row = FORMATS[name], Row("R3", f"real disk, every number of free pages: {name}")
    with tempfile.TemporaryDirectory() as mounted:
        place = Path(mounted)
        try:
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", "size=2m", "dynaboltz", mounted], check=True, capture_output=True
            )
        except (OSError, subprocess.CalledProcessError):
            return row
        try:
            with prepared(form, place) as fresh:
                saved = False
                while not saved:
                    folder, filler = fresh(), place / "filler"
                    free = os.statvfs(place)
                    filler.write_bytes(bytes((free.f_bavail - row.tries) * free.f_frsize))
                    saved = attempt(form, folder)
                    filler.unlink()
                    row.count(wrong(form, folder, {3} if saved else {2}), f"{name}, {row.tries} pages free")
        finally:
            subprocess.run(["umount", mounted], check=True)
    return row


def fallen_back(form: Kept, folder: Path) -> str:
    """What is wrong if a damaged newest checkpoint is not passed over with a message."""
    try:
        step, said = form.find(folder)
    except Exception as fault:
        return f"{type(fault).__name__}: {fault}"
    return "" if step == 1 and said else f"found {step}, {'said' if said else 'said nothing'}"


def flips(tries: int, base: Path, rng: np.random.Generator) -> Row:
    """R4: one bit anywhere in the newest checkpoint."""
    row = Row("R4", "one bit flipped")
    for form in (Kept(weights=False), Kept(weights=True)):
        with prepared(form, base) as fresh:
            folder = fresh()
            files = sorted((folder / f"ckpt-{2:012d}").iterdir())
            for number in range(tries // 2):
                file = files[number % len(files)]
                good = file.read_bytes()
                offset, bit = int(rng.integers(len(good))), int(rng.integers(8))
                bad = bytearray(good)
                bad[offset] ^= 1 << bit
                file.write_bytes(bad)
                row.count(fallen_back(form, folder), f"{file.name}, byte {offset}, bit {bit}")
                file.write_bytes(good)
    return row


def damages(tries: int, base: Path, rng: np.random.Generator) -> Row:
    """R5: files cut, emptied, removed, overwritten, exchanged; checkpoints that are another run's or step's."""
    row, form = Row("R5", "cut, emptied, removed, exchanged"), Kept(weights=True)
    kinds = ["cut", "emptied", "removed", "longer", "zeros", "other run", "other step", "all of another run", "renamed"]
    with prepared(form, base) as fresh, tempfile.TemporaryDirectory(dir=base) as name:
        foreign = Path(name)
        form.save(foreign, 2, "another")
        for number in range(tries):
            folder, kind = fresh(), kinds[number % len(kinds)]
            newest, older = folder / f"ckpt-{2:012d}", folder / f"ckpt-{1:012d}"
            file = rng.choice(sorted(newest.iterdir()))
            data = file.read_bytes()
            if kind == "cut":
                file.write_bytes(data[: rng.integers(1, len(data))])
            elif kind in (others := {"emptied": b"", "longer": data + b"\0", "zeros": bytes(len(data))}):
                file.write_bytes(others[kind])
            elif kind == "removed":
                file.unlink()
            elif kind == "other run":
                shutil.copy(foreign / newest.name / file.name, file)
            elif kind == "other step":
                shutil.copy(older / file.name, file)
            else:
                shutil.rmtree(newest)
                shutil.copytree(foreign / newest.name if kind == "all of another run" else older, newest)
            row.count(fallen_back(form, folder), f"{kind}: {file.name}, try {number}")
    return row


def main() -> int:
    """Check and print; 1 if anything does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="the counts of the test suite")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for module in (blocks, folders, manifest):
        module.BLOCK = BLOCK
    rng, began, rows = np.random.default_rng(0), time.monotonic(), []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no kill needs a disk, and fsync is slow on one
    with tempfile.TemporaryDirectory(dir=memory) as name:
        base = Path(name)
        for form in list(FORMATS)[:: 2 if options.small else 1]:
            rows += [kills(form, base, killed_before_call, "call"), full_disk(form, base)]
            if not options.small:
                rows += [kills(form, base, killed_at_system_call, "system call"), real_full_disk(form)]
            print(f"  {form}: {sum(row.tries for row in rows)} tries so far", file=sys.stderr, flush=True)
        rows.append(flips(60 if options.small else 1000, base, rng))
        rows.append(damages(45 if options.small else 300, base, rng))
    if options.json:
        print(json.dumps([vars(row) for row in rows]))
    for row in [] if options.json else sorted(rows, key=lambda row: row.id):
        found = f"{row.survived:6d} of {row.tries:6d} survived" if row.tries else "  not allowed here (ptrace or mount)"
        print(f"{row.id}  {row.what:62s} {found}")
        print(*(f"    {text}\n" for text in row.failures[:10]), sep="", end="")
    print(f"{len(rows)} rows, {time.monotonic() - began:.1f} s", file=sys.stderr)
    return int(any(row.failures for row in rows))


if __name__ == "__main__":
    sys.exit(main())
