"""The same rows from Ray and from submitit as from here; Ray listens on the loopback device, and leaves nothing."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from dynaboltz.runs import RunConfig, home_of, train
from dynaboltz.studies import Driver, Place, make_executor
from dynaboltz.studies.executors.keeper import descendants

Grid = Callable[..., tuple[RunConfig, ...]]


def missing(package: str) -> bool:
    return importlib.util.find_spec(package) is None


def rows(config: RunConfig, root: Path) -> bytes:
    return home_of(config, root).rows.read_bytes()


def listening(pids: Iterable[int]) -> set[str]:
    """The addresses that these processes listen on, as /proc writes them."""
    sockets = set()
    for pid in pids:
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                sockets |= set(re.findall(r"^socket:\[(\d+)\]$", str(handle.readlink())))
            except OSError:
                continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            parts = line.split()
            if parts[3] == "0A" and parts[9] in sockets:
                found.add(parts[1].partition(":")[0])
    return found


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1, that in IPv6, and ::1."""


@pytest.mark.skipif(missing("ray"), reason="ray is not installed")
@pytest.mark.skipif(sys.platform != "linux", reason="processes and sockets are counted in /proc")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
def test_ray_gives_the_same_rows_listens_here_only_and_leaves_nothing(
    grid: Grid, place: Place, tmp_path: Path, until: Callable[..., None], lives: Callable[[int], bool]
) -> None:
    (config,) = grid()
    before = set(descendants(os.getpid()))  # of other tests: multiprocessing keeps one until this process ends
    executor = make_executor("ray", place.folder, jobs=1, options={})
    started = set(descendants(os.getpid())) - before
    addresses = listening(started)
    (task,) = Driver([config], place, lambda: executor).run()
    train(config, tmp_path / "undisturbed")
    assert task.state == "done"
    assert rows(config, place.root) == rows(config, tmp_path / "undisturbed")
    assert addresses
    assert addresses <= LOOPBACK
    assert len(started) > 4
    until(lambda: not any(map(lives, started)))


@pytest.mark.skipif(missing("submitit"), reason="submitit is not installed")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_submitit_gives_the_same_rows(grid: Grid, place: Place, tmp_path: Path) -> None:
    (config,) = grid()
    options = {"cluster": "local"}
    (task,) = Driver([config], place, lambda: make_executor("slurm", place.folder, jobs=1, options=options)).run()
    train(config, tmp_path / "undisturbed")
    assert (task.state, task.begun) == ("done", 1)
    assert rows(config, place.root) == rows(config, tmp_path / "undisturbed")
