"""What the learning claims share: the agents of the paper's figures, and their runs on the GridWorld."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dynaboltz.paper.worlds import DISCOUNT, LAYOUTS, optimum
from dynaboltz.tabular import Learning, learn

Floats = npt.NDArray[np.float64]

CAP = 300
"""Steps after which the paper ends an episode."""
POWERS = (1, 2, 3, 10)
SOFT = (2, 3, 4, 5, 6)
"""β = 10^k of soft Q-learning in the appendix figure."""


def dbs(p: float) -> str:
    """DBS Q-learning's name in tables."""
    return f"DBS t^{p:g}"


def soft(k: int) -> str:
    """Soft Q-learning's name in tables."""
    return f"soft 10^{k}"


Q, G = "Q-learning", "G-learning"
AGENTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {Q: {"summary": "hard_max"}}
    | {dbs(p): {"summary": f"boltzmann(beta=power({p}))"} for p in POWERS}
    | {soft(k): {"summary": f"log_sum_exp(beta={10**k})"} for k in SOFT}
    | {G: {"rule": "g_learning", "summary": "mellowmax(beta=linear(0.001))", "clock": "step"}}
)
"""The agents of the appendix figure: name → how it differs from Q-learning. G-learning's k is ours; the paper gives none."""
SETTING: Mapping[str, Any] = MappingProxyType(
    {"initial": "uniform(low=0, high=0.1)", "step_size": "constant(alpha=0.1)", "epsilon": 0.1, "ties": "random"}
)
"""Our reading of what the paper leaves open: with zeros the curves of DBS and Q-learning are one (see the settings map)."""
LABELS = {
    dbs(p): rf"DBS $\beta_t = t^{{{p}}}$" for p in POWERS
} | {soft(k): rf"soft $\beta = 10^{k}$" for k in SOFT} | {Q: Q, G: G}  # fmt: skip
"""Names for legends."""


def steps(
    layout: str, name: str, *, seeds: int, episodes: int, root: int, setting: Mapping[str, Any] = SETTING
) -> Floats:
    """Steps of each episode, seeds × episodes.

    Every agent has random numbers of its own under every setting, so that samples are independent of one another.
    """
    model, _ = optimum(LAYOUTS[layout], DISCOUNT)
    config = Learning(**{"discount": DISCOUNT, "episodes": episodes, "max_steps": CAP, **setting, **AGENTS[name]})
    own = zlib.crc32(f"{root} {layout} {name} {sorted(setting.items())}".encode())
    return learn(model, config, seeds=seeds, root=own).steps.astype(np.float64)


def root_of(rng: np.random.Generator) -> int:
    """A root for learning from a claim's random numbers."""
    return int(rng.integers(1 << 31))


def said(setting: Mapping[str, Any] = SETTING) -> dict[str, Any]:
    """A setting in a reader's words."""
    names = {"initial": "Q_0", "step_size": "α", "epsilon": "ε", "ties": "ties"}
    return {"γ": DISCOUNT, "steps an episode at most": CAP} | {names[key]: str(value) for key, value in setting.items()}
