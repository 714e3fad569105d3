"""A small run that is finished, a folder for one of a test's own making, and the page of a run as a user starts it."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dynaboltz.runs import Given, Home, Result, RunConfig, home_of, resolve, train

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults_watch.py"

TINY: dict[str, Any] = {
    "env": "CartPole-v1", "steps": 700, "log_period_steps": 100, "agent.hidden": (8, 8), "agent.batch_size": 8,
    "agent.replay_start_steps": 100, "agent.replay_capacity_steps": 500, "agent.target_period": "50 steps",
    "evaluation.period_steps": 300, "evaluation.episodes": 2, "evaluation.max_steps": 30,
    "saving.period_seconds": 0, "saving.period_steps": 200,
}  # fmt: skip


def settings_of(preset: str = "dbs-dqn", **changes: Any) -> RunConfig:
    values = TINY | {key.replace("__", "."): value for key, value in changes.items()}
    return resolve(preset, None, {key: Given(value, "a test") for key, value in values.items()})


@pytest.fixture(scope="session")
def settings() -> Callable[..., RunConfig]:
    """Those of the finished run, with changes; ``__`` stands for the dot."""
    return settings_of


@dataclass(frozen=True)
class Trained:
    """A run that is finished. It is only read."""

    home: Home
    config: RunConfig
    result: Result


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    root, config = tmp_path_factory.mktemp("trained"), settings_of()
    result = train(config, root)
    return Trained(home_of(config, root), config, result)


@pytest.fixture
def begun(tmp_path: Path) -> tuple[Home, RunConfig]:
    """A run that has its settings and nothing else."""
    config = settings_of()
    home = home_of(config, tmp_path / "runs")
    home.prepare(config)
    return home, config


def lines(path: Path, *rows: dict[str, Any]) -> None:
    """Append rows."""
    with path.open("ab") as file:
        file.writelines(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture
def append() -> Callable[..., None]:
    return lines


@pytest.fixture(scope="session")
def faults() -> ModuleType:
    """``benchmarks/faults_watch.py``, whose requests are sent here too."""
    spec = importlib.util.spec_from_file_location("faults_watch", FAULTS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their own types
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Page:
    """A page that is served by a process of its own."""

    server: Any
    process: Any

    @property
    def address(self) -> str:
        return f"http://{self.server.host}/?token={self.server.token}"

    def get(self, target: str) -> Any:
        """What a good request is answered by."""
        line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        with contextlib.closing(line):
            line.request("GET", target, headers={"X-Dynaboltz-Token": self.server.token})
            answer = line.getresponse()
            text = answer.read()
            assert answer.status == 200, text
            return json.loads(text)


Serve = Callable[..., contextlib.AbstractContextManager[Page]]


@pytest.fixture(scope="session")
def serve(faults: ModuleType) -> Serve:
    """``dynaboltz watch FOLDER OPTIONS``."""

    @contextlib.contextmanager
    def begin(folder: Path, *options: Sequence[str]) -> Iterator[Page]:
        with faults.served(folder, *options) as (server, process):
            yield Page(server, process)

    return begin
