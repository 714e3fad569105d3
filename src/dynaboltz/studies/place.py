"""The folder of a study: its ledger, what its runs are asked and how they stand. The runs themselves live beside it.

``<root>/study-<name>/``: ``ledger.jsonl``, ``results.csv``, and a request, a beat and a log for each run. All of it may
lie on a file system that several machines share: that is all that they have to have in common.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import socket
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynaboltz.errors import UserError
from dynaboltz.files import make_folder, write_atomically
from dynaboltz.runs import RunConfig, home_of
from dynaboltz.runs.settings import flat

COLUMNS = ("env", "name", "summary", "seed", "steps", "episodes", "evaluation", "best", "best_step", "weights", "rows")
"""Of the results; none holds a time."""

IN_USE = 75
"""Exit code of a run whose folder another process holds; EX_TEMPFAIL of sysexits.h."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a study keeps its books, and its runs."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """The study's own."""
        return self.root / f"study-{self.name}"

    @property
    def ledger(self) -> Path:
        """What was done."""
        return self.folder / "ledger.jsonl"

    @property
    def results(self) -> Path:
        """What the finished runs came to: the same bytes for the same runs."""
        return self.folder / "results.csv"

    @property
    def stop(self) -> Path:
        """There as long as all runs are asked to save and leave."""
        return self.folder / "stop"

    def request(self, config: RunConfig) -> Path:
        """What the process of a run is told."""
        return self.folder / "requests" / f"{config.identity[:16]}.json"

    def beat(self, config: RunConfig) -> Path:
        """How the run stands, by its own word."""
        return self.folder / "beats" / f"{config.identity[:16]}.json"

    def log(self, config: RunConfig) -> Path:
        """What the process of a run has printed."""
        return self.folder / "logs" / f"{config.identity[:16]}.log"

    def prepare(self) -> None:
        """Make the folders."""
        for name in ("requests", "beats", "logs"):
            make_folder(self.folder / name)
        self.stop.unlink(missing_ok=True)

    def ask(self, config: RunConfig) -> Path:
        """Write the request of a run, and forget what was said of it before."""
        self.beat(config).unlink(missing_ok=True)
        path = self.request(config)
        request = {
            "settings": flat(config), "root": str(self.root.resolve()), "beat": str(self.beat(config).resolve()),
            "stop": str(self.stop.resolve()), "path": [str(Path(one).resolve()) for one in sys.path],
        }  # fmt: skip
        write_atomically(path, json.dumps(request))
        return path

    def finished(self, config: RunConfig) -> dict[str, Any] | None:
        """The result of a run, if it is finished; one that cannot be read is none, and the run writes it anew."""
        home = home_of(config, self.root)
        try:
            return home.record()
        except UserError:
            with contextlib.suppress(OSError):
                home.result.unlink()
            return None

    def write_results(self, configs: Sequence[RunConfig]) -> None:
        """The results of the finished ones among the runs, in their order."""
        found = [(config, record) for config in configs if (record := self.finished(config)) is not None]
        write_atomically(self.results, results(found))


def results(finished: Iterable[tuple[RunConfig, dict[str, Any]]]) -> str:
    """What finished runs came to, as CSV: the same bytes for the same runs."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("run", *COLUMNS))
    for config, record in finished:
        own = {"env": config.env, "name": config.name, "summary": str(config.agent.parsed_summary)}
        values = record | own | {"seed": config.seed, "steps": config.steps}
        table.writerow((config.identity[:16], *(_cell(values.get(name)) for name in COLUMNS)))
    return text.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def write_beat(path: Path, beat: dict[str, Any]) -> None:
    """Say how a run stands. A crash may lose it, so it is not brought to the disk; but a reader sees it whole."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(beat), encoding="utf-8")
    temporary.replace(path)


def read_beat(path: Path) -> dict[str, Any] | None:
    """What was said last, if anything."""
    try:
        beat = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return beat if isinstance(beat, dict) else None


def stood_in_line(beat: dict[str, Any]) -> float:
    """Seconds for which the process of a beat was ready to work and had no core; 0 where this system cannot tell.

    On a crowded machine a process that must wait for its turn is silent, and does not hang.
    """
    if beat.get("host") != socket.gethostname():
        return 0.0
    try:
        _, waited, _ = Path(f"/proc/{int(beat['pid'])}/schedstat").read_text(encoding="ascii").split()
        return int(waited) / 1e9
    except (OSError, KeyError, ValueError, TypeError):
        return 0.0
