"""What README and docs say of MinAtar is what the shipped rows say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dynaboltz.paper.claim import Evidence
from dynaboltz.paper.minatar import FINAL
from dynaboltz.paper.minatar_rows import ROWS, STUDY, shipped

ROOT = Path(__file__).parents[2]
AGENTS = ("dqn", "ddqn", "dbs-dqn", "dbs-dqn-fixed", "s-dqn", "soft-dqn", "mellowmax")


def short(x: float) -> str:
    """Two digits behind the point below 1, and one from there on."""
    return "0" if x == 0 else f"{x:.{2 if abs(x) < 1 else 1}f}"


def of(values: np.ndarray) -> str:
    return f"{short(float(values.mean()))} ({short(float(values.min()))}, {short(float(values.max()))})"


def test_table_of_the_docs_is_that_of_the_rows() -> None:
    data = shipped(ROWS, [STUDY])
    scores = data.scores(FINAL).scores
    names = [game.removeprefix("minatar/").replace("_", " ").title() for game in data.games]
    lines = [
        f"| last evaluation: mean of five seeds, least, most | {' | '.join(names)} |",
        "|---|" + "---|" * len(names),
        f"| random actions | {' | '.join(of(data.random[game]) for game in data.games)} |",
        *(f"| {agent} | {' | '.join(of(scores[game, agent]) for game in data.games)} |" for agent in AGENTS),
    ]
    assert "\n".join(lines) in (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    assert {values.size for values in scores.values()} == {5}


def test_probabilities_of_the_docs_are_those_of_the_claim(evidence: Callable[[str], Evidence]) -> None:
    found = [check.detail for check in evidence("minatar").checks if "P(better)" in check.detail][:3]
    claimed = np.array(re.findall(r"P\(better\) ([\d.]+) \[([\d.]+), ([\d.]+)\]", " ".join(found)), float)
    assert claimed.shape == (3, 3)
    three = r"([\d.]+) \((?:95 %: )?([\d.]+) to ([\d.]+)\)"
    readme = re.findall(rf"with probability {three} with a learned c, {three} with a fixed one", text("README.md"))
    docs = re.findall(
        rf"with probability {three}, one with a fixed c with {three}, .* with {three}", text("docs/training.md")
    )
    for told, expected in ((readme, claimed[:2]), (docs, claimed)):
        (numbers,) = told
        given = np.array(numbers, float).reshape(-1, 3)
        np.testing.assert_allclose(given[:, 0], expected[:, 0], atol=1e-12)
        np.testing.assert_allclose(given, expected, atol=0.025)  # another seed of the bootstrap


def text(name: str) -> str:
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())
