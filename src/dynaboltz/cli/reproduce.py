"""The paper's claims: numbers, figures and the verdict of each, as one page.

For example:  dynaboltz reproduce theory --out out/reproduce
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    section: Annotated[str, tyro.conf.Positional] = "all"
    """Part of the paper: all, theory, planning or learning."""
    out: Path = Path("out/reproduce")
    """Folder for the page, the figures (SVG and PDF) and the numbers (JSON)."""
    only: tuple[str, ...] = ()
    """Claims by name, instead of a section."""
    full: bool = False
    """Test at full size the claims that have one: a thousand seeds a cell where the default has a few dozen."""
    seed: int = 0
    """Root of every random number."""
    list: bool = False
    """Name the claims and stop."""
    json: bool = False
    """Print the verdicts as JSON instead of a progress report."""


def main(arguments: Sequence[str]) -> int:
    """Parse, test the claims, write the page."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz reproduce", description=__doc__)
    from dynaboltz.paper import CLAIMS
    from dynaboltz.paper.page import write_page
    from dynaboltz.paper.reproduce import choose, run

    claims = choose(CLAIMS, options.section, options.only)
    if options.list:
        width = max(len(claim.name) for claim in claims)
        print("\n".join(f"{claim.name:<{width}}  {claim.title}" for claim in claims))
        return 0

    def say(line: str, end: str = "\n") -> None:
        if not options.json:
            print(line, end=end, flush=True)

    say(f"reproduce: testing {len(claims)} claims of the paper into {options.out}/")
    outcomes, began = [], time.perf_counter()
    for number, claim in enumerate(claims, 1):
        say(f"  {number}/{len(claims)}  {claim.title}: ", end="")
        outcomes.append(run(claim, options.out, seed=options.seed, full=options.full))
        spent = time.perf_counter() - began
        left = f", about {spent / number * (len(claims) - number):.0f} s left" if number < len(claims) else ""
        say(f"{outcomes[-1].evidence.verdict}  ({outcomes[-1].seconds:.1f} s{left})")
    page = write_page(outcomes, options.out, seed=options.seed)
    verdicts = {outcome.claim.name: str(outcome.evidence.verdict) for outcome in outcomes}
    if options.json:
        print(json.dumps({"page": str(page), "verdicts": verdicts}, indent=2))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts.values()).items())
    say(f"reproduce: done. {len(outcomes)} claims: {counts} → {page}")
    return 0
