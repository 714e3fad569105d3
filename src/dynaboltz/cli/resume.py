"""Go on with a run that was interrupted, to the same bits as without the interruption.

For example:  dynaboltz resume runs/CartPole-v1/dqn/hard_max/seed-0-1a2b3c4d
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from dynaboltz.cli.train import as_json, finished, plain_warnings, report, told_if_left


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    folder: Annotated[Path, tyro.conf.Positional]
    """That of the run, with its config.toml."""
    json: bool = False
    """Print JSON instead of text."""


def main(arguments: Sequence[str]) -> int:
    """Parse, go on, print."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz resume", description=__doc__)
    from dynaboltz.runs import resume
    from dynaboltz.runs.progress import shown

    before = finished([options.folder])
    with told_if_left([options.folder]), plain_warnings(), shown(quiet=options.json) as watch:
        result = resume(options.folder, watch=watch)
    again = "dynaboltz train with --force starts again"
    print(json.dumps(as_json(result), indent=2) if options.json else "\n".join(report([result], before, again)))
    return 0
