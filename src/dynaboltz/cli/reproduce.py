"""The paper's claims: numbers, figures and the verdict of each, as one page.

For example:  dynaboltz reproduce theory --out out/reproduce
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Annotated, Self

import tyro


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    section: Annotated[str, tyro.conf.Positional] = "all"
    """Part of the paper: all, or one of those that --list names, such as theory."""
    out: Path = Path("out/reproduce")
    """Folder for the page, the figures (SVG and PDF) and the numbers (JSON)."""
    only: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A claim by name, instead of a section; may be given several times."""
    full: bool = False
    """Test at full size the claims that have one: more seeds, steps and settings, in about an hour on two cores."""
    seed: int = 0
    """Root of every random number."""
    list: bool = False
    """Name the sections and claims and stop."""
    json: bool = False
    """Print the verdicts as JSON instead of a progress report."""


def main(arguments: Sequence[str]) -> int:
    """Parse, test the claims, write the page."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz reproduce", description=__doc__)
    from dynaboltz.errors import MissingExtraError
    from dynaboltz.paper import CLAIMS
    from dynaboltz.paper.page import write_page
    from dynaboltz.paper.reproduce import choose, run

    claims = choose(CLAIMS, options.section, options.only)
    if options.list:
        width = max(len(claim.name) for claim in claims)
        for section in dict.fromkeys(claim.section for claim in claims):
            print(section)
            print("\n".join(f"  {c.name:<{width}}  {c.title}" for c in claims if c.section == section))
        return 0

    def say(line: str, end: str = "\n") -> None:
        if not options.json:
            print(line, end=end, flush=True)

    say(f"reproduce: testing {len(claims)} claims of the paper into {options.out}/")
    outcomes, left_out, began = [], {}, time.perf_counter()
    for number, claim in enumerate(claims, 1):
        try:
            with Pulse(f"  {number}/{len(claims)}  {claim.title}: ", enabled=not options.json):
                outcomes.append(run(claim, options.out, seed=options.seed, full=options.full))
        except MissingExtraError as fault:
            if options.only or (number == len(claims) and not outcomes):
                raise
            left_out[claim.name] = str(fault)
            say(f"left out\n    {left_out[claim.name].replace(chr(10), chr(10) + '  ')}")
            continue
        spent = time.perf_counter() - began
        left = f", about {spent / number * (len(claims) - number):.0f} s left" if number < len(claims) else ""
        say(f"{outcomes[-1].evidence.verdict}  ({outcomes[-1].seconds:.1f} s{left})")
    page = write_page(outcomes, options.out, seed=options.seed)
    verdicts = {outcome.claim.name: str(outcome.evidence.verdict) for outcome in outcomes}
    if options.json:
        print(json.dumps({"page": str(page), "verdicts": verdicts, "left_out": left_out}, indent=2))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts.values()).items())
    without = f", {len(left_out)} left out" if left_out else ""
    say(f"reproduce: done. {len(outcomes)} claims: {counts}{without} → {page}")
    return 0


class Pulse:
    """A line that begins with ``head`` and shows that the work inside the context goes on.

    On a terminal it counts the seconds, with the share that is done where the work tells it; elsewhere it grows by a
    dot every ten seconds. In the end the terminal shows ``head`` alone, for the result to follow.
    """

    def __init__(self, head: str, *, enabled: bool, seconds: float | None = None) -> None:
        self.head, self.enabled, self.terminal = head, enabled, sys.stdout.isatty()
        self.every = seconds if seconds is not None else 1.0 if self.terminal else 10.0
        self.share, self.dots = 0.0, 0
        self._began = time.perf_counter()
        self._over = Event()
        self._thread = Thread(target=self._beat, daemon=True)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        from dynaboltz.paper.progress import listening

        self._open.enter_context(listening(lambda share: setattr(self, "share", share)))
        if self.enabled:
            print(self.head, end="", flush=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()
        if self.enabled:
            self._over.set()
            self._thread.join()
            if self.terminal:
                print(f"\r\x1b[K{self.head}", end="" if kind is None else "\n", flush=True)
            elif self.dots:
                print(" ", end="", flush=True)

    def _beat(self) -> None:
        while not self._over.wait(self.every):
            if self.terminal:
                share = f"{self.share:.0%} in " if self.share else ""
                spent = time.perf_counter() - self._began
                print(f"\r\x1b[K{self.head}{share}{spent:.0f} s", end="", flush=True)
            else:
                print(".", end="", flush=True)
                self.dots += 1
