"""The page itself: one file without a number of any run in it, those come by requests."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from dynaboltz.reports.page import WEB as SHARED

WEB = Path(__file__).with_name("web")


def page() -> tuple[bytes, str]:
    """The page, and the content security policy that lets its own style and script work and nothing else."""
    style = "\n".join(_read(path) for path in (SHARED / "page.css", WEB / "watch.css"))
    script = "\n".join(_read(WEB / name) for name in ("curves.js", "watch.js"))
    html = _read(WEB / "watch.html").replace("{style}", style).replace("{script}", script)
    policy = (
        f"default-src 'none'; img-src data:; connect-src 'self'; style-src {_digest(style)}; "
        f"script-src {_digest(script)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return html.encode(), policy


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
