"""The page of claims: one self-contained HTML file with figures inside, readable from disk, on paper and in the dark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz.errors import MissingExtraError
from dynaboltz.files import write_atomically
from dynaboltz.paper.claim import Verdict
from dynaboltz.paper.reproduce import Outcome

TEMPLATE = Path(__file__).with_name("page.html.jinja")
MARKS = {
    Verdict.HOLDS: "holds",
    Verdict.CORRECTED: "corrected",
    Verdict.DOES_NOT_FOLLOW: "fails",
    Verdict.OUT_OF_REACH: "later",
}
"""CSS class of each verdict."""


def write_page(outcomes: Sequence[Outcome], folder: Path, *, seed: int) -> Path:
    """Write ``index.html`` into the folder and return its path."""
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError("jinja2", "report", "writing the page") from None
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = cell
    page = folder / "index.html"
    html = environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        outcomes=outcomes,
        marks=MARKS,
        counts=Counter(outcome.evidence.verdict for outcome in outcomes),
        drawings={
            figure.name: Markup(inline_svg(outcome.drawings[figure.name], figure.name))
            for outcome in outcomes
            for figure in outcome.evidence.figures
        },
        seed=seed,
        version=version("dynaboltz"),
    )
    write_atomically(page, html)
    return page


def inline_svg(svg: str, name: str) -> str:
    """An SVG file as an element of a page: no prolog, ids of its own, and a width that follows the column."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r'(xlink:href|href)="#([^"]+)"', rf'\1="#{name}-\2"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", body)
    opening, rest = body.split(">", 1)
    opening = re.sub(r' (width|height)="[^"]*"', "", opening)
    return f'{opening} aria-hidden="true">{rest}'


def cell(value: Any) -> str:
    """A number as a reader wants it: four significant digits, and powers of ten where they help."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        text = f"{value:.4g}"
        if "e" in text:
            mantissa, exponent = text.split("e")
            return f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}"
        return text.replace("-", "−")
    return str(value)


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
