"""Every claim's test runs, says what it found, and comes to the verdict that the mathematics allows."""

from __future__ import annotations

import json
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dynaboltz.paper import CLAIMS
from dynaboltz.paper.claim import Check, Evidence, Verdict
from dynaboltz.paper.page import cell, inline_svg, write_page
from dynaboltz.paper.reproduce import run


@cache
def evidence(name: str, seed: int = 1) -> Evidence:
    return CLAIMS[name].test(np.random.default_rng(seed))


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_s_own_statements_are_all_true(name: str) -> None:
    assert [check.fact for check in evidence(name).checks if check.of == "ours" and not check.true] == []


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_checks_a_statement_of_the_paper(name: str) -> None:
    assert any(check.of == "paper" for check in evidence(name).checks)


@pytest.mark.parametrize("name", CLAIMS)
def test_claim_s_tables_are_rectangular(name: str) -> None:
    for table in evidence(name).tables:
        assert {len(row) for row in table.rows} == {len(table.header)}


def judged(*checks: tuple[str, bool]) -> Verdict:
    return Evidence(finding="", settings={}, checks=[Check(fact="", of=of, true=true) for of, true in checks]).verdict


def test_verdict_holds_if_all_of_the_paper_s_statements_do() -> None:
    assert judged(("paper", True), ("ours", False)) is Verdict.HOLDS


def test_verdict_is_a_correction_if_ours_replaces_what_fails() -> None:
    assert judged(("paper", False), ("ours", True)) is Verdict.CORRECTED


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


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.labels: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for key, value in attributes:
            if key in ("href", "src", "xlink:href") and value:
                self.links.append(value)
            if key == "id" and value:
                self.ids.append(value)
            if tag == "figure" and key == "aria-label" and value:
                self.labels.append(value)


def parsed(folder: Path) -> Page:
    page = Page()
    page.feed((folder / "index.html").read_text(encoding="utf-8"))
    return page


def test_page_needs_no_network_and_its_links_lead_somewhere(folder: Path) -> None:
    page = parsed(folder)
    for link in page.links:
        target = link.removeprefix("#")
        assert (target in page.ids) if link.startswith("#") else (folder / link).is_file(), link


def test_page_has_unique_ids_and_says_what_each_figure_shows(folder: Path) -> None:
    page = parsed(folder)
    assert len(page.ids) == len(set(page.ids))
    assert len(page.labels) == len(list(folder.glob("*.svg")))


def test_page_escapes_what_it_prints(folder: Path) -> None:
    assert "<script" not in (folder / "index.html").read_text(encoding="utf-8")


def test_inline_svg_prefixes_ids_and_drops_its_size() -> None:
    svg = '<?xml?><svg width="3pt" height="2pt" viewBox="0 0 3 2"><g id="a"/><use href="#a" fill="url(#a)"/></svg>'
    assert inline_svg(svg, "f") == (
        '<svg viewBox="0 0 3 2" aria-hidden="true"><g id="f-a"/><use href="#f-a" fill="url(#f-a)"/></svg>'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567, "1,234,567"), (0.00001234, "1.234 × 10⁻⁵"), (-0.5, "−0.5"), (True, "yes"), ("x", "x"), (2.0, "2")],
)
def test_cell_reads_like_print(value: object, text: str) -> None:
    assert cell(value) == text
