"""What Algorithm 2 leaves open, on the five MinAtar games: what t counts, and the reference c̄ that c is learned against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dynaboltz.paper.claim import Check, Claim, Evidence
from dynaboltz.paper.minatar import DQN, FINAL, FIXED, LEARNED, figures, numbers, said, settings
from dynaboltz.paper.minatar_rows import (
    CLOCKS,
    LEAST,
    ROWS,
    STUDY,
    Against,
    Shipped,
    against,
    backups,
    command,
    game_table,
    levels,
    shipped,
    total_table,
)
from dynaboltz.reports.statistics import Interval

BY_CLOCK = {
    "target syncs": FIXED, "episodes": "dbs-dqn-fixed-episode", "updates": "dbs-dqn-fixed-update", "steps": "dbs-dqn-fixed-step",
}  # fmt: skip
"""What t counts, with c = 1 → agent."""
BY_BAR = {"c̄ = c₀": LEARNED, "c̄ = c": "dbs-dqn-current", "c̄ = ∞": "dbs-dqn-infinity"}
READINGS = {**BY_CLOCK, **BY_BAR}


def measure(rng: np.random.Generator, folder: Path = ROWS) -> Evidence:
    """Every clock against target syncs, every c̄ against c₀, and all of them against DQN."""
    data = shipped(folder, [CLOCKS, STUDY])
    agents = [agent for agent in (DQN, *READINGS.values()) if agent in data.agents]
    pairs = [(agent, DQN) for agent in READINGS.values()]
    pairs += [(agent, FIXED) for agent in list(BY_CLOCK.values())[1:]] + [
        (agent, LEARNED) for agent in list(BY_BAR.values())[1:]
    ]
    found = against(data, pairs, rng)
    level = levels(data, agents, FINAL, rng)
    scores = data.scores(FINAL).scores
    table = total_table(found, level, lambda agent: min(len(scores[env, agent]) for env in data.games))
    checks = [
        _every(found),
        _differ("what t counts makes a difference beyond chance", found, BY_CLOCK, FIXED),
        _differ("c̄ makes a difference beyond chance", found, BY_BAR, LEARNED),
    ]
    return Evidence(
        finding=_finding(data, found, level), settings=settings(data), checks=checks,
        tables=[game_table(data, agents), *([table] if found else []), backups(data, agents)],
        figures=figures(data, agents, found, name="minatar-clock"), numbers=numbers(data, found),
        command=f"{command(STUDY)} && {command(CLOCKS)}" if any(check.true is None for check in checks) else "",
    )  # fmt: skip


def _every(found: Sequence[Against]) -> Check:
    """What the paper states without a t and a c̄ is stated of every reading."""
    of_dqn = {one.agent: one for one in found if one.other == DQN and one.score == FINAL}
    fact = "DBS-DQN beats DQN under every reading of what Algorithm 2 leaves open"
    if len(of_dqn) < len(READINGS):
        return Check(
            fact=fact, true=None, detail=f"{len(of_dqn)} of {len(READINGS)} readings have {LEAST} runs on every game"
        )
    beyond = [f"{name}: {said(of_dqn[agent])}" for name, agent in READINGS.items() if of_dqn[agent].real]
    wins = sum(one.wins for one in of_dqn.values())
    return Check(fact=fact, true=wins == len(READINGS), detail="; ".join([f"{wins} of {len(READINGS)} do", *beyond]))


def _differ(fact: str, found: Sequence[Against], readings: dict[str, str], usual: str) -> Check:
    here = [one for one in found if one.other == usual and one.agent in readings.values()]
    names = {agent: name for name, agent in readings.items()}
    real = [f"{names[one.agent]} ({one.score}): {said(one)}" for one in here if one.real]
    return Check(
        fact=fact,
        of="aside",
        true=bool(real),
        detail="; ".join(real) or f"none of {len(here)} comparisons with {names[usual]}",
    )


def _finding(data: Shipped, found: Sequence[Against], level: Mapping[str, Interval]) -> str:
    parts = []
    for readings, usual, what in ((BY_CLOCK, FIXED, "Clock"), (BY_BAR, LEARNED, "Reference")):
        there = {name: level[agent] for name, agent in readings.items() if agent in level}
        if len(there) < 2:
            parts.append(f"{what}: too few runs to compare.")
            continue
        order = sorted(there, key=lambda name: -there[name].value)
        ends = ", ".join(f"{name} {there[name]:.2f}" for name in order)
        real = [one for one in found if one.other == usual and one.agent in readings.values() and one.real]
        names = {agent: name for name, agent in readings.items()}
        beyond = "; ".join(
            f"{names[one.agent]} {'beats' if one.wins else 'loses to'} {names[usual]} in the {one.score}"
            for one in real
        )
        parts.append(f"{what}, by interquartile mean: {ends}; {beyond or 'no difference is beyond chance'}.")
    if data.notes:
        parts.append(f"Not there: {'; '.join(data.notes)}.")
    return " ".join(parts)


CLAIM = Claim(
    name="minatar-clock", title="Which clock and which c̄, on MinAtar", section="deep", where="Section 4, Algorithm 2",
    says="β_t(c) = c·t² within the loop over the steps of an episode; c is updated by the gradient of the error under a reference value c̄. "
    "Neither what t counts nor c̄ is given.",
    equations={"β_t(c), its clock": "dynaboltz.deep.AgentConfig", "c̄": "dynaboltz.deep.meta.Coefficient"},
    test=measure,
)  # fmt: skip
