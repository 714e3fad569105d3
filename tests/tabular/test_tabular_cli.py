"""``dynaboltz learn`` as a user types it."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from dynaboltz.cli import main
from dynaboltz.cli.learn import table
from dynaboltz.mdp import build_world
from dynaboltz.tabular import agent, learn

QUICK = ["grid(rows=2, cols=2)", "--seeds", "3", "--episodes", "20"]


def test_learn_prints_the_question_and_a_table_with_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "grid(rows=2, cols=2): 4 states, 4 actions"
    assert "q_learning with boltzmann(beta=power(2)) (t: episode), γ = 0.9, α = constant(0.1)" in lines[1]
    assert lines[1].endswith("ties random, at most 300 steps an episode")
    assert lines[2].startswith("3 seeds × 20 episodes: ")
    assert lines[4].split() == ["episodes", "steps", "of", "an", "episode", "return", "of", "an", "episode"]
    assert len(lines) == 4 + 1 + 10 + 2
    assert "[" in lines[5]


def test_learn_prints_json_that_agrees_with_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", *QUICK, "--agent", "sarsa", "--epsilon", "0.3", "--root", "7", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    found = learn(build_world("grid(rows=2, cols=2)"), agent("sarsa", episodes=20, epsilon=0.3), seeds=3, root=7)
    assert printed["digest"] == found.digest()
    assert printed["steps"] == found.steps.sum()
    assert printed["periods"][0]["steps"]["mean"] == found.steps[:, :2].mean()
    assert printed["config"] == found.config.as_dict()


def test_table_splits_the_episodes_and_covers_each_once() -> None:
    found = learn(build_world("grid(rows=2, cols=2)"), agent("dbs", episodes=23), seeds=2)
    spans = [row["episodes"] for row in table(found)]
    assert spans[0][0] == 1
    assert spans[-1][1] == 23
    assert all(a[1] + 1 == b[0] for a, b in itertools.pairwise(spans))


def test_learn_of_one_seed_has_no_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "grid(rows=2, cols=2)", "--seeds", "1", "--episodes", "5"]) == 0
    out = capsys.readouterr().out
    assert "[" not in out
    assert out.splitlines()[-1] == "one seed: no intervals"


def test_learn_writes_npz_without_pickle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "learned.npz"
    assert main(["learn", *QUICK, "--out", str(target)]) == 0
    assert f"written to {target}" in capsys.readouterr().out
    with np.load(target, allow_pickle=False) as archive:
        assert archive["q"].shape == (3, 4, 4)
        assert archive["policy"][:, -1].tolist() == [-1, -1, -1]
        assert json.loads(archive["meta"].tobytes())["config"]["rule"] == "q_learning"


def test_learn_writes_csv_with_a_line_an_episode(tmp_path: Path) -> None:
    target = tmp_path / "learned.csv"
    assert main(["learn", *QUICK, "--out", str(target)]) == 0
    rows = list(csv.DictReader(target.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 60
    assert list(rows[0]) == ["seed", "episode", "steps", "return"]
    assert (rows[59]["seed"], rows[59]["episode"]) == ("2", "20")


def test_learn_goes_on_from_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", *QUICK, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)["digest"]
    for resume in ([], ["--resume"]):
        assert main(["learn", *QUICK, "--json", "--checkpoint", str(tmp_path), *resume]) == 0
        assert json.loads(capsys.readouterr().out)["digest"] == whole


def test_learn_takes_gymnasium_ids_with_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["FrozenLake-v1(is_slippery=False)", "--agent", "q", "--max-steps", "100", "--episodes", "20"]
    assert main(["learn", *arguments, "--seeds", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] > 40


def test_learn_numbers_the_three_parts_of_blackjacks_observations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "Blackjack-v1", "--agent", "q", "--seeds", "2", "--episodes", "5"]) == 0
    assert capsys.readouterr().out.startswith("Blackjack-v1: 704 states, 2 actions\n")


@pytest.mark.parametrize(("arguments", "message"), [
    (["nowhere"], "unknown world 'nowhere'"),
    (["missing.npz"], "cannot read missing.npz"),
    (["chain(states=1)"], "states"),
    (["chain(length=4)"], "unknown argument of chain: 'length'"),
    (["NoSuch-v0"], "Gymnasium cannot make 'NoSuch-v0'"),
    (["FrozenLake-v1(colour=3)"], "Gymnasium cannot make"),
    (["CartPole-v1"], "a table needs a Discrete observation space"),
    (["MountainCar-v0"], "a table needs a Discrete observation space"),
    (["Pendulum-v1"], "a table needs a Discrete observation space"),
    (["chain", "--agent", "dqs"], "unknown agent 'dqs'"),
    (["chain", "--summary", "boltzman(beta=1)"], "did you mean 'boltzmann'"),
    (["chain", "--summary", "power(2)"], "is a schedule, not an operator"),
    (["chain", "--agent", "sarsa", "--summary", "hard_max"], "sarsa has no summary"),
    (["chain", "--agent", "double_q", "--summary", "log_sum_exp(beta=2)"], "is no average"),
    (["chain", "--clock", "sweeps"], "unknown clock 'sweeps'"),
    (["chain", "--discount", "2"], "discount must be a number from 0 to 1"),
    (["chain", "--discount", "nan"], "discount must be a number from 0 to 1"),
    (["chain", "--episodes", "0"], "episodes must be a whole number"),
    (["chain", "--max-steps", "-3"], "max_steps must be a whole number"),
    (["chain", "--epsilon", "1.01"], "epsilon must be a number from 0 to 1"),
    (["chain", "--epsilon", "power(1)"], "epsilon must be from 0 to 1; power(1) is 2 at t = 2"),
    (["chain", "--epsilon-clock", "visit"], "unknown epsilon_clock 'visit'"),
    (["chain", "--step-size", "visits(-1)"], "omega must be at least 0"),
    (["chain", "--step-size", "half"], "unknown step_size 'half'"),
    (["chain", "--initial", "uniform(2, 1)"], "needs low < high"),
    (["chain", "--initial", "[[]]"], "expected a name"),
    (["chain", "--ties", "best"], "unknown ties 'best'"),
    (["chain", "--prior", "(1, 2)"], "a prior is for g_learning"),
    (["chain", "--agent", "g_learning", "--prior", "(1, 2, 3)"], "3 numbers, and the world has 2 actions"),
    (["chain", "--agent", "g_learning", "--prior", "(1, -2)"], "finite numbers above 0"),
    (["chain", "--seeds", "0"], "seeds must be a whole number of at least 1"),
    (["chain", "--seeds", "99999999999"], "at most 10,000,000 in one call, got 99,999,999,999"),
    (["chain", "--seeds", "10000000", "--episodes", "1000000"], "take fewer seeds at a time"),
    (["chain", "--root", "-1"], "root must be a whole number"),
    (["chain", "--threads", "0"], "threads must be a whole number"),
    (["chain", "--out", "learned.pkl"], "unknown format '.pkl'"),
    (["chain", "--out", "/nowhere/learned.npz"], "its folder does not exist"),
    (["chain", "--resume"], "--resume goes on from a folder"),
    (["chain", "--checkpoint", "/proc/nothing"], "cannot write into the folder"),
    (["pgq_grid", "--agent", "soft_q", "--summary", "log_sum_exp(beta=1e-307)", "--step-size", "1", "--discount", "1"],
     "Q diverged"),
])  # fmt: skip
def test_learn_refuses_in_words(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["learn", *arguments])
    caught = capsys.readouterr()
    assert code == (1 if "diverged" in message else 2)
    assert caught.err.startswith("error: ")
    assert message in caught.err
    assert not caught.out
