"""A user's module in the working directory: worlds with faults, odd spaces and vector environments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

MODULE = '''
import os
import sys
import time
import cloudpickle
import numpy as np
import gymnasium as gym
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv


class Own(gym.Env):
    """Counts; ends after ten steps, or by chance before. ``fault`` happens at step ``at`` of episode ``episode``."""

    action_space = gym.spaces.Discrete(3, start=2)
    observation_space = gym.spaces.Box(-np.inf, np.inf, (2, 3), np.float64)

    def __init__(self, fault="", at=4, episode=1):
        self.fault, self.at, self.episode, self.begun = fault, at, episode, -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.begun = 0, self.begun + 1
        frame = self.np_random.random((2, 3))
        if self.begun == self.episode and self.fault == "reset":
            raise RuntimeError("no bed")
        if self.begun == self.episode and self.fault == "reset shape":
            return frame[0], {}
        return frame, {}

    def step(self, action):
        assert action in (2, 3, 4)
        frame, reward = self.np_random.random((2, 3)), float(action)
        terminated, truncated = bool(self.np_random.random() < 0.1), self.steps == 9
        if self.begun == self.episode and self.steps == self.at:
            match self.fault:
                case "raise":
                    raise RuntimeError("boom")
                case "exit":
                    os.kill(os.getpid(), 9)
                case "hang":
                    time.sleep(60)
                case "shape":
                    frame = np.zeros((3, 2))
                case "size":
                    frame = np.zeros(7)
                case "nan":
                    frame[1, 2] = np.nan
                case "overflow":
                    frame[0, 1] = 1e300
                case "words":
                    frame = np.full((2, 3), "x")
                case "reward nan":
                    reward = np.nan
                case "reward inf":
                    reward = -np.inf
                case "reward text":
                    reward = "much"
                case "flag":
                    terminated = "no"
                case "flag nan":
                    truncated = np.nan
                case "four":
                    return frame, reward, terminated, {}
                case "nothing":
                    return None
        self.steps += 1
        return frame, reward, False if truncated is True else terminated, truncated, {}


class Pixels(gym.Env):
    """Frames of bytes."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Box(0, 255, (12, 9), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.integers(0, 256, (12, 9), np.uint8), {}

    def step(self, action):
        frame = self.np_random.integers(0, 256, (12, 9), np.uint8)
        return frame, 0.5, bool(self.np_random.random() < 0.2), False, {}


class Shifted(gym.Env):
    """Numbers from -3 to 1; ``wrong`` is a number outside."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Discrete(5, start=-3)

    def __init__(self, wrong=None):
        self.wrong = wrong

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return -3, {}

    def step(self, action):
        seen = int(self.np_random.integers(-3, 2)) if self.wrong is None else self.wrong
        return seen, 0, seen == 1, False, {}


class Forgetful(Own):
    """Random beyond its seed, in episodes without end."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None)

    def step(self, action):
        frame, reward, _, truncated, info = super().step(action)
        return frame, reward, False, truncated, info


ONE = Own()


def same():
    return ONE


def vector(num_envs, mode="SAME_STEP", workers=False, fault="", at=4, shared_memory=True):
    made = [lambda fault=fault if index == 1 else "": Own(fault, at) for index in range(num_envs)]
    if workers:
        # Started anew and not forked, as other tests leave threads behind; what they make is sent to them whole.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        return AsyncVectorEnv(made, autoreset_mode=AutoresetMode[mode], shared_memory=shared_memory, context="spawn")
    return SyncVectorEnv(made, autoreset_mode=AutoresetMode[mode])


def unnamed(num_envs):
    made = vector(num_envs)
    made.metadata = {}
    return made


class Foreign(gym.vector.VectorEnv):
    """A vector environment of a class that is not Gymnasium's."""

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, num_envs, mode="NEXT_STEP", final=True):
        self.num_envs, self.final = num_envs, final
        self.metadata = {"autoreset_mode": AutoresetMode[mode]}
        self.single_observation_space, self.single_action_space = Own.observation_space, Own.action_space
        self.inner = SyncVectorEnv([Own] * num_envs, autoreset_mode=AutoresetMode[mode])

    def reset(self, *, seed=None, options=None):
        return self.inner.reset(seed=seed, options=options)

    def step(self, actions):
        *most, info = self.inner.step(actions)
        return *most, info if self.final else {}


def two(n, seed, stream):
    import dynaboltz.envs
    return dynaboltz.envs.make("probe/match", n=n, seed=seed, stream=stream)


def broken(size):
    raise ValueError(f"no size {size}")


number = 7


def nothing():
    return None
'''


@pytest.fixture(autouse=True)
def own_module(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path_factory.getbasetemp() / "own"
    folder.mkdir(exist_ok=True)
    (folder / "own_worlds.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(folder)
    yield folder
    sys.modules.pop("own_worlds", None)
