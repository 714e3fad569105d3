"""A Gymnasium vector environment, whichever way it starts its episodes anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.envs import workers
from dynaboltz.envs.faults import WorldError, actions_of, episode_seed, flag_of, frame_of, reward_of
from dynaboltz.envs.gym import spec_of
from dynaboltz.envs.spec import Environments, Episode, Step
from dynaboltz.errors import UserError
from dynaboltz.text import short

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


class VectorEnvironments(Environments):
    """``num_envs`` environments that a ``VectorEnv`` steps.

    It says in ``metadata["autoreset_mode"]`` when the next episode begins, and the reset step of NEXT_STEP, whose
    action is ignored and whose reward is none, is never handed out:

    * SAME_STEP: the true last frame is taken from ``info["final_obs"]``.
    * DISABLED: ended environments are reset here, by ``options={"reset_mask": …}``, with a seed for each episode.
    * NEXT_STEP: as DISABLED for Gymnasium's own Sync- and AsyncVectorEnv, which take a mask in every mode. A single
      environment takes the reset step at once. Any other class is refused: its reset step would move the others too.

    Not resumable: the environments' random streams live in the vector environment, so ``restore`` begins new episodes.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], *, name: str, seed: int, stream: int) -> None:
        from dataclasses import replace

        self.name = name
        self.n = int(env.num_envs)
        self.env, self.seed, self.stream = env, seed, stream
        self.spec = replace(spec_of(env, env.single_observation_space, env.single_action_space, name), resumable=False)
        self.mode = _mode(env, name)
        self._first_action = int(getattr(env.single_action_space, "start", 0))
        self._first_value = int(getattr(env.single_observation_space, "start", 0))
        self._number = [0] * self.n
        self._steps = [0] * self.n
        self._reward = [0.0] * self.n
        self._now = np.zeros((self.n, *self.spec.shape), self.spec.dtype)
        self._begun = self._failed = self._closed = False
        self._workers = workers.workers_of(env)

    def reset(self) -> np.ndarray:
        """First observations."""
        self._number = [0] * self.n
        return self._start()

    def step(self, actions: np.ndarray) -> Step:
        """One action in each environment."""
        self._check_begun("step")
        chosen = np.array(actions_of(actions, self.n, self.spec.n_actions), np.int64)
        frames, rewards, terminated, truncated, info = self._call("step", chosen + self._first_action)
        reward, terminal, over = np.empty(self.n), np.empty(self.n, np.bool_), np.empty(self.n, np.bool_)
        for index in range(self.n):
            try:
                reward[index] = reward_of(rewards[index])
                terminal[index] = flag_of("terminated", terminated[index])
                over[index] = terminal[index] or flag_of("truncated", truncated[index])
                self._now[index] = self._frame(frames[index])
            except (WorldError, IndexError, TypeError) as fault:
                raise self._fault(f"action {chosen[index]}", fault, index) from fault
            self._steps[index] += 1
            self._reward[index] += float(reward[index])
        if not over.any():
            observation = self._now.copy()
            return Step(observation, reward, terminal, over, observation)
        final = self._final(info, over) if self.mode == "SAME_STEP" else self._now.copy()
        finished = tuple(self._end(index) for index in np.flatnonzero(over).tolist())
        self._restart(over, chosen)
        return Step(self._now.copy(), reward, terminal, over, final, finished)

    def state(self) -> dict[str, Any]:
        """How many episodes each environment has begun."""
        self._check_begun("state")
        return {"name": self.name, "seed": self.seed, "stream": self.stream, "number": list(self._number)}

    def restore(self, tree: dict[str, Any]) -> np.ndarray:
        """Begin the episodes after those that were running."""
        numbers = tree.get("number")
        if tree.get("name") != self.name or not isinstance(numbers, list | tuple) or len(numbers) != self.n:
            raise UserError(f"{self.name}: the saved state is not of these {self.n} environments: {short(tree)}")
        self._number = [int(number) + 1 for number in numbers]
        return self._start()

    def picture(self, index: int = 0) -> np.ndarray | None:
        """The frame as a picture."""
        from dynaboltz.envs.pictures import frame_picture

        return frame_picture(self._now[index])

    def text(self, index: int = 0) -> str:
        """The frame in characters."""
        from dynaboltz.envs.pictures import frame_text

        return frame_text(self._now[index], self.spec.n_values)

    def close(self) -> None:
        """Close the vector environment; after a fault, its workers are killed."""
        if self._closed:
            return
        self._closed = True
        if self._failed and self._workers is not None:
            workers.kill(self._workers)
        else:
            self.env.close()

    def _check_begun(self, call: str) -> None:
        if not self._begun:
            raise UserError(f"{self.name}: call reset() or restore() before {call}()")

    def _start(self) -> np.ndarray:
        self._steps, self._reward = [0] * self.n, [0.0] * self.n
        frames, _ = self._call("reset", seed=self._seeds())
        for index in range(self.n):
            self._set(index, frames)
        self._begun = True
        return self._now.copy()

    def _restart(self, over: np.ndarray, chosen: np.ndarray) -> None:
        """First frames of the next episodes into ``_now``."""
        if self.mode == "SAME_STEP":
            return  # they are there already
        if self.mode == "STEP":
            frames = self._call("step", chosen + self._first_action)[0]
        else:
            frames = self._call("reset", seed=self._seeds(), options={"reset_mask": over.copy()})[0]
        for index in np.flatnonzero(over).tolist():
            self._set(index, frames)

    def _final(self, info: dict[str, Any], over: np.ndarray) -> np.ndarray:
        final = self._now.copy()
        last = info.get("final_obs", info.get("final_observation"))
        for index in np.flatnonzero(over).tolist():
            if last is None or last[index] is None:
                what = WorldError("autoreset_mode is SAME_STEP, but info['final_obs'] does not hold the last frame")
                raise self._fault("step", what, index)
            try:
                final[index] = self._frame(last[index])
            except WorldError as fault:
                raise self._fault("final_obs", fault, index) from fault
        return final

    def _end(self, index: int) -> Episode:
        episode = Episode(index, self._number[index], self._steps[index], self._reward[index])
        self._number[index] += 1
        self._steps[index], self._reward[index] = 0, 0.0
        return episode

    def _set(self, index: int, frames: Any) -> None:
        try:
            self._now[index] = self._frame(frames[index])
        except (WorldError, IndexError, TypeError) as fault:
            raise self._fault("reset", fault, index) from fault

    def _frame(self, value: Any) -> np.ndarray:
        return frame_of(np.asarray(value) - self._first_value if self._first_value else value, self.spec)

    def _seeds(self) -> list[int]:
        return [episode_seed(self.seed, self.stream, index, number) for index, number in enumerate(self._number)]

    def _call(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        expected = 5 if method == "step" else 2
        try:
            if self._workers is not None and self._workers is self.env:
                returned = workers.call(self._workers, method, arguments, keywords)
            else:
                returned = getattr(self.env, method)(*arguments, **keywords)
        except Exception as fault:
            raise self._call_fault(method, arguments, fault) from fault
        if not isinstance(returned, tuple) or len(returned) != expected:
            raise self._fault(method, WorldError(f"it must return {expected} things, got {short(returned)}"))
        return returned

    def _call_fault(self, method: str, arguments: tuple[Any, ...], fault: Exception) -> WorldError:
        """Whose fault it was, where that can be told: only workers fail one by one."""
        self._failed = True
        if self._workers is None:
            return self._fault(f"{method}({', '.join(map(str, arguments))})", fault)
        index, how = workers.culprit(self._workers)
        call = f"action {arguments[0][index]}" if arguments and index is not None else method
        return self._fault(call, WorldError(f"{how} ({type(fault).__name__}: {fault})"), index)

    def _fault(self, call: str, fault: Exception, index: int | None = None) -> WorldError:
        what = str(fault) if isinstance(fault, WorldError) else f"{type(fault).__name__}: {fault}"
        where = (
            f"environments 0 to {self.n - 1}"
            if index is None
            else f"environment {index}, episode {self._number[index]}, step {self._steps[index]}"
        )
        return WorldError(f"{self.name}: {where}, seed {self.seed}, {call}: {what}")


def _mode(env: VectorEnv[Any, Any, Any], name: str) -> str:
    """How episodes are begun anew: SAME_STEP, MASK or STEP."""
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

    said = (getattr(env, "metadata", None) or {}).get("autoreset_mode")
    mode = getattr(said, "name", str(said))
    if mode not in ("NEXT_STEP", "SAME_STEP", "DISABLED"):
        raise UserError(
            f"{name}: metadata['autoreset_mode'] is {said!r}; "
            "known: gymnasium.vector.AutoresetMode.NEXT_STEP, SAME_STEP, DISABLED"
        )
    if mode != "NEXT_STEP":
        return "MASK" if mode == "DISABLED" else mode
    if env.num_envs == 1:
        return "STEP"
    within = workers.bare(env)
    if isinstance(within, AsyncVectorEnv) and not within.shared_memory:
        raise UserError(
            f"{name}: with shared_memory=False, workers reset in the NEXT_STEP way once more after a reset\n"
            "  make it with shared_memory=True, or with autoreset_mode SAME_STEP or DISABLED"
        )
    if isinstance(within, AsyncVectorEnv | SyncVectorEnv):
        return "MASK"
    raise UserError(
        f"{name}: {type(within).__name__} with {env.num_envs} environments resets in the NEXT_STEP way: while one is "
        "reset, the others move\n"
        "  make it with autoreset_mode SAME_STEP or DISABLED, or with one environment (num_envs=1)"
    )
