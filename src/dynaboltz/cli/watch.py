"""A live page of a run, in progress or finished: curves, speed, and the agent playing with its action values.

For example:  dynaboltz watch runs/CartPole-v1/dqn/hard_max/seed-0-1a2b3c4d

The page is for this machine alone, and for whoever has the address that is printed. The run is only read.
Ctrl-C ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from dynaboltz.mdp.calls import number, whole


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    run: Annotated[Path, tyro.conf.Positional]
    """Folder of a run."""
    port: int = 0
    """Port of the page; 0 for any that is free."""
    no_agent: bool = False
    """Show the curves alone; nothing plays."""
    weights: Literal["last", "best"] = "last"
    """Which weights play: the newest, or those with the best evaluation."""
    fps: float = 10.0
    """Decisions of the agent a second, while the page is looked at."""
    open: bool = False
    """Open the page in the browser; other users of this machine may then see its address among the processes."""


def main(arguments: Sequence[str]) -> int:
    """Parse, serve."""
    options = tyro.cli(
        tyro.conf.FlagCreatePairsOff[Options], args=arguments, prog="dynaboltz watch", description=__doc__
    )
    whole("--port", options.port, 0, 65535)
    number("--fps", options.fps, 0.1, 30)
    from dynaboltz.watch import Watcher, watch

    def ready(address: str) -> None:
        print(f"watch: {address}\n  Ctrl-C ends it; the run is only read", flush=True)
        if options.open:
            import webbrowser

            webbrowser.open(address)

    watcher = Watcher(options.run, agent=not options.no_agent, weights=options.weights, fps=options.fps)
    watch(watcher, port=options.port, ready=ready)
    return 0
