"""The environment that ``to_gymnasium`` returns; the one module that needs Gymnasium when it is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Discrete

from dynaboltz.errors import UserError

if TYPE_CHECKING:
    from dynaboltz.mdp.model import MDP

Outcome = tuple[float, int, float, bool]


class MDPEnv(gymnasium.Env[Any, Any]):
    """Plays an MDP. ``info["action_mask"]`` says which actions the state has; any other action is an error."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium declares it so)

    def __init__(self, mdp: MDP, max_steps: int | None = None) -> None:
        if mdp.start is None:
            raise UserError("an environment needs to know where it starts: give the MDP a start distribution")
        if (mdp.start[mdp.terminal] > 0).any():
            state = int(np.flatnonzero(mdp.terminal & (mdp.start > 0))[0])
            raise UserError(
                f"{mdp.state_name(state)} is terminal and a first state; an episode needs at least one step"
            )
        if max_steps is not None and (isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1):
            raise UserError(f"max_steps must be an integer of at least 1 or None, got {max_steps!r}")
        self.mdp, self.max_steps = mdp, max_steps
        self.observation_space = Discrete(mdp.n_states)
        self.action_space = Discrete(mdp.n_actions)
        self.initial_state_distrib = mdp.start
        self._state, self._steps, self._over = -1, 0, True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """A first state drawn from the start distribution, and its action mask."""
        super().reset(seed=seed, options=options)
        assert self.mdp.start is not None
        self._state, self._steps, self._over = self._draw(self.mdp.start), 0, False
        return self._state, {"action_mask": self.action_mask()}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Next state, reward, terminated, truncated, info."""
        if self._over:
            raise UserError("the episode is over, or has not begun: call reset() first")
        mdp, chosen = self.mdp, int(action)
        first, last = int(mdp.state_ptr[self._state]), int(mdp.state_ptr[self._state + 1])
        row = first + int(np.searchsorted(mdp.action[first:last], chosen))
        if row == last or mdp.action[row] != chosen:
            known = ", ".join(str(number) for number in mdp.action[first:last])
            raise UserError(f"{mdp.state_name(self._state)} has no action {chosen}; it has {known}")
        entry = int(mdp.row_ptr[row])
        entry += self._draw(mdp.probability[entry : int(mdp.row_ptr[row + 1])])
        reward = mdp.reward[row] if mdp.transition_reward is None else mdp.transition_reward[entry]
        self._state, self._steps = int(mdp.next_state[entry]), self._steps + 1
        terminated = bool(mdp.terminal[self._state])
        truncated = not terminated and self.max_steps is not None and self._steps >= self.max_steps
        self._over = terminated or truncated
        return self._state, float(reward), terminated, truncated, {"action_mask": self.action_mask()}

    def action_mask(self) -> npt.NDArray[np.int8]:
        """1 for the actions of the current state, in the form that ``Discrete.sample(mask)`` takes."""
        mask = np.zeros(self.mdp.n_actions, np.int8)
        mask[self.mdp.action[self.mdp.state_ptr[self._state] : self.mdp.state_ptr[self._state + 1]]] = 1
        return mask

    @property
    def P(self) -> dict[int, dict[int, list[Outcome]]]:  # noqa: N802  (Gymnasium's name)
        """The transition table in the form of the toy-text environments; a terminal state loops for ever, done."""
        mdp, rewards = self.mdp, self.mdp.transition_reward
        table: dict[int, dict[int, list[Outcome]]] = {}
        for state in range(mdp.n_states):
            if mdp.terminal[state]:
                table[state] = {action: [(1.0, state, 0.0, True)] for action in range(mdp.n_actions)}
                continue
            table[state] = {}
            for row in range(mdp.state_ptr[state], mdp.state_ptr[state + 1]):
                table[state][int(mdp.action[row])] = [
                    (
                        float(mdp.probability[entry]),
                        int(mdp.next_state[entry]),
                        float(mdp.reward[row] if rewards is None else rewards[entry]),
                        bool(mdp.terminal[mdp.next_state[entry]]),
                    )
                    for entry in range(mdp.row_ptr[row], mdp.row_ptr[row + 1])
                ]
        return table

    def _draw(self, probabilities: npt.NDArray[np.floating[Any]]) -> int:
        """An index with these probabilities; their sum may miss 1 by rounding, so the last one takes what is left."""
        cumulative = np.cumsum(probabilities, dtype=np.float64)
        index = int(np.searchsorted(cumulative, self.np_random.random() * cumulative[-1], side="right"))
        return min(index, probabilities.size - 1)
