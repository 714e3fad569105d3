"""Training steps per second of Nature DQN on Atari, beside Stable-Baselines3 and others: make bench-atari.

    python benchmarks/atari.py --peers .venv-peers-deep/bin/python     # about eight minutes on two free cores
    python benchmarks/atari.py --quick                                 # Breakout alone, fewer rounds; peers if named

Every contestant is a process of its own that has filled its replay memory and waits. Rounds are interleaved, one
contestant after the other, and the best round of each counts, because shared machines drift; the median is beside it.
All do the same learning: the Nature network, 32 transitions every 4 steps, ε = 0.1, no-ops, four frames an action, lives
as episodes. The memory is small (what is timed does not depend on it here; peers that store a frame eight times over
profit). A pair is two runs side by side, a thread each: their steps together by the clock of the slower one.

Processor time is that of all threads of a process: on a machine that others use too it says what the work is, where the
clock says what was left to do it with.

What bfloat16 rounds is compared with what drawing another batch does to the same gradient: it changes the rounding of an
update, not the work.

The limit of two cores: 4 × (four bare emulated frames) + the arithmetic of an update at the rate of a large bfloat16
product on one core, both cores always busy. What of it is reached is printed, by the clock and by processor time.

Cost of the operator: dqn, dbs-dqn-fixed and dbs-dqn (c learned) in processor time of one thread; after one target period,
where every transition says something about c, which is the most expensive, and after a hundred, where β = 10,000.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import turns

CORES = 2
PERIOD = 4
HERE = Path(__file__).parent

OURS: dict[str, dict[str, Any]] = {
    "overlap": {"overlap": True, "threads": 1},
    "2 threads": {"threads": 2},
    "2 threads, float32": {"threads": 2, "autocast": "off"},
    "1 thread": {"threads": 1},
    "dbs-dqn-fixed": {"threads": 1},
    "dbs-dqn": {"threads": 1},
    "dbs-dqn later": {"threads": 1},
}
"""Settings over those of the preset; a name that begins with a preset's takes that one."""
COSTS = {"dbs-dqn-fixed": "DBS", "dbs-dqn": "with c learned, at first", "dbs-dqn later": "after 100 target periods"}

PEERS = {"Stable-Baselines3": "sb3", "script after CleanRL": "script", "PFRL": "pfrl"}


def ours(name: str, game: str, memory: int) -> None:
    """One of ours: fill the memory, say so, and take steps as they are asked for."""
    from dynaboltz.deep import PRESETS
    from dynaboltz.deep.agent import Agent
    from dynaboltz.envs import make

    first, _, later = name.partition(" ")
    preset = f"{first}-nature" if f"{first}-nature" in PRESETS else "dqn-nature"
    config = PRESETS[preset](
        replay_capacity_steps=memory,
        replay_start_steps=memory,
        epsilon="0.1",
        target_period="10000 steps",
        **OURS[name],
    )
    envs = make(f"atari/{game}", seed=0)
    agent = Agent(config, envs.spec, seed=0)
    agent.begin(envs.reset())

    def steps(count: int) -> int:
        before = agent.updates
        for _ in range(count):
            action = agent.act()
            agent.observe(action, envs.step(action))
        agent.settle()
        return agent.updates - before

    steps(memory)
    agent.settle()
    agent.engine.parameters.sync()
    agent.syncs = 100 if later == "later" else 1  # t = 2 at first: before a sync no target depends on c
    steps(40)
    turns.answer(steps)


def limits(game: str) -> None:
    """What the machine can do, once a line that is read: seconds of processor time."""
    import torch

    from dynaboltz.deep import PRESETS
    from dynaboltz.deep.architecture import architecture_of
    from dynaboltz.envs import make
    from dynaboltz.envs.atari import AtariEnvironments

    torch.set_num_threads(1)
    envs = make(f"atari/{game}", seed=0)
    assert isinstance(envs, AtariEnvironments)
    envs.reset()
    ale = envs._games[0]._ale
    chosen = ale.getMinimalActionSet()
    layers = architecture_of(PRESETS["dqn-nature"](), envs.spec)
    flops = update_flops(layers)
    products = {}
    for name in ("float32", "bfloat16"):
        a = torch.ones((1024, 1024), dtype=getattr(torch, name))
        products[name] = a, a.clone()
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        told: dict[str, float] = {"flops": flops}
        ale.reset_game()
        began = time.process_time()
        for index in range(50):
            action = chosen[index % len(chosen)]
            ale.act(action), ale.act(action), ale.act(action), ale.act(action)
        told["emulator"] = (time.process_time() - began) / 50
        for name, (a, b) in products.items():
            a @ b
            began = time.process_time()
            for _ in range(10):
                a @ b
            told[name] = 10 * 2 * 1024**3 / (time.process_time() - began)
        print(json.dumps(told), flush=True)


def rounding(game: str, memory: int) -> None:
    """What bfloat16 does to a gradient, beside what drawing another batch does: lengths of differences over that of g."""
    from dynaboltz.deep import PRESETS
    from dynaboltz.deep.agent import Agent
    from dynaboltz.envs import make

    def gradients(autocast: str) -> list[np.ndarray]:
        config = PRESETS["dqn-nature"](
            replay_capacity_steps=memory, replay_start_steps=memory, epsilon="1", threads=1, autocast=autocast,
            optimiser="sgd", learning_rate=1e-12, loss_reduction="mean",
        )  # fmt: skip
        with make(f"atari/{game}", seed=0) as envs:
            agent = Agent(config, envs.spec, seed=0)
            agent.begin(envs.reset())
            found = []
            while len(found) < 8:
                action = agent.act()
                before = agent.updates
                agent.observe(action, envs.step(action))
                if agent.updates > before:
                    found.append(np.array(agent.engine.parameters.gradients[0], np.float64))
        return found

    exact, rounded = gradients("off"), gradients("bfloat16")
    length = np.mean([np.linalg.norm(g) for g in exact])
    off = np.mean([np.linalg.norm(a - b) for a, b in zip(exact, rounded, strict=True)]) / length
    noise = np.mean([np.linalg.norm(a - b) for a, b in itertools.pairwise(exact)]) / length
    print(json.dumps({"rounding": float(off), "another batch": float(noise)}), flush=True)


def update_flops(architecture: Any, batch: int = 32) -> float:
    """Additions and multiplications of an update: two forward passes, one backward, none back into the pictures."""
    products = []
    for piece in architecture.layout().pieces:
        kind, _, rest = piece.name.partition(".")
        if len(piece.shape) > 1:
            height, width = architecture.convolutions[int(rest[0])].shape[:2] if kind == "convolution" else (1, 1)
            products.append(height * width * (piece.stop - piece.start))
    return 2.0 * batch * (4 * sum(products) - products[0])


@dataclass
class Contestant:
    """One process, or two side by side, and what their rounds came to."""

    name: str
    lines: list[list[str]]
    game: str
    rounds: list[dict[str, float]] = field(default_factory=list)
    fault: str = ""

    def begin(self) -> None:
        """Start the processes; they fill their memories."""
        self.processes = [
            subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for line in self.lines
        ]

    def wait(self) -> None:
        """Until all of them are ready; one that cannot begin is told and left out."""
        for process in self.processes:
            if not self._read(process):
                self.fault = (process.communicate()[1].strip().splitlines() or ["it said nothing"])[-1]
                return

    def go(self, steps: int) -> None:
        """One round."""
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        told = [self._read(process) for process in self.processes]
        if not all(told):
            self.fault = "it ended in the middle"
            return
        if "updates" in told[0] and any(abs(one["updates"] - steps / PERIOD) > 1 for one in told):
            self.fault = f"{told[0]['updates']} updates in {steps} steps, not one in {PERIOD}"
            return
        self.rounds.append(told[0] if "flops" in told[0] else {
            "rate": len(told) * steps / max(one["clock"] for one in told),
            "per processor second": len(told) * steps / sum(one["processor"] for one in told),
        })  # fmt: skip

    def _read(self, process: subprocess.Popen[str]) -> dict[str, float]:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                found: dict[str, float] = json.loads(line)
                return found
        return {}

    def best(self, key: str) -> float:
        """The largest of all rounds."""
        return max(one[key] for one in self.rounds)

    def middle(self, key: str) -> float:
        """The median of all rounds."""
        return statistics.median(one[key] for one in self.rounds)

    def end(self) -> None:
        """Close the pipes, which ends them."""
        for process in self.processes:
            if process.poll() is None:
                process.communicate()


def contestants(game: str, memory: int, peers: str | None, only: Sequence[str]) -> list[Contestant]:
    """All that run on one game, or some of them by name."""

    def mine(name: str) -> list[str]:
        return [sys.executable, str(HERE / "atari.py"), "--alone", name, game, "--memory", str(memory)]

    def other(name: str, threads: int) -> list[str]:
        return [str(peers), str(HERE / "atari_peers.py"), PEERS[name], game, str(threads), str(memory)]

    found = [Contestant("limits", [mine("limits")], game)]
    found += [Contestant(name, [mine(name)], game) for name in OURS]
    found.append(Contestant("two side by side", [mine("1 thread")] * 2, game))
    if peers is not None:
        found += [Contestant(name, [other(name, 2)], game) for name in PEERS]
        found += [Contestant(f"{name}, two side by side", [other(name, 1)] * 2, game) for name in PEERS]
    return [one for one in found if one.name == "limits" or not only or one.name in only]


def measure(game: str, options: argparse.Namespace) -> dict[str, Contestant]:
    """All rounds of one game."""
    running = contestants(game, options.memory, options.peers, options.only)
    try:
        for some in batched(running, CORES):
            for one in some:
                one.begin()
            for one in some:
                one.wait()
        for _ in range(options.rounds):
            for one in running:
                if not one.fault:
                    one.go(options.steps)
    finally:
        for one in running:
            if hasattr(one, "processes"):
                one.end()
    for one in running:
        if one.fault:
            print(f"  {one.name} is left out: {one.fault}", file=sys.stderr)
    return {one.name: one for one in running if one.rounds}


def batched(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """In parts of at most ``size``."""
    return [items[at : at + size] for at in range(0, len(items), size)]


def report(game: str, found: dict[str, Contestant]) -> dict[str, Any]:
    """Print the tables of one game; the figures in them."""
    about = found.pop("limits")
    machine = {key: about.best(key) for key in ("float32", "bfloat16", "flops")}
    emulator = min(one["emulator"] for one in about.rounds)
    period = PERIOD * emulator + machine["flops"] / machine["bfloat16"]
    limit = PERIOD / period
    single = [name for name in found if name in PEERS] or [name for name in found if name.startswith(tuple(PEERS))]
    fastest = {key: max((found[name].best(key) for name in single), default=float("nan")) for key in RATES}
    print(f"\n{game}: steps a second")
    print(f"  {'':34}{'best':>7}{'median':>8}{'× fastest peer':>16}{'per processor s':>18}{'× fastest peer':>16}")
    figures: dict[str, Any] = {}
    for name, one in found.items():
        best, middle, cheap = one.best("rate"), one.middle("rate"), one.best("per processor second")
        ratios = best / fastest["rate"], cheap / fastest["per processor second"]
        print(f"  {name:34}{best:7.0f}{middle:8.0f}{ratios[0]:16.2f}{cheap:18.0f}{ratios[1]:16.2f}")
        figures[name] = {
            "best": best,
            "median": middle,
            "per processor second": cheap,
            "times the fastest peer": ratios[0],
        }
    print(
        f"  limit: emulator {emulator * 1e6:.0f} µs a step, update {machine['flops'] / 1e9:.2f} GFLOP at "
        f"{machine['bfloat16'] / 1e9:.0f} GFLOP/s a core (float32 {machine['float32'] / 1e9:.0f}): "
        f"{limit:.0f} steps a core second, {CORES * limit:.0f} on {CORES} cores"
    )
    mine = [one for name, one in found.items() if not name.startswith(tuple(PEERS))]
    clock, cheap = max(one.best("rate") for one in mine), max(one.best("per processor second") for one in mine)
    print(f"  reached: {clock / CORES / limit:.0%} by the clock, {cheap / limit:.0%} of what a processor second can do")
    line = [sys.executable, str(HERE / "atari.py"), "--alone", "rounding", game]
    told = json.loads(subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])
    print(
        f"  bfloat16 moves a gradient by {told['rounding']:.1%} of its length, another batch by {told['another batch']:.0%}"
    )
    costs = {}
    if "1 thread" in found:
        base = found["1 thread"].best("per processor second")
        costs = {name: base / found[name].best("per processor second") - 1 for name in COSTS if name in found}
    if costs:
        print("  cost over dqn: " + ", ".join(f"{COSTS[name]} {cost:+.1%}" for name, cost in costs.items()))
    reached = {"clock": clock / CORES / limit, "processor": cheap / limit}
    about_limit = {"steps a core second": limit, "emulator, s": emulator, **machine, "reached": reached}
    return {"steps a second": figures, "limit": about_limit, "cost over dqn": costs, "gradient": told}


RATES = ("rate", "per processor second")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--games", nargs="+", default=["Breakout", "Seaquest"])
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has the peers")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=400, help="of a round")
    parser.add_argument("--memory", type=int, default=4_000, help="steps in the replay memory")
    parser.add_argument("--quick", action="store_true", help="Breakout alone, three rounds of 200 steps")
    parser.add_argument("--only", nargs="+", default=(), metavar="NAME", help="some of the contestants")
    parser.add_argument("--json", metavar="FILE", help="write the figures there as well")
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        name, game = options.alone
        if name == "rounding":
            return rounding(game, options.memory)
        return limits(game) if name == "limits" else ours(name, game, options.memory)
    if options.quick:
        options.games, options.rounds, options.steps, options.memory = ["Breakout"], 3, 200, 1_000
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    if options.peers is None:
        print("no peers: name an interpreter that has them, --peers .venv-peers-deep/bin/python (make peers-deep)")
    found = {game: report(game, measure(game, options)) for game in options.games}
    print(f"\nload {os.getloadavg()[0]:.1f}")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
