"""What every environment keeps to, through one list of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynaboltz.envs import Environments, Step, make
from dynaboltz.envs.minatar import GAMES
from dynaboltz.envs.probes import PROBES
from dynaboltz.errors import UserError

WORLDS = (
    "CartPole-v1",
    "CartPole-v1(max_episode_steps=12)",
    "FrozenLake-v1(is_slippery=True)",
    "CliffWalking-v1",
    "Acrobot-v1(max_episode_steps=9)",
    "MountainCar-v0(max_episode_steps=11)",
    *(f"minatar/{game}" for game in GAMES),
    "minatar/asterix(minimal_actions=True, sticky_actions=0.5, ramping=False)",
    *(f"probe/{name}" for name in PROBES),
    "mdp/paper_grid(max_steps=25)",
    "mdp/grid(rows=3, cols=3, slip=0.2)",
    "own_worlds:Own",
    "own_worlds:Pixels",
    "own_worlds:Shifted",
)
"""Restored exactly, each environment by itself."""

VECTORS = (
    "own_worlds:vector",
    "own_worlds:vector(mode='DISABLED')",
    "own_worlds:vector(mode='NEXT_STEP')",
    "own_worlds:Foreign(mode='SAME_STEP')",
    "own_worlds:Foreign(mode='DISABLED')",
)

SHORT = 60
"""Steps; long enough for episodes to end in every world that can end one under random actions."""


def actions_for(envs: Environments, steps: int, *, n: int | None = None) -> np.ndarray:
    return np.random.default_rng(5).integers(envs.spec.n_actions, size=(steps, n or envs.n))


def played(envs: Environments, actions: np.ndarray) -> list[Step]:
    return [envs.step(row) for row in actions]


def flat(steps: list[Step]) -> list[Any]:
    return [
        (
            s.observation.tobytes(),
            s.reward.tobytes(),
            s.terminal.tobytes(),
            s.over.tobytes(),
            s.final.tobytes(),
            s.finished,
        )
        for s in steps
    ]


@pytest.mark.parametrize("name", WORLDS + VECTORS)
def test_environments_hand_out_what_their_spec_says(name: str) -> None:
    with make(name, n=3, seed=1) as envs:
        spec = envs.spec
        shape = (3, *spec.shape)
        first = envs.reset()
        assert (first.shape, str(first.dtype)) == (shape, spec.dtype)
        for step in played(envs, actions_for(envs, SHORT)):
            for frames in (step.observation, step.final):
                assert (frames.shape, str(frames.dtype)) == (shape, spec.dtype)
                if spec.n_values is not None:
                    assert (frames >= 0).all()
                    assert (frames < spec.n_values).all()
            assert [(a.shape, str(a.dtype)) for a in (step.reward, step.terminal, step.over)] == [
                ((3,), "float64"),
                ((3,), "bool"),
                ((3,), "bool"),
            ]


@pytest.mark.parametrize("name", WORLDS + VECTORS)
def test_environments_count_their_episodes(name: str) -> None:
    with make(name, n=3, seed=1) as envs:
        envs.reset()
        number, steps, reward = [0] * 3, [0] * 3, [0.0] * 3
        for step in played(envs, actions_for(envs, SHORT)):
            assert not (step.terminal & ~step.over).any()
            ended = {episode.env: episode for episode in step.finished}
            assert sorted(ended) == np.flatnonzero(step.over).tolist()
            for index in range(3):
                steps[index] += 1
                reward[index] += step.reward[index]
                if index not in ended:
                    assert np.array_equal(step.final[index], step.observation[index])
                    continue
                episode = ended[index]
                assert (episode.number, episode.steps) == (number[index], steps[index])
                assert episode.reward == pytest.approx(reward[index], abs=1e-12)
                number[index], steps[index], reward[index] = number[index] + 1, 0, 0.0


@pytest.mark.parametrize("name", WORLDS + VECTORS)
def test_environments_leave_the_arrays_of_a_step_to_the_caller(name: str) -> None:
    with make(name, n=2, seed=1) as envs, make(name, n=2, seed=1) as others:
        rows = actions_for(envs, 20)
        first = envs.reset()
        assert np.array_equal(first, others.reset())
        first[...] = 0
        kept = []
        for row in rows:
            step, other = envs.step(row), others.step(row)
            assert flat([step]) == flat([other])
            kept.append((step, flat([step])))
            other.observation[...] = 0
            other.final[...] = 0
            other.reward[...] = 0
        assert all(flat([step]) == before for step, before in kept)


@pytest.mark.parametrize("name", WORLDS)
def test_restored_environments_go_on_as_if_nothing_had_been(name: str) -> None:
    """At three points of a run, by environments that have seen nothing and by some that have seen other things."""
    with make(name, n=2, seed=3, stream=1) as envs:
        rows = actions_for(envs, SHORT)
        envs.reset()
        points = sorted(np.random.default_rng(len(name)).choice(SHORT - 1, 3, replace=False).tolist())
        saved, seen = {}, []
        for at, row in enumerate(rows):
            seen.append(envs.step(row))
            if at in points:
                saved[at] = envs.state()
    for at in points:
        with make(name, n=2, seed=3, stream=1) as again:
            for before in (0, 7):
                if before:
                    again.reset()
                    played(again, rows[:before])
                now = again.restore(saved[at])
                assert now.tobytes() == seen[at].observation.tobytes()
                assert flat(played(again, rows[at + 1 :])) == flat(seen[at + 1 :])


@pytest.mark.parametrize("name", WORLDS)
def test_an_environment_does_not_depend_on_how_many_there_are(name: str) -> None:
    with make(name, n=1, seed=2) as one, make(name, n=4, seed=2) as four:
        rows = actions_for(four, SHORT)
        assert np.array_equal(one.reset()[0], four.reset()[0])
        for row in rows:
            alone, among = one.step(row[:1]), four.step(row)
            assert np.array_equal(alone.observation[0], among.observation[0])
            assert np.array_equal(alone.final[0], among.final[0])
            assert alone.reward[0] == among.reward[0]
            assert list(alone.finished) == [episode for episode in among.finished if episode.env == 0]


@pytest.mark.parametrize(
    "name", ["CartPole-v1", "minatar/freeway", "mdp/grid(rows=4, cols=4, slip=0.5)", "own_worlds:Own"]
)
def test_seed_stream_number_and_episode_each_make_another_world(name: str) -> None:
    def tape(seed: int, stream: int, index: int) -> bytes:
        with make(name, n=2, seed=seed, stream=stream) as envs:
            first = envs.reset()
            steps = [envs.step(np.array([1, 1])) for _ in range(40)]
            return b"".join([first[index].tobytes(), *(step.observation[index].tobytes() for step in steps)])

    tapes = {tape(0, 0, 0), tape(1, 0, 0), tape(0, 1, 0), tape(0, 0, 1)}
    assert len(tapes) == 4
    with make(name, seed=0) as envs:
        envs.reset()
        firsts = {s.observation[0].tobytes() for s in played(envs, actions_for(envs, 200)) if s.over[0]}
    assert len(firsts) > 1 or name.startswith(("minatar", "mdp"))


@pytest.mark.parametrize("name", VECTORS)
def test_vector_environments_begin_new_episodes_when_restored(name: str) -> None:
    with make(name, n=2, seed=3) as envs, make(name, n=2, seed=3) as again:
        assert not envs.spec.resumable
        envs.reset()
        seen = played(envs, actions_for(envs, SHORT))
        numbers = [max(e.number for s in seen for e in s.finished if e.env == index) for index in range(2)]
        again.restore(envs.state())
        after = played(again, actions_for(envs, SHORT))
        for index in range(2):
            first = next(e for s in after for e in s.finished if e.env == index)
            assert first.number == numbers[index] + 2  # the one that was running is lost


@pytest.mark.parametrize("name", WORLDS + VECTORS)
def test_environments_show_themselves_in_characters_and_pixels(name: str) -> None:
    with make(name, n=2) as envs:
        envs.reset()
        envs.step(np.zeros(2, np.int64))
        assert envs.text(1).strip()
        picture = envs.picture(1)
        if picture is None:
            assert envs.spec.n_values is not None
            return
        assert picture.dtype == np.uint8
        assert picture.ndim == 3
        assert picture.shape[2] == 3
        envs.close()


@pytest.mark.parametrize("name", ["CartPole-v1", "minatar/breakout", "probe/match", "own_worlds:vector"])
@pytest.mark.parametrize(
    "actions", [[0], [0, 0, 0], [0, 9], [-1, 0], [0.0, 1.0], [[0, 1]], "ab", None], ids=[str(i) for i in range(8)]
)
def test_actions_that_are_none_are_refused(name: str, actions: Any) -> None:
    with make(name, n=2) as envs:
        envs.reset()
        before = envs.state()
        with pytest.raises(UserError, match="action"):
            envs.step(np.array(actions))
        assert str(envs.state()) == str(before)


@pytest.mark.parametrize("name", ["CartPole-v1", "own_worlds:vector"])
def test_a_step_or_a_state_before_the_first_observation_is_refused(name: str) -> None:
    with make(name, n=2) as envs:
        with pytest.raises(UserError, match="reset"):
            envs.step(np.zeros(2, np.int64))
        with pytest.raises(UserError, match="reset"):
            envs.state()
        envs.close()
        envs.close()
