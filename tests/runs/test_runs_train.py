"""Training: rows that depend on the settings alone, whatever interrupts, watches, evaluates or saves."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.envs.world import Worlds
from dynaboltz.errors import DynaboltzError, StorageError, UserError
from dynaboltz.runs import (
    Home,
    Progress,
    Result,
    RunConfig,
    RunWarning,
    SinkWarning,
    digest,
    evaluate,
    home_of,
    read_rows,
    resume,
    train,
)
from dynaboltz.runs.sinks import TABLE
from dynaboltz.storage import Store, locked

Settings = Callable[..., RunConfig]
pytestmark = pytest.mark.usefixtures("toys")


def state_of(config: RunConfig, root: Path) -> str:
    """The digest of everything in the newest checkpoint of a run, and its rows."""
    home = home_of(config, root)
    found = Store(home.checkpoints, run=config.identity).load()
    assert found is not None
    return digest([found.tree, home.rows.read_bytes()])


def interrupted_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A SIGTERM arrives while the environments take that step."""
    after, original = [0], Worlds.step

    def counted(self: Worlds, actions: np.ndarray) -> Any:
        if self.stream == 0:
            after[0] += self.n
            if after[0] >= step:
                monkeypatch.setattr(Worlds, "step", original)
                os.kill(os.getpid(), signal.SIGTERM)
        return original(self, actions)

    monkeypatch.setattr(Worlds, "step", counted)


def test_rows_tell_the_run_from_start_to_end(settings: Settings, root: Path) -> None:
    result = train(settings(), root)
    rows = list(read_rows(Path(result.folder) / "rows.jsonl"))
    kinds = [row["kind"] for row in rows]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert [row["step"] for row in rows if row["kind"] == "learning"] == [100, 200, 300, 400, 500, 600]
    assert [row["step"] for row in rows if row["kind"] == "evaluation"] == [200, 400, 600]
    assert kinds.count("episode") == result.episodes == rows[-1]["episodes"] > 0
    assert sum(row["steps"] for row in rows if row["kind"] == "episode") <= 600
    assert rows[1]["return"] == rows[1]["steps"]  # CartPole pays 1 a step
    assert (result.finished, result.step) == (True, 600)


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("step", [1, 77, 200, 201, 598])
def test_interrupted_run_is_the_same_as_one_that_was_not(
    settings: Settings, root: Path, step: int, n_envs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(n_envs=n_envs)
    train(config, root / "whole")
    interrupted_at(step, monkeypatch)
    with pytest.raises(SystemExit) as stop:
        train(config, root / "parts")
    assert stop.value.code == 128 + signal.SIGTERM
    assert not home_of(config, root / "parts").result.exists()
    result = resume(home_of(config, root / "parts").folder)
    assert result.finished
    assert state_of(config, root / "parts") == state_of(config, root / "whole")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
@pytest.mark.parametrize("phase", ["training", "evaluating", "saving"])
def test_signal_saves_and_ends_in_every_phase(settings: Settings, root: Path, name: str, phase: str) -> None:
    config = settings(saving__period_steps=150)
    whole = train(config, root / "whole")
    number = getattr(signal, name)
    seen: list[int] = []

    def send(now: Progress) -> None:
        if now.phase == phase and not seen and (now.step > 0 or phase != "training"):
            seen.append(now.step)
            os.kill(os.getpid(), number)

    ending = KeyboardInterrupt if name == "SIGINT" else SystemExit
    with pytest.raises(ending) as stop:
        train(config, root / "parts", watch=send)
    if isinstance(stop.value, SystemExit):
        assert stop.value.code == 128 + number
    folder = home_of(config, root / "parts").folder
    assert Store(Home(folder).checkpoints, run=config.identity).load() is not None
    assert resume(folder).rows == whole.rows


def test_second_signal_acts_at_once(settings: Settings, root: Path) -> None:
    def send(now: Progress) -> None:
        if now.phase == "evaluating":
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    config = settings()
    with pytest.raises(KeyboardInterrupt):
        train(config, root, watch=send)
    assert Store(home_of(config, root).checkpoints, run=config.identity).load() is None


@pytest.mark.parametrize(
    "how",
    [
        {"saving__period_steps": 40}, {"saving__period_seconds": 1e-3}, {"saving__keep": 1, "saving__period_steps": 90},
        {"sinks": ("console", "tensorboard")},
    ],
)  # fmt: skip
def test_saving_and_logging_change_no_row(settings: Settings, root: Path, how: dict[str, Any]) -> None:
    config = settings(**how)
    assert config.identity == settings().identity
    assert train(config, root / "how").rows == train(settings(), root / "plain").rows


@pytest.mark.parametrize(
    "what", [{"evaluation__episodes": 0}, {"evaluation__period_steps": 50}, {"log_period_steps": 7}]
)
def test_evaluation_and_measurements_leave_the_training_untouched(
    settings: Settings, root: Path, what: dict[str, Any]
) -> None:
    other, plain = train(settings(**what), root), train(settings(), root)
    assert other.weights == plain.weights
    kept = [list(read_rows(Path(x.folder) / "rows.jsonl", "episode")) for x in (other, plain)]
    assert kept[0] == kept[1]


def test_watching_changes_nothing_and_a_failing_watch_is_left_out(settings: Settings, root: Path) -> None:
    def fail(now: Progress) -> None:
        raise RuntimeError(now.line())

    with pytest.warns(RunWarning, match="no longer watched"):
        watched = train(settings(), root / "a", watch=fail)
    assert watched.rows == train(settings(), root / "b").rows


def test_finished_run_is_not_run_again(settings: Settings, root: Path, toys: list[Any]) -> None:
    first = train(settings(), root)
    assert train(settings(), root) == first == resume(Path(first.folder))
    assert len(toys) == 1


def test_force_runs_again_to_the_same_rows(settings: Settings, root: Path, toys: list[Any]) -> None:
    first = train(settings(), root)
    assert train(settings(), root, force=True) == first
    assert len(toys) == 2


def test_failing_sink_says_so_once_and_the_run_goes_on(
    settings: Settings, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        def write(self, row: Any) -> None:
            raise OSError(28, f"no space for {row['kind']}")

        def close(self) -> None:
            raise AssertionError

    monkeypatch.setitem(TABLE, "console", lambda *_: Failing())
    with pytest.warns(SinkWarning, match="no more rows go to console") as caught:
        result = train(settings(sinks=("console",)), root)
    assert len(caught) == 1
    assert result.rows == train(settings(), root / "plain").rows


def test_tensorboard_has_the_scalars(settings: Settings, root: Path) -> None:
    result = train(settings(sinks=("tensorboard",)), root)
    (events,) = (Path(result.folder) / "events").iterdir()
    content = events.read_bytes()
    assert b"evaluation/mean" in content
    assert b"learning/loss" in content


def test_fault_becomes_a_row_and_the_last_good_checkpoint_stays(
    settings: Settings, root: Path, toys: list[Any]
) -> None:
    def poison(_now: Progress) -> None:
        toys[0].poison_at = 250

    config = settings(saving__period_steps=100)
    with pytest.raises(DynaboltzError, match="the loss is nan at update 250"):
        train(config, root, watch=poison)
    home = home_of(config, root)
    last = list(read_rows(home.rows))[-1]
    assert last == {"kind": "error", "step": 250, "message": "the loss is nan at update 250"}
    found = Store(home.checkpoints, run=config.identity).load()
    assert found is not None
    assert found.step == 200
    assert resume(home.folder).rows == train(settings(), root / "plain").rows


def test_second_process_is_kept_out(settings: Settings, root: Path) -> None:
    config = settings()
    with locked(home_of(config, root).folder), pytest.raises(UserError, match="is in use by process"):
        train(config, root)


def test_run_that_cannot_fit_is_refused_with_the_numbers(
    settings: Settings, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynaboltz.runs.estimate.memory_of_agent", lambda *_: {"replay": 7_000_000_000})
    with pytest.raises(UserError, match=r"the run needs 7(\.\d+)? GB \(replay 7 GB.*memory_limit_gb allows 2 GB"):
        train(settings(memory_limit_gb=2.0), root)


def test_disk_full_while_saving_is_told_and_made_up_for(
    settings: Settings, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = Store.save, []

    def full(self: Store, step: int, tree: Any) -> Path:
        calls.append(step)
        if self.folder.name == "checkpoints" and step == 300:
            raise StorageError("cannot save: No space left on device")
        return original(self, step, tree)

    monkeypatch.setattr(Store, "save", full)
    with pytest.warns(RunWarning, match="No space left"):
        result = train(settings(saving__period_steps=100), root)
    assert result.finished
    assert result.rows == train(settings(), root / "plain").rows


def test_disk_full_at_the_end_is_an_error_and_resume_makes_up_for_it(
    settings: Settings, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Path:
        raise StorageError("cannot save: No space left on device")

    config = settings(evaluation__episodes=0)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", full)
        with pytest.raises(StorageError, match="No space left"):
            train(config, root)
    result = resume(home_of(config, root).folder)
    assert result.rows == train(config, root / "plain").rows


def test_rows_that_cannot_be_written_are_a_clear_error(settings: Settings, root: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(StorageError, match=r"cannot write .*rows\.jsonl: File too large"):
            train(settings(log_period_steps=1), root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    home = home_of(settings(log_period_steps=1), root)
    assert resume(home.folder).rows == train(settings(log_period_steps=1), root / "plain").rows


def test_folder_that_cannot_be_made_is_a_clear_error(settings: Settings, root: Path) -> None:
    root.write_text("a file")
    with pytest.raises(UserError, match="cannot write into the folder"):
        train(settings(), root)


def test_rows_that_were_lost_are_told(settings: Settings, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_at(300, monkeypatch)
    with pytest.raises(SystemExit):
        train(settings(), root)
    home = home_of(settings(), root)
    home.rows.write_bytes(b"")
    with pytest.raises(UserError, match="rows were lost"):
        resume(home.folder)


def test_resume_passes_over_a_damaged_checkpoint_and_says_so(
    settings: Settings, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(saving__period_steps=100)
    interrupted_at(450, monkeypatch)
    with pytest.raises(SystemExit):
        train(config, root)
    home = home_of(config, root)
    newest = max(home.checkpoints.iterdir())
    (newest / "manifest.json").write_bytes(b"{}")
    with pytest.warns(RunWarning, match="passed over"):
        result = resume(home.folder)
    assert result.rows == train(settings(), root / "plain").rows


def test_resume_with_other_versions_says_so(settings: Settings, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_at(300, monkeypatch)
    with pytest.raises(SystemExit):
        train(settings(), root)
    home = home_of(settings(), root)
    text = home.config.read_text()
    home.config.write_text(re.sub(r'numpy = "[^"]*"', 'numpy = "1.0.0"', text))
    with pytest.warns(RunWarning, match=r"begun with numpy 1\.0\.0, now "):
        resume(home.folder)


def test_settings_changed_by_hand_are_refused(settings: Settings, root: Path) -> None:
    result = train(settings(), root)
    home = Home(Path(result.folder))
    home.result.unlink()
    home.config.write_text(home.config.read_text().replace("seed = 0", "seed = 1"))
    with pytest.raises(UserError, match="belongs to another run"):
        resume(home.folder)


def test_evaluation_afterwards_repeats_and_leaves_the_run_as_it_is(settings: Settings, root: Path) -> None:
    result = train(settings(), root)
    folder = Path(result.folder)
    before = digest([path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()])
    found = [evaluate(folder, episodes=20, epsilon=0.5).row() for _ in range(2)]
    assert found[0] == found[1]
    assert found[0]["episodes"] == len(found[0]["returns"]) == 20
    assert evaluate(folder, episodes=20, epsilon=0.5, seed=8).row()["returns"] != found[0]["returns"]
    lines = (folder / "evaluations.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == found[0]
    (folder / "evaluations.jsonl").unlink()
    assert digest([path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]) == before


def test_evaluation_takes_the_best_weights_if_asked(settings: Settings, root: Path) -> None:
    result = train(settings(), root)
    assert evaluate(Path(result.folder), episodes=2, which="best").step == result.best_step
    assert evaluate(Path(result.folder), episodes=2).step == 600


def test_evaluation_of_a_run_that_is_interrupted_takes_its_checkpoint(
    settings: Settings, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_at(150, monkeypatch)
    with pytest.raises(SystemExit):
        train(settings(), root)
    folder = home_of(settings(), root).folder
    assert evaluate(folder, episodes=2).step == 150
    with pytest.raises(UserError, match="no best weights yet"):
        evaluate(folder, episodes=2, which="best")


def test_result_says_what_the_rows_say(settings: Settings, root: Path) -> None:
    result: Result = train(settings(), root)
    evaluations = [row["mean"] for row in read_rows(Path(result.folder) / "rows.jsonl", "evaluation")]
    assert result.evaluation == evaluations[-1]
    assert result.best == max(evaluations)
    assert result.best_step == 200 * (1 + evaluations.index(max(evaluations)))


def test_error_of_the_environment_names_the_episode(settings: Settings, root: Path) -> None:
    with pytest.raises(DynaboltzError, match="unknown environment"):
        train(settings(env="CartPole-v7"), root)
