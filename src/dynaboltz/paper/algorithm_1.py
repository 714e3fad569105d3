"""Algorithm 1, Q-learning with DBS updates: that what runs here is it, and whether it finds the shortest way."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dynaboltz.operators import boltzmann
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.learners import CAP, POWERS, SETTING, dbs, root_of, said
from dynaboltz.paper.progress import each
from dynaboltz.paper.worlds import DISCOUNT, LAYOUTS, optimum
from dynaboltz.reports.figures import Figure, canvas
from dynaboltz.reports.statistics import Interval, share_interval
from dynaboltz.tabular import Learning, learn
from dynaboltz.tabular.streams import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

    from dynaboltz.mdp import MDP
    from dynaboltz.paper.learners import Floats

ALPHA, LINES = 0.1, 12
"""Step size, and episodes that are compared with the plain loop."""
LEARNING = {**SETTING, "step_size": "constant(alpha=0.5)", "epsilon": 0.5}
"""More exploration and larger steps than in the figures: the world has no chance in it, and the paper says nothing of either."""
ROUNDING = 1e-12


def moves(model: MDP) -> tuple[npt.NDArray[np.int64], Floats]:
    """Next state and reward of each pair of a world without chance; a terminal state stays where it is."""
    target = np.tile(np.arange(model.n_states)[:, None], (1, model.n_actions))
    reward: Floats = np.zeros(target.shape)
    target[model.row_states(), model.action] = model.next_state
    reward[model.row_states(), model.action] = model.reward
    return target, reward


def plain(model: MDP, q: Floats, *, p: float, episodes: int) -> tuple[Floats, list[int]]:
    """Algorithm 1 line by line with ε = 0 and the lowest index of ties: final values and the steps of each episode."""
    target, reward = moves(model)
    assert model.start is not None
    q, steps = q.copy(), []
    q[model.terminal] = 0.0
    for t in range(1, episodes + 1):
        s, count = int(model.start.argmax()), 0
        while not model.terminal[s] and count < CAP:
            a = int(q[s].argmax())
            r, after = reward[s, a], int(target[s, a])
            value = float(boltzmann(q[after], float(t) ** p))
            q[s, a] += ALPHA * (r + DISCOUNT * value - q[s, a])
            s, count = after, count + 1
        steps.append(count)
    return q, steps


def ways(model: MDP, q: Floats) -> Floats:
    """Steps that the greedy policy of each seed takes from the start to the end; ∞ if it never gets there."""
    target, _ = moves(model)
    assert model.start is not None
    seeds = np.arange(q.shape[0])
    at = np.full(seeds.size, int(model.start.argmax()))
    length = np.full(seeds.size, np.inf)
    for count in range(1, model.n_states + 1):
        at = target[at, q[seeds, at].argmax(axis=1)].astype(np.int64)
        length = np.where(model.terminal[at] & np.isinf(length), count, length)
    return length


def shortest(layout: str) -> int:
    """Steps of the shortest way."""
    _, best = optimum(LAYOUTS[layout], DISCOUNT)
    return round(float(np.log(best[0]) / np.log(DISCOUNT))) + 1


def shares(layout: str, p: float, counts: tuple[int, ...], *, seeds: int, root: int) -> list[Interval]:
    """The share of seeds whose greedy way is the shortest after each number of episodes."""
    model, _ = optimum(LAYOUTS[layout], DISCOUNT)
    found = []
    for episodes in counts:
        config = Learning(summary=f"boltzmann(beta=power({p}))", episodes=episodes, discount=DISCOUNT, **LEARNING)
        q = learn(model, config, seeds=seeds, root=root).q
        found.append(share_interval(int((ways(model, q) == shortest(layout)).sum()), seeds))
    return found


def measure(rng: np.random.Generator, *, seeds: int, counts: tuple[int, ...]) -> Evidence:
    """Compare with the plain loop, then learn with every p."""
    root = root_of(rng)
    apart, same_steps = 0.0, True
    for layout in LAYOUTS:
        model, _ = optimum(LAYOUTS[layout], DISCOUNT)
        for p in POWERS:
            config = Learning(
                summary=f"boltzmann(beta=power({p}))", episodes=LINES, discount=DISCOUNT, epsilon=0.0, ties="lowest",
                step_size=ALPHA, initial=SETTING["initial"],
            )  # fmt: skip
            found = learn(model, config, seeds=[0], root=root)
            first = config.parsed_initial.draw(generator(root, 0), (1, model.n_states, model.n_actions))[0]
            q, steps = plain(model, first, p=p, episodes=LINES)
            apart = max(apart, float(np.abs(q - found.q[0]).max()))
            same_steps &= steps == found.steps[0].tolist()
    unmasked = [
        float(np.abs(np.subtract(*(_learned(summary, mask, root) for mask in (True, False)))).max())
        for summary in ("boltzmann(beta=power(2))", "log_sum_exp(beta=10)")
    ]
    found_shares = {
        (layout, p): shares(layout, p, counts, seeds=seeds, root=root)
        for layout, p in each(list(itertools.product(LAYOUTS, POWERS)))
    }
    worst = min((found_shares[layout, 2][-1] for layout in LAYOUTS), key=lambda share: share.value)
    return Evidence(
        finding=(
            "The compiled engine does what the algorithm's ten lines do, to rounding. With p = 2 the greedy policy takes a "
            f"shortest way after {counts[-1]:,} episodes in {worst.value:.1%} of the seeds on the worse layout. The line "
            "Q(terminal, ·) = 0 is all that boltz needs at the end of an episode; log-sum-exp of zeros is log(4)/β and must be "
            "masked."
        ),
        settings=said(LEARNING) | {"seeds": seeds, "episodes": counts, "t in β_t": "episodes, from 1", "layouts": tuple(LAYOUTS)},
        checks=[
            Check(
                fact="what runs here is Algorithm 1: the values of a plain loop over its lines, and the steps",
                true=apart <= ROUNDING and same_steps,
                detail=f"values {apart:.0e} apart after {LINES} episodes without exploration, p = {', '.join(map(str, POWERS))}",
            ),
            Check(
                fact="it finds the optimal policy: the greedy way is a shortest one in at least 95 % of the seeds, p = 2",
                true=worst.high >= 0.95, detail=f"{worst:.3f} on the worse layout",
            ),
            Check(
                fact="with boltz, looking up the terminal state changes nothing; with log-sum-exp it does", of="aside",
                true=unmasked[0] == 0 < unmasked[1], detail=f"values {unmasked[0]:g} and {unmasked[1]:.3g} apart",
            ),
        ],
        tables=[
            Table(
                caption="Share of seeds whose greedy way is a shortest one, with Wilson's 95 % intervals",
                header=("layout", "episodes", *map(dbs, POWERS)),
                rows=[
                    (layout, f"{n:,}", *(f"{found_shares[layout, p][place]:.3f}" for p in POWERS))
                    for layout in LAYOUTS for place, n in enumerate(counts)
                ],
            )
        ],
        figures=[
            Figure(
                name="algorithm-1",
                caption=f"Share of {seeds} seeds whose greedy policy takes a shortest way from the start, against episodes of "
                "learning, with 95 % intervals.",
                alt="All powers rise from 0 to nearly 1, later on the layout with two walls.",
                draw=lambda: _draw(found_shares, counts),
            )
        ],
        numbers={"shares": {f"{layout}, p = {p}": [s.value for s in of] for (layout, p), of in found_shares.items()}},
    )  # fmt: skip


def _learned(summary: str, mask: bool, root: int) -> Floats:
    model, _ = optimum(LAYOUTS["no walls"], DISCOUNT)
    config = Learning(summary=summary, episodes=50, discount=DISCOUNT, mask_terminal=mask, epsilon=1.0)
    return learn(model, config, seeds=4, root=root).q


def _draw(found: dict[tuple[str, int], list[Interval]], counts: tuple[int, ...]) -> MatplotlibFigure:
    from dynaboltz.paper.learners import LABELS
    from dynaboltz.paper.learning_curves import LOOKS

    figure, panels = canvas(2, width=4.0, height=3.2, sharey=True)
    for axes, layout in zip(panels, LAYOUTS, strict=True):
        for place, p in enumerate(POWERS):
            of = found[layout, p]
            reach = [[s.value - s.low for s in of], [s.high - s.value for s in of]]
            axes.errorbar(
                np.array(counts) * 1.03**place, [s.value for s in of], yerr=reach, marker="osD^"[place], capsize=2,
                elinewidth=0.9, label=LABELS[dbs(p)], **LOOKS[dbs(p)],
            )  # fmt: skip
        axes.set(xscale="log", xlabel="episodes", title=layout, ylim=(-0.03, 1.03))
        axes.set_xticks(counts, [f"{n:,}" for n in counts])
        axes.minorticks_off()
    panels[0].set_ylabel("share with a shortest way")
    panels[0].legend(loc="lower right")
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="algorithm-1", title="Algorithm 1: Q-learning with DBS updates", section="learning",
    where="Section 3.2, Algorithm 1",
    says="Q arbitrary, Q(terminal, ·) = 0; ε-greedy actions; V(s') = boltz_{β_t}(Q(s', ·)) with t counting episodes; "
    "Q(s, a) ← Q(s, a) + α_t [r + γ V(s') − Q(s, a)]. It converges to the optimal policy.",
    equations={"Algorithm 1": "dynaboltz.tabular.learn", "Algorithm 1, its settings": "dynaboltz.tabular.Learning"},
    test=partial(measure, seeds=100, counts=(25, 50, 100, 200, 400)),
    full=partial(measure, seeds=1000, counts=(25, 50, 100, 200, 400, 800)),
    small=partial(measure, seeds=20, counts=(400,)),
)  # fmt: skip
