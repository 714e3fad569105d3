"""The page of claims: the verdict of each with its figures and numbers, the operator lens and the sweep slider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dynaboltz.files import write_atomically
from dynaboltz.paper.claim import Verdict
from dynaboltz.paper.reproduce import Outcome
from dynaboltz.paper.worlds import DISCOUNT, LAYOUTS, optimum
from dynaboltz.reports.page import SCRIPTS, inline_svgs, render
from dynaboltz.reports.sweeps import sweep_data

TEMPLATE = Path(__file__).with_name("page.html.jinja")
MARKS = {
    Verdict.HOLDS: "holds",
    Verdict.CORRECTED: "corrected",
    Verdict.DOES_NOT_FOLLOW: "fails",
    Verdict.OUT_OF_REACH: "later",
}
"""CSS class of each verdict."""
SECTIONS = {"theory": "Theory", "planning": "Planning", "learning": "Q-learning", "deep": "Deep", "atari": "Atari"}
"""Headings of the parts of the ledger, in order; any other part follows under its own name."""
LAYOUT = "two walls"
"""The world of the sweep slider."""


def write_page(outcomes: Sequence[Outcome], folder: Path, *, seed: int) -> Path:
    """Write ``index.html`` into the folder and return its path."""
    page = folder / "index.html"
    parts = dict.fromkeys([*SECTIONS, *(outcome.claim.section for outcome in outcomes)])
    world, _ = optimum(LAYOUTS[LAYOUT], DISCOUNT)
    html = render(
        TEMPLATE,
        scripts=SCRIPTS,
        data={"sweep-data": sweep_data(world, DISCOUNT)},
        sections={
            SECTIONS.get(part, part): [outcome for outcome in outcomes if outcome.claim.section == part]
            for part in parts
        },
        marks=MARKS,
        counts=Counter(outcome.evidence.verdict for outcome in outcomes),
        drawings=inline_svgs(
            {figure.name: outcome.drawings[figure.name] for outcome in outcomes for figure in outcome.evidence.figures}
        ),
        seed=seed,
        world=f"The paper's 10 × 10 GridWorld with {LAYOUT}, γ = {DISCOUNT:g}: from S to the reward of 1 at G.",
    )
    write_atomically(page, html)
    return page
