"""Agents by the names they are known by: each is a ``Learning``, most of whose fields are as they are by default."""

from __future__ import annotations

from typing import Any

from dynaboltz.errors import UnknownNameError
from dynaboltz.tabular.settings import Learning

AGENTS: dict[str, dict[str, Any]] = {
    "dbs": {"summary": "boltzmann(beta=power(2))"},
    "double_q": {"rule": "double_q_learning"},
    "expected_sarsa": {"rule": "expected_sarsa"},
    "g_learning": {"rule": "g_learning", "step_size": "visits(0.8)", "clock": "step"},
    "mellowmax": {"summary": "mellowmax(beta=5)"},
    "q": {"summary": "hard_max"},
    "s_q": {"summary": "boltzmann(beta=5)"},
    "sarsa": {"rule": "sarsa"},
    "soft_q": {"summary": "log_sum_exp(beta=100)"},
}
"""Name → what differs from the defaults.

``dbs`` is Algorithm 1 of Pan et al. (2020) with p = 2; ``g_learning`` has the step size and the β_t = k·t of Fox et al.
(2016), whose k they tune; ``s_q`` a fixed β (Song et al. 2019); ``soft_q`` the smallest β of the paper's figure."""


def agent(name: str, **changes: Any) -> Learning:
    """The agent of that name, with changes to any field of :class:`Learning`.

    >>> agent("dbs", summary="boltzmann(beta=power(3))").clock
    'episode'
    """
    if name not in AGENTS:
        raise UnknownNameError("agent", str(name), AGENTS)
    known = Learning.__dataclass_fields__
    for field in changes:
        if field not in known:
            raise UnknownNameError("field of an agent:", field, known)
    return Learning(**(AGENTS[name] | changes))
