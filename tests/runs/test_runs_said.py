"""What the command line says of runs that were stopped, and of runs with nothing left to do."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.cli import main
from dynaboltz.envs.world import Worlds

Output = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures("toys")

RUN = ["train", "CartPole-v1", "--steps", "600", "--set", "evaluation.episodes=0"]


def interrupt(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Ctrl-C while the environment takes that step."""
    taken, original = [0], Worlds.step

    def counted(self: Worlds, actions: np.ndarray) -> Any:
        taken[0] += 1
        if taken[0] == step:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, actions)

    monkeypatch.setattr(Worlds, "step", counted)


@pytest.mark.parametrize(
    ("extra", "says"), [([], "the same command goes on"), (["--force"], "without --force goes on")]
)
def test_stopped_run_says_where_it_is_and_how_it_goes_on(
    extra: list[str], says: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*RUN, "--out", str(tmp_path)]
    interrupt(200, monkeypatch)
    assert main([*command, *extra]) == 130
    (folder,) = tmp_path.glob("*/*/*/seed-0-*")
    told = capsys.readouterr()
    assert f"what is saved is in {folder}\n" in told.err
    assert says in told.err
    assert f"dynaboltz resume {folder}" in told.err
    assert told.out == ""
    assert main(["resume", str(folder)]) == 0
    assert "600 steps" in capsys.readouterr().out


def test_run_left_before_anything_is_saved_promises_nothing(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynaboltz.runs.train", left)
    assert main([*RUN, "--out", str(tmp_path)]) == 130
    assert "saved" not in capsys.readouterr().err


def test_finished_run_says_that_nothing_was_left_to_do(tmp_path: Path, capsys: Output) -> None:
    command = [*RUN, "--out", str(tmp_path)]
    assert main(command) == 0
    assert "finished before" not in capsys.readouterr().out
    assert main(command) == 0
    assert "it was finished before; --force starts again" in capsys.readouterr().out
    assert main([*command, "--force"]) == 0
    assert "finished before" not in capsys.readouterr().out
    (folder,) = tmp_path.glob("*/*/*/seed-0-*")
    assert main(["resume", str(folder)]) == 0
    assert "it was finished before; dynaboltz train with --force starts again" in capsys.readouterr().out


def test_several_runs_say_how_many_were_finished_before() -> None:
    from dynaboltz.cli.train import report
    from dynaboltz.runs import Result

    def result(folder: str) -> Result:
        return Result(
            folder=folder, finished=True, step=5, episodes=1, mean_return=1.0, evaluation=2.0, best=3.0, best_step=4,
            weights="", rows="",
        )  # fmt: skip

    lines = report([result("a"), result("b"), result("c")], ["a", "c"])
    assert lines[-1] == "  2 of 3 were finished before; --force starts again"
    assert lines[:3] == [f"{name}: 5 steps, 1 episodes, last evaluation 2, best 3 at step 4" for name in "abc"]
