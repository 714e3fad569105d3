"""Updates per second of the deep learner beside Stable-Baselines3 and eager PyTorch, at equal work: make bench-deep.

    python benchmarks/deep.py --quick                                # a fraction of the updates
    python benchmarks/deep.py --peers .venv-peers-deep/bin/python    # with Stable-Baselines3 from there (make peers-deep)
    python benchmarks/deep.py --json

Every contender is a process of its own with one thread, a batch of 32 from a full replay memory of the same transitions,
the same network, float32, Huber loss and Adam (benchmarks/deep_contenders.py). They take turns, a chunk of updates each,
and what is told is the median over the turns, of seconds of CPU time: on a shared machine the time of day says who else
was at work. A ratio is the median of the ratios within a turn. Stable-Baselines3 always clips the norm of the gradient,
so it is compared with ours that does so too.

The limit to compare with is the additions and multiplications of an update at the rate of torch's float32 product of two
large matrices, measured in the same turns; passes written by hand can exceed it, and bfloat16 does.

Costs are those of DBS and of learning c over DQN: for single updates early, where c moves most targets and its passes go
over all of them, and late, where it moves none; for the mean update where c is learned from one in some, as under the
preset for Atari; and for whole runs, environment included. A run's steps are told by CPU
time and by the clock; two runs side by side by the clock alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep_contenders import BATCH, SHAPES
from dynaboltz.deep.architecture import architecture_of
from dynaboltz.deep.presets import PRESETS
from dynaboltz.envs.spec import Spec

HERE = Path(__file__).parent
SCALES = {"mlp": "", "minatar": "-minatar", "nature": "-nature"}
NAMES = {"mlp": "CartPole, MLP 2 × 64", "minatar": "MinAtar network", "nature": "Nature network"}
CHUNKS = {"mlp": 2000, "minatar": 200, "nature": 10}
"""Updates of a turn of ours; the peers do a fraction."""
EVERY = PRESETS["dbs-dqn-nature"]().c_period_updates
"""Updates between those that c is learned from, under the preset for Atari."""
TIMES = 2, 1000
"""t on the clock where the costs of an update are measured: under the presets β = t² moves most targets, and few."""
MATMUL, PRODUCTS = 1024, 4
LARGEST_DBS, LARGEST_C = 1.03, 1.20
"""Targets: DBS and learning c over DQN."""
START = 100
"""Random steps at the beginning of a run; after them ε is 0.05."""
BEGINNING = {"agent.replay_start_steps": START, "agent.epsilon": "0.05", "agent.threads": 1}
RUNS: dict[str, dict[str, Any]] = {
    "mlp": {"steps": 20_000, "settings": {"env": "CartPole-v1", "changes": BEGINNING}},
    "minatar": {"steps": 6_000, "settings": {"env": "minatar/breakout", "changes": BEGINNING}},
    "nature": {
        "steps": 1_000,
        "settings": {"env": "atari/Breakout", "changes": BEGINNING | {"agent.replay_capacity_steps": 4_000}},
    },
}
"""From end to end, with the presets' settings but for the beginning."""


class Process:
    """Contenders that work when they are told to."""

    def __init__(self, python: str = sys.executable) -> None:
        environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        self._words = tempfile.TemporaryFile("w+")  # noqa: SIM115  (closed with the process)
        self._process = subprocess.Popen(
            [python, str(HERE / "deep_contenders.py")], text=True, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._words,
        )  # fmt: skip

    def ask(self, settings: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(settings) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._words.seek(0)
            raise SystemExit(f"{self._words.read()}\na contender ended with code {self._process.wait()}")
        found: dict[str, float] = json.loads(line)
        return found

    def __call__(self, settings: dict[str, Any], n: int) -> dict[str, float]:
        self.ask(settings | {"n": n})
        return self.answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._words.close()


@dataclass(frozen=True)
class Entry:
    """One contender: where it runs, what it is, and the work of a turn."""

    where: Process
    settings: dict[str, Any]
    n: int


@dataclass(frozen=True)
class Bench:
    """The processes, and how much is measured."""

    ours: Process
    twin: Process
    peers: Process | None
    rounds: int
    share: float

    def chunk(self, network: str) -> int:
        return max(1, int(CHUNKS[network] * self.share))

    def close(self) -> None:
        for one in (self.ours, self.twin, self.peers):
            if one is not None:
                one.close()


def operations(network: str) -> int:
    """Additions and multiplications of an update: target forward, forward, backward to weights and to inputs.

    The first layer passes nothing back to its inputs.
    """
    about = SHAPES[network]
    spec = Spec(**{name: about[name] for name in ("shape", "dtype", "n_actions", "stack")})
    shape = architecture_of(PRESETS["dqn" + SCALES[network]](), spec)
    products = [
        one.shape[0] * one.shape[1] * one.filters * one.kernel**2 * one.channels for one in shape.convolutions
    ] + [a * b for a, b in zip(shape.dense, shape.dense[1:], strict=False)]
    return 2 * BATCH * (4 * sum(products) - products[0])


def our(preset: str, network: str, t: int = 1, **changes: Any) -> dict[str, Any]:
    return {"who": "ours", "network": network, "preset": preset, "changes": changes, "time_on_clock": t}


def turns(entries: dict[str, Entry], rounds: int) -> dict[str, list[dict[str, float]]]:
    """What each found in each round, with seconds for one update; who is first changes."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in entries}
    names = list(entries)
    for entry in entries.values():
        entry.where(entry.settings, max(3, entry.n // 10))
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            entry = entries[name]
            answer = entry.where(entry.settings, entry.n)
            found[name].append(answer | {"each": answer["cpu"] / entry.n})
    return found


def ratio(found: dict[str, list[dict[str, float]]], above: str, below: str) -> float:
    """The median over rounds of seconds of ``above`` over those of ``below``."""
    return statistics.median(a["each"] / b["each"] for a, b in zip(found[above], found[below], strict=True))


def median(found: dict[str, list[dict[str, float]]], name: str, what: str = "each") -> float:
    return statistics.median(one[what] for one in found[name])


def measure_updates(bench: Bench, network: str) -> list[dict[str, Any]]:
    """One record for each contender."""
    chunk = bench.chunk(network)
    few = max(1, chunk // 10)
    entries = {
        "ours": Entry(bench.ours, our("dqn", network), chunk),
        "ours, gradient clipped": Entry(bench.ours, our("dqn", network, gradient_clip=10.0), chunk),
        "eager PyTorch": Entry(bench.ours, {"who": "eager", "network": network}, few),
        "matmul": Entry(bench.ours, {"who": "matmul", "size": MATMUL}, PRODUCTS),
    }
    if network == "nature":
        entries["ours, bfloat16"] = Entry(bench.ours, our("dqn", network, autocast="bfloat16"), chunk)
    if bench.peers is not None:
        entries["Stable-Baselines3"] = Entry(bench.peers, {"who": "sb3", "network": network}, few)
    found = turns(entries, bench.rounds)
    rate = 2 * MATMUL**3 / median(found, "matmul")
    records = []
    for name in entries:
        if name == "matmul":
            continue
        each = median(found, name)
        against = "ours, gradient clipped" if name == "Stable-Baselines3" else "ours"
        records.append({
            "network": network, "who": name, "updates/s": 1 / each, "ms": each * 1e3,
            "times slower than ours": ratio(found, name, against), "MFLOP": operations(network) / 1e6,
            "matmul GFLOP/s": rate / 1e9, "share of matmul rate": operations(network) / rate / each,
        })  # fmt: skip
    return records


def run(network: str, preset: str, side: int = 0) -> dict[str, Any]:
    return {"who": "run", "preset": preset, "side": side} | RUNS[network]["settings"]


def measure_costs(bench: Bench, network: str) -> list[dict[str, Any]]:
    """What DBS costs over DQN, and learning c: of an update where c moves most targets, of one where it moves few, of a run."""
    chunk = bench.chunk(network)
    records = []

    def compare(settings: dict[str, dict[str, Any]], n: int, rounds: int) -> None:
        found = turns({name: Entry(bench.ours, one, n) for name, one in settings.items()}, rounds)
        base = next(iter(settings))
        for name in list(settings)[1:]:
            target = LARGEST_C if "c learned" in name else LARGEST_DBS
            over = ratio(found, name, base)
            record = {"network": network, "who": name, "over DQN": over, "target": target}
            if "c learned" in name and "moved" in found[name][0]:
                record["states that move c"] = median(found, name, "moved")
            records.append(record)

    settings = {"DQN": our("dqn", network)}
    for t in TIMES:
        settings[f"DBS, update at t = {t:,}"] = our("dbs-dqn-fixed", network, t)
        settings[f"DBS with c learned, at t = {t:,}"] = our("dbs-dqn", network, t, c_period_updates=1)
    seldom = our("dbs-dqn", network, TIMES[0], c_period_updates=EVERY)
    settings[f"c learned from 1 update in {EVERY}, t = {TIMES[0]}"] = seldom
    compare(settings, -(-chunk // EVERY) * EVERY, bench.rounds)  # whole periods
    if network in RUNS and network != "nature":  # in so short a run of Atari no target network is copied yet
        names = {"DQN": "dqn", "DBS, a run": "dbs-dqn-fixed", "DBS with c learned, a run": "dbs-dqn"}
        steps = START + int(RUNS[network]["steps"] * bench.share)
        compare({name: run(network, preset) for name, preset in names.items()}, steps, max(1, bench.rounds // 3))
    return records


def measure_runs(bench: Bench, network: str) -> list[dict[str, Any]]:
    """Steps of the environment a second: of a run, of two side by side, and of Stable-Baselines3's on CartPole."""
    steps = max(200, int(RUNS[network]["steps"] * bench.share))
    both = [(bench.ours, run(network, "dqn")), (bench.twin, run(network, "dqn", side=1))]
    alone: list[dict[str, float]] = []
    pair: list[float] = []
    for process, settings in both:
        process(settings, START + 8)
    for _ in range(max(1, bench.rounds // 3)):
        fixed = bench.ours(both[0][1], START)
        whole = bench.ours(both[0][1], START + steps)
        alone.append({name: steps / (whole[name] - fixed[name]) for name in ("cpu", "wall")})
        began = time.perf_counter()
        for process, settings in both:
            process.ask(settings | {"n": START + steps})
        for process, _ in both:
            process.answer()
        pair.append(2 * steps / (time.perf_counter() - began - fixed["wall"]))
    cpu, wall = (statistics.median(one[name] for one in alone) for name in ("cpu", "wall"))
    over = statistics.median(two / one["wall"] for two, one in zip(pair, alone, strict=True))
    records = [
        {"network": network, "who": "ours", "steps per CPU s": cpu, "steps/s": wall},
        {
            "network": network,
            "who": "ours, two runs side by side",
            "steps/s": statistics.median(pair),
            "over one": over,
        },
    ]
    if bench.peers is not None and network == "mlp":
        changes = {"learning_starts": START, "train_freq": 1, "batch_size": BATCH, "buffer_size": 100_000}
        settings, few = {"who": "sb3_run", "changes": changes}, max(200, steps // 20)
        bench.peers(settings, START + 8)
        fixed_cpu = min(bench.peers(settings, START)["cpu"] for _ in range(3))
        spent = statistics.median(bench.peers(settings, START + few)["cpu"] for _ in range(max(1, bench.rounds // 3)))
        found = few / (spent - fixed_cpu)
        records.append({
            "network": network, "who": "Stable-Baselines3", "steps per CPU s": found, "times slower than ours": cpu / found,
        })  # fmt: skip
    return records


PARTS = {"updates": measure_updates, "costs": measure_costs, "runs": measure_runs}


def show(records: list[dict[str, Any]], part: str) -> None:
    """The records of one network as lines."""
    if part == "updates":
        r = records[0]
        print(f"  {r['MFLOP']:,.3g} MFLOP an update; float32 products run at {r['matmul GFLOP/s']:.0f} GFLOP/s")
    for r in records:
        name = f"  {r['who']:36s}"
        if part == "updates":
            print(
                f"{name} {r['updates/s']:9,.0f} updates/s {r['ms']:8.3f} ms   × {r['times slower than ours']:5.2f} the time"
                f"   {r['share of matmul rate']:6.1%} of the matmul rate"
            )
        elif part == "costs":
            verdict = "met" if r["over DQN"] <= r["target"] else "missed"
            moved = f"   c moves {r['states that move c']:4.0%} of the targets" if "states that move c" in r else ""
            print(f"{name} {r['over DQN'] - 1:+8.1%} over DQN   (target {r['target'] - 1:+.0%}: {verdict}){moved}")
        else:
            cpu = f"{r['steps per CPU s']:9,.0f} steps per CPU s" if "steps per CPU s" in r else " " * 25
            wall = f"{r['steps/s']:9,.0f} steps/s" if "steps/s" in r else ""
            more = f"   × {r['over one']:.2f} of one" if "over one" in r else ""
            more = f"   × {r['times slower than ours']:.2f} the time" if "times slower than ours" in r else more
            print(f"{name} {cpu} {wall}{more}")
    sys.stdout.flush()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fifth of the updates, a third of the rounds")
    parser.add_argument("--rounds", type=int, default=9, help="turns that each contender takes")
    parser.add_argument("--networks", default="mlp,minatar,nature")
    parser.add_argument("--parts", default="updates,costs,runs")
    parser.add_argument("--peers", help="the Python of an environment with stable-baselines3")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    networks, parts = options.networks.split(","), options.parts.split(",")
    for given, known in ((networks, SHAPES), (parts, PARTS)):
        if wrong := set(given) - set(known):
            parser.error(f"unknown: {', '.join(sorted(wrong))}; known: {', '.join(known)}")
    check = [str(options.peers), "-c", "import stable_baselines3"]
    if options.peers and subprocess.run(check, capture_output=True, check=False).returncode:
        parser.error(f"{options.peers} has no stable_baselines3: make peers-deep")
    left_out = "" if options.peers else "Stable-Baselines3 is left out: make peers-deep, then make bench-deep"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    rounds, share = (max(1, options.rounds // 3), 0.2) if options.quick else (options.rounds, 1.0)
    bench = Bench(Process(), Process(), Process(options.peers) if options.peers else None, rounds, share)
    everything: dict[str, list[dict[str, Any]]] = {part: [] for part in parts}
    for network in networks:
        if not options.json:
            print(f"\n{NAMES[network]}, batch of {BATCH}, one thread; {machine}, load {os.getloadavg()[0]:.1f}")
        for part in parts:
            records = PARTS[part](bench, network)
            everything[part] += records
            if not options.json:
                show(records, part)
        for one in (bench.ours, bench.twin, bench.peers):
            if one is not None:
                one.ask({"forget": True})
    bench.close()
    if options.json:
        print(json.dumps({"machine": machine, "left out": left_out, **everything}, indent=1))
    elif left_out:
        print(f"\n{left_out}")


if __name__ == "__main__":
    main()
