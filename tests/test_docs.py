"""The documents are true: their code runs, their links lead somewhere, their tables name what exists."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from dynaboltz.paper import CLAIMS
from dynaboltz.paper.claim import Claim, Evidence

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LEDGER = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| `(dynaboltz[\w.]+)` \| `(tests/[\w/.]+)(?:::(\w+))?` \|$", LEDGER, re.MULTILINE)
VERDICTS = dict(re.findall(r"^\| .+? \| .+? \| `([\w-]+)` \| (.+?) \|$", LEDGER, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_on_the_page_runs(page: Path) -> None:
    namespace: dict[str, object] = {"__name__": page.stem}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_on_the_page_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_ledger_rows_are_all_read() -> None:
    assert len(ROWS) == sum("| `dynaboltz." in line for line in LEDGER.splitlines())
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_equation_leads_to_a_function_and_a_test(row: tuple[str, str, str, str]) -> None:
    _, path, file, test = row
    parts = path.split(".")
    thing: object = import_module(parts[0])
    for depth, part in enumerate(parts[1:], 2):
        thing = getattr(thing, part) if hasattr(thing, part) else import_module(".".join(parts[:depth]))
    assert callable(thing)
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {test}(" in text if test else True


def test_ledger_holds_every_claim_and_nothing_else() -> None:
    assert set(VERDICTS) == set(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_ledger_has_the_verdict_that_the_claim_comes_to(claim: Claim, evidence: Callable[[str], Evidence]) -> None:
    assert VERDICTS[claim.name] == evidence(claim.name).verdict


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=list(CLAIMS))
def test_claim_names_functions_that_exist(claim: Claim) -> None:
    for path in claim.equations.values():
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name), path
