"""Where rows can go besides the run's own file. One that fails says so once and is left out; the run goes on."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dynaboltz.errors import MissingExtraError
from dynaboltz.runs.config import RunConfig
from dynaboltz.runs.layout import Home
from dynaboltz.runs.rows import Row, note
from dynaboltz.runs.settings import flat


class Sink(Protocol):
    """Takes rows."""

    def write(self, row: Row) -> None:
        """Take one row."""

    def close(self) -> None:
        """Nothing more comes."""


class SinkWarning(UserWarning):
    """Somewhere rows do not arrive; the run's own file has them all."""


class Sinks:
    """All sinks of a run, each guarded."""

    def __init__(self, config: RunConfig, home: Home, step: int) -> None:
        self._journal = home.journal
        self._sinks: dict[str, Sink] = {}
        for name in dict.fromkeys(config.sinks):
            self._guarded(name, lambda name=name: self._sinks.update({name: TABLE[name](config, home, step)}))  # type: ignore[misc]

    def write(self, row: Row) -> None:
        """Hand a row to all that still work."""
        for name, sink in tuple(self._sinks.items()):
            self._guarded(name, lambda sink=sink: sink.write(row))  # type: ignore[misc]

    def close(self) -> None:
        """Close all; a second call does nothing."""
        while self._sinks:
            name, sink = self._sinks.popitem()
            self._guarded(name, sink.close)

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as fault:  # whatever a library of others may raise
            self._sinks.pop(name, None)
            reason = str(fault).split("\n", maxsplit=1)[0] or type(fault).__name__
            note(self._journal, "sink failed", sink=name, reason=reason)
            warnings.warn(f"no more rows go to {name}: {reason}; the run goes on", SinkWarning, stacklevel=4)


class Console:
    """Evaluations, errors and the end, a line each, to the standard error stream."""

    def write(self, row: Row) -> None:
        """One line."""
        if row["kind"] == "evaluation":
            text = (
                f"step {row['step']:,}: return {row['mean']:.4g} ± {row['deviation']:.3g} of {row['episodes']} episodes"
            )
        elif row["kind"] in ("error", "end"):
            text = f"step {row['step']:,}: {row.get('message', 'end')}"
        else:
            return
        sys.stderr.write(text + "\n")

    def close(self) -> None:
        """Nothing is held."""


class TensorBoard:
    """Event files beside the rows. Going on from a checkpoint, events after it are marked as given up."""

    def __init__(self, home: Home, step: int) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise MissingExtraError("tensorboardX", "track", "writing TensorBoard files") from None
        self._writer = SummaryWriter(str(home.events), purge_step=step or None, flush_secs=10)

    def write(self, row: Row) -> None:
        """The numbers of the row as scalars."""
        for name, value in scalars(row).items():
            self._writer.add_scalar(name, value, row["step"])

    def close(self) -> None:
        """Write what is waiting."""
        self._writer.close()


class WeightsAndBiases:
    """Weights & Biases; offline unless WANDB_MODE says otherwise, so that no network can hold up a run."""

    def __init__(self, config: RunConfig, home: Home) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("wandb", "track", "writing to Weights & Biases") from None
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "dynaboltz"), name=f"{config.env} {config.name} {config.seed}",
            id=f"{config.identity[:16]}-{config.seed}", resume="allow", config=flat(config),
            dir=str(home.folder), mode=mode, settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
        )  # fmt: skip

    def write(self, row: Row) -> None:
        """The numbers of the row; its own step counter may not go back, so ours is one of the numbers."""
        found = scalars(row)
        if found:
            self._run.log({**found, "step": row["step"]})

    def close(self) -> None:
        """Write what is waiting."""
        self._run.finish()


TABLE: Mapping[str, Callable[[RunConfig, Home, int], Sink]] = {
    "console": lambda _config, _home, _step: Console(),
    "tensorboard": lambda _config, home, step: TensorBoard(home, step),
    "wandb": lambda config, home, _step: WeightsAndBiases(config, home),
}
"""Every sink by its name in settings."""

LEFT_OUT = ("kind", "step", "env", "number")


def scalars(row: Row) -> dict[str, float]:
    """The finite numbers of a row, named by its kind.

    >>> scalars({"kind": "episode", "step": 9, "env": 0, "return": 9.0, "note": "x"})
    {'episode/return': 9.0}
    """
    return {
        f"{row['kind']}/{key}": float(value)
        for key, value in row.items()
        if key not in LEFT_OUT and isinstance(value, (int, float)) and math.isfinite(value)
    }
