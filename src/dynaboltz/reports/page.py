"""Pages: one self-contained HTML file each, readable from disk without a network, on paper, in the dark, on a phone.

A page is a template that extends ``web/base.html.jinja``. Everything printed is escaped, and the page carries a policy
that lets only its own scripts run, by their hashes, and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz.errors import MissingExtraError
from dynaboltz.reports.figures import GRID, INK, PAPER

WEB = Path(__file__).with_name("web")
SCRIPTS = ("lens", "sweep")
"""Names of the scripts in ``web/``; each looks for its section and does nothing where there is none."""


def render(
    template: Path, *, scripts: Sequence[str] = (), data: Mapping[str, Any] | None = None, **context: Any
) -> str:
    """The page that a template makes of ``context``.

    Args:
        template: a file that extends ``base.html.jinja``.
        scripts: names of scripts in ``web/``.
        data: id → what a script reads as JSON from the element with that id.
        context: what the template names.
    """
    try:
        import jinja2
        from markupsafe import Markup
    except ImportError:
        raise MissingExtraError("jinja2", "report", "writing the page") from None
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        loader=jinja2.FileSystemLoader([str(template.parent), str(WEB)]),
    )  # fmt: skip
    environment.filters |= {"cell": cell, "all_numbers": all_numbers}
    sources = [(WEB / f"{name}.js").read_text(encoding="utf-8") for name in scripts]
    return environment.get_template(template.name).render(
        css=Markup((WEB / "page.css").read_text(encoding="utf-8")),
        scripts=[Markup(source) for source in sources],
        embedded={name: Markup(embedded_json(value)) for name, value in (data or {}).items()},
        policy=policy(sources),
        version=version("dynaboltz"),
        **context,
    )


def policy(scripts: Sequence[str]) -> str:
    """The content security policy of a page with these scripts: nothing from anywhere, no other script."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"


def embedded_json(value: Any) -> str:
    r"""JSON that is safe inside a script element: ``<`` is written as an escape, and what is not finite as null.

    >>> embedded_json({"a": "</script>", "b": math.inf})
    '{"a": "\\u003c/script>", "b": null}'
    """
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def inline_svgs(svgs: Mapping[str, str]) -> dict[str, Any]:
    """SVG files of ours as elements of one page; the first also holds every letter and digit that they draw, once."""
    from markupsafe import Markup

    names: dict[str, str] = {}

    def shared(svg: str) -> str:
        own = {}

        def taken(match: re.Match[str]) -> str:
            own[match[1]] = names.setdefault(match[2], f"glyph-{len(names)}")
            return ""

        body = GLYPH.sub(taken, svg)
        return re.sub(r'href="#([^"]+)"', lambda match: f'href="#{own.get(match[1], match[1])}"', body)

    found = {name: inline_svg(shared(svg), name) for name, svg in svgs.items()}
    if names:
        first, *_ = found
        paths = "".join(f'<path id="{name}" {definition}/>' for definition, name in names.items())
        sheet = f'<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>{paths}</defs></svg>'
        found[first] = Markup(sheet) + found[first]
    return found


GLYPH = re.compile(r'<path id="(DejaVuSans[^"]*)" (d="[^"]*"[^>]*?)/>\s*')
"""A letter that Matplotlib draws as a path, and its name."""


def inline_svg(svg: str, name: str) -> Any:
    """An SVG file of ours as an element of a page: ids of its own where it refers to them, no size, the page's colours.

    Ink, grid, paper, black and dark greys follow the page, light or dark; all other colours stay.

    Coordinates keep two decimals, a hundredth of a point; factors keep theirs.
    """
    from markupsafe import Markup

    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    asked = {a or b for a, b in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', body)}
    body = re.sub(r'\s+id="([^"]+)"', lambda match: f' id="{name}-{match[1]}"' if match[1] in asked else "", body)
    body = re.sub(r'(xlink:href|href)="#(?!glyph-)([^"]+)"', rf'\1="#{name}-\2"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", body)
    body = re.sub(r"(scale\([^)]*\))|(?<=[\s\"(,])(-?\d+\.\d\d)\d+(?=[\s\"),])", r"\1\2", body)
    for colour, now in ((INK, "currentColor"), ("#000000", "currentColor"), (GRID, "var(--line)"), (PAPER, "none")):
        body = body.replace(f": {colour}", f": {now}")
    body = re.sub(r": #([3-5][0-9a-f])\1\1\b", ": var(--soft)", body)
    opening, rest = body.split(">", 1)
    opening = re.sub(r' (width|height)="[^"]*"', "", opening)
    wide, high = (float(number) for number in opening.split('viewBox="')[1].split('"')[0].split()[2:])
    shape = ' class="wide"' if wide > 1.9 * high else ' class="tall"' if high > 1.1 * wide else ""
    return Markup(f'{opening}{shape} fill="currentColor" aria-hidden="true">{rest}')


def cell(value: Any) -> str:
    """A number as a reader wants it: four significant digits, and powers of ten where they help."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float | np.floating):
        text = f"{value:.4g}"
        if "e" in text:
            mantissa, exponent = text.split("e")
            return f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}".replace("-", "−")
        return text.replace("-", "−")
    return str(value)


def all_numbers(rows: Sequence[Sequence[Any]], column: int) -> bool:
    """Whether a column holds nothing but numbers, or texts that begin with one; some cells may be empty."""
    cells = [row[column] for row in rows if row[column] not in ("", None)]
    return bool(cells) and all(isinstance(one, int | float | np.number) or _begins(one) for one in cells)


def _begins(value: Any) -> bool:
    return isinstance(value, str) and re.match(r"[−-]?[\d.,]+( ?%)?(\s*[\[(].*[\])])?$", value) is not None


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
