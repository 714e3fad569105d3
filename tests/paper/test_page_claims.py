"""The page of claims is whole, small, leads somewhere, and prints what it is given as text."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.paper import CLAIMS
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.page import write_page
from dynaboltz.paper.reproduce import Outcome, as_json, run
from dynaboltz.reports.figures import save

NASTY = "<img src=x onerror=alert(1)>\"'&</script>"


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.labels: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for key, value in attributes:
            if key in ("href", "src", "xlink:href") and value and not value.startswith("data:"):
                self.links.append(value)
            if key == "id" and value:
                self.ids.append(value)
            if tag == "figure" and key == "aria-label" and value:
                self.labels.append(value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("page")
    write_page([run(CLAIMS[name], target) for name in ("proposition-1", "table-wins", "table-medians")], target, seed=0)
    return target


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


def test_page_shows_verdicts_commands_and_identities(folder: Path) -> None:
    html = (folder / "index.html").read_text(encoding="utf-8")
    assert "dynaboltz reproduce --only proposition-1 --seed 0" in html
    assert len(re.findall(r"settings and seed <code>[0-9a-f]{12}</code>", html)) == 3
    assert html.count("holds with a correction") == 3


def test_page_has_both_sliders_and_stays_small(folder: Path) -> None:
    page = parsed(folder)
    assert {"lens", "sweep", "sweep-data"} <= set(page.ids)
    assert (folder / "index.html").stat().st_size < 1_000_000


def test_identity_changes_with_the_seed_and_with_a_setting() -> None:
    evidence = Evidence(finding="", settings={"n": 1}, checks=[])
    outcome = Outcome(claim=CLAIMS["corollary"], evidence=evidence, seconds=0.0, drawings={}, seed=1)
    other = dataclasses.replace(outcome, evidence=dataclasses.replace(evidence, settings={"n": 2}))
    assert len({outcome.identity, other.identity, dataclasses.replace(outcome, seed=2).identity}) == 3
    assert outcome.identity == dataclasses.replace(outcome, seconds=9.0).identity


def test_page_escapes_what_it_prints(tmp_path: Path) -> None:
    evidence = Evidence(
        finding=NASTY, settings={NASTY: NASTY}, checks=[Check(fact=NASTY, true=True, of=NASTY, detail=NASTY)],
        tables=[Table(caption=NASTY, header=(NASTY, "b"), rows=[(NASTY, NASTY)])],
    )  # fmt: skip
    claim = Claim(
        name="nasty", title=NASTY, section=NASTY, where=NASTY, says=NASTY, equations={NASTY: NASTY},
        test=lambda _: evidence,
    )  # fmt: skip
    write_page([run(claim, tmp_path)], tmp_path, seed=0)
    tags = parsed(tmp_path).tags
    assert "img" not in tags
    assert tags.count("script") == 3  # the data and the two scripts of the page itself


def test_page_of_the_same_outcomes_has_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    outcomes = [run(CLAIMS[name], tmp_path) for name in ("table-medians", "table-wins", "proposition-1")]
    write_page(outcomes[::-1], tmp_path, seed=0)
    assert (tmp_path / "index.html").read_bytes() == (folder / "index.html").read_bytes()


def test_page_of_every_claim_is_small_and_opens_with_nothing_on_the_console(
    browser: Any, evidence: Callable[[str], Evidence], tmp_path: Path
) -> None:
    outcomes = []
    for name, claim in CLAIMS.items():
        drawings = {figure.name: save(figure, tmp_path) for figure in evidence(name).figures}
        (tmp_path / f"{name}.json").write_text(as_json(claim, evidence(name), 0), encoding="utf-8")
        outcomes.append(Outcome(claim=claim, evidence=evidence(name), seconds=0.0, drawings=drawings))
    page = write_page(outcomes, tmp_path, seed=0)
    assert page.stat().st_size <= 3_000_000
    content = parsed(tmp_path)
    assert set(CLAIMS) | {"lens", "sweep"} <= set(content.ids)
    assert len(content.ids) == len(set(content.ids))
    for look in ({}, {"dark": True}, {"width": 390, "height": 844}):
        browser.open(page, **look)
        assert browser.complaints == []
        assert {address.split(":")[0] for address in browser.requests} <= {"file", "data"}
        assert browser.run("document.documentElement.scrollWidth") <= look.get("width", 1100)
