"""One process a folder: the second is told who is there, and no end of the first leaves a lock behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from dynaboltz.errors import StorageError, UserError
from dynaboltz.storage import Store, locked

HOLD = """
import os, sys, time
from pathlib import Path
from dynaboltz.storage import locked
with locked(Path(sys.argv[1])):
    if sys.argv[2] == "fork" and os.fork() == 0:
        print(f"held and forked {os.getpid()}", flush=True)
        sys.stdin.read()
        os._exit(0)
    elif sys.argv[2] == "hold":
        print("held", flush=True)
    sys.stdin.read()
"""
SAVE = """
import sys
import time
from pathlib import Path
import numpy as np
from dynaboltz.errors import UserError
from dynaboltz.storage import Store, locked
folder, done = Path(sys.argv[1]), 0
while done < 5:
    try:
        with locked(folder):
            store = Store(folder, run="one")
            found = store.load()
            step = 0 if found is None else found.step
            store.save(step + 1, {"values": np.full(100, step + 1.0)})
            done += 1
    except UserError as error:
        assert "is in use by" in str(error), error
        time.sleep(0.005)
"""
READ_ONLY = """
import os, sys
from pathlib import Path
import numpy as np
from dynaboltz.errors import DynaboltzError
from dynaboltz.storage import Store, locked
folder = Path(sys.argv[1])
tree = {"values": np.zeros(3)}
store = Store(folder, run="one")
warm = Store(folder.parent / "warm", run="one")  # brings in what is imported late
warm.save(1, tree)
warm.load()
os.chdir(folder.parent)
store = Store(Path(folder.name), run="one")
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)  # permission bits do not stop root
assert not os.access(folder.name, os.W_OK)
for act in (lambda: store.save(2, tree), lambda: locked(Path(folder.name)).__enter__()):
    try:
        act()
    except DynaboltzError as error:
        print(error, file=sys.stderr)
        print(type(error).__name__, error.exit_code, error.__cause__.strerror)
print(store.load().step)
"""


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def piped(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = child(HOLD, tmp_path, "hold")
    try:
        assert piped(process.stdout).readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_lock_names_the_process_that_holds_it(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"is in use by process {holder.pid} on ") as refused, locked(tmp_path):
        pass
    assert "wait until that has ended, or choose another folder" in str(refused.value)


def test_lock_ends_with_the_process_however_that_ends(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    holder.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    holder.wait()
    with locked(tmp_path):
        pass


def test_lock_is_given_back_and_taken_again(tmp_path: Path) -> None:
    for _ in range(3):
        with locked(tmp_path / "made" / "here"):
            pass
    assert (tmp_path / "made" / "here" / ".lock").read_text().startswith(f"process {os.getpid()} on ")


def test_lock_keeps_the_same_process_out_too(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(UserError, match=f"in use by process {os.getpid()} "), locked(tmp_path):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process forks here")
def test_forked_child_does_not_keep_the_lock_of_a_killed_parent(tmp_path: Path) -> None:
    process = child(HOLD, tmp_path, "fork")
    forked = 0
    try:
        forked = int(piped(process.stdout).readline().split()[-1])
        with pytest.raises(UserError, match="in use"), locked(tmp_path):
            pass
        process.kill()
        process.wait()
        os.kill(forked, 0)  # it is still there
        with locked(tmp_path):
            pass
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            piped(stream).close()
        process.wait()


def test_lock_refuses_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / ".lock").symlink_to(tmp_path / "target")
    with pytest.raises(UserError, match="cannot write into the folder"), locked(tmp_path):
        pass
    assert (tmp_path / "target").read_text() == "mine"


def test_lock_shows_nothing_of_a_holder_that_would_move_the_cursor(tmp_path: Path) -> None:
    with locked(tmp_path):
        (tmp_path / ".lock").write_text("process \x1b[2J\x07")
        with pytest.raises(UserError) as refused, locked(tmp_path):
            pass
    assert "\x1b" not in str(refused.value)


def test_folder_without_locks_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from dynaboltz.storage import lock

    def none(_handle: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(lock, "_try_lock", none)
    with pytest.warns(UserWarning, match="nothing keeps a second process out"), locked(tmp_path):
        pass


def test_two_processes_that_take_turns_lose_nothing(tmp_path: Path) -> None:
    both = [child(SAVE, tmp_path) for _ in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    found = Store(tmp_path, run="one").load()
    assert found is not None
    assert (found.step, found.skipped, found.tree["values"][0]) == (10, [], 10.0)


@pytest.mark.skipif(os.name != "posix", reason="permission bits of POSIX")
def test_read_only_folder_is_refused_and_what_is_in_it_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    Store(folder, run="one").save(1, {"values": np.zeros(3)})
    folder.chmod(0o555)
    tmp_path.chmod(0o755)  # for a user who is not root
    try:
        done = child(READ_ONLY, folder).communicate(timeout=60)
    finally:
        folder.chmod(0o755)
    assert done[0].splitlines() == ["StorageError 1 Permission denied", "UserError 2 Permission denied", "1"], done[1]
    assert "cannot save checkpoint run/ckpt-000000000002: Permission denied" in done[1]
    assert "cannot write into the folder run: Permission denied" in done[1]


@pytest.mark.parametrize("make", [lambda path: path.write_text("a file"), lambda path: path.symlink_to(path)])
def test_store_in_place_of_which_is_something_else_is_refused(make: Any, tmp_path: Path) -> None:
    make(tmp_path / "run")
    with pytest.raises((UserError, StorageError), match="cannot"):
        Store(tmp_path / "run", run="one").save(1, {})
    with pytest.raises(UserError, match="cannot"), locked(tmp_path / "run"):
        pass
