"""The contenders of benchmarks/deep.py, in a process of their own: each line of its input names one and says how much.

    echo '{"who": "eager", "network": "mlp", "n": 100}' | python benchmarks/deep_contenders.py

``ours`` is dynaboltz, ``eager`` a loop as CleanRL's in plain PyTorch, ``sb3`` Stable-Baselines3's own ``DQN.train``. Only
``ours`` needs dynaboltz. All sample from a replay memory with the same random transitions: batch of 32, float32, Huber
loss, Adam, one thread. ``run`` and ``sb3_run`` train from end to end; for them n counts steps of the environment. Each
answer is a line of JSON: seconds of CPU time and of the clock. ``{"forget": true}`` gives back their memory.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

BATCH, RATE, DISCOUNT = 32, 1e-4, 0.99
SYNC = 500
"""Updates between copies into the target network."""

SHAPES: dict[str, dict[str, Any]] = {
    "mlp": {"shape": (4,), "dtype": "float32", "n_actions": 2, "stack": 1, "size": 50_000},
    "minatar": {"shape": (4, 10, 10), "dtype": "bool", "n_actions": 6, "stack": 1, "size": 50_000},
    "nature": {"shape": (84, 84), "dtype": "uint8", "n_actions": 6, "stack": 4, "size": 4_000},
}
"""Observations as CartPole, MinAtar's Breakout and Atari have them, and how many transitions the replay memory holds."""

Work = Callable[[int], dict[str, float]]


def transitions(network: str) -> Iterator[tuple[np.ndarray, int, float, bool]]:
    """Frame, action, reward and whether the episode ends there, the same for every contender."""
    about, rng = SHAPES[network], np.random.default_rng(0)
    for _ in range(about["size"] + about["stack"]):
        if about["dtype"] == "float32":
            frame = rng.normal(size=about["shape"]).astype(np.float32)
        elif about["dtype"] == "bool":
            frame = rng.random(about["shape"]) < 0.05
        else:
            frame = rng.integers(0, 256, about["shape"], np.uint8)
        yield frame, int(rng.integers(about["n_actions"])), float(rng.random() < 0.1), bool(rng.random() < 0.01)


def ours(network: str, preset: str, changes: dict[str, Any], time_on_clock: int) -> Work:
    from dynaboltz.deep.agent import Agent
    from dynaboltz.deep.presets import PRESETS
    from dynaboltz.envs.spec import Spec

    about = SHAPES[network]
    scale = {"mlp": "", "minatar": "-minatar", "nature": "-nature"}[network]
    equal = {
        "optimiser": "adam", "learning_rate": RATE, "batch_size": BATCH, "loss_reduction": "mean", "autocast": "off",
        "threads": 1, "hidden": (64, 64), "discount": DISCOUNT, "replay_capacity_steps": about["size"],
        "replay_start_steps": about["size"], "target_period": f"{SYNC} updates",
    }  # fmt: skip
    spec = Spec(**{name: about[name] for name in ("shape", "dtype", "n_actions", "stack")})
    agent = Agent(PRESETS[preset + scale](**(equal | changes)), spec, seed=0)
    seen = transitions(network)
    frame, action, reward, over = next(seen)
    agent.begin(frame[None])
    for following, *after in seen:
        agent.replay.add(0, action, reward, following, terminal=over, over=over, final=following)
        (action, reward, over), frame = after, following
    agent.steps = agent.replay.slots
    agent.syncs = time_on_clock - 1
    moved, every = 0.0, agent.config.c_period_updates

    def work(n: int) -> dict[str, float]:
        nonlocal moved
        moved = 0.0
        for _ in range(n):
            agent._train()
            moved += agent.learner.targets.counts[-1]
        agent.measurements()
        return {"moved": moved * every / n / BATCH, "beta": agent.learner.beta or math.inf}

    return work


def stacked(network: str) -> dict[str, np.ndarray]:
    """The same transitions as (state, next state) pairs, as replay memories of the peers hold them."""
    about = SHAPES[network]
    seen = list(transitions(network))
    stack, size = about["stack"], about["size"]
    frames = np.stack([one[0] for one in seen])
    whole = frames if stack == 1 else np.stack([frames[i : len(frames) - stack + 1 + i] for i in range(stack)], axis=1)
    if whole.dtype == np.bool_:
        whole = whole.view(np.uint8)
    return {
        "states": whole[:size],
        "following": whole[1 : size + 1],
        "actions": np.array([one[1] for one in seen[:size]], np.int64)[:, None],
        "rewards": np.array([one[2] for one in seen[:size]], np.float32)[:, None],
        "dones": np.array([one[3] for one in seen[:size]], np.float32)[:, None],
    }


def layers(network: str) -> Any:
    """The network as a torch module; inputs as they are stored."""
    from torch import nn

    n = SHAPES[network]["n_actions"]
    if network == "mlp":
        return nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, n))
    if network == "minatar":
        return nn.Sequential(
            nn.Conv2d(4, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, n)
        )
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, n),
    )  # fmt: skip


def eager(network: str) -> Work:
    """What a single-file implementation does: arrays, fancy indexing, modules, autograd, Adam."""
    import torch
    from torch.nn import functional

    torch.manual_seed(0)
    held = stacked(network)
    online, target = layers(network), layers(network)
    target.load_state_dict(online.state_dict())
    optimiser = torch.optim.Adam(online.parameters(), lr=RATE)
    scale = 255.0 if network == "nature" else 1.0
    done = 0

    def work(n: int) -> dict[str, float]:
        nonlocal done
        for _ in range(n):
            rows = np.random.randint(0, len(held["actions"]), BATCH)  # noqa: NPY002  (as it is done there)
            states, following, actions, rewards, dones = (torch.as_tensor(array[rows]) for array in held.values())
            with torch.no_grad():
                best = target(following.float() / scale).max(dim=1).values
                wanted = rewards.flatten() + DISCOUNT * best * (1 - dones.flatten())
            found = online(states.float() / scale).gather(1, actions).squeeze()
            loss = functional.smooth_l1_loss(found, wanted)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            done += 1
            if done % SYNC == 0:
                target.load_state_dict(online.state_dict())
        return {}

    return work


def sb3(network: str) -> Work:
    """Stable-Baselines3's DQN: its replay memory, its ``train``."""
    import gymnasium
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    held = stacked(network)
    box = {
        "mlp": gymnasium.spaces.Box(-10, 10, (4,), np.float32),
        "minatar": gymnasium.spaces.Box(0, 1, (4, 10, 10), np.uint8),
        "nature": gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8),
    }[network]

    class Spaces(gymnasium.Env):  # type: ignore[type-arg]
        observation_space, action_space = box, gymnasium.spaces.Discrete(SHAPES[network]["n_actions"])

        def reset(self, **_: Any) -> Any:
            return held["states"][0], {}

    class Minatar(BaseFeaturesExtractor):
        def __init__(self, space: Any) -> None:
            super().__init__(space, 128)
            self.layers = layers("minatar")[:-1]

        def forward(self, observations: Any) -> Any:
            return self.layers(observations)

    settings: dict[str, Any] = {}
    if network == "minatar":
        settings = {"features_extractor_class": Minatar, "net_arch": [], "normalize_images": False}
    torch.manual_seed(0)
    model = DQN(
        "CnnPolicy" if network == "nature" else "MlpPolicy", Spaces(), learning_rate=RATE, batch_size=BATCH,
        buffer_size=len(held["actions"]), gamma=DISCOUNT, policy_kwargs=settings, device="cpu", seed=0,
    )  # fmt: skip
    model.set_logger(Logger(None, []))
    memory = model.replay_buffer
    for name, array in zip(
        ("observations", "next_observations", "actions", "rewards", "dones"), held.values(), strict=True
    ):
        held_there = getattr(memory, name)
        held_there[...] = array.reshape(held_there.shape)
    memory.full = True
    done = 0

    def work(n: int) -> dict[str, float]:
        nonlocal done
        for _ in range(n):
            model.train(gradient_steps=1, batch_size=BATCH)
            done += 1
            if done % SYNC == 0:
                model.q_net_target.load_state_dict(model.q_net.state_dict())
        return {}

    return work


def run(env: str, preset: str, changes: dict[str, Any], side: int) -> Work:
    """Whole runs of dynaboltz; what a run of its random first steps costs is taken off by the caller."""
    from dynaboltz.runs import Given, resolve, train

    seed = side * 1_000_000

    def work(n: int) -> dict[str, float]:
        nonlocal seed
        seed += 1
        given = {"env": env, "steps": n, "seed": seed, "evaluation.episodes": 0} | changes
        config = resolve(preset, None, {key: Given(value, "the benchmark") for key, value in given.items()})
        with tempfile.TemporaryDirectory() as folder:
            train(config, Path(folder))
        return {}

    return work


def sb3_run(changes: dict[str, Any]) -> Work:
    """Stable-Baselines3 on CartPole from end to end."""
    from stable_baselines3 import DQN

    def work(n: int) -> dict[str, float]:
        model = DQN("MlpPolicy", "CartPole-v1", device="cpu", exploration_fraction=1e-9, **changes)
        model.learn(n)
        return {}

    return work


def matmul(size: int) -> Work:
    """Products of float32 matrices: 2·size³ operations each."""
    import torch

    a, b, out = (torch.ones(size, size) for _ in range(3))

    def work(n: int) -> dict[str, float]:
        for _ in range(n):
            torch.mm(a, b, out=out)
        return {}

    return work


MAKERS: dict[str, Callable[..., Work]] = {
    "ours": ours, "eager": eager, "sb3": sb3, "run": run, "sb3_run": sb3_run, "matmul": matmul,
}  # fmt: skip


def spent() -> float:
    """Seconds of CPU time of all threads of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    with contextlib.suppress(ImportError):
        import torch

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    made: dict[str, Work] = {}
    answers, sys.stdout = sys.stdout, sys.stderr  # a library that prints must not be taken for an answer
    for line in sys.stdin:
        settings = json.loads(line)
        if settings.pop("forget", False):
            made.clear()
            continue
        n, key = settings.pop("n"), json.dumps(settings)
        if key not in made:
            made[key] = MAKERS[settings.pop("who")](**settings)
        cpu, wall = spent(), time.perf_counter()
        found = made[key](n)
        answers.write(json.dumps({"cpu": spent() - cpu, "wall": time.perf_counter() - wall} | found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
