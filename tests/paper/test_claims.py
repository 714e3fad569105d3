"""Every claim's test runs, says what it found, and comes to the verdict that the mathematics allows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dynaboltz.paper import CLAIMS
from dynaboltz.paper.claim import Check, Evidence, Verdict
from dynaboltz.paper.page import write_page
from dynaboltz.paper.reproduce import run


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_s_own_statements_are_all_true(name: str, evidence: Callable[[str], Evidence]) -> None:
    assert [check.fact for check in evidence(name).checks if check.of == "ours" and not check.true] == []


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_checks_a_statement_of_the_paper(name: str, evidence: Callable[[str], Evidence]) -> None:
    assert any(check.of == "paper" for check in evidence(name).checks)


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_s_tables_are_rectangular(name: str, evidence: Callable[[str], Evidence]) -> None:
    for table in evidence(name).tables:
        assert {len(row) for row in table.rows} == {len(table.header)}


def judged(*checks: tuple[str, bool]) -> Verdict:
    return Evidence(finding="", settings={}, checks=[Check(fact="", of=of, true=true) for of, true in checks]).verdict


def test_verdict_holds_if_all_of_the_paper_s_statements_do() -> None:
    assert judged(("paper", True), ("ours", False)) is Verdict.HOLDS


def test_verdict_is_a_correction_if_ours_replaces_what_fails() -> None:
    assert judged(("paper", False), ("ours", True)) is Verdict.CORRECTED


def test_verdict_does_not_turn_on_what_is_beside_the_claim() -> None:
    assert judged(("paper", True), ("aside", False)) is Verdict.HOLDS
    assert judged(("paper", False), ("aside", True)) is Verdict.DOES_NOT_FOLLOW


def test_verdict_without_a_correction_is_that_it_does_not_follow() -> None:
    assert judged(("paper", False)) is Verdict.DOES_NOT_FOLLOW
    assert judged(("paper", False), ("ours", False)) is Verdict.DOES_NOT_FOLLOW


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("reproduce")
    outcomes = [run(CLAIMS[name], target, seed=3) for name in ("corollary", "beta-range")]
    write_page(outcomes, target, seed=3)
    return target


def test_same_seed_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    outcomes = [run(CLAIMS[name], tmp_path, seed=3) for name in ("beta-range", "corollary")]
    write_page(outcomes[::-1], tmp_path, seed=3)
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_numbers_are_strict_json(folder: Path) -> None:
    def refuse(name: str) -> float:
        raise AssertionError(name)

    content = json.loads((folder / "corollary.json").read_text(encoding="utf-8"), parse_constant=refuse)
    assert content["verdict"] == "holds with a correction"
    assert len(content["numbers"]["points"]["beta"]) == content["settings"]["worlds"]
