"""What a seed does depends on itself alone: not on threads, company, windows, news, or interruptions."""

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

from dynaboltz.errors import StorageError, UserError
from dynaboltz.mdp import MDP, build_world
from dynaboltz.tabular import Learned, Learning, Progress, agent, clocks, learn

WORLD = build_world("grid(rows=4, cols=4, slip=0.1)")
CONFIG = agent("dbs", episodes=40, initial="uniform(0, 0.1)", epsilon="piecewise(((1, 1), (3000, 0.1)))",
               epsilon_clock="step", summary="boltzmann(beta=linear(0.01))", clock="step")  # fmt: skip


def same(a: Learned, b: Learned) -> bool:
    return a.digest() == b.digest()


def optimum(model: MDP, discount: float) -> Any:
    p, r = model.to_arrays()
    q = np.zeros(r.shape)
    for _ in range(500):
        q = r + discount * p @ q.max(axis=1)
    return q


def test_learning_is_the_same_on_one_thread_and_on_two() -> None:
    assert same(learn(WORLD, CONFIG, seeds=30, threads=1), learn(WORLD, CONFIG, seeds=30, threads=2))


@pytest.mark.parametrize("threads", [1, 2])
def test_seed_does_the_same_alone_and_among_a_thousand(threads: int) -> None:
    many, alone = learn(WORLD, CONFIG, seeds=1000, threads=threads), learn(WORLD, CONFIG, seeds=[617])
    for name in ("steps", "returns", "q", "visits"):
        assert np.array_equal(getattr(many, name)[617:618], getattr(alone, name), equal_nan=True)


def test_seeds_and_roots_differ() -> None:
    found = learn(WORLD, CONFIG, seeds=20)
    assert len({row.tobytes() for row in found.q}) == 20
    assert not same(found, learn(WORLD, CONFIG, seeds=20, root=1))


@pytest.mark.parametrize(("window", "seeds"), [(7, 3), (100, 40), (1000, 40)])
def test_learning_does_not_depend_on_the_windows_it_is_done_in(
    window: int, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With forty seeds several share a block, and some of them end long before the others."""
    whole = learn(WORLD, CONFIG, seeds=seeds)
    monkeypatch.setattr(clocks, "WINDOW", window)
    for threads in (1, 2):
        assert same(whole, learn(WORLD, CONFIG, seeds=seeds, threads=threads))


def test_carried_action_survives_the_border_of_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    config = agent("sarsa", episodes=20, epsilon="linear(-0.0001, start=1)", epsilon_clock="step")
    whole = learn(WORLD, config, seeds=3)
    monkeypatch.setattr(clocks, "WINDOW", 11)
    assert same(whole, learn(WORLD, config, seeds=3))


def test_progress_is_told_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynaboltz.tabular.session.SECONDS_BETWEEN_NEWS", 0.0)
    news: list[Progress] = []
    assert same(learn(WORLD, CONFIG, seeds=30), learn(WORLD, CONFIG, seeds=30, progress=news.append))
    assert [now.share for now in news] == sorted(now.share for now in news)
    assert news[-1].share == 1.0
    assert news[-1].steps == learn(WORLD, CONFIG, seeds=30).steps.sum()


class Stop(Exception):  # noqa: N818
    pass


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupted_and_resumed_learning_is_equal(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "WINDOW", 100)
    monkeypatch.setattr("dynaboltz.tabular.session.SECONDS_BETWEEN_NEWS", 0.0)
    question: dict[str, Any] = {"seeds": 4, "optimum": optimum(WORLD, 0.9), "marks": range(50, 1000, 50)}
    whole = learn(WORLD, CONFIG, **question)
    left = [5, 3, 40]

    def stop(_: Progress) -> None:
        left[0] -= 1
        if left[0] == 0:
            left.pop(0)
            raise Stop

    begun = False
    while left:
        try:
            found = learn(WORLD, CONFIG, **question, checkpoint=tmp_path, resume=begun, progress=stop, threads=threads)
            break
        except Stop:
            begun = True
    else:
        found = learn(WORLD, CONFIG, **question, checkpoint=tmp_path, resume=True, threads=threads)
    assert begun
    assert same(whole, found)
    assert same(whole, learn(WORLD, CONFIG, **question, checkpoint=tmp_path, resume=True))  # it had ended


def test_checkpoint_of_other_settings_is_refused_by_name(tmp_path: Path) -> None:
    learn(WORLD, CONFIG, checkpoint=tmp_path)
    for changes, message in (({"seeds": 2}, "its seeds is 0 to 0, not 0 to 1"), ({"root": 1}, "its root is 0, not 1")):
        with pytest.raises(UserError, match=message):
            learn(WORLD, CONFIG, checkpoint=tmp_path, resume=True, **changes)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"discount is 0\.9, not 0\.8"):
        learn(WORLD, Learning(**{**CONFIG.as_dict(), "discount": 0.8}), checkpoint=tmp_path, resume=True)
    with pytest.raises(UserError, match="its world is"):
        learn(build_world("grid(rows=4, cols=4)"), CONFIG, checkpoint=tmp_path, resume=True)


def test_resume_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to resume"):
        learn(WORLD, CONFIG, checkpoint=tmp_path / "none", resume=True)


def test_damaged_checkpoint_is_not_used(tmp_path: Path) -> None:
    learn(WORLD, CONFIG, checkpoint=tmp_path)
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.suffix != ".json" and path.stat().st_size > 100:
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
    with pytest.raises(StorageError, match="whole"):
        learn(WORLD, CONFIG, checkpoint=tmp_path, resume=True)


LONG = """
import sys
from dynaboltz.mdp import build_world
from dynaboltz.tabular import agent, learn
learn(build_world("grid(rows=4, cols=4, slip=0.1)"), agent("dbs", episodes=10**6), seeds=20,
      checkpoint=sys.argv[1], progress=lambda now: print(now.steps, flush=True))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_signal_saves_and_ends_with_its_number(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", LONG, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert int(process.stdout.readline()) > 0
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    process.stdout.close()
    assert time.monotonic() - asked < 60
    assert any(path.name.startswith("ckpt-") for path in tmp_path.iterdir())


def test_error_is_noted_at_the_marks_and_ends_a_seed() -> None:
    config = Learning(summary="hard_max", epsilon=1.0, step_size=1.0, initial=0.0, episodes=500, max_steps=50)
    model = build_world("grid(rows=3, cols=3)")
    best, marks = optimum(model, config.discount), [1, 10, 100, 1000, 5000]
    found = learn(model, config, seeds=5, optimum=best, marks=marks)
    assert (np.diff(found.errors, axis=1) <= 0).all()
    assert (found.errors[:, -1] < 1e-12).all()
    legal = np.isfinite(found.q[0]) & ~model.terminal[:, None]
    assert found.errors[0, -1] == np.abs(found.q[0] - best)[legal].max()
    stopped = learn(model, config, seeds=5, optimum=best, marks=marks, stop_error=0.5)
    first = found.first_within(0.5)
    assert stopped.total_steps.tolist() == first.tolist()
    assert np.isnan(stopped.errors[first == 100][:, 3:]).all()
    assert (found.first_within(0.0) >= 1000).all()
    assert found.first_within(1e300).tolist() == [1.0] * 5
