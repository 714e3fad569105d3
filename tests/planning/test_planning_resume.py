"""An interrupted solve goes on to the same bits, and no damaged or foreign checkpoint is ever used."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.errors import StorageError, UserError
from dynaboltz.mdp import MDP, build_world
from dynaboltz.planning import Progress, Solution, jacobi, solve
from dynaboltz.storage import Store, locked

WORLD = "garnet(states=60, actions=3, branching=4)"
QUESTIONS: dict[str, dict[str, Any]] = {
    "jacobi": {"method": "jacobi", "summary": "boltzmann(beta=power(2))", "trace": "values"},
    "jacobi_untraced": {"method": "jacobi", "summary": "mellowmax(5)"},
    "gauss_seidel": {"method": "gauss_seidel"},
    "mpi": {"method": "mpi"},
    "auto": {"method": "auto"},
}


def ask(mdp: MDP, **settings: Any) -> Solution:
    return solve(mdp, **({"discount": 0.97, "error": 1e-9} | settings))


def interrupt_at(sweep: int) -> Any:
    def progress(update: Progress) -> None:
        if update.sweep >= sweep:
            raise KeyboardInterrupt

    return progress


def assert_equal(a: Solution, b: Solution) -> None:
    assert a.values.tobytes() == b.values.tobytes()
    assert a.policy.tobytes() == b.policy.tobytes()
    assert (a.sweeps, a.converged, a.reason) == (b.sweeps, b.converged, b.reason)
    assert repr(a.certificate) == repr(b.certificate)
    assert (a.trace is None) == (b.trace is None)
    if a.trace is not None and b.trace is not None:
        for name in ("beta", "step_low", "step_high", "bound", "a_priori", "loss"):
            assert getattr(a.trace, name).tobytes() == getattr(b.trace, name).tobytes()
        if a.trace.values is not None and b.trace.values is not None:
            assert a.trace.values.tobytes() == b.trace.values.tobytes()


@pytest.mark.parametrize("question", QUESTIONS)
def test_planning_resume_equals_never_interrupted(
    question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jacobi, "MOST_IN_A_CALL", 7)  # so that a small model stops in between
    mdp, settings, path = build_world(WORLD), QUESTIONS[question], tmp_path / "state"
    whole = ask(mdp, **settings)
    steps: list[int] = []
    ask(mdp, **settings, progress=lambda update: steps.append(update.sweep))
    assert len(steps) >= 3
    for sweep in steps[:: max(1, len(steps) // 6)]:
        with pytest.raises(KeyboardInterrupt):
            ask(mdp, **settings, checkpoint=path, progress=interrupt_at(sweep))
        assert_equal(ask(mdp, **settings, checkpoint=path, resume=True), whole)


def test_planning_resume_survives_many_interruptions(tmp_path: Path) -> None:
    mdp, path = build_world("chain(states=100, slip=0.3)"), tmp_path / "state"
    settings: dict[str, Any] = {"discount": 0.999, "method": "gauss_seidel"}
    whole, times = ask(mdp, **settings), 0
    for sweep in range(5, whole.sweeps, 25):
        with pytest.raises(KeyboardInterrupt):
            ask(mdp, **settings, checkpoint=path, resume=times > 0, progress=interrupt_at(sweep))
        times += 1
    assert times > 5
    assert_equal(ask(mdp, **settings, checkpoint=path, resume=True), whole)


def test_planning_resume_may_ask_for_more(tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state"
    first = ask(mdp, method="jacobi", max_sweeps=50, checkpoint=path)
    assert not first.converged
    more = ask(mdp, method="jacobi", checkpoint=path, resume=True)
    assert more.converged
    assert more.values.tobytes() == ask(mdp, method="jacobi").values.tobytes()


def test_planning_finished_solve_resumes_to_its_answer(tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state"
    assert_equal(ask(mdp, checkpoint=path), ask(mdp, checkpoint=path, resume=True))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"discount": 0.96}, "discount"),
        ({"summary": "boltzmann(beta=power(2))", "method": "jacobi"}, "summary"),
        ({"method": "mpi"}, "method"),
        ({"initial": np.ones(60)}, "initial"),
    ],
)
def test_planning_resume_refuses_other_settings_by_name(change: dict[str, Any], named: str, tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state"
    ask(mdp, method="gauss_seidel", checkpoint=path)
    with pytest.raises(UserError, match=f"belongs to another question: its {named}"):
        ask(mdp, **({"method": "gauss_seidel"} | change), checkpoint=path, resume=True)


@pytest.mark.parametrize("name", ["reward", "probability"])
def test_planning_resume_refuses_a_model_that_differs_in_one_number(name: str, tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state"
    ask(mdp, checkpoint=path)
    array = getattr(mdp, name).copy()
    array[3] = np.nextafter(array[3], 0.5)
    parts = {part: getattr(mdp, part) for part in ("state_ptr", "action", "row_ptr", "next_state", "terminal")}
    parts |= {"probability": mdp.probability, "reward": mdp.reward, "n_actions": mdp.n_actions, name: array}
    with pytest.raises(UserError, match="belongs to another question: its model"):
        ask(MDP(**parts), checkpoint=path, resume=True)


def newest(folder: Path) -> Path:
    return sorted(folder.glob("ckpt-*"))[-1]


def test_planning_damaged_checkpoint_is_passed_over_for_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its files, flipped in a random place or cut."""
    monkeypatch.setattr(jacobi, "MOST_IN_A_CALL", 150)
    mdp, template, rng = build_world(WORLD), tmp_path / "template", np.random.default_rng(0)
    whole = ask(mdp, **QUESTIONS["jacobi_untraced"], checkpoint=template, checkpoint_seconds=0)
    for number in range(12):
        path = tmp_path / str(number)
        shutil.copytree(template, path)
        file = sorted(newest(path).iterdir())[number % 2]
        data = bytearray(file.read_bytes())
        position = int(rng.integers(len(data)))
        data[position] ^= 1 << int(rng.integers(8))
        file.write_bytes(data if number < 8 else data[:position])
        with pytest.warns(UserWarning, match=f"passed over .*{newest(path).name}: it is damaged"):
            assert_equal(ask(mdp, **QUESTIONS["jacobi_untraced"], checkpoint=path, resume=True), whole)


def test_planning_resume_without_a_whole_checkpoint_is_refused(tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state"
    ask(mdp, checkpoint=path)
    for file in path.glob("ckpt-*/arrays.zst"):
        file.unlink()
    with pytest.raises(StorageError, match=r"arrays\.zst is missing"):
        ask(mdp, checkpoint=path, resume=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("choice", np.full(60, 1 << 30, np.int32)),
        ("choice", np.full(60, -1, np.int32)),
        ("values", np.zeros(59)),
        ("values", np.zeros(60, np.float32)),
        ("values", None),
        ("sweeps", "many"),
        ("extra", 1),
    ],
)
def test_planning_state_that_would_lead_the_sweeps_astray_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state"
    ask(mdp, checkpoint=path)
    described = json.loads((newest(path) / "manifest.json").read_bytes())["manifest"]
    store = Store(path, run=described["run"])
    found = store.load()
    assert found is not None
    store.save(found.step, found.tree | {name: value})
    with pytest.raises(UserError, match="does not hold a state of this method"):
        ask(mdp, checkpoint=path, resume=True)


def test_planning_checkpoint_of_another_question_stays_beside(tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state"
    first = ask(mdp, method="mpi", checkpoint=path)
    ask(mdp, method="gauss_seidel", checkpoint=path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_equal(ask(mdp, method="mpi", checkpoint=path, resume=True), first)


def test_planning_folder_is_kept_for_one_solve_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path / "state"), pytest.raises(UserError, match="is in use by process"):
        ask(build_world(WORLD), checkpoint=tmp_path / "state")


def test_planning_checkpoint_is_saved_as_time_passes(tmp_path: Path) -> None:
    path, seen = tmp_path / "state", []
    ask(
        build_world("chain(states=100, slip=0.3)"),
        method="gauss_seidel",
        error=1e-2,
        checkpoint=path,
        checkpoint_seconds=0,
        progress=lambda _: seen.append(any(path.glob("ckpt-*"))),
    )
    assert all(seen)


def test_planning_without_checkpoint_signals_are_left_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []
    solve(
        build_world("grid"), discount=0.9, method="gauss_seidel",
        progress=lambda _: seen.append(signal.getsignal(signal.SIGINT)),
    )  # fmt: skip
    assert set(seen) == {before}


def test_planning_handlers_are_put_back(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    solve(build_world("grid"), discount=0.9, checkpoint=tmp_path / "state")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


CHILD = """
import sys
from dynaboltz.mdp import build_world
from dynaboltz.planning import solve
mdp = build_world("chain(states=3000, slip=0.5)")
print("ready", flush=True)
solve(mdp, discount=0.999999, method="gauss_seidel", error=1e-4, checkpoint=sys.argv[1],
      progress=lambda p: print(p.sweep, flush=True) if p.sweep == 50 else None)
print("done", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_planning_signal_saves_a_checkpoint_and_ends(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "state"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        assert child.stdout.readline() == "50\n"
        began = time.monotonic()
        child.send_signal(number)
        rest = child.communicate(timeout=30)[0]
    finally:
        child.kill()
        child.wait()
    assert time.monotonic() - began < 10
    assert "done" not in rest
    assert child.returncode in (128 + number, -number)  # to a shell they are the same
    mdp = build_world("chain(states=3000, slip=0.5)")
    resumed = solve(
        mdp, discount=0.999999, method="gauss_seidel", error=1e-4, checkpoint=path, resume=True, max_sweeps=1
    )
    assert resumed.sweeps >= 50
    alone = solve(mdp, discount=0.999999, method="gauss_seidel", error=1e-4, max_sweeps=resumed.sweeps)
    assert alone.values.tobytes() == resumed.values.tobytes()
