"""Named agents: functions that return a configuration, each with its source.

Every preset exists at three scales: classic control (the name alone), ``-minatar`` and ``-nature``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dynaboltz.deep.config import AgentConfig
from dynaboltz.errors import UnknownNameError

SCALES: dict[str, dict[str, Any]] = {
    "classic": {},
    "minatar": {
        "network": "minatar",
        "optimiser": "deepmind_rmsprop(decay=0.95, epsilon=0.01)",
        "learning_rate": 0.00025,
        "replay_capacity_steps": 100_000,
        "replay_start_steps": 5_000,
        "target_period": "1000 steps",
        "epsilon": "piecewise(((0, 1), (100000, 0.1)))",
    },
    "nature": {
        "network": "nature",
        "optimiser": "deepmind_rmsprop(decay=0.95, epsilon=0.01)",
        "loss_reduction": "sum",
        "learning_rate": 0.00025,
        "reward_clip": 1.0,
        "replay_capacity_steps": 1_000_000,
        "replay_start_steps": 50_000,
        "train_period_steps": 4,
        "target_period": "10000 updates",
        "epsilon": "piecewise(((0, 1), (1000000, 0.1)))",
        "autocast": "bfloat16",
        "threads": 2,
    },
}
"""Settings by the size of the world. ``minatar`` is Young & Tian (2019); ``nature`` is Extended Data Table 1 of Mnih et
al. (2015), whose released code counts the target period in steps (``10000 steps``) where the table says updates."""


def _agent(scale: str, settings: Mapping[str, Any], changes: Mapping[str, Any]) -> AgentConfig:
    if scale not in SCALES:
        raise UnknownNameError("scale", scale, SCALES)
    known = [field.name for field in dataclasses.fields(AgentConfig)]
    for name in changes:
        if name not in known:
            raise UnknownNameError("setting of an agent:", name, known)
    return AgentConfig(**{**SCALES[scale], **settings, **changes})


def dqn(scale: str = "classic", **changes: Any) -> AgentConfig:
    """Deep Q-network (Mnih et al. 2015)."""
    return _agent(scale, {"summary": "hard_max"}, changes)


def ddqn(scale: str = "classic", **changes: Any) -> AgentConfig:
    """Double DQN (van Hasselt, Guez & Silver 2016)."""
    return _agent(scale, {"summary": "hard_max", "double": True}, changes)


def dbs_dqn(scale: str = "classic", **changes: Any) -> AgentConfig:
    """DBS-DQN with learned c (Pan et al. 2020, Algorithm 2), by the corrected meta-gradient.

    p = 2 is the paper's; the clock, c₀ = 1 and c̄ = c₀ are ours, as the paper gives none. So is that c is learned from
    one update in 6 at ``nature``, so that on average an update costs at most a fifth more than DQN's: from one in 5,
    measurements fell on both sides of it.
    """
    return _agent(scale, _LEARNED | _LEARNED_AT.get(scale, {}), changes)


def dbs_dqn_fixed(scale: str = "classic", **changes: Any) -> AgentConfig:
    """DBS-DQN with a fixed c (Pan et al. 2020, Section 6): β_t = t², t in target periods."""
    return _agent(scale, {"summary": "boltzmann(beta=capped(power(2), 1e6))"}, changes)


def dbs_ddqn(scale: str = "classic", **changes: Any) -> AgentConfig:
    """DBS with the weights from the online network: double DQN with a dynamic Boltzmann softmax."""
    return _agent(scale, {"summary": "boltzmann(beta=capped(power(2), 1e6))", "double": True}, changes)


def s_dqn(scale: str = "classic", **changes: Any) -> AgentConfig:
    """S-DQN: a Boltzmann softmax with fixed β = 5 (Song, Parr & Carin 2019)."""
    return _agent(scale, {"summary": "boltzmann(beta=5)"}, changes)


def s_ddqn(scale: str = "classic", **changes: Any) -> AgentConfig:
    """S-DDQN: S-DQN with the weights from the online network (Song, Parr & Carin 2019)."""
    return _agent(scale, {"summary": "boltzmann(beta=5)", "double": True}, changes)


def soft_dqn(scale: str = "classic", **changes: Any) -> AgentConfig:
    """Soft-DQN: log-sum-exp at temperature 0.03 (Vieillard, Pietquin & Geist 2020)."""
    return _agent(scale, {"summary": "log_sum_exp(beta=33.333)"}, changes)


def munchausen(scale: str = "classic", **changes: Any) -> AgentConfig:
    """Munchausen DQN: Soft-DQN plus 0.9 of the scaled log-policy, at least −1 (Vieillard, Pietquin & Geist 2020)."""
    return _agent(scale, {"summary": "log_sum_exp(beta=33.333)", "munchausen": 0.9}, changes)


def mellowmax(scale: str = "classic", **changes: Any) -> AgentConfig:
    """DeepMellow: mellowmax with ω = 30 and no target network (Kim, Asadi, Littman & Konidaris 2019)."""
    return _agent(scale, {"summary": "mellowmax(beta=30)", "target_period": "none"}, changes)


def rainbow(scale: str = "classic", **changes: Any) -> AgentConfig:
    """Rainbow: double, prioritised, duelling, three-step, noisy, 51 atoms (Hessel et al. 2018).

    At ``nature`` the values are those of their Table 1, the gradient's norm is clipped as in DQN Zoo and the exponent
    of importance rises over their 200 million frames. At ``minatar`` step size, ε of Adam, training period and range
    are those of Obando-Ceron & Castro (2021). At ``classic`` the range holds endless rewards of ± 1 at γ = 0.99.
    """
    return _agent(scale, _RAINBOW | _RAINBOW_AT.get(scale, {}) | {"summary": "hard_max"}, changes)


def dbs_rainbow(scale: str = "classic", **changes: Any) -> AgentConfig:
    """DBS in Rainbow: the backup is a Boltzmann mixture of distributions, with learned c as in DBS-DQN.

    Pan et al. (2020) leave it to future work in their conclusion; the mixture is ours.
    """
    learned = _LEARNED | _LEARNED_AT.get(scale, {})
    return _agent(scale, _RAINBOW | _RAINBOW_AT.get(scale, {}) | learned, changes)


_LEARNED: dict[str, Any] = {"summary": "boltzmann(beta=capped(power(2), 1e6))", "c_learning": "corrected"}
_LEARNED_AT: dict[str, dict[str, Any]] = {"nature": {"c_period_updates": 6}}
"""What learning c adds to a scale."""


_RAINBOW: dict[str, Any] = {
    "double": True,
    "prioritised": True,
    "priority_exponent": 0.5,
    "importance": "piecewise(((0, 0.4), (100000, 1)))",
    "duelling": True,
    "n_step": 3,
    "noisy": 0.5,
    "epsilon": "0",
    "atoms": 51,
    "value_range": (-100.0, 100.0),
    "gradient_clip": 10.0,
}
_RAINBOW_AT: dict[str, dict[str, Any]] = {
    "minatar": {
        "optimiser": "adam(epsilon=0.0003125)",
        "learning_rate": 0.0001,
        "train_period_steps": 4,
        "importance": "piecewise(((0, 0.4), (5000000, 1)))",
    },
    "nature": {
        "optimiser": "adam(epsilon=0.00015)",
        "learning_rate": 0.0000625,
        "loss_reduction": "mean",
        "replay_start_steps": 20_000,
        "target_period": "8000 steps",
        "importance": "piecewise(((20000, 0.4), (50000000, 1)))",
        "value_range": (-10.0, 10.0),
    },
}
"""What Rainbow adds to a scale, or has otherwise."""


_FAMILIES: dict[str, Callable[..., AgentConfig]] = {
    "dqn": dqn,
    "ddqn": ddqn,
    "dbs-dqn": dbs_dqn,
    "dbs-dqn-fixed": dbs_dqn_fixed,
    "dbs-ddqn": dbs_ddqn,
    "s-dqn": s_dqn,
    "s-ddqn": s_ddqn,
    "soft-dqn": soft_dqn,
    "munchausen": munchausen,
    "mellowmax": mellowmax,
    "rainbow": rainbow,
    "dbs-rainbow": dbs_rainbow,
}

PRESETS: dict[str, Callable[..., AgentConfig]] = {
    name + ("" if scale == "classic" else f"-{scale}"): partial(family, scale)
    for scale in SCALES
    for name, family in _FAMILIES.items()
}
"""Every preset by its name: ``PRESETS["dqn"]()``, with changes as keyword arguments."""
