"""A study is a grid of runs, written as TOML: what they share, and what they differ in.

```toml
name = "classic"                    # without it, that of the file
section = "Classic control"         # where it stands in a report
preset = "dqn"
seeds = "0..4"                      # or a list

[settings]                          # of every run
steps = 20000

[axes]                              # every combination of these values; any setting, and preset
env = ["CartPole-v1", "Acrobot-v1"]
"agent.learning_rate" = [1e-3, 3e-4]

[worlds.short]                      # one more axis: several settings that belong to one world
env = "CartPole-v1(max_episode_steps=200)"

[agents.dbs-slow]                   # and one of named agents; the name is that of the runs
preset = "dbs-dqn-fixed"
"agent.summary" = "boltzmann(beta=power(2, c=0.01))"
```

An agent or a world overrides the common settings; a setting that two axes give is an error.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.files import opened
from dynaboltz.runs import Given, RunConfig, resolve
from dynaboltz.runs.config import SETTINGS, STANDING_FOR
from dynaboltz.runs.layout import safe
from dynaboltz.runs.settings import flat, unknown_key, written
from dynaboltz.runs.toml import LONGEST_BYTES
from dynaboltz.text import short

TEXTS = ("name", "about", "section", "preset")
TABLES = ("settings", "axes", "worlds", "agents")
KEYS = (*TEXTS, "seeds", *TABLES)

MOST_RUNS = 100_000

Choice = dict[str, Given]
"""The settings that one point of an axis gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What was asked, as runs."""

    name: str
    about: str
    section: str
    configs: tuple[RunConfig, ...]
    """Each run once; all of one seed before the next, so that half a study compares everything."""
    repeated: int
    """Combinations that are runs which were there already."""


def read_study(path: Path, changes: Mapping[str, Given] | None = None) -> Study:
    """The study in a file; ``changes`` are settings over all that it says.

    Raises:
        UserError: it cannot be read, or something in it is wrong; with the file, the key and the nearest one.
    """
    return parse_study(_tree(path), str(path), default_name=path.stem, changes=changes or {})


def parse_study(
    tree: Mapping[str, Any], place: str, *, default_name: str, changes: Mapping[str, Given] | None = None
) -> Study:
    """The study that a tree of tables describes; ``place`` is for messages."""
    for key in tree:
        if key not in KEYS:
            raise UnknownNameError("key", key, KEYS, place)
    texts = {key: _text(key, tree.get(key, ""), place) for key in TEXTS}
    tables = {key: _table(key, tree.get(key, {}), place) for key in TABLES}
    common = _choice(tables["settings"], f"{place}, [settings]")
    if texts["preset"]:
        if "preset" in common:
            raise UserError(f"preset is given twice in {place}: at the top and in [settings]")
        common["preset"] = Given(texts["preset"], place)
    seeds = parse_seeds(tree.get("seeds", [0]), f"seeds in {place}")
    axes = list(_axes(tables, place))
    combinations: Iterator[Any] = itertools.product(seeds, *axes)
    count = len(seeds) * math.prod(map(len, axes))
    if count > MOST_RUNS:
        raise UserError(f"{place} asks for {count:,} runs; at most {MOST_RUNS:,} make one study")
    runs: dict[str, RunConfig] = {}
    for seed, *point in combinations:
        given = common | _together(point, place) | {"seed": Given(seed, f"{place}, seeds")} | dict(changes or {})
        config = resolve(None, None, given)
        runs.setdefault(config.identity, config)
    name = safe(texts["name"] or default_name)
    section = texts["section"] or name
    return Study(
        name=name, about=texts["about"], section=section, configs=tuple(runs.values()), repeated=count - len(runs)
    )


def parse_seeds(value: Any, where: str) -> list[int]:
    """The seeds that a list, or text such as ``0..4``, stands for.

    >>> parse_seeds("2..4", "here"), parse_seeds([5, 1], "here")
    ([2, 3, 4], [5, 1])
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d{1,18})\.\.(\d{1,18})\s*", value)
        if match and int(match[1]) <= int(match[2]) < int(match[1]) + MOST_RUNS:
            return list(range(int(match[1]), int(match[2]) + 1))
    elif isinstance(value, list) and value and all(type(seed) is int and seed >= 0 for seed in value):
        if len(set(value)) < len(value):
            raise UserError(f"{where} names a seed twice: {short(value)}")
        return value
    raise UserError(f'{where} must be a list such as [0, 1, 2], or text such as "0..4", got {short(value)}')


def select(configs: Sequence[RunConfig], only: Sequence[str]) -> list[RunConfig]:
    """The runs whose settings are as every text of ``only`` says: ``key=pattern``, or ``key=one,other``.

    Patterns are those of a shell: ``env=minatar/*``.
    """
    kept = list(configs)
    for text in only:
        key, sign, patterns = text.partition("=")
        if not sign or not patterns:
            raise UserError(f"--only takes key=pattern, got {text!r}\n  for instance --only env=minatar/* or seed=0,1")
        if key not in SETTINGS:
            raise unknown_key(key, SETTINGS, "--only")
        wanted = [one.strip() for one in patterns.split(",")]
        kept = [one for one in kept if any(fnmatch.fnmatchcase(written(flat(one)[key]), each) for each in wanted)]
    if not kept:
        names = sorted({f"env={one.env} name={one.name}" for one in configs})
        raise UserError(f"no run is left by --only {' --only '.join(only)}\n  there are: {'; '.join(names[:10])}")
    return kept


def label(config: RunConfig) -> str:
    """What a run is called on one line."""
    return f"{config.env} {config.name} seed {config.seed}"


def _axes(tables: Mapping[str, Mapping[str, Any]], place: str) -> Iterator[list[Choice]]:
    """The points of each axis."""
    for table in ("worlds", "agents"):
        named = tables[table]
        for name, settings in named.items():
            if not isinstance(settings, dict):
                raise UserError(f"{table}.{name} in {place} must be a table of settings, got {short(settings)}")
        points = [_choice(settings, f"{place}, [{table}.{name}]") for name, settings in named.items()]
        if table == "agents":
            points = [
                {"name": Given(name, f"{place}, [agents.{name}]")} | point
                for name, point in zip(named, points, strict=True)
            ]
        if points:
            yield points
    where = f"{place}, [axes]"
    for key, values in _flat(tables["axes"]):
        if not isinstance(values, list) or not values:
            raise UserError(f"{key} in {where} must be a list of values, got {short(values)}")
        _check_key(key, where)
        yield [{key: Given(value, where)} for value in values]


def _together(points: Sequence[Choice], place: str) -> Choice:
    """The settings of one point of each axis; none may be given by two."""
    found: Choice = {}
    for point in points:
        for key, given in point.items():
            if key in found and key != "name":
                raise UserError(f"{key} is given by two axes of {place}\n  {found[key].place}\n  {given.place}")
            found[key] = given
    return found


def _choice(settings: Mapping[str, Any], place: str) -> Choice:
    found = {key: Given(value, place) for key, value in _flat(settings)}
    for key in found:
        _check_key(key, place)
    return found


def _check_key(key: str, place: str) -> None:
    if key == "seed":
        raise UserError(f'seed in {place}: the seeds of a study stand at the top of it, as seeds = "0..4"')
    if key not in SETTINGS and key not in STANDING_FOR:
        raise unknown_key(key, SETTINGS, place, also=STANDING_FOR)


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _text(key: str, value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise UserError(f"{key} in {place} must be text, got {short(value)}")
    return value


def _table(key: str, value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{key} in {place} must be a table, such as [{key}], got {short(value)}")
    return value


def _tree(path: Path) -> dict[str, Any]:
    with opened(path) as file:
        content = file.read(LONGEST_BYTES + 1)
    if len(content) > LONGEST_BYTES:
        raise UserError(f"{path} is longer than {LONGEST_BYTES:,} bytes: that is no study")
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise UserError(f'{path} is not TOML: {fault}\n  for instance: preset = "dqn"') from None
