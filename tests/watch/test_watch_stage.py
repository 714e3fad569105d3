"""The agent at play: the run's own network, only while somebody looks, whatever its environment does."""

from __future__ import annotations

import base64
import io
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dynaboltz import boltzmann
from dynaboltz.envs import make
from dynaboltz.errors import DynaboltzError
from dynaboltz.runs import Home
from dynaboltz.runs.evaluate import agent_of
from dynaboltz.watch import stage as stages
from dynaboltz.watch.stage import LARGEST, Mind, Stage, png, smaller
from dynaboltz.watch.weights import newest

PATIENCE_SECONDS = 120.0
Play = Callable[..., Stage]


def eventually(what: Callable[[], Any]) -> Any:
    """What becomes true, however long it takes within reason."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := what()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.01)
    return found


def moment(stage: Stage, after: int = 0, *, scene: bool = True) -> dict[str, Any]:
    """The next moment after that number, of the play or of a message."""

    def look() -> dict[str, Any] | None:
        found = stage.look(after)
        return found if len(found) > 1 and scene == ("labels" in found) else None

    found: dict[str, Any] = eventually(look)
    return found


@pytest.fixture
def play(trained: Any) -> Iterator[Play]:
    """A stage of the finished run, or of another one."""
    opened: list[Stage] = []

    def begin(
        home: Home | None = None, config: Any = None, which: str = "last", beta: float | None = 4.0, fps: float = 1000.0
    ) -> Stage:
        config = trained.config if config is None else config
        opened.append(Stage(home or trained.home, config, which=which, fps=fps, beta=lambda: beta))
        return opened[-1]

    yield begin
    for stage in opened:
        stage.close()
        assert not stage._thread.is_alive()


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 5, 3), (210, 160, 3)])
def test_png_is_read_back_as_the_same_picture(shape: tuple[int, int, int]) -> None:
    image = pytest.importorskip("PIL.Image")
    picture = np.random.default_rng(0).integers(256, size=shape).astype(np.uint8)
    with image.open(io.BytesIO(png(picture))) as read:
        read.verify()
    with image.open(io.BytesIO(png(picture))) as read:
        assert (np.asarray(read) == picture).all()


def test_smaller_leaves_a_small_picture_as_it_is() -> None:
    picture = np.zeros((LARGEST, 10, 3), np.uint8)
    assert smaller(picture) is picture


def test_smaller_takes_the_mean_of_squares() -> None:
    picture = np.zeros((2 * LARGEST + 1, 6, 3), np.uint8)
    picture[::2, ::3] = 90
    found = smaller(picture)
    assert found.shape == ((2 * LARGEST + 1) // 3, 2, 3)
    assert set(found[::2].ravel()) == {20}  # two of nine
    assert set(found[1::2].ravel()) == {10}


def test_stage_shows_the_picture_the_values_and_what_the_operator_makes_of_them(play: Play) -> None:
    stage = play()
    for found in (moment(stage), moment(stage, 5)):
        values = np.array(found["values"])
        assert found["labels"] == ["left", "right"]
        assert found["max"] == values.max()
        assert found["made"] == float(boltzmann(values, 4.0))
        assert (found["operator"], found["beta"], found["weights_step"]) == ("boltzmann", 4.0, 700)
        assert base64.b64decode(found["picture"]).startswith(b"\x89PNG")
        assert found["action"] == values.argmax() or found["note"]


def test_stage_knows_no_operator_value_before_beta_is_known(play: Play) -> None:
    found = moment(play(beta=None))
    assert (found["made"], found["beta"]) == (None, None)
    assert found["max"] == max(found["values"])


def test_stage_of_the_best_weights_plays_those(play: Play, trained: Any) -> None:
    assert moment(play(which="best"))["weights_step"] == trained.result.best_step


def test_mind_values_what_it_sees_as_the_run_s_own_agent_does(trained: Any) -> None:
    _, agent = agent_of(trained.home, trained.config, "last")
    found = newest(trained.home, "last", run=trained.config.identity)
    assert found is not None
    with make(trained.config.env, seed=7) as envs:
        mind, player = Mind(trained.config, envs.spec), agent.player(1, epsilon=0.0, rng=np.random.default_rng(0))
        mind.load(found[1])
        seen = envs.reset()
        mind.begin(seen)
        player.begin(seen)
        for _ in range(10):
            assert np.array_equal(mind.values(), player.values())
            action = mind.act()
            assert action == player.act()
            step = envs.step(action)
            mind.observe(step)
            player.observe(step)
    mind.close()
    agent.close()


def test_stage_plays_the_same_episodes_each_time(play: Play) -> None:
    def seen(stage: Stage) -> dict[tuple[int, int], Any]:
        """Moments by their place in the play; a busy machine passes over some."""
        found = [moment(stage)]
        while len(found) < 20:
            found.append(moment(stage, found[-1]["n"]))
        return {(one["episode"], one["step"]): (one["values"], one["picture"]) for one in found}

    once, again = seen(play(fps=20.0)), seen(play(fps=20.0))
    both = once.keys() & again.keys()
    assert len(both) >= 3
    assert all(once[place] == again[place] for place in both)


def test_stage_gives_a_moment_that_is_known_by_its_number_alone(play: Play, begun: Any) -> None:
    stage = play(*begun)
    found = moment(stage, scene=False)
    assert stage.look(found["n"]) == {"n": found["n"]}


def test_stage_rests_until_somebody_looks_and_after_nobody_does(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "AWAY_SECONDS", 0.2)
    stage = play()
    assert stage._moment["n"] == 1
    moment(stage)
    eventually(lambda: not stage._looked.is_set())
    rested = stage._moment["n"]
    assert stage._moment["n"] == rested
    assert moment(stage, rested)["n"] > rested


def test_stage_waits_for_the_first_weights_and_takes_newer_ones(
    play: Play, begun: Any, trained: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "FRESH_SECONDS", 0.01)
    home, stage = begun[0], play(*begun)
    said = [moment(stage, scene=False)]
    while "no weights yet" not in said[-1]["message"]:
        said.append(moment(stage, said[-1]["n"], scene=False))
    shutil.copytree(trained.home.checkpoints / "ckpt-000000000600", home.folder / "checkpoint")
    home.checkpoints.mkdir()
    (home.folder / "checkpoint").rename(home.checkpoints / "ckpt-000000000600")
    assert moment(stage)["weights_step"] == 600
    shutil.copytree(trained.home.last, home.folder / "copied")
    (home.folder / "copied").rename(home.last)
    assert eventually(lambda: (found := moment(stage))["weights_step"] == 700 and found)


def test_stage_tells_of_weights_that_cannot_be_read(play: Play, begun: Any, trained: Any) -> None:
    shutil.copytree(trained.home.last, begun[0].last)
    for path in begun[0].last.glob("*/*"):
        path.write_bytes(path.read_bytes()[:-9])
    found = moment(play(*begun), 1, scene=False)
    assert found["message"].startswith("no weights can be read\n  last/ckpt-000000000700: ")


@pytest.mark.parametrize("fault", [DynaboltzError("the world <b>fell</b>"), ZeroDivisionError("the world <b>fell</b>")])
def test_stage_tells_what_went_wrong_and_plays_on(
    play: Play, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "FRESH_SECONDS", 0.01)
    broken = [True]

    def once(*given: Any, **named: Any) -> Any:
        if broken[0]:
            raise fault
        return make(*given, **named)

    monkeypatch.setattr(stages, "make", once)
    stage = play()
    found = moment(stage, 1, scene=False)
    assert found["message"] in ("the world <b>fell</b>", "ZeroDivisionError: the world <b>fell</b>")
    broken[0] = False
    assert moment(stage, found["n"])["labels"] == ["left", "right"]


def test_stage_that_is_closed_before_anybody_looked_ends(play: Play) -> None:
    stage = play()
    stage.close()
    assert not stage._thread.is_alive()
