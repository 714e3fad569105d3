"""Every Atari game of the paper once through: make atari-smoke, about two minutes on a free machine.

    python benchmarks/atari_smoke.py
    python benchmarks/atari_smoke.py --games Pong Qbert --steps 400

Each game is trained for some steps by the paper's protocol, with updates, DBS-DQN and c learned; stopped by SIGTERM at a
random step, where it saves a checkpoint; resumed to its end; and evaluated by episodes of its own. It passes if the run
that was stopped comes to the same bits (weights, optimiser, replay memory, streams, emulator, rows) as one that was not,
if there were updates and every loss is finite, and if the evaluation is there. Exit code 1 if a game does not pass.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np

from dynaboltz.envs.atari import rom_of
from dynaboltz.errors import DynaboltzError
from dynaboltz.reports.scores import paper_scores
from dynaboltz.runs import RunConfig, evaluate, home_of, read_rows, resume, train
from faults_atari import LIMIT, atari, undisturbed
from faulty import at_step, forked, state_of

FIRST = 40
"""Steps before the first update, and before a stop."""
COLUMNS = ("game", "steps", "updates", "loss", "stopped at", "equal", "score", "cut", "seconds", "")


def config_of(game: str, steps: int) -> RunConfig:
    """A run on one game by the paper's protocol."""
    return atari(
        f"atari/{rom_of(game)}(protocol='nature2015')", steps=steps, log_period_steps=steps,
        agent__replay_start_steps=FIRST, evaluation__period_steps=0, evaluation__episodes=1,
    )  # fmt: skip


def through(game: str, steps: int, rng: np.random.Generator, folder: Path) -> dict[str, Any]:
    """One game: trained whole; trained, stopped and resumed; evaluated."""
    began, config = time.monotonic(), config_of(game, steps)
    stop = int(rng.integers(FIRST, steps))
    told: dict[str, Any] = {"game": game, "steps": steps, "stopped at": stop}
    expected = undisturbed(config, folder)

    def work() -> None:
        at_step(stop, lambda: os.kill(os.getpid(), signal.SIGTERM))
        train(config, folder)

    ended = forked(work, folder, limit=LIMIT)
    if ended.code != 128 + signal.SIGTERM:
        return told | {"": f"exit code {ended.code} at the stop: {ended.said[-300:]}"}
    home = home_of(config, folder)
    resume(home.folder)
    told["equal"] = state_of(config, folder) == expected
    learning = [row for row in read_rows(home.rows) if row["kind"] == "learning"][-1]
    found = evaluate(home.folder, episodes=2, max_steps=50)
    told |= {"updates": learning["updates"], "loss": learning["loss"]}
    told |= {"score": found.score.row()["mean"], "cut": found.score.cut, "seconds": round(time.monotonic() - began, 1)}
    good = told["equal"] and told["updates"] > 0 and math.isfinite(told["loss"]) and math.isfinite(told["score"])
    return told | {"": "" if good else "does not pass"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Go through the games and print a table; 1 if one does not pass."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", nargs="+", default=list(paper_scores().games))
    parser.add_argument("--steps", type=int, default=100, help=f"of each game, more than {FIRST}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    rng, table = np.random.default_rng(options.seed), []
    if not options.json:
        print(_line(COLUMNS))
    for game in options.games:
        with tempfile.TemporaryDirectory() as folder:
            try:
                told = through(game, options.steps, rng, Path(folder))
            except (DynaboltzError, RuntimeError) as fault:
                told = {"game": game, "": str(fault).strip()[-300:]}
        table.append(told)
        if not options.json:
            print(_line([told.get(column, "–") for column in COLUMNS]), flush=True)
    passed = sum(not told[""] for told in table)
    if options.json:
        print(json.dumps(table, indent=1))
    else:
        updates = sum(told.get("updates", 0) for told in table)
        steps = sum(told["steps"] for told in table if "updates" in told)
        print(f"{passed} of {len(table)} games pass: {steps:,} steps with {updates:,} updates")
    return int(passed < len(table))


def _line(cells: Sequence[Any]) -> str:
    widths = (19, 6, 8, 10, 11, 6, 7, 4, 8, 0)
    texts = [f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in cells]
    return (texts[0].ljust(widths[0]) + "".join(t.rjust(w) for t, w in zip(texts[1:-1], widths[1:-1], strict=True))) + (
        f"  {texts[-1]}" if texts[-1] else ""
    )


if __name__ == "__main__":
    sys.exit(main())
