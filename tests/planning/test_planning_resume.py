"""An interrupted solve goes on to the same bits, and no damaged or foreign checkpoint is ever used."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP, build_world
from dynaboltz.planning import Progress, Solution, jacobi, solve

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
    mdp, settings, path = build_world(WORLD), QUESTIONS[question], tmp_path / "state.npz"
    whole = ask(mdp, **settings)
    steps: list[int] = []
    ask(mdp, **settings, progress=lambda update: steps.append(update.sweep))
    assert len(steps) >= 3
    for sweep in steps[:: max(1, len(steps) // 6)]:
        with pytest.raises(KeyboardInterrupt):
            ask(mdp, **settings, checkpoint=path, progress=interrupt_at(sweep))
        assert_equal(ask(mdp, **settings, checkpoint=path, resume=True), whole)


def test_planning_resume_survives_many_interruptions(tmp_path: Path) -> None:
    mdp, path = build_world("chain(states=100, slip=0.3)"), tmp_path / "state.npz"
    settings: dict[str, Any] = {"discount": 0.999, "method": "gauss_seidel"}
    whole, times = ask(mdp, **settings), 0
    for sweep in range(5, whole.sweeps, 25):
        with pytest.raises(KeyboardInterrupt):
            ask(mdp, **settings, checkpoint=path, resume=times > 0, progress=interrupt_at(sweep))
        times += 1
    assert times > 5
    assert_equal(ask(mdp, **settings, checkpoint=path, resume=True), whole)


def test_planning_resume_may_ask_for_more(tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state.npz"
    first = ask(mdp, method="jacobi", max_sweeps=50, checkpoint=path)
    assert not first.converged
    more = ask(mdp, method="jacobi", checkpoint=path, resume=True)
    assert more.converged
    assert more.values.tobytes() == ask(mdp, method="jacobi").values.tobytes()


def test_planning_finished_solve_resumes_to_its_answer(tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state.npz"
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
    mdp, path = build_world(WORLD), tmp_path / "state.npz"
    ask(mdp, method="gauss_seidel", checkpoint=path)
    with pytest.raises(UserError, match=f"belongs to another question: its {named}"):
        ask(mdp, **({"method": "gauss_seidel"} | change), checkpoint=path, resume=True)


@pytest.mark.parametrize("name", ["reward", "probability"])
def test_planning_resume_refuses_a_model_that_differs_in_one_number(name: str, tmp_path: Path) -> None:
    mdp, path = build_world(WORLD), tmp_path / "state.npz"
    ask(mdp, checkpoint=path)
    array = getattr(mdp, name).copy()
    array[3] = np.nextafter(array[3], 0.5)
    parts = {part: getattr(mdp, part) for part in ("state_ptr", "action", "row_ptr", "next_state", "terminal")}
    parts |= {"probability": mdp.probability, "reward": mdp.reward, "n_actions": mdp.n_actions, name: array}
    with pytest.raises(UserError, match="belongs to another question: its model"):
        ask(MDP(**parts), checkpoint=path, resume=True)


def test_planning_checkpoint_detects_every_flipped_bit_tried(tmp_path: Path) -> None:
    mdp, path = build_world("chain(states=4)"), tmp_path / "state.npz"
    ask(mdp, checkpoint=path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(good), 200, replace=False):
        bad = bytearray(good)
        bad[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(bad)
        with pytest.raises(UserError, match="damaged"):
            ask(mdp, checkpoint=path, resume=True)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 100, -1, -64])
def test_planning_checkpoint_detects_a_lost_end(length: int, tmp_path: Path) -> None:
    mdp, path = build_world("chain(states=4)"), tmp_path / "state.npz"
    ask(mdp, checkpoint=path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(UserError, match="damaged"):
        ask(mdp, checkpoint=path, resume=True)


def test_planning_checkpoint_is_a_plain_npz(tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    solution = ask(build_world("chain(states=4)"), method="jacobi", checkpoint=path)
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["values"], solution.values)
    assert [file.name for file in tmp_path.iterdir()] == ["state.npz"]


def test_planning_checkpoint_is_saved_as_time_passes(tmp_path: Path) -> None:
    path, seen = tmp_path / "state.npz", []
    ask(
        build_world("chain(states=100, slip=0.3)"),
        method="gauss_seidel",
        checkpoint=path,
        checkpoint_seconds=0,
        progress=lambda _: seen.append(path.exists()),
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
    solve(build_world("grid"), discount=0.9, checkpoint=tmp_path / "state.npz")
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
    path = tmp_path / "state.npz"
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
    assert child.returncode == -number
    mdp = build_world("chain(states=3000, slip=0.5)")
    resumed = solve(
        mdp, discount=0.999999, method="gauss_seidel", error=1e-4, checkpoint=path, resume=True, max_sweeps=1
    )
    assert resumed.sweeps >= 50
    alone = solve(mdp, discount=0.999999, method="gauss_seidel", error=1e-4, max_sweeps=resumed.sweeps)
    assert alone.values.tobytes() == resumed.values.tobytes()
