"""Runs from disk as data: found, read as far as they go, named by what tells them apart, with what is missing said."""

from __future__ import annotations

import gzip
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from dynaboltz.errors import DynaboltzError, UserError
from dynaboltz.runs import Home, RunConfig, read_config
from dynaboltz.runs.config import OUTSIDE_IDENTITY
from dynaboltz.runs.settings import flat, written

Array = NDArray[np.float64]

RECENT_EPISODES = 100
"""Training episodes at the end of a run whose mean is its score where it has no evaluation (Machado et al. 2018)."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a run comes to, in one number."""

    name: str
    """For a caption."""
    of: Callable[[Array], float]
    """Returns, in the order of the steps → the score."""


SCORES = {
    "evaluation": Score("last evaluation", lambda returns: float(returns[-1])),
    "best": Score("best evaluation", lambda returns: float(returns.max())),
    "training": Score(
        f"mean of the last {RECENT_EPISODES} training episodes",
        lambda returns: float(returns[-RECENT_EPISODES:].mean()),
    ),
}
"""By name. The best of many evaluations flatters: it is what the luckiest of them found."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Returns by agent steps, in the order of the steps."""

    steps: Array
    returns: Array

    def until(self, step: float) -> Series:
        """What was there by then."""
        there = self.steps <= step
        return Series(self.steps[there], self.returns[there])

    def __len__(self) -> int:
        return self.steps.size


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Run:
    """One run, as far as its rows go."""

    folder: Path
    config: RunConfig
    agent: str
    """Name among the runs of a report, see :func:`collect`."""
    step: int
    """Of the last row."""
    finished: bool
    episodes: Series
    """Training episodes."""
    evaluations: Series
    """Mean return of each evaluation."""
    error: str = ""
    """What the run said of why it ended early."""

    def score(self, kind: str, at: int | None = None) -> float | None:
        """The score of that kind (``SCORES``) by the step ``at``; None where there is none."""
        series = self.episodes if kind == "training" else self.evaluations
        series = series if at is None else series.until(at)
        return SCORES[kind].of(series.returns) if len(series) else None


@dataclass(frozen=True, slots=True, eq=False)
class Collection:
    """Runs, and what is to be said of those that are not whole."""

    runs: tuple[Run, ...]
    notes: tuple[str, ...]


def collect(folders: Iterable[Path]) -> Collection:
    """Every run in the folders and below them.

    An agent is called by its name; where one name stands for several settings on one environment, those settings are
    added to it. A run that is there twice counts once, where it has come further. A run whose settings cannot be read
    is left out, one whose rows are torn is read as far as they are whole, and each of these is noted.

    Raises:
        UserError: a folder is not there, or there is no run at all.
    """
    notes: list[str] = []
    found: dict[str, Run] = {}
    for folder in _homes(folders):
        try:
            run = _read(folder, notes)
        except DynaboltzError as fault:
            first = str(fault).split("\n", maxsplit=1)[0]
            notes.append(f"{folder} is left out: {first}")
            continue
        known = found.get(run.config.identity)
        if known is not None:
            notes.append(f"{folder} and {known.folder} are the same run; the one that has come further counts")
        if known is None or run.step > known.step:
            found[run.config.identity] = run
    if not found:
        raise UserError(
            "there is no run to report on\n  " + ("\n  ".join(notes) or "a run is a folder with config.toml")
        )
    runs = _labelled(list(found.values()))
    runs.sort(key=lambda run: (run.config.env, run.agent, run.config.seed))
    notes += [_missing(run) for run in runs if not run.finished]
    return Collection(tuple(runs), tuple(notes))


def _homes(folders: Iterable[Path]) -> list[Path]:
    """Folders with settings of a run, each once."""
    found: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"there is no folder {folder}\n  name folders of runs, such as runs/")
        for config in sorted(folder.rglob("config.toml")):
            found.setdefault(config.parent.resolve(), config.parent)
    return list(found.values())


def _read(folder: Path, notes: list[str]) -> Run:
    config = read_config(folder)
    episodes: list[tuple[float, float]] = []
    evaluations: list[tuple[float, float]] = []
    step, finished, error = 0, False, ""
    for row in rows_of(folder, notes):
        step = max(step, int(row["step"]))
        kind = row["kind"]
        if kind == "episode" and isinstance(row.get("return"), int | float):
            episodes.append((row["step"], row["return"]))
        elif kind == "evaluation" and isinstance(row.get("mean"), int | float):
            evaluations.append((row["step"], row["mean"]))
        elif kind == "error":
            error = str(row.get("message", "")).split("\n", maxsplit=1)[0]
        finished = finished or kind == "end"
    return Run(
        folder=folder, config=config, agent=config.name, step=step, finished=finished, error=error,
        episodes=_series(episodes), evaluations=_series(evaluations),
    )  # fmt: skip


def _series(points: Sequence[tuple[float, float]]) -> Series:
    table = np.array(points, np.float64).reshape(-1, 2)
    return Series(table[:, 0], table[:, 1])


def rows_of(folder: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of a run, plain or compressed, up to the first that is not whole, which is noted."""
    plain = Home(folder).rows
    packed = [path for path in (plain.with_name(plain.name + end) for end in READERS) if path.is_file()]
    path = plain if plain.is_file() or not packed else packed[0]
    number = 0
    try:
        with READERS.get(path.suffix, Path.open)(path, "rb") as file:
            for number, text in enumerate(file, 1):
                row = _row(text)
                if row is None:
                    torn = "its last line is torn" if not text.endswith(b"\n") else f"line {number} is not a row"
                    notes.append(f"{path}: {torn}; it counts up to there")
                    return
                yield row
    except (OSError, EOFError, zstandard.ZstdError) as fault:
        after = f" after line {number}" if number else ""
        notes.append(f"{path} cannot be read{after}: {getattr(fault, 'strerror', None) or fault}")


def _zst(path: Path, _: str) -> io.BufferedReader:
    # closing the buffer closes the decompressor, and that the file
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(path.open("rb")))


READERS: dict[str, Callable[[Path, str], Any]] = {".gz": gzip.open, ".zst": _zst}
"""How to open compressed rows, by the end of their name."""


def _row(text: bytes) -> dict[str, Any] | None:
    """The line as a row, None if it is not one."""
    if not text.endswith(b"\n"):
        return None
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(row, dict) and isinstance(row.get("kind"), str) and type(row.get("step")) is int
    return row if whole else None


def _missing(run: Run) -> str:
    reason = f" ({run.error})" if run.error else ""
    at = f"{run.step:,} of {run.config.steps:,} steps" if run.step else "no rows yet"
    return f"{run.config.env}, {run.agent}, seed {run.config.seed} is not finished: {at}{reason}"


def _labelled(runs: list[Run]) -> list[Run]:
    """The runs with names that tell apart whatever is not env or seed alone."""
    settings = {id(run): _telling(run.config) for run in runs}
    differing: dict[str, set[str]] = defaultdict(set)
    for name in {run.config.name for run in runs}:
        for env in {run.config.env for run in runs}:
            here = [settings[id(run)] for run in runs if run.config.name == name and run.config.env == env]
            keys = here[0] if here else {}
            differing[name] |= {key for key in keys if len({one[key] for one in here}) > 1}
    labels = {}
    for run in runs:
        own = settings[id(run)]
        more = [f"{key.removeprefix('agent.')}={own[key]}" for key in own if key in differing[run.config.name]]
        labels[id(run)] = " ".join([run.config.name, *more])
    return [replace(run, agent=labels[id(run)]) for run in runs]


def _telling(config: RunConfig) -> dict[str, str]:
    values = {
        key: written(value)
        for key, value in flat(config).items()
        if not key.startswith(OUTSIDE_IDENTITY) and key not in ("env", "name", "seed")
    }
    return values | {"agent.summary": str(config.agent.parsed_summary)}
