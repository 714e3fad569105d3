"""Work off a study: a grid of runs from a TOML file. What is done stays done, what was begun goes on.

For example:  dynaboltz study studies/classic.toml
              dynaboltz study studies/minatar.toml --dry-run
              dynaboltz study studies/minatar.toml --only env=minatar/breakout --only seed=0,1 --set steps=50000
              dynaboltz study studies/minatar.toml --pack rows/minatar
              dynaboltz study studies/paper-atari.toml --on ray --option address=10.0.0.1:6379 --jobs 64
              dynaboltz study studies/paper-atari.toml --on slurm --option slurm_partition=gpu --option timeout_min=2880
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from dynaboltz.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    file: Annotated[Path | None, tyro.conf.Positional] = None
    """The study."""
    on: str = "local"
    """Where: local (processes of this machine), ray (a cluster), slurm (a queue)."""
    jobs: int | None = None
    """Runs at a time; without it, as many as there are cores, and memory, for."""
    out: Path = Path("runs")
    """Folder of all runs, which a cluster's machines must share; the study's own folder is in it."""
    only: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A part of the study: --only env=minatar/* or --only seed=0,1; several must all hold."""
    changes: Annotated[tuple[str, ...], tyro.conf.arg(name="set"), tyro.conf.UseAppendAction] = ()
    """One setting of every run, over all that the file says: --set steps=1000; as often as needed."""
    option: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """Of the executor: address=... of ray; slurm_partition=..., timeout_min=..., cluster=local of slurm."""
    dry_run: bool = False
    """Print the runs, what they cost and the memory they take, and stop."""
    calibrate: bool = False
    """With --dry-run: try each agent of unknown rate for a few seconds."""
    pack: Path | None = None
    """Put the finished runs, settings and compressed rows, into this folder, which report reads as well, and stop."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: Sequence[str]) -> int:
    """Parse, work off, print; 1 if a run failed."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz study", description=__doc__)
    from dynaboltz.runs import Given
    from dynaboltz.studies import Place, read_study, select

    if options.file is None:
        raise UserError("study needs a file\n  for instance: dynaboltz study studies/classic.toml --dry-run")
    changes = {key: Given(value, "the command line", written=True) for key, value in pairs(options.changes, "--set")}
    study = read_study(options.file, changes)
    configs = select(study.configs, options.only)
    place = Place(options.out, study.name)
    if options.dry_run and options.pack is not None:
        raise UserError("--dry-run and --pack are two different things; ask for one of them")
    if options.calibrate and not options.dry_run:
        raise UserError("--calibrate is for --dry-run; without it the runs themselves would begin")
    if options.pack is not None:
        return put_together(options, study, configs, place)
    if options.dry_run:
        return plan(options, study, configs, place)
    return work(options, study, configs, place)


def work(options: Options, study: Any, configs: Sequence[Any], place: Any) -> int:
    """Work the runs off and tell what they came to."""
    from dynaboltz.studies import Driver, label, make_executor
    from dynaboltz.studies.board import board
    from dynaboltz.studies.executors import TABLE

    if options.on not in TABLE or options.jobs is not None:
        check(options, TABLE)
    given = dict(pairs(options.option, "--option"))

    def make() -> Any:
        return make_executor(options.on, place.folder, jobs=options.jobs, options=given)

    with board(study.name, quiet=options.json) as look:
        tasks = Driver(configs, place, make, jobs=options.jobs, look=look, every=study.configs).run()
    failed = [task for task in tasks if task.state == "failed"]
    done = sum(task.state == "done" for task in tasks)
    if options.json:
        runs = [
            {"run": task.config.identity, "name": label(task.config), "state": task.state, "fault": task.fault,
             "begun": task.begun, "result": task.record} for task in tasks
        ]  # fmt: skip
        print(json.dumps({"study": study.name, "folder": str(place.folder), "runs": runs}, indent=2))
    else:
        before = sum(task.found for task in tasks)
        print(f"{done} of {len(tasks)} runs are done ({before} were before), {len(failed)} failed → {place.results}")
        for task in failed:
            print(f"error: {label(task.config)}: {task.fault}", file=sys.stderr)
    return int(bool(failed))


def put_together(options: Options, study: Any, configs: Sequence[Any], place: Any) -> int:
    """Pack the finished runs and say what is left out."""
    from dynaboltz.storage.memory import as_text
    from dynaboltz.studies import label, pack

    into = options.pack
    assert into is not None
    found = pack(configs, place, into)
    if options.json:
        left = [{"run": one.identity, "name": label(one)} for one in found.unfinished]
        content = {"study": study.name, "folder": str(into), "runs": found.runs, "bytes": found.size}
        print(json.dumps({**content, "others": found.others, "unfinished": left}, indent=2))
        return 0
    print(f"{found.runs} of {len(configs)} runs are finished and packed, {as_text(found.size)} → {into}")
    if found.others:
        print(f"{found.others} runs that were there before and are not among these stay")
    if found.unfinished:
        shown = ", ".join(label(one) for one in found.unfinished[:3])
        print(f"not finished: {len(found.unfinished)} runs, {shown}{', …' if len(found.unfinished) > 3 else ''}")
    return 0


def check(options: Options, table: Any) -> None:
    """Refuse a wrong executor or number of jobs before anything is made."""
    from dynaboltz.errors import UnknownNameError

    if options.on not in table:
        raise UnknownNameError("executor", options.on, table, "--on")
    if options.jobs is not None and not 1 <= options.jobs <= 100_000:
        raise UserError(f"--jobs must be from 1 to 100,000, got {options.jobs}")


def plan(options: Options, study: Any, configs: Sequence[Any], place: Any) -> int:
    """Print what the study would be."""
    from dynaboltz.storage import cores
    from dynaboltz.storage.memory import as_text, available_bytes
    from dynaboltz.studies import label
    from dynaboltz.studies.board import duration
    from dynaboltz.studies.cost import costs

    done = [config.identity for config in configs if place.finished(config) is not None]
    ledgers = sorted(options.out.glob("study-*/ledger.jsonl"))
    found = costs(configs, done, ledgers, calibrate=options.calibrate)
    known = [one.seconds for one in found if not math.isnan(one.seconds)]
    jobs = options.jobs or cores()
    unknown = len(found) - len(known)
    if options.json:
        runs = [
            {"run": one.config.identity, "name": label(one.config), "steps": one.config.steps, "done": one.done,
             "bytes": one.size, "rate": none(one.rate), "seconds": none(one.seconds), "source": one.source}
            for one in found
        ]  # fmt: skip
        total = {"runs": len(found), "done": len(done), "seconds": sum(known), "unknown": unknown}
        print(json.dumps({"study": study.name, "section": study.section, "total": total, "runs": runs}, indent=2))
        return 0
    width = max(len(label(one.config)) for one in found)
    for one in found:
        time = "done" if one.done else "time unknown" if math.isnan(one.seconds) else duration(one.seconds)
        print(f"{label(one.config):<{width}}  {one.config.steps:>12,} steps  {as_text(one.size):>8}  {time}")
    print(f"\n{study.name} ({study.section}): {len(found)} runs, {len(done)} done", end="")
    print(f", {study.repeated} asked for twice" if study.repeated else "")
    largest, free = max(one.size for one in found), available_bytes()
    print(f"memory: at most {as_text(largest)} a run" + ("" if free is None else f"; {as_text(free)} are free here"))
    if known and sum(known) > 0:
        sources = " and ".join(sorted({one.source for one in found if one.source and not one.done}))
        print(
            f"time: {duration(sum(known))} of one core, {duration(sum(known) / jobs)} with {jobs} at a time ({sources})"
        )
    if unknown:
        print(f"time unknown of {unknown} runs: no such run is finished here; --calibrate tries each agent for seconds")
    return 0


def pairs(texts: Sequence[str], option: str) -> list[tuple[str, str]]:
    """``key=value`` as pairs, each key once."""
    found: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        key = key.strip()
        if not sign or not key:
            raise UserError(f"{option} takes key=value, got {text!r}")
        if key in found:
            raise UserError(f"{key} is given twice by {option}: {found[key]!r} and {value.strip()!r}")
        found[key] = value.strip()
    return list(found.items())


def none(value: float) -> float | None:
    """NaN is not JSON."""
    return None if math.isnan(value) else value
