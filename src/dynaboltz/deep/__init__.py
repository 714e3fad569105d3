"""Deep Q-learning: replay, networks, targets, optimisers, the meta-gradient of c, and the agent made of them.

Configurations and presets need no torch; the agent brings it in.
"""

from typing import TYPE_CHECKING, Any

from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.faults import NonFinite
from dynaboltz.deep.presets import PRESETS

if TYPE_CHECKING:
    from dynaboltz.deep.agent import Agent
    from dynaboltz.deep.player import Player
    from dynaboltz.deep.sizes import memory

__all__ = ["PRESETS", "Agent", "AgentConfig", "NonFinite", "Player", "memory"]


def __getattr__(name: str) -> Any:
    """Import torch only where something is trained."""
    import importlib

    homes = {"Agent": "agent", "Player": "player", "memory": "sizes"}
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"dynaboltz.deep.{homes[name]}"), name)
