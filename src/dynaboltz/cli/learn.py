"""Learn a world with a tabular agent, many seeds at once: Q-learning and its relatives with any summary.

For example:  dynaboltz learn paper_grid --agent dbs --seeds 1000
              dynaboltz learn FrozenLake-v1 --agent dbs --summary "boltzmann(beta=power(3))" --max-steps 100
              dynaboltz learn Taxi-v4 --agent q --step-size "visits(0.8)" --epsilon 0.05 --out learned.npz
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from dynaboltz.cli.solve import StatusLine
from dynaboltz.errors import UnknownNameError, UserError

if TYPE_CHECKING:
    from dynaboltz.mdp import MDP
    from dynaboltz.tabular import Learned, Learning, Progress

SUFFIXES = (".csv", ".npz")
PERIODS = 10
"""Rows of the table: as many groups of episodes, of about equal length."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    world: Annotated[str, tyro.conf.Positional]
    """A file (.npz, .tra, .drn, .umb, .txt), a world such as 'grid(slip=0.1)', or a Gymnasium id (Discrete spaces)."""
    agent: str = "dbs"
    """dbs, q, double_q, sarsa, expected_sarsa, soft_q, g_learning, mellowmax or s_q; what follows changes it."""
    summary: str | None = None
    """Operator of the update, such as 'boltzmann(beta=power(2))'."""
    clock: str | None = None
    """What t counts in β_t, from 1: episode, step, visit or episode_step."""
    discount: float | None = None
    """γ, from 0 to 1; 0.9 if not given."""
    episodes: int | None = None
    """Episodes of each seed; 500 if not given."""
    max_steps: int | None = None
    """Steps after which an episode is cut off; 300 if not given."""
    epsilon: str | None = None
    """ε of ε-greedy choices, a number or a schedule such as 'piecewise(((1, 1), (100, 0.05)))'; 0.1 if not given."""
    epsilon_clock: str | None = None
    """What t counts in ε_t: episode or step."""
    step_size: str | None = None
    """α: a number, 'visits(0.8)' for n^−0.8, or visits for 1/n; 0.1 if not given."""
    initial: str | None = None
    """Q_0: a number, 'uniform(0, 0.1)' or 'normal(0, 1)'; zeros if not given."""
    ties: str | None = None
    """Which of several greedy actions: random or lowest."""
    prior: str | None = None
    """G-learning's prior: uniform, or one number an action, such as '(0.7, 0.3)'."""
    unmasked: bool = False
    """A terminal state is worth op(0, …, 0) instead of 0."""
    seeds: int = 100
    """How many seeds."""
    root: int = 0
    """Root of all randomness."""
    threads: int | None = None
    """By default as many as there are cores; the result does not depend on it."""
    out: Path | None = None
    """Write everything to this .npz, or one line an episode to this .csv."""
    checkpoint: Path | None = None
    """Keep the state in this folder, every minute and when interrupted."""
    resume: bool = False
    """Go on from the checkpoint, to the same bits as without the interruption."""
    json: bool = False
    """Print JSON, without the tables."""


FIELDS = (
    "summary", "clock", "discount", "episodes", "max_steps", "epsilon", "epsilon_clock", "step_size", "initial", "ties",
    "prior",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Parse, learn, print."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz learn", description=__doc__)
    from dynaboltz.tabular import agent, learn

    if options.resume and options.checkpoint is None:
        raise UserError("--resume goes on from a folder: name it with --checkpoint FOLDER")
    if options.out is not None:
        check_target(options.out)
    changes = {name: value for name in FIELDS if (value := getattr(options, name)) is not None}
    if options.unmasked:
        changes["mask_terminal"] = False
    config = agent(options.agent, **changes)
    world = world_of(options.world)
    line = StatusLine(enabled=sys.stderr.isatty() and not options.json)
    line.say("compiling, if this is the first time; loading the compiled engine if not")

    def show(now: Progress) -> None:
        left = f", about {now.remaining_seconds:.0f} s left" if math.isfinite(now.remaining_seconds) else ""
        line.say(f"{now.share:.0%}: {now.steps:,} steps, {_rate(now.steps_per_second)}{left}")

    learned = learn(
        world, config, seeds=options.seeds, root=options.root, threads=options.threads, progress=show,
        checkpoint=options.checkpoint, resume=options.resume,
    )  # fmt: skip
    line.clear()
    if options.out is not None:
        save(learned, options.out)
    rows = table(learned)
    if options.json:
        print(json.dumps(_as_json(options, learned, rows), indent=2, ensure_ascii=False))
    else:
        print("\n".join(_report(options, learned, rows)))
    return 0


def world_of(source: str) -> MDP | Callable[[], Any]:
    """The model that the text names, or what makes the environment where there is no model."""
    from dynaboltz.mdp import load
    from dynaboltz.mdp.calls import parse_call
    from dynaboltz.mdp.source import GYMNASIUM_ID

    match = GYMNASIUM_ID.fullmatch(source.strip())
    if match is None:
        return load(source)
    import gymnasium

    keywords = parse_call(f"env{match['arguments']}").kwargs if match["arguments"] else {}

    def make() -> Any:
        try:
            return gymnasium.make(match["id"], disable_env_checker=True, **keywords)
        except Exception as fault:
            raise UserError(f"Gymnasium cannot make {source!r}: {fault}") from fault

    env = make()
    try:
        modelled = getattr(env.unwrapped, "P", None) is not None
    finally:
        env.close()
    return load(source) if modelled else make


def check_target(path: Path) -> None:
    """Refuse a target that could not be written to, before the work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise UnknownNameError("format", path.suffix or "(no suffix)", SUFFIXES, repr(str(path)))
    if not path.absolute().parent.is_dir():
        raise UserError(f"cannot write {path}: its folder does not exist")


def save(learned: Learned, path: Path) -> None:
    """Write what was learned as the suffix says."""
    import numpy as np

    from dynaboltz.files import replacing, write_atomically

    if path.suffix.lower() == ".npz":
        meta = {"kind": "dynaboltz learned", "config": learned.config.as_dict(), "root": learned.root}
        with replacing(path) as file:
            np.savez(
                file, seeds=np.array(learned.seeds), steps=learned.steps, returns=learned.returns, q=learned.q,
                visits=learned.visits, policy=learned.policy(), total_steps=learned.total_steps,
                meta=np.frombuffer(json.dumps(meta).encode(), np.uint8),
            )  # fmt: skip
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["seed", "episode", "steps", "return"])
    for seed, steps, returns in zip(learned.seeds, learned.steps.tolist(), learned.returns.tolist(), strict=True):
        writer.writerows((seed, n, *row) for n, row in enumerate(zip(steps, returns, strict=True), start=1))
    write_atomically(path, text.getvalue())


def table(learned: Learned) -> list[dict[str, Any]]:
    """Mean steps and return of an episode in each period, over seeds, with 95 % intervals where there are two seeds."""
    import numpy as np

    from dynaboltz.reports.statistics import Interval, mean_interval

    def over_seeds(values: Any) -> Interval:
        of_seed = values.mean(axis=1)
        if of_seed.size > 1:
            return mean_interval(of_seed)
        return Interval(float(of_seed[0]), math.nan, math.nan)

    episodes = learned.config.episodes
    rows = []
    for part in np.array_split(np.arange(episodes), min(PERIODS, episodes)):
        columns = slice(int(part[0]), int(part[-1]) + 1)
        rows.append({
            "episodes": (columns.start + 1, columns.stop),
            "steps": over_seeds(learned.steps[:, columns]),
            "return": over_seeds(learned.returns[:, columns]),
        })  # fmt: skip
    return rows


def _as_json(options: Options, learned: Learned, rows: list[dict[str, Any]]) -> dict[str, Any]:
    def plain(interval: Any) -> dict[str, float | None]:
        values = {"mean": interval.value, "low": interval.low, "high": interval.high}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}

    return {
        "world": options.world,
        "agent": options.agent,
        "config": learned.config.as_dict(),
        "seeds": len(learned.seeds),
        "root": learned.root,
        "steps": int(learned.total_steps.sum()),
        "seconds": learned.seconds,
        "digest": learned.digest(),
        "periods": [
            {"episodes": list(row["episodes"]), "steps": plain(row["steps"]), "return": plain(row["return"])}
            for row in rows
        ],
        "out": None if options.out is None else str(options.out),
    }


def _report(options: Options, learned: Learned, rows: list[dict[str, Any]]) -> list[str]:
    config, total = learned.config, int(learned.total_steps.sum())
    lines = [
        f"{options.world}: {learned.q.shape[1]:,} states, {learned.q.shape[2]} actions",
        f"{config.rule}{'' if config.summary is None else f' with {config.summary}'}{_clock(config)}, "
        f"γ = {config.discount:g}, α = {config.step_size}, ε = {config.epsilon}, Q_0 = {config.initial}, "
        f"ties {config.ties}, at most {config.max_steps:,} steps an episode",
        f"{len(learned.seeds):,} seeds × {config.episodes:,} episodes: {total:,} steps in {learned.seconds:.2f} s "
        f"({_rate(total / learned.seconds)})",
        "",
    ]
    header = ["episodes", "steps of an episode", "return of an episode"]
    cells = [
        [f"{a:,} to {b:,}", *(_cell(row[name]) for name in ("steps", "return"))]
        for row in rows
        for a, b in [row["episodes"]]
    ]
    widths = [max(len(row[column]) for row in [header, *cells]) for column in range(3)]
    lines += ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in [header, *cells]]
    many = len(learned.seeds) > 1
    lines += ["", "means over seeds with 95 % intervals (Student's t)" if many else "one seed: no intervals"]
    if options.out is not None:
        lines.append(f"written to {options.out}")
    return lines


def _rate(steps_per_second: float) -> str:
    millions = steps_per_second / 1e6
    return f"{millions:.2f} million a second" if millions >= 0.1 else f"{steps_per_second:,.0f} a second"


def _clock(config: Learning) -> str:
    """What t counts, where there is a β_t."""
    from dynaboltz.summaries import Dynamic

    summary = config.parsed_summary
    return f" (t: {config.clock})" if isinstance(summary, Dynamic) else ""


def _cell(interval: Any) -> str:
    return f"{interval.value:.4g}" if math.isnan(interval.low) else str(interval)
