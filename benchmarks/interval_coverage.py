"""How often the 95 % intervals of the reports cover the truth, by simulation.

    python benchmarks/interval_coverage.py                    # 2,000 worlds a cell, about two minutes
    python benchmarks/interval_coverage.py --worlds 200 --json

A world is a set of tasks, each with its own distribution of scores; the truth is the statistic of 400,000 runs of every
task. Each world draws a few runs of every task and asks for the interval. Shapes: *normal* (means from 0.2 to 1.5,
deviations from 0.05 to 0.4), *skewed* (the same moments, gamma), *bimodal* (a run fails with probability 0.3 and then
scores a fifth). A share of hits has itself a standard error of about 0.5 % at 2,000 worlds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from dynaboltz.reports.aggregates import AGGREGATES, METHODS, improvement, stratified_interval
from dynaboltz.reports.statistics import mean_interval, superiority

SHAPES = ("normal", "skewed", "bimodal")
SIZES = ((3, 5), (5, 1), (5, 5), (5, 26), (10, 5))
"""Runs × tasks."""
TRUTH_RUNS = 400_000
RESAMPLES = 1000


def draw(shape: str, runs: int, tasks: int, rng: np.random.Generator, *, shift: float = 0.0) -> np.ndarray[Any, Any]:
    """Scores of independent runs; ``shift`` makes a better agent."""
    centre = np.linspace(0.2, 1.5, tasks) if tasks > 1 else np.array([0.8])
    spread = np.linspace(0.05, 0.4, tasks)[::-1] if tasks > 1 else np.array([0.3])
    if shape == "normal":
        return rng.normal(centre + shift, spread, (runs, tasks))
    if shape == "skewed":
        form = (centre / spread) ** 2
        return rng.gamma(form, centre / form, (runs, tasks)) + shift
    failed = rng.random((runs, tasks)) < 0.3
    return np.where(failed, 0.2, 1.0) * rng.normal(centre + shift, spread / 3, (runs, tasks))


def cell(job: tuple[str, int, int, int, int]) -> list[dict[str, Any]]:
    """One shape at one size: hits of every interval."""
    shape, runs, tasks, worlds, seed = job
    rng = np.random.default_rng([seed, SHAPES.index(shape), runs, tasks])
    large, better = (draw(shape, TRUTH_RUNS // tasks, tasks, rng, shift=shift) for shift in (0.0, 0.1))
    truth = {name: float(statistic(large)) for name, statistic in AGGREGATES.items()}
    part = min(len(large), 1500)
    ahead = float(
        np.mean([improvement(better[i : i + part], large[i : i + part]) for i in range(0, len(large) - part + 1, part)])
    )
    hits: dict[tuple[str, str], int] = {}

    def count(name: str, method: str, interval: Any, true: float) -> None:
        hits[name, method] = hits.get((name, method), 0) + (not interval.excludes(true))

    for _ in range(worlds):
        scores, other = draw(shape, runs, tasks, rng), draw(shape, runs, tasks, rng, shift=0.1)
        for method in METHODS:
            for name, statistic in AGGREGATES.items():
                found = stratified_interval(statistic, scores, rng=rng, resamples=RESAMPLES, method=method)
                count(name, method, found, truth[name])
            found = stratified_interval(improvement, other, scores, rng=rng, resamples=RESAMPLES, method=method)
            count("improvement", method, found, ahead)
        if tasks == 1:
            count("mean", "Student's t", mean_interval(scores[:, 0]), truth["mean"])
            count("improvement", "Brunner–Munzel", superiority(other[:, 0], scores[:, 0]), ahead)
    return [
        {"shape": shape, "runs": runs, "tasks": tasks, "statistic": name, "method": method, "covered": count_ / worlds}
        for (name, method), count_ in hits.items()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    jobs = [(shape, runs, tasks, options.worlds, options.seed) for runs, tasks in SIZES for shape in SHAPES]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = [row for rows in pool.map(cell, jobs) for row in rows]
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    print(f"coverage of nominal 95 % intervals, {options.worlds} worlds a cell, {RESAMPLES} resamples each\n")
    methods = list(dict.fromkeys(row["method"] for row in rows))
    print(f"{'runs × tasks':<14}{'shape':<10}{'statistic':<20}" + "".join(f"{method:>16}" for method in methods))
    for key in dict.fromkeys((row["runs"], row["tasks"], row["shape"], row["statistic"]) for row in rows):
        found = {
            row["method"]: row["covered"]
            for row in rows
            if (row["runs"], row["tasks"], row["shape"], row["statistic"]) == key
        }
        cells = "".join(f"{found[method]:>16.1%}" if method in found else " " * 16 for method in methods)
        print(f"{f'{key[0]} × {key[1]}':<14}{key[2]:<10}{key[3]:<20}{cells}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
