"""Deep Q-learning: replay, networks, targets, optimisers, the meta-gradient of c, and the agent made of them.

Configurations and presets need no torch; the agent brings it in.
"""

from dynaboltz.deep.config import AgentConfig
from dynaboltz.deep.faults import NonFinite
from dynaboltz.deep.presets import PRESETS

__all__ = ["PRESETS", "AgentConfig", "NonFinite"]
