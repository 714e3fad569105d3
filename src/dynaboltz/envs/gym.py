"""One Gymnasium environment as a world."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.envs.faults import WorldError
from dynaboltz.envs.names import written
from dynaboltz.envs.spec import Environments, Spec
from dynaboltz.envs.world import World, Worlds
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.mdp.gym import ACTION_NAMES

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.envs.registration import EnvSpec

MORE_ACTION_NAMES = {
    "AcrobotEnv": ("torque -1", "no torque", "torque +1"),
    "CartPoleEnv": ("left", "right"),
    "LunarLander": ("nothing", "left engine", "main engine", "right engine"),
    "MountainCarEnv": ("left", "nothing", "right"),
}
"""As ``ACTION_NAMES``: what Gymnasium's documentation calls the actions of the worlds without a table."""

ANSI = re.compile(r"\x1b\[([0-9;]*)m")

LAST_ACTION = re.compile(r"\s*\(\w*\)\s*")
"""A line of the toy-text drawings that is no part of the world."""


def make_gym(name: str, keywords: dict[str, Any], *, n: int, seed: int, stream: int) -> Environments:
    """``n`` environments of an id that Gymnasium knows, or of ``module:id`` once the module has been imported.

    Their pictures are asked for as arrays where they have them. Gymnasium's passive checker is left out: its checks are
    made here, at each step, and stop the run instead of warning once.
    """
    import gymnasium

    registered = gymnasium.spec(name.rpartition(":")[2])
    modes = _check_keywords(registered, name, keywords)
    options = {"disable_env_checker": True, **keywords}
    if "rgb_array" in modes:
        options.setdefault("render_mode", "rgb_array")
    worlds = []
    for _ in range(n):
        try:
            worlds.append(GymWorld(gymnasium.make(registered.id, **options), name))
        except UserError:
            raise
        except Exception as fault:
            what = f"{fault}" if isinstance(fault, gymnasium.error.Error) else f"{type(fault).__name__}: {fault}"
            raise UserError(f"Gymnasium cannot make {written(name, keywords)}: {what}") from fault
    return Worlds(worlds, name=written(name, keywords), seed=seed, stream=stream)


def _check_keywords(registered: EnvSpec, name: str, keywords: dict[str, Any]) -> tuple[str, ...]:
    """An error if the environment's class takes no such keyword; returns its render modes.

    Nothing is known of an environment whose class cannot be imported: making it will say why.
    """
    from gymnasium.envs.registration import load_env_creator

    creator = registered.entry_point
    try:
        loaded: Any = creator if callable(creator) else load_env_creator(str(creator))
        parameters = inspect.signature(loaded).parameters
    except Exception:
        return ()
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        known = {*parameters, "max_episode_steps"}
        for key in keywords:
            if key not in known:
                raise UnknownNameError(f"argument of {name}:", key, known)
    return tuple((getattr(loaded, "metadata", None) or {}).get("render_modes", ()))


def spec_of(env: Any, observation_space: Any, action_space: Any, name: str) -> Spec:
    """What an agent must know, from the spaces; spaces that a value-based agent cannot use are refused."""
    from gymnasium.spaces import Box, Discrete

    if not isinstance(action_space, Discrete):
        raise UserError(f"{name}: the action space must be Discrete, got {action_space}")
    n_actions = int(action_space.n)
    bare = getattr(env, "unwrapped", env)
    kind = type(bare).__name__
    labels = ACTION_NAMES.get(kind) or MORE_ACTION_NAMES.get(kind)
    meanings = getattr(bare, "get_action_meanings", None)
    if labels is None and callable(meanings):
        labels = tuple(str(meaning).lower() for meaning in meanings())
    common: dict[str, Any] = {
        "n_actions": n_actions,
        "action_labels": labels if labels is not None and len(labels) == n_actions else None,
        "resumable": not bool(getattr(getattr(env, "spec", None), "nondeterministic", False)),
    }
    if isinstance(observation_space, Discrete):
        return Spec(shape=(), dtype="int64", n_values=int(observation_space.n), **common)
    if isinstance(observation_space, Box):
        shape = tuple(map(int, observation_space.shape))
        if 0 in shape:
            raise UserError(f"{name}: the observation space is empty: {observation_space}")
        dtype = str(observation_space.dtype)
        return Spec(shape=shape, dtype=dtype if dtype in ("uint8", "bool") else "float32", **common)
    raise UserError(
        f"{name}: the observation space must be Box or Discrete, got {observation_space}\n"
        "  wrap the environment in gymnasium.wrappers.FlattenObservation, and give it as module:factory"
    )


class GymWorld(World):
    """A ``gymnasium.Env`` with Box or Discrete observations and Discrete actions."""

    def __init__(self, env: gymnasium.Env[Any, Any], name: str) -> None:
        self.env = env
        self.spec = spec_of(env, env.observation_space, env.action_space, name)
        self._first_action = int(getattr(env.action_space, "start", 0))
        self._first_value = int(getattr(env.observation_space, "start", 0))
        self._last: Any = None

    def reset(self, seed: int) -> Any:
        """First frame of the episode."""
        returned = self.env.reset(seed=seed)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise WorldError("reset() must return (observation, info)")
        return self._frame(returned[0])

    def step(self, action: int) -> tuple[Any, Any, Any, Any]:
        """One action."""
        returned = self.env.step(action + self._first_action)
        if not isinstance(returned, tuple) or len(returned) != 5:
            raise WorldError("step() must return (observation, reward, terminated, truncated, info)")
        frame, reward, terminated, truncated, _ = returned
        return self._frame(frame), reward, terminated, truncated

    def picture(self) -> np.ndarray | None:
        """What the environment renders if it can, else a sketch of it if there is one."""
        from dynaboltz.envs.sketches import SKETCHES

        drawn = self._rendered()
        if drawn is None and (sketch := SKETCHES.get(type(self.env.unwrapped).__name__)) is not None:
            return sketch(np.asarray(self._last))
        return drawn

    def text(self) -> str:
        """The environment's own drawing in characters, if it has one, else its frame."""
        from dynaboltz.envs.pictures import frame_text

        return self._own_text() or frame_text(np.asarray(self._last), self.spec.n_values)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _frame(self, value: Any) -> Any:
        self._last = value - self._first_value if self._first_value else value
        return self._last

    def _rendered(self) -> np.ndarray | None:
        import gymnasium

        if self.env.render_mode != "rgb_array":
            return None
        try:
            drawn = np.asarray(self.env.render())
        except gymnasium.error.DependencyNotInstalled:
            return None
        return drawn.astype(np.uint8, copy=False) if drawn.ndim == 3 and drawn.shape[2] == 3 else None

    def _own_text(self) -> str | None:
        """A table drawn in ANSI. Environments have one render mode; theirs is lent to the text and given back."""
        bare: Any = self.env.unwrapped
        if "ansi" not in (getattr(bare, "metadata", None) or {}).get("render_modes", ()):
            return None
        before = bare.render_mode
        try:
            bare.render_mode = "ansi"
            drawn = bare.render()
        except (AttributeError, ImportError):
            return None
        finally:
            bare.render_mode = before
        if not isinstance(drawn, str):
            return None
        lines = drawn.splitlines()
        return plain("\n".join(line for line in lines if not LAST_ACTION.fullmatch(line)))


def plain(drawn: str) -> str:
    r"""ANSI art without its colours: what was highlighted stands in brackets.

    >>> plain("S\x1b[41mF\x1b[0mG")
    'S[F]G'
    """
    return ANSI.sub(lambda code: "]" if code[1] in ("", "0") else "[", drawn).strip("\n")
