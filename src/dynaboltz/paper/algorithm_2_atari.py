"""Algorithm 2 on Atari: its settings beside those of DQN, some seconds of it on the emulator, and the runs that it needs."""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import numpy as np

from dynaboltz.paper.algorithm_2 import SHARP, sharp_after
from dynaboltz.paper.atari_runs import AGENTS, GAME, PUBLISHED, SEEDS, STEPS, costs, published, tried
from dynaboltz.paper.claim import Check, Claim, Evidence, Table

DQN, DBS = "DQN", "DBS-DQN"
EXTENDED_TABLE_1 = {
    "batch_size": 32, "replay_capacity_steps": 1_000_000, "discount": 0.99, "train_period_steps": 4,
    "learning_rate": 0.00025, "replay_start_steps": 50_000, "network": "nature", "huber_bound": 1.0,
}  # fmt: skip
"""Of Mnih et al. (2015), what is not in the protocol already."""
OWN = {"summary", "c_learning", "c_period_updates"}
"""What DBS-DQN may differ in."""
COMMAND = f"dynaboltz study studies/paper-atari.toml --only env=atari/{GAME} --only name=dqn,dbs-dqn"


def differences() -> dict[str, tuple[str, str]]:
    """Settings in which the two agents of the studies differ: name → DQN's, DBS-DQN's."""
    one, other = (dataclasses.asdict(published(AGENTS[name])) for name in (DQN, DBS))
    return {name: (str(one[name]), str(other[name])) for name in one if one[name] != other[name]}


def departures(name: str) -> dict[str, tuple[str, str]]:
    """Settings of an agent that are not those of Mnih et al. (2015): name → theirs, ours."""
    theirs = EXTENDED_TABLE_1 | {
        key.removeprefix("agent."): value for key, value in PUBLISHED.items() if key.startswith("agent.")
    }
    ours = published(name)
    return {key: (str(value), str(getattr(ours, key))) for key, value in theirs.items() if getattr(ours, key) != value}


def test(rng: np.random.Generator, *, seconds: float) -> Evidence:
    """Settings, and seconds of both agents on the emulator."""
    seed = int(rng.integers(1 << 31))
    found = {name: tried(AGENTS[name], seed=seed, seconds=seconds) for name in (DQN, DBS)}
    apart, other = differences(), {name: departures(AGENTS[name]) for name in (DQN, DBS)}
    dbs = found[DBS]
    said, table = costs(found, runs=2 * SEEDS)
    slower, every = dbs.training / found[DQN].training, published(AGENTS[DBS]).c_period_updates
    return Evidence(
        finding=(
            f"It runs, at the published settings and in nothing but the operator and its c apart from DQN. {dbs.updates} updates on {GAME} "
            f"brought c from 1 to {dbs.seen['c']:.3g}. While c is learned, from one update in {every}, a step takes {slower:.2g} times that of DQN; once the softmax is "
            f"the maximum (β above {SHARP:.0f}, after {sharp_after('target_sync') / STEPS:.1%} of training with t in target syncs) c stays and costs "
            f"little. Whether it then scores above DQN takes {STEPS:,} steps a run. {said}. What one machine can do in about half "
            "an hour, a thousandth of the steps on Breakout, is dynaboltz study studies/breakout.toml."
        ),
        settings={
            "game": GAME, "steps of a run": STEPS, "clock": "target syncs, every 10,000 updates", "c₀": 1, "c̄": "c₀",
            "tried": f"{seconds:g} s of a core, with a sync every 10 updates so that c is learned",
        },
        command=COMMAND,
        checks=[
            Check(
                fact="DBS-DQN has the network and the hyper-parameters of DQN", true=set(apart) == OWN,
                detail="; ".join(f"{name}: {a} and {b}" for name, (a, b) in apart.items()),
            ),
            Check(
                fact="which are those of Mnih et al. (2015)", true=not any(other.values()),
                detail=f"{len(EXTENDED_TABLE_1) + sum(key.startswith('agent.') for key in PUBLISHED)} settings compared"
                + "".join(f"; {key}: {a}, here {b}" for each in other.values() for key, (a, b) in each.items()),
            ),
            Check(fact=f"after {STEPS:,} steps it scores above DQN", true=None, detail=f"{2 * SEEDS} runs on {GAME}"),
            Check(
                fact="on the emulator its backup is below the maximum, β grows at every sync, and c is learned", of="ours",
                true=dbs.seen["gap"] > 0 and dbs.betas[-1] > dbs.betas[0] and dbs.derivatives > 0 and not math.isclose(dbs.seen["c"], 1),
                detail=f"gap {dbs.seen['gap']:.2g}, β from {dbs.betas[0]:.3g} to {dbs.betas[-1]:.3g}, derivatives in {dbs.derivatives} of {dbs.updates} updates",
            ),
        ],
        tables=[
            Table(
                caption="In what the two agents differ", header=("setting", DQN, DBS),
                rows=[(name, *values) for name, values in apart.items()],
            ),
            table,
        ],
        numbers={
            name: {**one._asdict(), "betas": one.betas[:: max(1, len(one.betas) // 50)]} for name, one in found.items()
        },
    )  # fmt: skip


CLAIM = Claim(
    name="algorithm-2-atari", title="Algorithm 2 on Atari", section="atari", where="Section 4.1 (Experimental Setup), Appendix (Implementation Details)",
    says="DBS-DQN beside DQN on Atari, with the same network and hyper-parameters, those of Mnih et al. (2015), for 50 million steps.",
    equations={"Algorithm 2": "dynaboltz.deep.Agent", "its settings": "dynaboltz.deep.presets.dbs_dqn"},
    test=partial(test, seconds=3.0), small=partial(test, seconds=0.5),
)  # fmt: skip
