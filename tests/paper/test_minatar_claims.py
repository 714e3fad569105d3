"""Claims from shipped rows: right about scores that are made up, open where there are too few, silent about none."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from dynaboltz.errors import UserError
from dynaboltz.paper import minatar, minatar_clock
from dynaboltz.paper.claim import Evidence, Verdict
from dynaboltz.paper.minatar_rows import (
    ROWS,
    Shipped,
    against,
    beyond_random,
    early_and_late,
    shipped,
)
from dynaboltz.reports.collect import collect
from dynaboltz.runs import Given, home_of, resolve
from dynaboltz.studies import read_study

GAMES = ("minatar/asterix", "minatar/breakout", "minatar/freeway", "minatar/seaquest", "minatar/space_invaders")
ALL = tuple(minatar_clock.READINGS.values())


def a_run(folder: Path, env: str, name: str, seed: int, score: float) -> None:
    """A packed run of three evaluations that rise to the score."""
    given = {"env": env, "name": name, "steps": 300, "seed": seed}
    config = resolve("dqn", None, {key: Given(value, "the test") for key, value in given.items()})
    home = home_of(config, folder)
    home.prepare(config)
    rows: list[dict[str, Any]] = [{"kind": "start", "step": 0}]
    for step in (100, 200, 300):
        rows.append({
            "kind": "learning", "step": step, "updates": step, "gap": 3.0 / step, "saturated": step / 300, "beta": step,
        })  # fmt: skip
        rows.append({"kind": "evaluation", "step": step, "mean": score * step / 300})
    rows.append({"kind": "end", "step": 300})
    home.rows.with_name("rows.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    )


def rows_of(
    folder: Path, study: str, levels: Mapping[str, float], seeds: Sequence[int], games: Sequence[str] = GAMES
) -> None:
    """Runs whose score is the level of the agent, on the scale of the game, with noise of one."""
    rng = np.random.default_rng(len(study))
    for scale, env in enumerate(games, 1):
        for agent, level in levels.items():
            for seed in seeds:
                a_run(folder / study, env, agent, seed, scale * (20 + level + rng.normal()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where DBS-DQN with a learned c is far ahead, and with a fixed one level with DQN."""
    rows_of(tmp_path, "minatar", {"dqn": 0, "dbs-dqn": 8, "dbs-dqn-fixed": 0.1, "s-dqn": -9}, range(4))
    rows_of(tmp_path, "minatar-random", {"random": -20}, range(4))
    return tmp_path


def measure(folder: Path, test: Callable[..., Evidence] = minatar.measure) -> Evidence:
    return test(np.random.default_rng(0), folder)


def by_fact(evidence: Evidence, words: str) -> Any:
    (found,) = [check for check in evidence.checks if words in check.fact]
    return found


def test_agent_that_is_ahead_beats_dqn_and_one_that_is_level_does_not(folder: Path) -> None:
    found = measure(folder)
    assert [check.true for check in found.checks if check.of == "paper"] == [True, False, True]
    assert found.verdict is Verdict.DOES_NOT_FOLLOW
    assert "a learned c beats DQN: P(better) 1.00" in found.finding
    assert "a fixed c does not differ from DQN beyond chance" in found.finding
    assert by_fact(found, "another operator").true  # s-dqn, behind
    assert by_fact(found, "past random actions").detail == "20 of 20"


def test_comparison_has_the_effect_that_was_put_in(folder: Path) -> None:
    data = shipped(folder, ["minatar"])
    found = {(one.agent, one.score): one for one in against(data, [("s-dqn", "dqn")], np.random.default_rng(1))}
    one = found["s-dqn", "last evaluation"]
    assert one.better.value == 0
    assert one.real
    assert not one.wins
    assert one.ahead is not None
    assert one.ahead.low < -9 / 28 < one.ahead.high  # 0 is random, 28 above it the best agent
    half = found["s-dqn", "mean of all evaluations"]
    assert half.better.value == 0
    scores = data.scores("last evaluation").scores["minatar/asterix", "dqn"]
    assert data.scores("mean of all evaluations").scores["minatar/asterix", "dqn"] == pytest.approx(scores * 2 / 3)


def test_statements_stay_open_until_every_agent_has_two_runs_on_every_game(tmp_path: Path) -> None:
    rows_of(tmp_path, "minatar", {"dqn": 0, "dbs-dqn": 8, "dbs-dqn-fixed": 0}, [0])
    rows_of(tmp_path, "minatar", {"dqn": 0, "dbs-dqn": 8}, [1])
    rows_of(tmp_path, "minatar", {"dbs-dqn-fixed": 0}, [1], GAMES[:4])
    rows_of(tmp_path, "minatar-random", {"random": -20}, range(3))
    found = measure(tmp_path)
    assert [check.true for check in found.checks if check.of == "paper"] == [True, None, None]
    assert found.verdict is Verdict.OUT_OF_REACH
    assert found.command.startswith("dynaboltz study studies/minatar.toml")
    assert "minatar: seed 1 has 14 of 15 runs" in found.finding


def test_one_run_of_everything_is_shown_and_nothing_is_concluded(tmp_path: Path) -> None:
    rows_of(tmp_path, "minatar", {"dqn": 0, "dbs-dqn": 8, "dbs-dqn-fixed": 0}, [0])
    found = measure(tmp_path)
    assert [check.true for check in found.checks if check.of == "paper"] == [None, None, None]
    assert not any(check.true for check in found.checks)
    assert [row[0] for row in found.tables[0].rows] == ["dqn", "dbs-dqn", "dbs-dqn-fixed", "random actions"]
    for figure in found.figures:
        figure.draw()


def test_agent_without_a_run_on_some_game_is_shown_and_compared_with_none(tmp_path: Path) -> None:
    rows_of(tmp_path, "minatar", {"dqn": 0, "dbs-dqn": 8}, range(2))
    rows_of(tmp_path, "minatar", {"s-dqn": 0}, range(2), GAMES[:2])
    found = measure(tmp_path)
    (row,) = [row for row in found.tables[0].rows if row[0] == "s-dqn"]
    assert row[3:] == ("", "", "")
    assert [row[0] for row in found.tables[1].rows] == ["dbs-dqn"]
    assert "minatar: seed 0 has 12 of 15 runs" in found.finding
    for figure in found.figures:
        figure.draw()


def test_rows_that_are_not_there_are_asked_for_by_command(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"dynaboltz study studies/minatar\.toml --pack"):
        measure(tmp_path)


def test_agent_below_random_is_named(tmp_path: Path) -> None:
    rows_of(tmp_path, "minatar", {"dqn": 0, "dbs-dqn": 0}, range(3))
    rows_of(tmp_path, "minatar-random", {"random": 30}, range(3), GAMES[:1])
    data = shipped(tmp_path, ["minatar"])
    assert set(beyond_random(data)) == {(GAMES[0], "dqn"), (GAMES[0], "dbs-dqn")}
    assert by_fact(measure(tmp_path), "past random actions").detail == "0 of 2; not dbs-dqn on asterix, dqn on asterix"
    assert data.scale(data.scores("last evaluation")) == {}  # no game on which an agent beats random


def test_claim_of_every_reading_fails_where_one_does_not_win(folder: Path) -> None:
    rows_of(
        folder, "minatar-clock", {agent: -9 * (agent == "dbs-dqn-fixed-step") for agent in ALL[1:4] + ALL[5:]}, range(4)
    )
    found = measure(folder, minatar_clock.measure)
    assert by_fact(found, "every reading").true is False
    assert by_fact(found, "every reading").detail.startswith("1 of 7 do")
    assert by_fact(found, "what t counts").true
    assert "steps loses to target syncs" in found.finding
    assert "c̄ = c loses to c̄ = c₀" in found.finding  # c₀ is the agent that is far ahead
    for figure in found.figures:
        figure.draw()


def test_claim_of_every_reading_holds_where_all_win_and_is_open_where_one_is_missing(
    folder: Path, tmp_path: Path
) -> None:
    assert measure(folder, minatar_clock.measure).verdict is Verdict.OUT_OF_REACH
    rows_of(tmp_path / "all", "minatar", {"dqn": -6, "dbs-dqn": 0, "dbs-dqn-fixed": 0}, range(3))
    rows_of(tmp_path / "all", "minatar-clock", dict.fromkeys((*ALL[1:4], *ALL[5:]), 0), range(3))
    rows_of(tmp_path / "all", "minatar-random", {"random": -20}, range(3))
    found = measure(tmp_path / "all", minatar_clock.measure)
    assert found.verdict is Verdict.HOLDS
    assert by_fact(found, "what t counts").true is False


def test_backups_are_read_from_the_first_and_the_last_rows(folder: Path) -> None:
    data: Shipped = shipped(folder, ["minatar"])
    assert early_and_late(data.runs[0]) == pytest.approx({
        "gap, early": 0.03, "gap, late": 0.01, "saturated, early": 1 / 3, "saturated, late": 1.0, "β at the end": 300.0,
    })  # fmt: skip


def test_same_rows_in_another_folder_give_the_same_evidence(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("elsewhere") / "rows"
    folder.rename(other)
    moved = measure(other)
    other.rename(folder)
    here = measure(folder)
    assert (moved.finding, moved.settings, [c.detail for c in moved.checks]) == (
        here.finding, here.settings, [c.detail for c in here.checks],
    )  # fmt: skip


SHIPPED = sorted(path for path in ROWS.iterdir() if path.is_dir())


@pytest.mark.parametrize("study", SHIPPED, ids=lambda path: path.name)
def test_shipped_rows_are_those_that_the_runs_ended_with(study: Path) -> None:
    with (study / "results.csv").open(encoding="utf-8") as file:
        told = {row["rows"] for row in csv.DictReader(file)}
    found = set()
    for packed in study.rglob("rows.jsonl.zst"):
        found.add(hashlib.sha256(zstandard.ZstdDecompressor().decompress(packed.read_bytes())).hexdigest())
    assert found == told


@pytest.mark.parametrize("study", SHIPPED, ids=lambda path: path.name)
def test_shipped_runs_are_finished_and_all_of_their_study(study: Path) -> None:
    found = collect([study])
    assert found.notes == ()
    asked = read_study(Path(__file__).parents[2] / "studies" / f"{study.name}.toml").configs
    assert {run.config.identity for run in found.runs} <= {config.identity for config in asked}


def test_shipped_rows_are_small() -> None:
    assert SHIPPED
    assert sum(path.stat().st_size for path in ROWS.rglob("*") if path.is_file()) < 5_000_000
