"""Adapters against what they adapt, driven by hand."""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from dynaboltz.envs import make
from dynaboltz.envs.faults import episode_seed
from dynaboltz.envs.minatar import GAMES, MinatarWorld

STEPS = 400


@pytest.mark.parametrize("name", ["CartPole-v1", "Acrobot-v1", "FrozenLake-v1", "Taxi-v4", "MountainCar-v0"])
def test_gymnasium_world_is_the_environment_itself(name: str) -> None:
    actions = np.random.default_rng(0).integers(2, size=STEPS)
    raw, number = gymnasium.make(name, max_episode_steps=30), 0
    with make(f"{name}(max_episode_steps=30)", seed=8, stream=1) as envs:
        assert envs.reset()[0].tobytes() == np.asarray(raw.reset(seed=episode_seed(8, 1, 0, 0))[0]).tobytes()
        for action in actions:
            step = envs.step(np.array([action]))
            frame, reward, terminated, truncated, _ = raw.step(int(action))
            assert step.final[0].tobytes() == np.asarray(frame, step.final.dtype).tobytes()
            assert (step.reward[0], step.terminal[0], step.over[0]) == (reward, terminated, terminated or truncated)
            if terminated or truncated:
                number += 1
                frame, _ = raw.reset(seed=episode_seed(8, 1, 0, number))
            assert step.observation[0].tobytes() == np.asarray(frame, step.final.dtype).tobytes()
    raw.close()
    assert number > 1


@pytest.mark.parametrize("ramping", [True, False])
@pytest.mark.parametrize("game", GAMES)
def test_minatar_world_is_the_package_itself(game: str, ramping: bool) -> None:
    from minatar import Environment

    raw = Environment(game, sticky_action_prob=0.1, difficulty_ramping=ramping)
    rng, number = np.random.default_rng(1), 0

    def begin() -> np.ndarray:
        raw.seed(episode_seed(5, 0, 0, number))
        raw.last_action = 0
        raw.reset()
        return np.asarray(raw.state())

    with make(f"minatar/{game}(ramping={ramping})", seed=5) as envs:
        assert np.array_equal(envs.reset()[0].transpose(1, 2, 0), begin())
        for _ in range(3000):
            action = int(rng.integers(6))
            step = envs.step(np.array([action]))
            reward, ended = raw.act(action)
            assert np.array_equal(step.final[0].transpose(1, 2, 0), raw.state())
            assert (step.reward[0], step.terminal[0], step.over[0]) == (reward, ended, ended)
            if ended:
                number += 1
                assert np.array_equal(step.observation[0].transpose(1, 2, 0), begin())


@pytest.mark.parametrize("game", GAMES)
def test_minatar_minimal_actions_are_the_package_s(game: str) -> None:
    from minatar import Environment

    world, whole = MinatarWorld(game, minimal_actions=True, sticky_actions=0.0), Environment(game, 0.0)
    wanted = whole.minimal_action_set()
    assert world.spec.n_actions == len(wanted)
    for ours, theirs in enumerate(wanted):
        world.reset(3)
        whole.seed(3)
        whole.reset()
        for _ in range(5):
            frame, reward, ended, _ = world.step(ours)
            assert (reward, ended) == whole.act(theirs)
            assert np.array_equal(frame.transpose(1, 2, 0), whole.state())


def test_minatar_actions_stick_as_often_as_set() -> None:
    """The paddle of Breakout moves right unless "nothing" sticks to the first step."""
    world, moved = MinatarWorld("breakout", sticky_actions=0.25), 0
    for seed in range(2000):
        before = world.reset(seed)[0].nonzero()[1][0]
        moved += int(world.step(3)[0][0].nonzero()[1][0] != before)
    assert abs(moved / 2000 - 0.75) < 4 * (0.25 * 0.75 / 2000) ** 0.5


def test_minatar_needs_neither_pyplot_nor_seaborn() -> None:
    code = (
        "import sys; from dynaboltz.envs import make; make('minatar/seaquest').reset(); "
        "print({'matplotlib', 'seaborn', 'gymnasium', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_mdp_environment_pays_and_moves_as_the_model_says() -> None:
    """Frequencies and mean rewards of a garnet against its rows, each within five standard errors."""
    from dynaboltz.mdp import build_world

    model = build_world("garnet(states=4, actions=2, branching=2, seed=1)")
    name = "mdp/garnet(states=4, actions=2, branching=2, seed=1, max_steps=50)"
    counts = np.zeros((4, 2, 4))
    with make(name, n=4, seed=1) as envs:
        now, rng = envs.reset(), np.random.default_rng(0)
        for _ in range(3000):
            actions = rng.integers(2, size=4)
            step = envs.step(actions)
            np.add.at(counts, (now, actions, step.final), 1)
            now = step.observation
    for row in range(model.n_rows):
        state, action = int(model.row_states()[row]), int(model.action[row])
        span = slice(model.row_ptr[row], model.row_ptr[row + 1])
        seen = counts[state, action]
        wanted = np.zeros(4)
        np.add.at(wanted, model.next_state[span], model.probability[span])
        assert (np.abs(seen / seen.sum() - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / seen.sum()) + 1e-12).all()


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP", "DISABLED"])
@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_vector_environments_never_hand_out_a_step_that_only_resets(mode: str, workers: bool) -> None:
    """Every reward of this world is an action's number, 2 to 4; a reset step would pay 0."""
    with make(f"own_worlds:vector(mode={mode!r}, workers={workers})", n=3) as envs:
        envs.reset()
        rng, ended = np.random.default_rng(0), 0
        for _ in range(60):
            actions = rng.integers(3, size=3)
            step = envs.step(actions)
            assert step.reward.tolist() == (actions + 2).tolist()
            assert all(1 <= episode.steps <= 10 for episode in step.finished)
            assert (step.final[step.over] != step.observation[step.over]).all()
            ended += len(step.finished)
        assert ended > 6


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_vector_environments_that_take_a_mask_play_the_same_episodes_as_single_ones(workers: bool) -> None:
    names = [
        "own_worlds:Own",
        *(f"own_worlds:vector(mode={m!r}, workers={workers})" for m in ("NEXT_STEP", "DISABLED")),
    ]
    tapes = []
    for name in names:
        with make(name, n=2, seed=9) as envs:
            first, rng = envs.reset(), np.random.default_rng(0)
            steps = [envs.step(rng.integers(3, size=2)) for _ in range(50)]
            tapes.append(
                [first.tobytes(), *(s.observation.tobytes() + s.final.tobytes() + s.over.tobytes() for s in steps)]
            )
    assert tapes[0] == tapes[1] == tapes[2]
