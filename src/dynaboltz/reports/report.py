"""The report of a folder of runs: tables, curves and one page, written beside one another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz.files import make_folder, write_atomically
from dynaboltz.reports.aggregates import Band
from dynaboltz.reports.collect import SCORES, Collection, Run, collect
from dynaboltz.reports.comparison import (
    References,
    aggregate_table,
    baseline_of,
    baseline_table,
    compare,
    profiles,
    score_table,
)
from dynaboltz.reports.curves import Array, Curve, curve, draw, draw_profiles
from dynaboltz.reports.figures import Figure, save
from dynaboltz.reports.page import inline_svgs, render
from dynaboltz.reports.tables import Table

TEMPLATE = Path(__file__).with_name("web") / "report.html.jinja"
FORMATS = ("svg", "pdf", "png")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Report:
    """What the runs say."""

    collection: Collection
    kind: str
    """What the scores are, one of ``SCORES``."""
    tables: dict[str, Table]
    """By file name without suffix: scores first, then what there is of against-…, tasks."""
    curves: dict[str, dict[str, Curve]]
    """Environment → agent → curve."""
    profiles: tuple[Array, dict[str, Band]] | None
    """Performance profiles, where there is a common scale."""
    notes: tuple[str, ...]

    def as_json(self) -> str:
        """Tables and notes as strict JSON."""
        content = {
            "score": self.kind,
            "tables": {name: table.records() for name, table in self.tables.items()},
            "notes": self.notes,
            "runs": [
                {
                    "environment": run.config.env, "agent": run.agent, "seed": run.config.seed, "step": run.step,
                    "steps": run.config.steps, "finished": run.finished, "identity": run.config.identity,
                    "folder": str(run.folder),
                }
                for run in self.collection.runs
            ],
        }  # fmt: skip
        return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def report(
    folders: Sequence[Path],
    *,
    score: str = "auto",
    at: int | None = None,
    baseline: str | None = None,
    references: References | None = None,
    seed: int = 0,
) -> Report:
    """Tables and curves of all runs in the folders.

    Args:
        folders: of runs, at any depth.
        score: "evaluation", "best", "training" or "auto"; see :func:`~dynaboltz.reports.comparison.compare`.
        at: agent steps at which the scores are taken; the end of each run if none is given.
        baseline: the agent to compare with; dqn, or else the first, if none is given.
        references: environment → the scores that count as 0 and as 1; random and human on Atari if none are given.
        seed: of the bootstrap.
    """
    collection = collect(folders)
    comparison = compare(collection.runs, score=score, at=at)
    other = baseline_of(comparison, baseline)
    tables = {"scores": score_table(comparison)}
    if other is not None:
        against = baseline_table(comparison, other)
        if against.rows:
            tables["against-baseline"] = against
    over, notes = aggregate_table(comparison, other, references, rng=np.random.default_rng(seed))
    if over is not None:
        tables["tasks"] = over
    runs = collection.runs
    curves = {
        env: _curves([run for run in runs if run.config.env == env])
        for env in dict.fromkeys(r.config.env for r in runs)
    }
    curves = {env: found for env, found in curves.items() if found}
    notes = (*collection.notes, *comparison.notes, *notes)
    shares = profiles(comparison, references, rng=np.random.default_rng(seed))
    return Report(
        collection=collection, kind=comparison.kind, tables=tables, curves=curves, profiles=shares, notes=notes
    )


def _curves(runs: Sequence[Run]) -> dict[str, Curve]:
    """The curve of each agent on one environment: of evaluations if every run that has begun has one."""
    begun = [run for run in runs if len(run.evaluations) or len(run.episodes)]
    kind = "evaluation" if all(len(run.evaluations) for run in begun) else "training"
    if kind == "training":
        begun = [run for run in begun if len(run.episodes)]
    agents = sorted({run.agent for run in begun})
    return {agent: curve([run for run in begun if run.agent == agent], kind) for agent in agents}


def write(found: Report, folder: Path, *, command: str) -> Path:
    """Write tables (CSV, LaTeX), curves (SVG, PDF, PNG), ``report.json`` and ``index.html``; the path of the page."""
    make_folder(folder)
    for name, table in found.tables.items():
        write_atomically(folder / f"{name}.csv", table.csv())
        write_atomically(folder / f"{name}.tex", table.latex() + "\n")
    write_atomically(folder / "report.json", found.as_json())
    figures = _figures(found)
    drawings = inline_svgs({figure.name: save(figure, folder, FORMATS) for figure in figures})
    page = render(
        TEMPLATE, tables=found.tables, figures=figures, drawings=drawings, formats=FORMATS, notes=found.notes,
        runs=found.collection.runs, score=SCORES[found.kind].name, command=command,
    )  # fmt: skip
    write_atomically(folder / "index.html", page)
    return folder / "index.html"


def _figures(found: Report) -> list[Figure]:
    """One a environment; numbered, because names of environments need not be names of files."""
    agents = sorted({agent for curves in found.curves.values() for agent in curves})
    looks = {agent: number for number, agent in enumerate(agents)}
    figures = []
    for number, (env, curves) in enumerate(found.curves.items(), 1):
        last = "; ".join(f"{agent} ends at {_end(one)}" for agent, one in curves.items())
        figures.append(Figure(
            name=f"curve-{number}", alt=f"Return against agent steps on {env}: {last}.", draw=_drawer(curves, looks),
            caption=f"{env}: mean return over seeds, with Student's 95 % interval where two or more have come so far.",
        ))  # fmt: skip
    if found.profiles is not None:
        levels, shares = found.profiles
        above = "; ".join(f"{agent} {100 * _half(levels, one):.3g} %" for agent, one in shares.items())
        figures.append(Figure(
            name="profiles", alt=f"Share of runs above each score. Half of the way from 0 to 1 is passed by: {above}.",
            caption="Performance profiles: the share of runs whose score is above each level, averaged over all tasks, "
            "with 95 % stratified bootstrap bands. 0 and 1 are the scores that the references say.",
            draw=lambda: draw_profiles(levels, shares, looks),
        ))  # fmt: skip
    return figures


def _half(levels: Array, one: Band) -> float:
    return float(np.interp(0.5, levels, one.value))


def _drawer(curves: dict[str, Curve], looks: dict[str, int]) -> Any:
    return lambda: draw(curves, looks, "return")


def _end(one: Curve) -> str:
    there = np.flatnonzero(np.isfinite(one.mean))
    return f"{one.mean[there[-1]]:.4g}" if there.size else "nothing"
