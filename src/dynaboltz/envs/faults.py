"""What environments can do wrong, found at the step where it happens and named in full."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynaboltz.envs.spec import Spec
from dynaboltz.errors import DynaboltzError, UserError
from dynaboltz.text import short


class WorldError(DynaboltzError, RuntimeError):
    """An environment raised, or returned something that no agent can learn from."""


def episode_seed(seed: int, stream: int, env: int, number: int) -> int:
    """The seed of episode ``number`` of environment ``env``: by (seed, stream, env, number) and nothing else.

    31 bits, because that is what emulators written in C and ``np.random.RandomState`` take alike.

    >>> episode_seed(0, 0, 0, 0) == episode_seed(0, 0, 0, 0) != episode_seed(0, 1, 0, 0)
    True
    """
    words = np.random.SeedSequence(entropy=seed, spawn_key=(stream, env, number)).generate_state(1)
    return int(words[0]) >> 1


def frame_of(value: Any, spec: Spec) -> np.ndarray:
    """``value`` as one frame: of the shape that the spec promises, finite, and in range if it is Discrete."""
    frame = value if isinstance(value, np.ndarray) else np.asarray(value)
    if frame.shape != spec.shape:
        raise WorldError(f"the observation has shape {frame.shape}, not {spec.shape}: {short(value)}")
    kind = frame.dtype.kind
    if spec.n_values is not None:
        if kind not in "iu" or not 0 <= int(frame) < spec.n_values:
            raise WorldError(f"the observation is {short(value)}, not an integer from 0 to {spec.n_values - 1}")
    elif spec.dtype == "float32":
        if kind not in "fiub":
            raise WorldError(f"the observation is of {frame.dtype}, not of real numbers")
        if kind == "f":
            with np.errstate(over="ignore"):
                frame = frame.astype(np.float32, copy=False)
            if not np.isfinite(frame).all():
                at = np.unravel_index(int(np.argmin(np.isfinite(frame))), frame.shape)
                where = f" at {tuple(map(int, at))}" if at else ""
                raise WorldError(f"the observation is {np.asarray(value)[at]}{where}; float32 numbers must be finite")
    elif frame.dtype != spec.dtype:
        raise WorldError(f"the observation is of {frame.dtype}, not of {spec.dtype}")
    return frame


def reward_of(value: Any) -> float:
    """``value`` as a finite float."""
    try:
        reward = float(value)
    except (TypeError, ValueError) as fault:
        raise WorldError(f"the reward is {short(value)}, not a number") from fault
    if not math.isfinite(reward):
        raise WorldError(f"the reward is {reward}; rewards must be finite")
    return reward


def flag_of(name: str, value: Any) -> bool:
    """``value`` as a bool, if it is one."""
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value)
    raise WorldError(f"{name} is {short(value)}, neither True nor False")


def actions_of(actions: Any, n: int, n_actions: int) -> list[int]:
    """``actions`` as ``n`` integers from 0 to ``n_actions - 1``."""
    array = np.asarray(actions)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise UserError(f"actions must be {n} integers, one for each environment, got {short(actions)}")
    chosen: list[int] = array.tolist()
    for index, action in enumerate(chosen):
        if not 0 <= action < n_actions:
            raise UserError(f"the action of environment {index} must be from 0 to {n_actions - 1}, got {action}")
    return chosen
