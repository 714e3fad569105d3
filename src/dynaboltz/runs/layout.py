"""A run on disk: ``<root>/<env>/<agent>/<summary>/seed-<n>-<hash8>/`` and what lies in it."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dynaboltz.errors import UserError
from dynaboltz.files import make_folder, opened, write_atomically
from dynaboltz.runs import toml
from dynaboltz.runs.config import MADE_WITH, RunConfig, resolve
from dynaboltz.runs.settings import flat

PACKAGES = ("numpy", "torch", "gymnasium", "minatar", "ale-py")
"""Whose versions can change what a run comes to."""


@dataclass(frozen=True, slots=True)
class Home:
    """The folder of one run."""

    folder: Path

    @property
    def config(self) -> Path:
        """Every setting, resolved, with versions and commit."""
        return self.folder / "config.toml"

    @property
    def rows(self) -> Path:
        """What the run found: a row an event, the same bytes for the same settings."""
        return self.folder / "rows.jsonl"

    @property
    def journal(self) -> Path:
        """What happened to the process: starts, checkpoints, signals, with the time of day."""
        return self.folder / "journal.jsonl"

    @property
    def result(self) -> Path:
        """The last record, there once the run is finished."""
        return self.folder / "result.json"

    @property
    def evaluations(self) -> Path:
        """Evaluations that were asked for afterwards."""
        return self.folder / "evaluations.jsonl"

    @property
    def checkpoints(self) -> Path:
        """Whole states to go on from."""
        return self.folder / "checkpoints"

    @property
    def best(self) -> Path:
        """The weights with the best evaluation."""
        return self.folder / "best"

    @property
    def last(self) -> Path:
        """The weights of a finished run."""
        return self.folder / "last"

    @property
    def events(self) -> Path:
        """TensorBoard's files."""
        return self.folder / "events"

    def prepare(self, config: RunConfig) -> None:
        """Make the folder and write the settings, or check that those there are the same."""
        make_folder(self.folder)
        if self.config.exists():
            if read_config(self.folder).identity != config.identity:
                raise UserError(
                    f"{self.config} does not hold the settings that the folder was made for\n"
                    "  put it back as it was, or start again with --force"
                )
            return
        write_atomically(self.config, toml.write(flat(config) | made_with(), "A run, resolved: every setting."))

    def other_versions(self) -> list[str]:
        """What is not as it was when the run was made: ``torch 2.10.0, now 2.11.0``."""
        before = {key: given.value for key, given in toml.read(self.config).items() if key.startswith(f"{MADE_WITH}.")}
        found = []
        for key, now in made_with().items():
            if key in before and key != f"{MADE_WITH}.commit" and before[key] != now:
                found.append(f"{key.partition('.')[2]} {before[key]}, now {now}")
        return found

    def clear(self) -> None:
        """Remove what a run leaves behind, and nothing else."""
        for path in (self.checkpoints, self.best, self.last, self.events, self.folder / "wandb"):
            shutil.rmtree(path, ignore_errors=True)
        for path in (self.result, self.rows, self.journal, self.evaluations, self.config):
            try:
                path.unlink(missing_ok=True)
            except OSError as fault:
                raise UserError(f"cannot remove {path}: {fault.strerror or fault}") from None

    def record(self) -> dict[str, Any] | None:
        """The result, if the run is finished."""
        if not self.result.exists():
            return None
        with opened(self.result) as file:
            content = file.read()
        try:
            record = json.loads(content)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise UserError(
                f"{self.result} is not a run's result\n  remove it and resume the run, which writes it anew"
            )
        return record


def home_of(config: RunConfig, root: Path) -> Home:
    """Where a run lives: its settings say it, so that the same question is never asked twice."""
    leaf = f"seed-{config.seed}-{config.identity[:8]}"
    return Home(root / safe(config.env) / safe(config.name) / safe(str(config.agent.parsed_summary)) / leaf)


def read_config(folder: Path) -> RunConfig:
    """The settings of the run in ``folder``."""
    home = Home(folder)
    if not home.config.is_file():
        near = sorted(folder.glob("**/config.toml"))[:1] if folder.is_dir() else []
        hint = f"\n  did you mean {near[0].parent}?" if near else "\n  a run is a folder with a config.toml"
        raise UserError(f"there is no run in {folder}{hint}")
    return resolve(None, home.config, {})


def safe(name: str) -> str:
    """A file name that says ``name``, whatever is in it.

    >>> safe("boltzmann(beta=power(2))"), safe("minatar/breakout"), safe("../..")
    ('boltzmann-beta=power-2', 'minatar-breakout', 'unnamed')
    """
    kept = re.sub(r"[^A-Za-z0-9_.=]+", "-", name).strip("-.")
    return kept[:80] or "unnamed"


def made_with() -> dict[str, str]:
    """Versions and commit, as settings of a table that no reader takes for settings."""
    found = {"dynaboltz": _version("dynaboltz"), "python": platform.python_version(), "commit": _commit()}
    found |= {package.replace("-", "_"): _version(package) for package in PACKAGES}
    return {f"{MADE_WITH}.{name}": value for name, value in found.items() if value}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _commit() -> str:
    """The commit of the source this runs from; empty where it is an installed package."""
    source = Path(__file__).parents[3]
    if not (source / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(source), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            capture_output=True, text=True, timeout=5, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
