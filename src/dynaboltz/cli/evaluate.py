"""Evaluate a run's weights by episodes that its training never saw; the run stays as it is.

For example:  dynaboltz evaluate runs/CartPole-v1/dqn/hard_max/seed-0-1a2b3c4d --episodes 100 --weights best
              dynaboltz evaluate runs/atari/Pong/dqn/hard_max/seed-0-1a2b3c4d --protocol dqn_zoo
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dynaboltz.cli.train import plain_warnings


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    folder: Annotated[Path, tyro.conf.Positional]
    """That of the run."""
    episodes: int | None = None
    """How many; 100 if not given, or as many as the protocol says."""
    weights: Literal["last", "best"] = "last"
    """The newest, or those with the best evaluation during the training."""
    epsilon: float | None = None
    """Share of random actions; that of the run's own evaluations if not given."""
    seed: int | None = None
    """Of the episodes; the run's if not given."""
    max_steps: int | None = None
    """Where an episode is cut."""
    protocol: str | None = None
    """Of an Atari game: nature2015, dqn_zoo, machado2018 ...; with its ε, episodes and cap where they are not given."""
    json: bool = False
    """Print JSON, with every return, instead of a line."""


def main(arguments: Sequence[str]) -> int:
    """Parse, play, print."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz evaluate", description=__doc__)
    from dynaboltz.runs import evaluate

    with plain_warnings():
        found = evaluate(
            options.folder, episodes=options.episodes, which=options.weights, epsilon=options.epsilon,
            seed=options.seed, max_steps=options.max_steps, protocol=options.protocol,
        )  # fmt: skip
    row = found.row()
    if options.json:
        print(json.dumps({"folder": found.folder, **row}, indent=2))
    else:
        by = f" by {options.protocol}" if options.protocol else ""
        cut = f", {row['cut']} cut at the limit of steps" if row["cut"] else ""
        print(
            f"{found.which} weights, after {found.step:,} steps{by}: return {row['mean']:.4g} ± {row['deviation']:.3g} "
            f"(from {row['least']:.4g} to {row['most']:.4g}) of {row['episodes']} episodes{cut}"
        )
    return 0
