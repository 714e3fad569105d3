"""The 30 no-op evaluation, measured on the emulator: starts, ε, whole games, the cap; and what the cap says of the scores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dynaboltz.deep.presets import dqn
from dynaboltz.envs.protocols import protocol
from dynaboltz.paper.atari_runs import EPISODES, MOST, PUBLISHED, spec_of
from dynaboltz.paper.claim import Check, Claim, Evidence, Table
from dynaboltz.paper.deep_runs import make_agent
from dynaboltz.reports.figures import Figure, canvas
from dynaboltz.reports.scores import paper_scores
from dynaboltz.reports.statistics import share_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

RULES = protocol("nature2015")
EPSILON = float(PUBLISHED["evaluation.epsilon"])
GAME = "Breakout"
"""A game that never ends if nobody serves the ball, with five lives."""
STARTS = ("Breakout", "Pong", "Seaquest", "Space Invaders")
CAPPED = ("Atlantis", "Video Pinball")
"""The two games that make most of the mean over the table."""
COLUMNS = {"DQN": "dqn", "DBS-DQN": "dbs_dqn", "DBS-DQN, fine-tuned c": "dbs_dqn_fixed_c"}
SIDE_BY_SIDE = 50
BEST = 150
"""Decisions of the window with the most points: ten seconds."""
RARE = 1e-6
"""Probability below which chance is no explanation."""


class Points(NamedTuple):
    """Random decisions in a game, one whole episode after the other, for as many frames as the cap allows."""

    total: float
    best: float
    """Of ``BEST`` decisions in a row, for each frame."""


def noops(game: str, count: int, seed: int) -> tuple[np.ndarray, int]:
    """Emulator frames before the first decision of ``count`` episodes, and how many first screens differ among 30."""
    from dynaboltz.envs.atari import AtariWorld, rom_of

    world = AtariWorld(rom_of(game), RULES, training=False)
    found, screens = [], set()
    for number, episode in enumerate(np.random.default_rng(seed).integers(1 << 31, size=count)):
        screen = world.reset(int(episode))
        found.append(world._ale.getEpisodeFrameNumber())  # the emulator's own count, not ours
        if number < EPISODES:
            screens.add(screen.tobytes())
    return np.array(found), len(screens)


def plural(count: int, thing: str) -> str:
    """``1 screen``, ``2 screens``."""
    return f"{count} {thing}" + "s" * (count != 1)


def spread(counts: np.ndarray) -> float:
    """The p-value of the χ² test that all numbers of no-ops from 1 to 30 are equally likely."""
    from scipy.stats import chisquare

    return float(chisquare(np.bincount(counts, minlength=RULES.noops_most + 1)[RULES.noops_least :]).pvalue)


def chance(found: int, trials: int, share: float) -> float:
    """The p-value that each trial is a success with probability ``share``."""
    from scipy.stats import binomtest

    return float(binomtest(found, trials, share).pvalue)


def idle_episode(seed: int) -> tuple[int, bool]:
    """Decisions until the protocol ends an episode in which nothing happens, and whether it counts as terminal."""
    from dynaboltz.envs import make

    with make(f"atari/{GAME}", seed=seed, stream=1) as worlds:
        worlds.reset()
        for decisions in range(1, 2 * MOST):
            step = worlds.step(np.zeros(1, np.int64))
            if step.over[0]:
                return decisions, bool(step.terminal[0])
    return 2 * MOST, False


def ends(stream: int, decisions: int, seed: int) -> tuple[int, int]:
    """Terminal transitions and finished episodes of random play; stream 0 is training, 1 evaluation."""
    from dynaboltz.envs import make

    rng = np.random.default_rng(seed)
    with make(f"atari/{GAME}", seed=seed, stream=stream) as worlds:
        worlds.reset()
        steps = [worlds.step(rng.integers(worlds.spec.n_actions, size=1)) for _ in range(decisions)]
    return sum(bool(step.terminal[0]) for step in steps), sum(len(step.finished) for step in steps)


def off_greedy(decisions: int, seed: int) -> tuple[int, int]:
    """How many of how many decisions of a player in evaluation are not the greedy ones."""
    spec = spec_of(GAME)
    agent = make_agent(dqn("nature", replay_start_steps=100, replay_capacity_steps=100), spec, seed=seed)
    rng = np.random.default_rng(seed)
    player = agent.player(SIDE_BY_SIDE, epsilon=EPSILON, rng=rng)
    player.begin(rng.integers(0, 256, (SIDE_BY_SIDE, *spec.shape)).astype(np.uint8))
    greedy = player.values().argmax(axis=1)
    rounds = decisions // SIDE_BY_SIDE
    found = sum(int((player.act() != greedy).sum()) for _ in range(rounds))
    agent.close()
    return found, rounds * SIDE_BY_SIDE


def points(game: str, seed: int) -> Points:
    """What random decisions score."""
    from dynaboltz.envs import make

    rng = np.random.default_rng(seed)
    with make(f"atari/{game}", seed=seed, stream=1) as worlds:
        worlds.reset()
        paid = [float(worlds.step(rng.integers(worlds.spec.n_actions, size=1)).reward[0]) for _ in range(MOST)]
    windows = np.convolve(paid, np.ones(BEST), "valid")
    return Points(float(np.sum(paid)), float(windows.max()) / (BEST * RULES.frames_per_action))


def measure(rng: np.random.Generator, *, resets: int, decisions: int) -> Evidence:
    """Each part of the protocol, then the scores of the table against five minutes."""
    seed = int(rng.integers(1 << 31))
    starts = {game: noops(game, resets if game == GAME else EPISODES, seed) for game in STARTS}
    counts, _ = starts[GAME]
    p = spread(counts)
    idle, terminal = idle_episode(seed)
    training, whole = ends(0, decisions, seed), ends(1, decisions, seed)
    strayed = off_greedy(2 * decisions, seed)
    expected = EPSILON * (1 - 1 / spec_of(GAME).n_actions)
    scored = {game: points(game, seed) for game in CAPPED}
    table = paper_scores()
    needed = {
        game: {
            name: float(table.scores(column)[table.games.index(game)]) / RULES.cap_frames
            for name, column in COLUMNS.items()
        }
        for game in CAPPED
    }
    first = CAPPED[0]
    times = needed[first]["DBS-DQN"] / scored[first].best
    screens = {game: found for game, (_, found) in starts.items()}
    minutes = RULES.cap_frames / 60 / 60
    return Evidence(
        finding=(
            f"The protocol is here as Mnih et al. describe it: 1 to {RULES.noops_most} no-ops, each as likely as any other, ε = {EPSILON}, whole games "
            f"with raw points, {EPISODES} episodes that end after {RULES.cap_frames:,} frames, {minutes:.0f} minutes. The scores of the table do not look like it. "
            f"{table.scores('dbs_dqn')[table.games.index(first)]:,.0f} points in {first} are {needed[first]['DBS-DQN']:.0f} for each frame of five minutes, "
            f"{times:.0f} times the best ten seconds of random play here (an inference, no proof); of DQN's column, which is Wang et al.'s, they are "
            f"{needed[first]['DQN']:.3g}. The paper does not name its cap, and scores that grow with the length of an episode "
            f"cannot be compared across columns. In {min(screens, key=screens.__getitem__)} 30 no-op starts show {plural(min(screens.values()), 'first screen')}: "
            "what varies between episodes is ε."
        ),
        settings={
            "protocol": str(RULES), "hash": RULES.hash[:12], "resets": resets, "decisions": decisions, "games": STARTS,
            "points by": "uniformly random decisions, episode after episode, for 18,000 frames",
        },
        checks=[
            Check(
                fact="episodes begin with a random number of no-ops, up to 30", true=p > RARE and counts.max() <= RULES.noops_most,
                detail=f"{counts.min()} to {counts.max()} in {resets} episodes, by the emulator's count; p = {p:.2g} that all are equally likely",
            ),
            Check(
                fact="the printed scores can be those of episodes of five minutes, as in Mnih et al. (2015)",
                true=all(needed[game]["DBS-DQN"] <= scored[game].best for game in CAPPED),
                detail="; ".join(
                    f"{game}: {needed[game]['DBS-DQN']:.3g} points a frame, the best ten seconds here have {scored[game].best:.3g}" for game in CAPPED
                ),
            ),
            Check(
                fact="an episode ends after 18,000 frames, and not as terminal", of="ours",
                true=idle * RULES.frames_per_action == RULES.cap_frames and not terminal, detail=f"{idle:,} decisions of {RULES.frames_per_action} frames",
            ),
            Check(
                fact="a lost life is terminal in training and nothing in evaluation", of="ours",
                true=training[0] > training[1] and whole[0] == whole[1],
                detail=f"terminal transitions and episodes: {training[0]} and {training[1]}, {whole[0]} and {whole[1]}",
            ),
            Check(
                fact="a decision is random with probability ε = 0.05", of="ours", true=chance(*strayed, expected) > RARE,
                detail=f"{share_interval(*strayed):.3g} of {strayed[1]:,} decisions are not greedy, {expected:.4g} would be",
            ),
            Check(
                fact="30 no-op starts are 30 different first screens", of="aside", true=min(screens.values()) == EPISODES,
                detail=", ".join(f"{game}: {found}" for game, found in screens.items()),
            ),
        ],
        tables=[
            Table(
                caption=f"Points for each frame that the table's scores need in {RULES.cap_frames:,} frames, and what was seen",
                header=("game", *COLUMNS, "random play, mean", "its best ten seconds"),
                rows=[
                    (
                        game, *(f"{value:.1f}" for value in needed[game].values()), f"{scored[game].total / RULES.cap_frames:.2f}",
                        f"{scored[game].best:.1f}",
                    )
                    for game in CAPPED
                ],
            )
        ],
        figures=[
            Figure(
                name="no-ops", draw=lambda: _draw(counts),
                caption=f"Emulator frames before the first decision in {resets} episodes of {GAME}; dotted: all equally likely.",
                alt="Thirty bars from 1 to 30 of about equal height.",
            )
        ],
        numbers={"no-ops": counts, "first screens": screens, "points a frame": {game: each._asdict() for game, each in scored.items()}},
    )  # fmt: skip


def _draw(counts: np.ndarray) -> MatplotlibFigure:
    figure, axes = canvas(height=2.4)
    numbers = np.arange(RULES.noops_least, RULES.noops_most + 1)
    axes.bar(numbers, np.bincount(counts, minlength=numbers[-1] + 1)[numbers[0] :], width=0.8)
    axes.axhline(counts.size / numbers.size, color="#888888", lw=0.9, ls=":")
    axes.set(xlabel="no-ops", ylabel="episodes", xlim=(0, RULES.noops_most + 1))
    axes.grid(visible=False, axis="x")
    drawn: MatplotlibFigure = figure
    return drawn


CLAIM = Claim(
    name="no-op-evaluation", title="The 30 no-op evaluation", section="atari", where="Section 4.1 (Experimental Setup)",
    says="The evaluation procedure is 30 no-op evaluation, identical to Mnih et al. (2015): a random number, up to 30, of do-nothing "
    "actions at the beginning of an episode.",
    equations={"the protocol": "dynaboltz.envs.protocols.protocol", "its episodes": "dynaboltz.runs.evaluate"},
    test=partial(measure, resets=1500, decisions=3000), small=partial(measure, resets=150, decisions=1000),
)  # fmt: skip
