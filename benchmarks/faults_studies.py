"""Studies under fire, at full count: a tenth of the workers killed at random, the driver killed twice (R19); orphans (R12).

    python benchmarks/faults_studies.py [--quick] [--on local ray] [--only R19] [--seed 0] [--json]

Here and on a Ray cluster of two nodes on the loopback device. The table of results must be that of runs that nothing
happened to, byte for byte; each run must be there once; five seconds after a driver is killed no process is left.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz.runs import RunConfig, home_of, read_rows, train
from dynaboltz.studies import Place, read_ledger, read_study
from dynaboltz.studies.executors import keeper
from dynaboltz.studies.executors.ray_cluster import own_token
from dynaboltz.studies.place import read_beat

STUDY = """
name = "faults"
preset = "dqn"
seeds = "0..{last}"
[settings]
steps = {steps}
log_period_steps = 100
[settings.agent]
replay_start_steps = 50
replay_capacity_steps = 500
hidden = [8]
[settings.evaluation]
episodes = 2
period_steps = 50
[settings.saving]
period_seconds = 0
period_steps = 100
[axes]
env = ["probe/beta", "probe/constant"]
preset = ["dqn", "dbs-dqn"]
"""
"""Four runs a seed; each says how it stands, and saves, often enough to be killed anywhere."""

GRACE_SECONDS = 5.0
Findings = Iterator[str]


def lives(pid: int) -> bool:
    """Whether there is such a process, and not only what is left of it for a parent that does not ask."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_worker(pid: int) -> bool:
    """Whether the number still belongs to one of our workers."""
    with contextlib.suppress(OSError):
        return b"dynaboltz.studies.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])


@contextlib.contextmanager
def cluster(on: str) -> Iterator[list[str]]:
    """What the command needs to know of where the study runs; two nodes of Ray live as long as the block."""
    if on != "ray":
        yield []
        return
    os.environ.update(own_token())
    host = subprocess.Popen([sys.executable, __file__, "--host"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, start_new_session=True)  # fmt: skip
    assert host.stdin is not None
    assert host.stdout is not None
    try:
        address = next(filter(None, map(address_in, host.stdout)), "")
        if not address:
            raise RuntimeError(f"Ray's nodes did not start; to see why: python {__file__} --host")
        yield ["--option", f"address={address}"]
    finally:
        host.stdin.close()
        host.wait(20)
        host.stdout.close()


def address_in(line: str) -> str:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(line)["address"])
    return ""


def host_cluster() -> int:
    """Two nodes, their own processes each, until the standard input ends."""
    keeper._adopt_orphans()
    os.environ.update(keeper.LOOPBACK)
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory(prefix="dbz-ray-", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = folder  # where it notes its address, in a folder that it does not make itself
        Path(folder, "ray").mkdir()
        node = {"num_cpus": 1, "object_store_memory": keeper.STORE_BYTES, "include_dashboard": False}
        both = Cluster(initialize_head=True, head_node_args=node | {"temp_dir": folder})
        both.add_node(**node)
        print(json.dumps({"address": both.address}), flush=True)
        sys.stdin.read()
        keeper.kill_descendants()
    os._exit(0)


class Driver:
    """The command, in a process of its own."""

    def __init__(self, file: Path, root: Path, on: str, more: Sequence[str]) -> None:
        command = [sys.executable, "-m", "dynaboltz", "study", str(file), "--out", str(root), "--on", on, "--jobs", "2"]
        self.process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=os.environ | {"OMP_NUM_THREADS": "1"})  # fmt: skip

    def kill(self, workers: Sequence[int]) -> str:
        """SIGKILL; what is left of it, its descendants and its workers after a while."""
        family = {*keeper.descendants(self.process.pid), *workers}
        self.process.kill()
        self.process.communicate()
        until = time.monotonic() + GRACE_SECONDS
        while (left := [pid for pid in family if lives(pid)]) and time.monotonic() < until:
            time.sleep(0.05)
        return f"{len(left)} of {len(family)} processes outlived the driver" if left else ""


def working(configs: Sequence[RunConfig], place: Place) -> dict[str, int]:
    """The processes that are at work, by run."""
    found = {}
    for config in configs:
        beat = read_beat(place.beat(config))
        if beat is not None and is_worker(int(beat["pid"])):
            found[config.identity] = int(beat["pid"])
    return found


def under_fire(
    configs: Sequence[RunConfig], file: Path, root: Path, on: str, rng: np.random.Generator
) -> tuple[list[str], Counter[str]]:
    """Work the study off while things die; what did not hold, and what was done to it."""
    place, wrong, done = Place(root, "faults"), [], Counter[str]()
    kill_at = sorted(rng.integers(len(configs) // 8, 7 * len(configs) // 8, 2).tolist())
    victims = {configs[at].identity for at in rng.permutation(len(configs))[: -(-len(configs) // 10)]}
    due: dict[str, float] = {}
    with cluster(on) as more, contextlib.ExitStack() as whatever:
        driver = Driver(file, root, on, more)
        whatever.callback(lambda: driver.process.kill())  # noqa: PLW0108  whichever it then is: none is left behind
        while driver.process.poll() is None:
            now, at_work = time.monotonic(), working(configs, place)
            for run, pid in at_work.items():
                if run in victims and due.setdefault(run, now + rng.uniform(0, 1.0)) <= now:
                    target = parent(pid) if on == "ray" and rng.random() < 0.5 else pid
                    os.kill(target, signal.SIGKILL)
                    victims.discard(run)
                    done["Ray workers" if target != pid else "workers"] += 1
            for run in [
                run for run in due if run in victims and run not in at_work and home(configs, run, root).result.exists()
            ]:
                victims.discard(run)  # it came to its end first: another is chosen
                left = [
                    one.identity
                    for one in configs
                    if not home_of(one, root).result.exists() and one.identity not in victims
                ]
                victims |= {str(rng.choice(left))} if left else set()
            finished = sum(home_of(config, root).result.exists() for config in configs)
            if kill_at and finished >= kill_at[0]:
                kill_at.pop(0)
                wrong.append(driver.kill(list(working(configs, place).values())))
                done["drivers"] += 1
                driver = Driver(file, root, on, more)
            time.sleep(0.03)
        said = "\n".join(driver.process.communicate())
        if driver.process.returncode:
            wrong.append(f"the last driver ended with {driver.process.returncode}: {said[-300:]}")
    return [one for one in wrong if one], done


def home(configs: Sequence[RunConfig], run: str, root: Path) -> Any:
    return home_of(next(one for one in configs if one.identity == run), root)


def each_once(configs: Sequence[RunConfig], root: Path, undisturbed: bytes) -> list[str]:
    """What is wrong with what the study came to."""
    place, wrong = Place(root, "faults"), []
    if place.results.read_bytes() != undisturbed:
        wrong.append("the table is not the undisturbed one")
    told = Counter(entry["run"] for entry in read_ledger(place.ledger) if entry["event"] == "done")
    if told != Counter(config.identity for config in configs):
        wrong.append("the ledger does not tell each run once")
    for config in configs:
        ends = sum(row["kind"] == "end" for row in read_rows(home_of(config, root).rows))
        if ends != 1:
            wrong.append(f"{config.env} seed {config.seed} has {ends} ends")
    return wrong


def studies(
    on: str, seeds: int, times: int, rng: np.random.Generator, folder: Path, tell: Callable[[str], None]
) -> Findings:
    """R19, so many times."""
    file = folder / "faults.toml"
    file.write_text(STUDY.format(last=seeds - 1, steps=300))
    configs = read_study(file).configs
    reference = Place(folder / "undisturbed", "faults")
    for config in configs:
        train(config, reference.root)
    reference.prepare()
    reference.write_results(configs)
    for at in range(times):
        began, root = time.monotonic(), folder / f"{on}-{at}"
        wrong, done = under_fire(configs, file, root, on, rng)
        wrong += each_once(configs, root, reference.results.read_bytes())
        killed = ", ".join(f"{count} {what}" for what, count in sorted(done.items()))
        tell(f"    {on}: {len(configs)} runs, killed: {killed}; {time.monotonic() - began:.0f} s")
        yield "; ".join(wrong)


def orphans(on: str, tries: int, rng: np.random.Generator, folder: Path) -> Findings:
    """R12: a driver is killed at a random moment, with the cluster of its own that it has begun, if any."""
    file = folder / "long.toml"
    file.write_text(STUDY.format(last=0, steps=10_000_000))
    configs = read_study(file).configs
    for at in range(tries):
        root = folder / f"orphans-{on}-{at}"
        driver = Driver(file, root, on, [])
        while len(working(configs, Place(root, "faults"))) < (2 if at % 2 else 0) and driver.process.poll() is None:
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 3))
        yield driver.kill(list(working(configs, Place(root, "faults")).values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one study of 24 runs; 4 killed drivers")
    parser.add_argument("--on", nargs="+", default=["local", "ray"], choices=["local", "ray"])
    parser.add_argument("--only", nargs="+", default=["R19", "R12"], choices=["R19", "R12"])
    parser.add_argument("--times", type=int, default=1, help="studies on each executor")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--host", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        return host_cluster()
    rng, table, bad = np.random.default_rng(options.seed), [], 0
    seeds, tries = (6, 4) if options.quick else (50, 50)

    def tell(text: str) -> None:
        if not options.json:
            print(text, flush=True)

    for on in options.on:
        with tempfile.TemporaryDirectory(prefix="dbz-faults-") as name:
            folder = Path(name)
            questions: dict[str, Callable[[], Findings]] = {
                f"R19 {on}: each once, the same table": lambda: studies(on, seeds, options.times, rng, folder, tell),
                f"R12 {on}: driver killed, none left": lambda: orphans(
                    on, tries if on == "local" else -(-tries // 5), rng, folder
                ),
            }
            for question, ask in questions.items():
                if question.split()[0] not in options.only:
                    continue
                began, findings = time.monotonic(), list(ask())
                wrong = [finding for finding in findings if finding]
                bad += len(wrong)
                table.append({"question": question, "tries": len(findings), "held": len(findings) - len(wrong)})
                tell(
                    f"{question:40} {len(findings) - len(wrong):4} of {len(findings):4} held  {time.monotonic() - began:6.1f} s"
                )
                for finding in wrong[:5]:
                    tell(f"    {finding}")
    if options.json:
        print(json.dumps(table, indent=2))
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
