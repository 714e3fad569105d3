"""Rows of runs as tables, curves and one self-contained page; unfinished runs are welcome, and what is missing is said.

For example:  dynaboltz report runs
              dynaboltz report runs/CartPole-v1 --baseline dqn --csv > scores.csv
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dynaboltz.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of runs, at any depth."""
    out: Path = Path("out/report")
    """Folder for the page, the tables (CSV, LaTeX, JSON) and the curves (SVG, PDF, PNG)."""
    score: str = "auto"
    """What a run's score is: evaluation (its last), best (the best of them), training (its last 100 episodes), or auto:
    evaluation where all have one, else training."""
    at: int | None = None
    """Agent steps at which runs are compared; without it each counts at its end, if it is finished."""
    baseline: str | None = None
    """Agent to compare with; dqn if there is one, else the first."""
    references: Path | None = None
    """CSV file, environment,low,high: the scores that count as 0 and as 1. Atari games need none."""
    seed: int = 0
    """Of the bootstrap."""
    csv: bool = False
    """Print the scores as CSV."""
    latex: bool = False
    """Print all tables for LaTeX (booktabs)."""
    json: bool = False
    """Print tables, notes and runs as JSON."""


def main(arguments: Sequence[str]) -> int:
    """Parse, read the runs, write the report, print its tables."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz report", description=__doc__)
    from dynaboltz.reports.comparison import read_references
    from dynaboltz.reports.report import report, write

    if not options.folders:
        raise UserError("report needs a folder of runs\n  for instance: dynaboltz report runs")
    if options.csv + options.latex + options.json > 1:
        raise UserError("print one form: --csv, --latex or --json")
    references = None if options.references is None else read_references(options.references)
    found = report(
        options.folders, score=options.score, at=options.at, baseline=options.baseline, references=references,
        seed=options.seed,
    )  # fmt: skip
    page = write(found, options.out, command=shlex.join(["dynaboltz", "report", *arguments]))
    if options.json:
        print(found.as_json(), end="")
    elif options.csv:
        print(found.tables["scores"].csv(), end="")
    elif options.latex:
        print("\n\n".join(table.latex() for table in found.tables.values()))
    else:
        print("\n\n".join(table.text() for table in found.tables.values()))
    if found.notes:
        print("\n".join(["", "missing:", *(f"  {note}" for note in found.notes)]), file=sys.stderr)
    print(f"\nreport: {len(found.collection.runs)} runs → {page}", file=sys.stderr)
    return 0
