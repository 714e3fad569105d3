"""The README's table of verdicts is the ledger's, and its picture is what the command draws."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from dynaboltz.paper.claim import Evidence
from dynaboltz.reports.figures import save

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LEDGER = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")


def test_table_of_verdicts_has_every_claim_of_the_ledger_under_its_verdict() -> None:
    ledger: dict[str, list[str]] = {}
    for title, verdict in re.findall(r"^\| (.+?) \| .+? \| `[\w-]+` \| (.+?) \|$", LEDGER, re.MULTILINE):
        ledger.setdefault(verdict, []).append(title)
    (table,) = re.findall(r"^\| verdict \| claims \|\n\|---\|---\|\n((?:\|.*\|\n)+)", README, re.MULTILINE)
    told = {}
    for row in table.splitlines():
        verdict, titles = (cell.strip() for cell in row.strip("|").split("|"))
        told[verdict] = titles.split(" · ")
    assert told == ledger


def test_picture_is_what_the_command_draws(evidence: Callable[[str], Evidence], tmp_path: Path) -> None:
    pinned = re.search(r"^matplotlib==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    if version("matplotlib") != pinned[1]:
        pytest.skip(f"matplotlib {version('matplotlib')} draws other bytes than the pinned {pinned[1]}")
    (figure,) = [one for one in evidence("figure-gridworld-bc").figures if one.name == "figure-gridworld-b"]
    assert save(figure, tmp_path, ()) == (ROOT / "docs" / "gridworld.svg").read_text(encoding="utf-8"), "make picture"
