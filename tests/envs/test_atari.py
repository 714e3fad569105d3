"""Atari by its protocol: what is shown, when it ends, raw scores, and the same future after a restore."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dynaboltz.envs import Environments, Step, WorldError, make
from dynaboltz.envs.atari import AtariWorld, rom_of, roms
from dynaboltz.envs.faults import episode_seed
from dynaboltz.envs.protocols import protocol
from dynaboltz.errors import MissingExtraError, UnknownNameError, UserError
from dynaboltz.reports.scores import paper_scores

PLAIN = "pool='luminance', noops_least=0, noops_most=0, life_loss='ignored', cap_frames=0"
"""As other packages can be asked to play."""


@pytest.fixture(scope="module")
def breakout() -> Iterator[Environments]:
    with make("atari/breakout", seed=3) as envs:
        yield envs


def play(envs: Environments, steps: int, seed: int = 0) -> list[Step]:
    rng = np.random.default_rng(seed)
    return [envs.step(rng.integers(0, envs.spec.n_actions, envs.n)) for _ in range(steps)]


def world_of(game: str, *, training: bool = True, **changes: Any) -> AtariWorld:
    return AtariWorld(rom_of(game), protocol("nature2015", **changes), training=training)


def test_atari_hands_out_single_frames_and_says_how_many_to_stack(breakout: Environments) -> None:
    assert (breakout.spec.shape, breakout.spec.dtype, breakout.spec.stack) == ((84, 84), "uint8", 4)
    assert breakout.spec.action_labels == ("noop", "fire", "right", "left")
    assert breakout.spec.resumable
    frame = breakout.reset()
    assert frame.shape == (1, 84, 84)
    assert frame.dtype == np.uint8
    assert frame.max() > 100


def test_atari_name_holds_the_protocol_and_reads_back(breakout: Environments) -> None:
    assert breakout.name == "atari/Breakout(protocol='nature2015')"
    with make("atari/Pong(protocol='machado2018', cap_frames=80)") as envs:
        assert envs.name == "atari/Pong(protocol='machado2018', cap_frames=80)"


def test_lost_life_cuts_the_bootstrap_and_the_game_goes_on(breakout: Environments) -> None:
    breakout.reset()
    steps = play(breakout, 400)
    end = next(index for index, step in enumerate(steps) if step.over[0])
    lost = [index for index in range(end) if steps[index].terminal[0]]
    assert len(lost) == 4
    assert steps[end].terminal[0]
    assert all(not steps[index].over[0] and not steps[index].finished for index in lost)
    np.testing.assert_array_equal(steps[lost[0]].final, steps[lost[0]].observation)
    (episode,) = steps[end].finished
    assert (episode.env, episode.number, episode.steps) == (0, 0, end + 1)
    assert episode.reward == sum(step.reward[0] for step in steps[: end + 1])


def test_lost_life_is_nothing_in_evaluation() -> None:
    with make("atari/Breakout", stream=1) as envs:
        envs.reset()
        steps = play(envs, 400)
    ends = [index for index, step in enumerate(steps) if step.over[0]]
    assert ends
    assert [index for index, step in enumerate(steps) if step.terminal[0]] == ends


def test_scores_are_raw() -> None:
    with make("atari/MsPacman(protocol='nature2015', noops_most=1)") as envs:
        envs.reset()
        assert max(step.reward[0] for step in play(envs, 120)) >= 10


@pytest.mark.parametrize(("cap", "steps"), [(40, 10), (42, 11)])
def test_cap_truncates_and_keeps_the_bootstrap(cap: int, steps: int) -> None:
    with make(f"atari/Pong(cap_frames={cap})") as envs:
        envs.reset()
        played = play(envs, steps)
        assert [bool(step.over[0]) for step in played] == [False] * (steps - 1) + [True]
        assert not played[-1].terminal[0]
        assert played[-1].finished[0].steps == steps
        assert (played[-1].final != played[-1].observation).any()


def test_cap_cuts_the_last_action_short() -> None:
    world = world_of("pong", cap_frames=42)
    world.reset(0)
    for _ in range(11):
        world.step(0)
    assert world.frames == 42


def test_noops_are_uniform_from_the_fewest_to_the_most() -> None:
    world = world_of("pong", noops_least=2, noops_most=5)
    counts = []
    for number in range(60):
        world.reset(episode_seed(0, 0, 0, number))
        counts.append(world._ale.getEpisodeFrameNumber())
    assert set(counts) == {2, 3, 4, 5}


def test_sticky_actions_keep_the_last_one_with_their_probability() -> None:
    world = world_of("pong", sticky_actions=0.25, noops_least=0, noops_most=0)
    acted: list[object] = []
    real = world._ale

    class Spy:
        def act(self, action: object) -> int:
            acted.append(action)
            return int(real.act(action))

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    world._ale = Spy()  # type: ignore[misc]
    world.reset(0)
    chosen = np.arange(700) % 2 + 2
    for action in chosen:
        world.step(int(action))
    wanted = [world._set[action] for action in chosen for _ in range(4)]
    kept = np.mean([a != b for a, b in zip(acted[::4], wanted[::4], strict=True)])
    assert abs(kept - 0.25) < 0.065  # four standard deviations
    late = np.mean([a != b for a, b in zip(acted[3::4], wanted[3::4], strict=True)])
    assert late < 0.03  # 0.25⁴ is 0.004


def test_all_actions_are_eighteen() -> None:
    assert world_of("breakout", all_actions=True).spec.n_actions == 18
    assert world_of("freeway").spec.n_actions == 3


def test_life_loss_of_the_released_code_is_followed_by_noops() -> None:
    world = AtariWorld("breakout", protocol("dqn3_lua"), training=True)
    world.reset(1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        before = world._ale.getEpisodeFrameNumber()
        world.step(int(rng.integers(4)))
        if world.life_lost:
            break
    assert world.life_lost
    assert world._ale.getEpisodeFrameNumber() - before - 4 <= 31
    assert world._ale.getEpisodeFrameNumber() - before >= 1 + 2


@pytest.mark.parametrize("game", ["Qbert", "Seaquest", "Assault"])
def test_atari_goes_on_after_a_restore_as_if_never_interrupted(game: str) -> None:
    text = f"atari/{game}(sticky_actions=0.25)"
    rng = np.random.default_rng(7)
    with make(text, n=2, seed=5) as envs, make(text, n=2, seed=5) as other:
        other.reset()
        play(other, 90, seed=9)
        envs.reset()
        actions = rng.integers(0, envs.spec.n_actions, (190, 2))
        saved = {}
        points = sorted(int(point) for point in rng.integers(1, 140, 2))
        steps = []
        for at, action in enumerate(actions):
            if at in points:
                saved[at] = envs.state()
            steps.append(envs.step(action))
        for point in points:
            np.testing.assert_array_equal(other.restore(saved[point]), steps[point - 1].observation)
            for at in range(point, point + 50):
                expected, got = steps[at], other.step(actions[at])
                for name in ("observation", "final", "reward", "terminal", "over"):
                    np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
                assert got.finished == expected.finished


def test_life_lost_before_a_restore_is_not_lost_again() -> None:
    with make("atari/breakout", seed=3) as envs:
        envs.reset()
        rng = np.random.default_rng(0)
        while not envs.step(rng.integers(0, 4, 1)).terminal[0]:
            pass
        state = envs.state()
        after = [envs.step(np.array([0])) for _ in range(20)]
        envs.restore(state)
        again = [envs.step(np.array([0])) for _ in range(20)]
    assert not any(step.terminal[0] for step in after)
    for one, two in zip(after, again, strict=True):
        np.testing.assert_array_equal(one.observation, two.observation)
        assert one.terminal[0] == two.terminal[0]


def test_state_that_does_not_come_out_the_same_is_refused(breakout: Environments) -> None:
    breakout.reset()
    play(breakout, 30)
    state = breakout.state()
    state["actions"][0] = (state["actions"][0] + 1) % 4
    with pytest.raises(WorldError, match="cannot be restored"):
        breakout.restore(state)


@pytest.mark.parametrize("game", ["Assault", "BeamRider", "TimePilot"])
def test_episode_does_not_depend_on_those_before(game: str) -> None:
    """After the console's own reset alone, these three remember what was played."""
    world = world_of(game)

    def trace(seed: int, steps: int) -> list[bytes]:
        rng = np.random.default_rng(seed)
        frames = [world.reset(seed).tobytes()]
        return frames + [world.step(int(rng.integers(world.spec.n_actions)))[0].tobytes() for _ in range(steps)]

    first = trace(1, 60)
    trace(2, 90)
    assert trace(1, 60) == first


def test_seed_and_stream_make_other_episodes() -> None:
    world = world_of("seaquest")
    frames = {world.reset(episode_seed(0, stream, 0, 0)).tobytes() for stream in (0, 1, 2)}
    assert len(frames) == 3


def test_frames_are_those_of_the_vector_environment_to_a_rounding() -> None:
    """OpenCV's INTER_AREA is inside; it sums in float32, we in whole numbers."""
    from ale_py.vector_env import AtariVectorEnv

    theirs = AtariVectorEnv(
        "breakout", 1, stack_num=1, noop_max=0, use_fire_reset=False, reward_clipping=False, num_threads=1
    )
    differ = 0
    with make(f"atari/breakout({PLAIN})") as ours:
        np.testing.assert_array_equal(ours.reset(), theirs.reset(seed=np.array([1]))[0][:, 0])
        rng = np.random.default_rng(1)
        for _ in range(150):
            action = rng.integers(0, 4, 1)
            step = ours.step(action)
            frame, reward, over, _, _ = theirs.step(action)
            assert reward[0] == step.reward[0]
            assert over[0] == step.over[0]
            assert not over[0]
            off = np.abs(step.final.astype(int) - frame[:, 0])
            assert off.max() <= 1
            differ += int((off > 0).sum())
    theirs.close()
    assert differ < 1e-3 * 150 * 84 * 84


def test_frames_are_pooled_as_by_gymnasiums_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shrinking needs OpenCV; ours is put in its place, so that all else is compared bit for bit."""
    import ale_py
    import gymnasium

    from dynaboltz.envs.atari_frames import SIDE, Shrinker

    def resize(grey: np.ndarray, *_: object, **__: object) -> np.ndarray:
        frame = np.zeros((SIDE, SIDE), np.uint8)
        shrink = Shrinker(grey.shape, "luminance", "area")
        shrink._table[:] = np.arange(256)
        shrink(grey, grey, frame)
        return frame

    stub: Any = types.ModuleType("cv2")
    stub.resize, stub.INTER_AREA = resize, 3
    monkeypatch.setitem(sys.modules, "cv2", stub)
    gymnasium.register_envs(ale_py)
    raw = gymnasium.make("ALE/Qbert-v5", frameskip=1, repeat_action_probability=0.0, disable_env_checker=True)
    theirs = gymnasium.wrappers.AtariPreprocessing(raw, noop_max=0, terminal_on_life_loss=False)
    with make(f"atari/Qbert({PLAIN})") as ours:
        np.testing.assert_array_equal(ours.reset()[0], theirs.reset(seed=0)[0])
        rng = np.random.default_rng(2)
        for _ in range(150):
            action = int(rng.integers(6))
            step = ours.step(np.array([action]))
            frame, reward, over, _, _ = theirs.step(action)
            assert (step.reward[0], step.over[0]) == (reward, over)
            if not over:
                np.testing.assert_array_equal(step.final[0], frame)
    theirs.close()


def test_picture_is_the_screen_in_colours_and_text_says_lives(breakout: Environments) -> None:
    breakout.reset()
    picture = breakout.picture()
    assert picture is not None
    assert picture.shape == (210, 160, 3)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 5
    assert breakout.text().startswith("breakout: lives 5, frame 0\n")


def test_all_games_of_the_paper_are_found_by_the_names_it_gives_them() -> None:
    names = paper_scores().games
    found = {rom_of(name) for name in names}
    assert len(names) == len(found) == 49
    assert found <= set(roms())


@pytest.mark.parametrize("name", ["MsPacman", "ms_pacman", "Ms. Pac-Man", "mspacman"])
def test_game_is_found_however_it_is_written(name: str) -> None:
    assert rom_of(name) == "ms_pacman"


def test_wrong_names_say_what_is_near() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown Atari game 'Brekout'\n  did you mean 'Breakout'\?"):
        make("atari/Brekout")
    with pytest.raises(UserError, match="for two players"):
        make("atari/Combat")
    with pytest.raises(UnknownNameError, match=r"unknown field of the protocol nature2015: 'sticky'"):
        make("atari/Breakout(sticky=0.25)")
    with pytest.raises(UnknownNameError, match=r"did you mean 'dqn_zoo'\?"):
        make("atari/Breakout(protocol='dqn_zo')")


def test_missing_emulator_is_an_error_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from dynaboltz.envs import atari

    monkeypatch.setitem(sys.modules, "ale_py", None)
    atari._emulator.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=r"pip install 'dynaboltz\[atari\]'"):
            make("atari/Breakout")
    finally:
        atari._emulator.cache_clear()
