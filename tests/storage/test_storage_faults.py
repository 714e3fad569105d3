"""The small version of ``benchmarks/faults_storage.py``: every kill, every full disk, bits flipped, files exchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults_storage.py"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="a process is forked for every kill")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """In a process of its own: a fork of one with threads is not to be relied on."""
    done = subprocess.run(
        [sys.executable, str(FAULTS), "--small", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("name", "least"), [("R1", 45 + 150), ("R3", 20 + 40), ("R4", 60), ("R5", 45)])
def test_store_survives_every_fault_of_a_kind(name: str, least: int, rows: list[dict[str, Any]]) -> None:
    mine = [row for row in rows if row["id"] == name]
    assert [text for row in mine for text in row["failures"]] == []
    assert sum(row["tries"] for row in mine) >= least
