"""How much memory a run takes, known before it starts; one that cannot fit is refused with the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynaboltz.errors import UserError
from dynaboltz.runs.config import RunConfig
from dynaboltz.runs.episodes import AT_ONCE
from dynaboltz.storage import available_bytes
from dynaboltz.storage.memory import as_text

if TYPE_CHECKING:
    from dynaboltz.envs import Spec


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes by part, on top of what Python and its libraries take."""

    parts: dict[str, int]
    free: int | None
    """What there is; None where neither the settings nor the system say."""

    @property
    def total(self) -> int:
        """All parts."""
        return sum(self.parts.values())

    def __str__(self) -> str:
        """The total and what it is made of, the largest first."""
        parts = sorted(self.parts.items(), key=lambda part: -part[1])
        return f"{as_text(self.total)} ({', '.join(f'{name} {as_text(size)}' for name, size in parts if size)})"

    def check(self, config: RunConfig) -> None:
        """Refuse what cannot fit."""
        if self.free is None or self.total <= self.free:
            return
        if config.memory_limit_gb is not None:
            limit = f"memory_limit_gb allows {as_text(self.free)}"
        else:
            limit = f"{as_text(self.free)} are free"
        raise UserError(
            f"the run needs {self} of memory, and {limit}\n"
            f"  lower agent.replay_capacity_steps ({config.agent.replay_capacity_steps:,}) or n_envs ({config.n_envs})"
        )


def estimate(config: RunConfig, spec: Spec, environments: int, one_more: int) -> Estimate:
    """What the run takes: the agent's parts by its own account, the environments by what making them took."""
    parts = memory_of_agent(config, spec)
    at_once = min(config.evaluation.episodes, AT_ONCE)
    parts["environments"] = environments
    parts["evaluation"] = one_more * at_once
    limit = config.memory_limit_gb
    return Estimate(parts, available_bytes() if limit is None else int(limit * 1e9))


def memory_of_agent(config: RunConfig, spec: Spec) -> dict[str, int]:
    """The agent's own account."""
    from dynaboltz.deep import memory

    return memory(config.agent, spec, config.n_envs)


def estimate_of(config: RunConfig) -> Estimate:
    """The same before anything is made; the environments are, and are given back."""
    from dynaboltz.runs.session import weighed_environments

    envs, *sizes = weighed_environments(config)
    with envs:
        return estimate(config, envs.spec, *sizes)
