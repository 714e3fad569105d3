"""Frames as pictures and as characters, and moments of episodes on each screen."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from dynaboltz.cli import main
from dynaboltz.envs import Spec, Step, make
from dynaboltz.envs.drawing import BAR, BEST, CHOSEN, HEIGHT, WIDTH, Canvas
from dynaboltz.envs.pictures import BELOW, LIT, PALETTE, cells_text, frame_picture, frame_text
from dynaboltz.envs.scenes import Random, Scene, scenes
from dynaboltz.envs.screens import blocks, line, panel
from dynaboltz.envs.sketches import SIDE, SKETCHES, acrobot, cart_pole, mountain_car
from dynaboltz.envs.window import Keyboard

SPEC = Spec(shape=(2,), dtype="float32", n_actions=3, action_labels=("nothing", "left", "fire"))


def scene(values: list[float] | None = None, picture: np.ndarray | None = None) -> Scene:
    return Scene(
        env="probe/x", spec=SPEC, picture=picture, text="ab\n[c]d", episode=0, step=7, reward=1.0, total=12.5, action=1,
        values=None if values is None else np.array(values),
    )  # fmt: skip


class Valued(Random):
    """Values and acts by a rule, and keeps what it saw."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec, np.random.default_rng(0))
        self.seen: list[float] = []

    def values(self) -> np.ndarray:  # type: ignore[override]
        return np.arange(2.0)[None]

    def observe(self, step: Step) -> None:
        self.seen.append(float(step.reward[0]))


def test_vector_frame_is_a_bar_a_number_right_of_the_middle_if_positive() -> None:
    picture = frame_picture(np.array([1.0, -3.0, 0.0], np.float32))
    assert picture is not None
    rows = picture.reshape(3, -1, *picture.shape[1:])
    right, left = rows[:, :, picture.shape[1] // 2 + 1 :], rows[:, :, : picture.shape[1] // 2 - 1]
    assert [(r == LIT).all(axis=-1).any() for r in right] == [True, False, False]
    assert [(part == BELOW).all(axis=-1).any() for part in left] == [False, True, False]
    assert (left[1] == BELOW).all(axis=-1).sum() > (right[0] == LIT).all(axis=-1).sum()


def test_channels_have_a_colour_each_and_the_first_lies_on_top() -> None:
    frame = np.zeros((4, 10, 10), np.bool_)
    frame[2, 0, 0] = frame[1, 5, 5] = frame[3, 5, 5] = True
    picture = frame_picture(frame)
    assert picture is not None
    assert tuple(picture[0, 0]) == tuple(PALETTE[2])
    assert tuple(picture[5 * 24, 5 * 24]) == tuple(PALETTE[1])
    assert picture.shape == (240, 240, 3)


@pytest.mark.parametrize(
    "frame",
    [np.zeros((210, 160, 3), np.uint8), np.zeros((84, 84), np.uint8), np.zeros((4, 84, 84), np.uint8), np.ones((7, 5)),
     np.ones((2, 3, 4, 5)), np.full((96, 96, 1), 7, np.uint8), np.zeros(1, np.bool_), np.zeros(100, np.float32)],
    ids=lambda frame: str(frame.shape),
)  # fmt: skip
def test_any_frame_has_a_picture_and_a_text(frame: np.ndarray) -> None:
    picture = frame_picture(frame)
    assert picture is not None
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert frame_text(frame).strip("\n")


def test_grey_image_keeps_its_levels_and_numbers_are_stretched() -> None:
    grey = frame_picture(np.array([[0, 200], [100, 255]], np.uint8))
    stretched = frame_picture(np.array([[-1.0, 1.0], [0.0, 3.0]]))
    assert grey is not None
    assert stretched is not None
    assert sorted(set(grey.ravel().tolist())) == [0, 100, 200, 255]
    assert sorted(set(stretched.ravel().tolist())) == [0, 64, 128, 255]


def test_cells_in_characters_say_what_their_letters_mean() -> None:
    frame = np.zeros((3, 2, 2), np.bool_)
    frame[0, 0, 0] = frame[1, 0, 1] = frame[2, 0, 1] = True
    assert cells_text(frame, ["ball", "brick", "boat"]) == "b r\n. .\nb ball  r brick  o boat"


def middle_of(picture: np.ndarray, colour: tuple[int, int, int]) -> tuple[float, float]:
    """Row and column around which a colour lies."""
    rows, columns = np.nonzero((picture == colour).all(axis=-1))
    return float(rows.mean()), float(columns.mean())


def test_sketched_pole_leans_where_its_angle_points_and_the_cart_is_where_it_stands() -> None:
    upright, leaning = cart_pole(np.array([0.0, 0, 0.0, 0])), cart_pole(np.array([1.2, 0, 0.2, 0]))
    assert middle_of(upright, LIT)[1] == pytest.approx(SIDE / 2, abs=1.5)
    assert middle_of(upright, BELOW)[1] == pytest.approx(SIDE / 2, abs=1.5)
    assert middle_of(leaning, LIT)[1] == pytest.approx(SIDE / 2 + 1.2 * SIDE / 5.2, abs=1.5)
    assert middle_of(leaning, BELOW)[1] > middle_of(leaning, LIT)[1] + 10


def test_sketched_acrobot_hangs_down_and_its_second_link_adds_to_the_angle_of_the_first() -> None:
    hanging, bent = acrobot(np.array([1.0, 0, 1, 0, 0, 0])), acrobot(np.array([0.0, 1, 0, 1, 0, 0]))
    assert middle_of(hanging, LIT) < middle_of(hanging, BELOW)  # higher up
    assert middle_of(bent, LIT)[1] > SIDE / 2 + 20
    assert middle_of(bent, BELOW)[0] < SIDE / 2 - 20


def test_sketched_car_climbs_with_its_place() -> None:
    rows = [middle_of(mountain_car(np.array([place, 0.0])), LIT)[0] for place in (-0.5, 0.0, 0.5)]
    assert rows[0] > rows[1] > rows[2]


@pytest.mark.parametrize("wild", [np.full(6, 1e30), np.full(6, -1e30), np.zeros(6)], ids=["far", "near", "zero"])
@pytest.mark.parametrize("name", SKETCHES)
def test_sketch_of_any_numbers_is_a_picture(name: str, wild: np.ndarray) -> None:
    assert SKETCHES[name](wild).shape == (SIDE, SIDE, 3)


def test_canvas_marks_what_is_chosen_and_what_is_best() -> None:
    image = Canvas().draw(scene([0.0, 1.0, 3.0]))
    assert image.shape == (HEIGHT, WIDTH, 3)
    lengths = {colour: int((image[:, WIDTH // 2 :] == colour).all(axis=-1).sum()) for colour in (BAR, BEST, CHOSEN)}
    assert lengths[BEST] > 2 * lengths[BAR] > 0  # 3 against 1, and 0 has a stub of a bar
    assert lengths[CHOSEN] > 20


def test_canvas_keeps_the_axis_of_all_values_seen() -> None:
    canvas = Canvas()
    before = (canvas.draw(scene([0.0, 1.0, 1.0])) == BEST).all(axis=-1).sum()
    canvas.draw(scene([0.0, 1.0, 4.0]))
    after = (canvas.draw(scene([0.0, 1.0, 1.0])) == BEST).all(axis=-1).sum()
    assert after < 0.4 * before


@pytest.mark.parametrize("name", ["FrozenLake-v1", "mdp/paper_grid", "minatar/seaquest", "CartPole-v1"])
def test_canvas_draws_every_kind_of_world(name: str) -> None:
    with make(name) as envs:
        moments = scenes(lambda _: make(name), Random(envs.spec, np.random.default_rng(0)), episodes=1, max_steps=3)
        worlds = [Canvas().draw(moment)[24:456, 24:456] for moment in moments]
    assert len(np.unique(worlds[0].reshape(-1, 3), axis=0)) > 1


def test_scenes_of_an_episode_are_one_more_than_its_steps() -> None:
    with make("probe/discount") as envs:
        actor = Valued(envs.spec)
    found = list(scenes(lambda _: make("probe/discount"), actor, episodes=2, max_steps=9))
    assert [(s.episode, s.step, s.reward, s.total, s.note) for s in found[:4]] == [
        (0, 0, 0.0, 0.0, ""), (0, 1, 0.0, 0.0, ""), (0, 2, 0.0, 0.0, ""), (0, 3, 1.0, 1.0, "terminated"),
    ]  # fmt: skip
    assert [s.episode for s in found] == [0] * 4 + [1] * 4
    assert [s.action for s in found[:4]] == [0, 0, 0, None]
    assert actor.seen == [0.0, 0.0, 1.0] * 2


@pytest.mark.parametrize(
    ("name", "most", "note"), [("probe/truncation", 99, "truncated"), ("probe/truncation", 2, "cut")]
)
def test_scenes_say_how_an_episode_ended(name: str, most: int, note: str) -> None:
    with make(name) as envs:
        *_, last = scenes(lambda _: make(name), Valued(envs.spec), episodes=1, max_steps=most)
    assert last.note == note


def test_moment_as_a_line_has_the_action_by_name_and_the_values() -> None:
    assert line(scene([0.0, 1.0, -2.5])) == (
        "episode 1 step 7 reward 1 return 12.5 action left  values 0.000 1.000 -2.500"
    )


def test_panel_shows_world_values_and_choice() -> None:
    from rich.console import Console

    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(panel(scene([0.5, 1.0, -2.5]), coloured=False))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(word in shown for word in ("probe/x", "[c]d", "▶", "left", "-2.500", "return 12.5"))
    assert next(row for row in shown.splitlines() if "▶" in row).count("left") == 1


def test_half_blocks_hold_two_pixels_each() -> None:
    picture = np.zeros((4, 4, 3), np.uint8)
    picture[0], picture[1] = (255, 0, 0), (0, 0, 255)
    text = blocks(picture, columns=4)
    assert text.plain == "▀▀▀▀\n▀▀▀▀"
    style = text.spans[0].style
    assert str(style) == "#ff0000 on #0000ff"


def test_keyboard_acts_at_random_until_a_key_is_pressed() -> None:
    keyboard = Keyboard(SPEC, np.random.default_rng(0))
    assert len({int(keyboard.act()[0]) for _ in range(50)}) == 3
    acts = []
    for key in ("Left", "space", "2", "9", "Up", "q"):
        keyboard.press(key)
        acts.append(int(keyboard.act()[0]))
    assert acts == [1, 2, 2, 2, 2, 2]
    keyboard.release()
    assert keyboard.act().tolist() == [0]


def test_play_writes_a_line_a_moment_into_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "probe/discount", "--episodes", "2"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 8
    assert rows[3] == "episode 1 step 3 reward 1 return 1 terminated"


def test_play_shows_the_same_episodes_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for seed in ("3", "3", "4"):
        assert main(["play", "minatar/asterix", "--max-steps", "80", "--seed", seed]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != shown[2]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # imageio's reader leaves its pipes open
@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_play_writes_a_video_that_can_be_read(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import imageio.v2 as imageio

    path = tmp_path / f"a{suffix}"
    assert main(["play", "minatar/breakout", "--video", str(path), "--max-steps", "5", "--fps", "10"]) == 0
    assert "13 frames, 1.3 s" in capsys.readouterr().out  # five steps, and 0.8 s of standing still
    frames = imageio.mimread(path, memtest=False)
    assert {frame.shape[:2] for frame in frames} == {(HEIGHT, WIDTH)}
    assert len(frames) >= 5  # a GIF may join moments that are equal
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs an environment"),
        (["CartPol-v1"], "did you mean 'CartPole-v1'"),
        (["CartPole-v1", "--video", "a.avi"], "ends in .gif or .mp4"),
        (["CartPole-v1", "--video", "nowhere/a.gif"], "folder does not exist"),
        (["CartPole-v1", "--text", "--window"], "exclude each other"),
        (["CartPole-v1", "--episodes", "0"], "--episodes"),
        (["CartPole-v1", "--fps", "0"], "--fps"),
        (["CartPole-v1", "--seed", "-1"], "--seed"),
        (["CartPole-v1", "--max-steps", "0"], "--max-steps"),
        (["CartPole-v1", "--epsilon", "2"], "--epsilon"),
        (["--run", "nowhere"], "there is no run"),
    ],
)
def test_play_refuses_what_it_cannot_do(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", *arguments]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert said in shown


def test_play_without_a_display_names_what_to_use_instead(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tkinter")
    monkeypatch.delenv("DISPLAY", raising=False)
    assert main(["play", "probe/beta", "--window"]) == 1
    assert "--video" in capsys.readouterr().err


def test_video_that_fails_leaves_no_file(tmp_path: Path) -> None:
    assert main(["play", "own_worlds:Own(fault='raise', episode=0)", "--video", str(tmp_path / "a.gif")]) == 1
    assert list(tmp_path.iterdir()) == []


def test_play_shows_the_agent_of_a_run_and_its_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "probe/match", "--preset", "dqn", "--steps", "400", "--out", str(tmp_path)]) == 0
    run = str(next(tmp_path.glob("**/config.toml")).parent)
    capsys.readouterr()
    assert main(["play", "--run", run, "--episodes", "20"]) == 0
    rows = [row for row in capsys.readouterr().out.splitlines() if "action" in row]
    assert len(rows) == 20
    for row in rows:
        action, _, values = row.partition("action ")[2].partition("  values ")
        assert np.argmax([float(value) for value in values.split()]) == int(action)
    assert main(["play", "probe/discount", "--run", run]) == 2
    assert "made for probe/match with n_actions 2, but probe/discount has 1" in capsys.readouterr().err
