"""Train an agent: a preset or a TOML file with changes; what was begun goes on, what is finished is not run again.

For example:  dynaboltz train CartPole-v1 --preset dbs-dqn --steps 50000
              dynaboltz train CartPole-v1 --preset dqn --seeds 0..9 --jobs 2
              dynaboltz train --config my.toml --set agent.learning_rate=5e-4 --set sinks=tensorboard
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from dynaboltz.errors import UserError

if TYPE_CHECKING:
    from dynaboltz.runs import Result, RunConfig

LINE = "the command line"
MOST_SEEDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    env: Annotated[str | None, tyro.conf.Positional] = None
    """A Gymnasium id, 'minatar/breakout', 'probe/beta', 'package.module:factory'."""
    preset: str | None = None
    """Where the settings start, such as dqn or dbs-dqn; --list names them all."""
    config: Path | None = None
    """A TOML file of settings, over the preset's."""
    changes: Annotated[tuple[str, ...], tyro.conf.arg(name="set"), tyro.conf.UseAppendAction] = ()
    """One setting, over all others: --set agent.learning_rate=5e-4; as often as needed."""
    steps: str | None = None
    """Agent steps of the run; short for --set steps=..."""
    seed: str | None = None
    """Root of every random number; short for --set seed=..."""
    seeds: str | None = None
    """Several runs: 0..9 or 0,3,5, each in a process of its own."""
    jobs: int = 1
    """How many of them at a time."""
    out: Path = Path("runs")
    """Folder of all runs; each has a folder of its own in it."""
    force: bool = False
    """Throw away what there is of the run and start again."""
    dry_run: bool = False
    """Print the settings, where the run will live and the memory it takes, and stop."""
    list: bool = False
    """Print the presets and stop."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: Sequence[str]) -> int:
    """Parse, train, print; 1 if a run failed."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz train", description=__doc__)
    if options.list:
        return list_presets(as_json=options.json)
    from dynaboltz.runs import home_of, resolve, train
    from dynaboltz.runs.progress import shown
    from dynaboltz.runs.several import train_several

    config = resolve(options.preset, options.config, given(options))
    if options.dry_run:
        return plan(config, options.out, as_json=options.json)
    seeds = None if options.seeds is None else parse_seeds(options.seeds)
    configs = [config] if seeds is None else [replace(config, seed=seed) for seed in seeds]
    folders = [home_of(one, options.out).folder for one in configs]
    before = [] if options.force else finished(folders)
    with told_if_left(folders, forced=options.force), plain_warnings(), shown(quiet=options.json) as watch:
        if seeds is None:
            results, faults, code = [train(config, options.out, force=options.force, watch=watch)], [], 0
        else:
            outcomes = train_several(configs, options.out, jobs=options.jobs, force=options.force, watch=watch)
            results = [one.result for one in outcomes if one.result is not None]
            faults = [f"seed {one.config.seed}: {one.fault}" for one in outcomes if one.result is None]
            code = max(one.code for one in outcomes)
    told = [as_json(result) for result in results]
    if options.json:
        print(json.dumps(told[0] if seeds is None else {"runs": told, "failed": faults}, indent=2))
    else:
        print("\n".join(report(results, before)))
        for fault in faults:
            print(f"error: {fault}", file=sys.stderr)
    return code


def given(options: Options) -> dict[str, Any]:
    """The settings of the command line, each where it was given once."""
    from dynaboltz.runs import Given

    if options.seeds is not None and options.seed is not None:
        raise UserError("give --seed for one run or --seeds for several, not both")
    if options.seeds is None and options.jobs != 1:
        raise UserError(f"--jobs {options.jobs} runs several seeds side by side: name them, such as --seeds 0..9")
    values: dict[str, Given] = {}
    named = {"env": options.env, "steps": options.steps, "seed": options.seed}
    pairs = [(key, value) for key, value in named.items() if value is not None]
    for change in options.changes:
        key, sign, value = change.partition("=")
        if not sign or not key.strip():
            raise UserError(f"--set takes key=value, got {change!r}\n  for instance --set agent.learning_rate=5e-4")
        pairs.append((key.strip(), value.strip()))
    for key, value in pairs:
        if key in values:
            raise UserError(f"{key} is given twice on {LINE}: {values[key].value!r} and {value!r}")
        values[key] = Given(value, LINE, written=True)
    return values


def parse_seeds(text: str) -> list[int]:
    """The seeds that ``0..9`` or ``0,3,5..7`` stands for.

    >>> parse_seeds("0,3,5..7")
    [0, 3, 5, 6, 7]
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})(?:\.\.(\d{1,18}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise UserError(f"--seeds takes a range such as 0..9 or a list such as 0,3,5, got {text!r}")
        if last - first + len(seeds) >= MOST_SEEDS:
            raise UserError(f"--seeds names more than {MOST_SEEDS:,} seeds: {text!r}")
        seeds += range(first, last + 1)
    if len(set(seeds)) < len(seeds):
        raise UserError(f"--seeds names a seed twice: {text!r}")
    return seeds


def plan(config: RunConfig, root: Path, *, as_json: bool) -> int:
    """Print what a run would be."""
    from dynaboltz.runs import home_of
    from dynaboltz.runs.estimate import estimate_of
    from dynaboltz.runs.settings import flat
    from dynaboltz.runs.toml import write

    folder, needed = home_of(config, root).folder, estimate_of(config)
    if as_json:
        settings = {key: plain(value) for key, value in flat(config).items()}
        found = {"folder": str(folder), "memory": needed.parts, "bytes": needed.total, "settings": settings}
        print(json.dumps(found, indent=2))
    else:
        print(write(flat(config), f"It will live in {folder}\nand take about {needed} of memory."), end="")
    needed.check(config)
    return 0


def list_presets(*, as_json: bool) -> int:
    """Print every preset with the first line of what it is."""
    from dynaboltz.deep import PRESETS

    lines = {name: str(make.func.__doc__).split("\n", maxsplit=1)[0] for name, make in PRESETS.items()}  # type: ignore[attr-defined]
    if as_json:
        print(json.dumps(lines, indent=2, ensure_ascii=False))
    else:
        width = max(map(len, lines))
        print("\n".join(f"{name:<{width}}  {line}" for name, line in lines.items()))
    return 0


def finished(folders: Sequence[Path]) -> list[str]:
    """Those folders whose run has come to its end."""
    from dynaboltz.runs import Home

    return [str(folder) for folder in folders if Home(folder).record() is not None]


def report(results: Sequence[Result], before: Sequence[str] = (), again: str = "--force starts again") -> list[str]:
    """What runs came to, in lines; of those in the folders ``before`` nothing was left to do."""
    lines = []
    for one in results:
        parts = [f"{one.step:,} steps", f"{one.episodes:,} episodes"]
        if not math.isnan(one.evaluation):
            parts.append(f"last evaluation {one.evaluation:.4g}")
            parts.append(f"best {one.best:.4g} at step {one.best_step:,}")
        elif not math.isnan(one.mean_return):
            parts.append(f"mean return {one.mean_return:.4g}")
        lines.append(f"{one.folder}: {', '.join(parts)}")
    if before:
        subject = "it was" if len(results) == 1 else f"{len(before)} of {len(results)} were"
        lines.append(f"  {subject} finished before; {again}")
    return lines


@contextlib.contextmanager
def told_if_left(folders: Sequence[Path], *, forced: bool = False) -> Iterator[None]:
    """Where a signal ends it, say what is kept and how it goes on."""
    from dynaboltz.runs import Home

    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        kept = [folder for folder in folders if any(Home(folder).checkpoints.glob("*"))]
        if kept:
            more = f" and {len(kept) - 1} more" if len(kept) > 1 else ""
            same = "the same command without --force" if forced else "the same command"
            alone = f", and so does: dynaboltz resume {kept[0]}" if len(folders) == 1 else ""
            print(f"what is saved is in {kept[0]}{more}\n  {same} goes on from there{alone}", file=sys.stderr)
        raise


def as_json(result: Result) -> dict[str, Any]:
    """The result with null for what there is none of."""
    return {key: plain(value) for key, value in asdict(result).items()}


def plain(value: Any) -> Any:
    """NaN is not JSON, and neither is ∞."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings in a line, without the place in our source."""
    before = warnings.showwarning

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"warning: {message}", file=sys.stderr)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
