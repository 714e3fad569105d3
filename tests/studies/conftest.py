"""A study of tiny runs on probe worlds, as a tree of tables."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.runs import RunConfig
from dynaboltz.studies import Place, parse_study

TINY: dict[str, Any] = {
    "name": "tiny",
    "seeds": [0],
    "preset": "dqn",
    "settings": {
        "env": "probe/beta", "steps": 200, "log_period_steps": 100,
        "agent": {"replay_start_steps": 50, "replay_capacity_steps": 500, "hidden": [8]},
        "evaluation": {"episodes": 2, "period_steps": 100},
        "saving": {"period_seconds": 0},
    },
}  # fmt: skip


def tiny(**tables: Any) -> dict[str, Any]:
    """The tables of a tiny study, with others in their place or, for settings, over them."""
    tree = copy.deepcopy(TINY)
    tree["settings"].update(tables.pop("settings", {}))
    return tree | tables


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Where a study lives."""
    return Place(tmp_path / "runs", "tiny")


@pytest.fixture
def grid() -> Callable[..., tuple[RunConfig, ...]]:
    """The runs of a tiny study."""

    def configs(**tables: Any) -> tuple[RunConfig, ...]:
        return parse_study(tiny(**tables), "a test", default_name="tiny").configs

    return configs


@pytest.fixture
def until() -> Callable[..., None]:
    """Waits for what it is given; the time is a limit for a test that fails."""

    def wait(true: Callable[[], bool], seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, "it did not happen"
            time.sleep(0.02)

    return wait


@pytest.fixture
def lives() -> Callable[[int], bool]:
    """Whether there is such a process, and not only what is left of it for a parent that does not ask."""

    def look(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    return look


@pytest.fixture
def study_process() -> Callable[..., subprocess.Popen[str]]:
    """The command, in a process of its own."""

    def start(file: Path, out: Path, *more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "dynaboltz", "study", str(file), "--out", str(out), *more],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    return start
