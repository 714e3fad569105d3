"""Peers of ``benchmarks/atari.py``: one agent a process, in a virtual environment of their own (make peers-deep).

It is told on its standard input how many steps to take, and says on its standard output what they took. All learn Nature
DQN alike: batch 32, an update every 4 steps, ε = 0.1, Adam, a replay memory that is full when the clock starts.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable
from typing import Any

import ale_py
import gymnasium
import numpy as np
import torch
from torch import nn

import turns

BATCH, PERIOD, EPSILON, RATE, DISCOUNT, SYNC = 32, 4, 0.1, 1e-4, 0.99, 10_000
Steps = Callable[[int], int]
"""Takes so many steps of training and says how many updates were made."""


def world(game: str) -> gymnasium.Env[Any, Any]:
    """The usual wrappers of Gymnasium: 30 no-ops, four frames an action, 84 × 84, lives as episodes, no sticky actions."""
    gymnasium.register_envs(ale_py)
    env = gymnasium.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0)
    return gymnasium.wrappers.AtariPreprocessing(env, noop_max=30, terminal_on_life_loss=True)


def network(actions: int) -> nn.Sequential:
    """That of Mnih et al. (2015)."""
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions),
    )  # fmt: skip


def sb3(game: str, memory: int) -> tuple[Steps, Steps]:
    """Stable-Baselines3 with its own wrappers."""
    import stable_baselines3
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    envs = VecFrameStack(make_atari_env(f"ALE/{game}-v5", env_kwargs={"repeat_action_probability": 0.0}), n_stack=4)
    model = stable_baselines3.DQN(
        "CnnPolicy", envs, buffer_size=memory, learning_starts=memory, batch_size=BATCH, train_freq=PERIOD,
        gradient_steps=1, target_update_interval=SYNC, learning_rate=RATE, exploration_initial_eps=EPSILON,
        exploration_final_eps=EPSILON, device="cpu",
    )  # fmt: skip

    def steps(count: int) -> int:
        before = model._n_updates
        model.learn(count, reset_num_timesteps=False, log_interval=10**9)
        return int(model._n_updates - before)

    return steps, steps


def script(game: str, memory: int) -> tuple[Steps, Steps]:
    """All in one loop, in the manner of CleanRL: eager torch, a ring of stacked frames, every line in sight."""
    env, rng = gymnasium.wrappers.FrameStackObservation(world(game), 4), np.random.default_rng(0)
    actions = int(env.action_space.n)  # type: ignore[attr-defined]
    online, target = network(actions), network(actions)
    target.load_state_dict(online.state_dict())
    optimiser = torch.optim.Adam(online.parameters(), lr=RATE)
    seen, followed = (np.zeros((memory, 4, 84, 84), np.uint8) for _ in range(2))
    acted, paid, ended = np.zeros(memory, np.int64), np.zeros(memory, np.float32), np.zeros(memory, np.float32)
    observation, _ = env.reset(seed=0)
    at = 0

    def steps(count: int, *, learns: bool = True) -> int:
        nonlocal observation, at
        updates = 0
        for _ in range(count):
            if not learns or rng.random() < EPSILON:
                action = int(rng.integers(actions))
            else:
                with torch.no_grad():
                    action = int(online(torch.as_tensor(observation[None]) / 255.0).argmax())
            following, reward, terminated, truncated, _ = env.step(action)
            slot, at = at % memory, at + 1
            seen[slot], followed[slot], acted[slot] = observation, following, action
            paid[slot], ended[slot] = np.sign(reward), terminated
            observation = env.reset()[0] if terminated or truncated else following
            if learns and at % PERIOD == 0:
                rows = rng.integers(0, min(at, memory), BATCH)
                with torch.no_grad():
                    best = target(torch.as_tensor(followed[rows]) / 255.0).max(1).values
                    wanted = torch.as_tensor(paid[rows]) + DISCOUNT * best * (1 - torch.as_tensor(ended[rows]))
                values = online(torch.as_tensor(seen[rows]) / 255.0)
                loss = nn.functional.mse_loss(wanted, values.gather(1, torch.as_tensor(acted[rows])[:, None])[:, 0])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                updates += 1
            if learns and at % SYNC == 0:
                target.load_state_dict(online.state_dict())
        return updates

    return lambda count: steps(count, learns=False), steps


class Stacked:
    """Four frames that are put together when they are looked at, and kept once."""

    def __init__(self, frames: deque[np.ndarray]) -> None:
        self.frames = list(frames)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.stack(self.frames)


def pfrl(game: str, memory: int) -> tuple[Steps, Steps]:
    """PFRL's DQN in a loop of its ``act`` and ``observe``."""
    import pfrl as library
    from pfrl import explorers, replay_buffers
    from pfrl.agents import DQN
    from pfrl.q_functions import DiscreteActionValueHead

    env, rng = world(game), np.random.default_rng(0)
    actions = int(env.action_space.n)  # type: ignore[attr-defined]
    model = nn.Sequential(*network(actions), DiscreteActionValueHead())
    agent = DQN(
        model, torch.optim.Adam(model.parameters(), lr=RATE), replay_buffers.ReplayBuffer(memory), gamma=DISCOUNT,
        explorer=explorers.ConstantEpsilonGreedy(EPSILON, lambda: int(rng.integers(actions))), gpu=-1,
        replay_start_size=memory, minibatch_size=BATCH, update_interval=PERIOD, target_update_interval=SYNC,
        phi=lambda seen: np.asarray(seen, dtype=np.float32) / 255,
    )  # fmt: skip
    assert library
    frames: deque[np.ndarray] = deque(maxlen=4)

    def begin() -> Stacked:
        frames.extend([env.reset()[0]] * 4)
        return Stacked(frames)

    observation = begin()

    def steps(count: int) -> int:
        nonlocal observation
        before = agent.optim_t
        for _ in range(count):
            action = agent.act(observation)
            frame, reward, terminated, truncated, _ = env.step(action)
            frames.append(frame)
            observation = Stacked(frames)
            agent.observe(observation, float(np.sign(reward)), terminated, truncated)
            if terminated or truncated:
                observation = begin()
        return int(agent.optim_t - before)

    return steps, steps


PEERS: dict[str, Callable[[str, int], tuple[Steps, Steps]]] = {"sb3": sb3, "script": script, "pfrl": pfrl}
"""Name → the steps that fill the memory, and those that are timed."""


def main() -> None:
    """Fill the memory, say so, and take steps as they are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("game")
    parser.add_argument("threads", type=int)
    parser.add_argument("memory", type=int)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    fill, steps = PEERS[options.peer](options.game, options.memory)
    fill(options.memory)
    steps(40)
    turns.answer(steps)


if __name__ == "__main__":
    main()
