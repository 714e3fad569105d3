"""The inputs that an agent acts on: the last frames of each environment, zero before its episode's first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynaboltz.envs.spec import Spec, Step


class Stacker:
    """``inputs`` is ``(n, stack, *shape)``, the newest frame last."""

    def __init__(self, n: int, spec: Spec) -> None:
        self.inputs = np.zeros((n, spec.stack, *spec.shape), spec.dtype)

    def begin(self, observation: np.ndarray, envs: list[int] | None = None) -> None:
        """First frames of new episodes, of all environments or of some."""
        chosen: Any = slice(None) if envs is None else envs
        self.inputs[chosen] = 0
        self.inputs[chosen, -1] = observation[chosen]

    def push(self, step: Step) -> None:
        """The frames after a step; where an episode ended, the next one begins."""
        if self.inputs.shape[1] > 1:
            if step.over.any():
                self.inputs[step.over] = 0
            self.inputs[:, :-1] = self.inputs[:, 1:]
        self.inputs[:, -1] = step.observation

    def state(self) -> dict[str, Any]:
        """The inputs."""
        return {"inputs": self.inputs}

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Go back to saved inputs."""
        self.inputs[...] = tree["inputs"]
