"""Reports of runs on disk: what is there is compared, what is not there is said."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz.cli import main
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.reports.collect import Collection, Run, Series, collect
from dynaboltz.reports.comparison import compare, read_references
from dynaboltz.reports.curves import curve, episodes_at, evaluations_at
from dynaboltz.reports.report import report, write
from dynaboltz.reports.scores import human_references
from dynaboltz.reports.statistics import mean_interval
from dynaboltz.reports.tables import Table
from dynaboltz.runs import Given, home_of, resolve

Output = pytest.CaptureFixture[str]
LEVELS = {"dqn": 10.0, "dbs-dqn": 20.0}


def a_run(root: Path, env: str, preset: str, seed: int, *, finished: bool = True, **settings: Any) -> Path:
    """A run's folder: evaluations every 100 of 400 steps that rise to the preset's level plus the seed."""
    given = {"env": env, "steps": 400, "seed": seed} | {
        key.replace("__", "."): value for key, value in settings.items()
    }
    config = resolve(preset, None, {key: Given(value, "the test") for key, value in given.items()})
    home = home_of(config, root)
    home.prepare(config)
    rows: list[dict[str, Any]] = [{"kind": "start", "step": 0}]
    for step in range(100, 401 if finished else 201, 100):
        score = LEVELS[preset] * step / 400 + seed
        rows += [
            {"kind": "episode", "step": step - 50, "return": score - 1},
            {"kind": "learning", "step": step, "loss": None},
            {"kind": "evaluation", "step": step, "mean": score, "returns": [score]},
        ]
    rows += [{"kind": "end", "step": 400}] if finished else []
    home.rows.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return home.folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for env in ("CartPole-v1", "Acrobot-v1"):
        for preset in LEVELS:
            for seed in range(3):
                a_run(tmp_path / "runs", env, preset, seed)
    return tmp_path / "runs"


def only(found: Collection) -> Run:
    (run,) = found.runs
    return run


def test_report_compares_the_last_evaluations(root: Path) -> None:
    found = report([root])
    rows = {(row["environment"], row["agent"]): row for row in found.tables["scores"].records()}
    interval = mean_interval([20.0, 21.0, 22.0])
    row = rows["Acrobot-v1", "dbs-dqn"]
    assert (row["runs"], row["mean"], row["95 % low"]) == (3, interval.value, pytest.approx(interval.low))
    (first, second) = found.tables["against-baseline"].records()
    assert (first["agent"], first["difference"], first["P(better)"]) == ("dbs-dqn", 10.0, 1.0)
    assert first["p"] == second["p"] < 0.01
    assert "no interval" in found.tables["tasks"].rows[0][-1]  # every run is better: nothing to resample
    assert not [note for note in found.notes if "finished" in note]


def test_report_at_a_step_takes_the_scores_of_then(root: Path) -> None:
    a_run(root, "CartPole-v1", "dqn", 7, finished=False)
    rows = report([root], at=200).tables["scores"].records()
    dqn = next(row for row in rows if (row["environment"], row["agent"]) == ("CartPole-v1", "dqn"))
    assert (dqn["runs"], dqn["least"], dqn["most"]) == (4, 5.0, 12.0)


def test_training_score_is_of_the_last_episodes(root: Path) -> None:
    scores = compare(collect([root]).runs, score="training").scores
    assert scores["CartPole-v1", "dqn"].tolist() == [np.mean([1.5, 4.0, 6.5, 9.0]) + seed for seed in range(3)]


def test_best_score_is_of_the_best_evaluation_wherever_it_was(root: Path) -> None:
    rows = only(collect([a_run(root, "CartPole-v1", "dqn", 7)])).folder / "rows.jsonl"
    rows.write_text(rows.read_text(encoding="utf-8").replace('"mean": 9.5', '"mean": 95.5'), encoding="utf-8")
    found = report([root], score="best")
    scores = compare(found.collection.runs, score="best").scores["CartPole-v1", "dqn"]
    assert scores.tolist() == [10.0, 11.0, 12.0, 95.5]
    assert compare(found.collection.runs).scores["CartPole-v1", "dqn"].tolist() == [10.0, 11.0, 12.0, 17.0]
    assert "(best evaluation)" in found.tables["scores"].caption


def test_unfinished_runs_are_in_curves_and_not_in_tables_and_are_named(root: Path) -> None:
    a_run(root, "CartPole-v1", "dqn", 7, finished=False)
    found = report([root])
    rows = found.tables["scores"].records()
    assert next(row for row in rows if (row["environment"], row["agent"]) == ("CartPole-v1", "dqn"))["runs"] == 3
    assert found.curves["CartPole-v1"]["dqn"].runs.tolist() == [4, 4, 3, 3]
    assert "CartPole-v1, dqn, seed 7 is not finished: 200 of 400 steps" in found.notes
    assert "1 of 13 runs are not finished and count in no table" in found.notes


def test_torn_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "CartPole-v1", "dqn", 0)
    rows = (folder / "rows.jsonl").read_bytes()
    (folder / "rows.jsonl").write_bytes(rows[:-9])
    found = collect([tmp_path])
    assert (only(found).finished, only(found).step, len(only(found).evaluations)) == (False, 400, 4)
    assert any("last line is torn" in note for note in found.notes)


@pytest.mark.parametrize(
    "line", [b"\xff\xfe\n", b"[1]\n", b'{"kind": "episode"}\n', b'{"kind": 3, "step": 1}\n', b"[" * 9999 + b"\n"]
)
def test_line_that_is_no_row_ends_the_run_there_and_is_named(tmp_path: Path, line: bytes) -> None:
    folder = a_run(tmp_path, "CartPole-v1", "dqn", 0)
    rows = (folder / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "rows.jsonl").write_bytes(b"".join([*rows[:4], line, *rows[4:]]))
    found = collect([tmp_path])
    assert len(only(found).evaluations) == 1
    assert any("line 5 is not a row" in note for note in found.notes)


def test_run_without_rows_or_with_broken_settings_is_said(root: Path) -> None:
    empty = a_run(root, "CartPole-v1", "dqn", 8)
    (empty / "rows.jsonl").unlink()
    broken = a_run(root, "CartPole-v1", "dqn", 9)
    (broken / "config.toml").write_text("env = ", encoding="utf-8")
    found = report([root])
    assert any("seed 8 is not finished: no rows yet" in note for note in found.notes)
    assert any(str(broken) in note and "left out" in note for note in found.notes)
    assert len(found.collection.runs) == 13


def test_compressed_rows_are_the_same_run(tmp_path: Path) -> None:
    folder = a_run(tmp_path, "CartPole-v1", "dqn", 0)
    plain = collect([tmp_path])
    packed = gzip.compress((folder / "rows.jsonl").read_bytes())
    (folder / "rows.jsonl").unlink()
    (folder / "rows.jsonl.gz").write_bytes(packed)
    assert only(collect([tmp_path])).evaluations.returns.tolist() == only(plain).evaluations.returns.tolist()
    (folder / "rows.jsonl.gz").write_bytes(packed[:-12])
    assert any("cannot be read" in note for note in collect([tmp_path]).notes)


def test_run_that_is_there_twice_counts_once_where_it_is_further(tmp_path: Path) -> None:
    a_run(tmp_path / "a", "CartPole-v1", "dqn", 0, finished=False)
    a_run(tmp_path / "b", "CartPole-v1", "dqn", 0)
    found = collect([tmp_path / "a", tmp_path / "b", tmp_path])
    assert only(found).finished
    assert sum("same run" in note for note in found.notes) == 1


def test_agents_of_one_name_are_told_apart_by_what_differs_on_one_environment(tmp_path: Path) -> None:
    for rate in (0.001, 0.002):
        a_run(tmp_path, "CartPole-v1", "dqn", 0, agent__learning_rate=rate)
    a_run(tmp_path, "Acrobot-v1", "dqn", 0, agent__learning_rate=0.001, steps=500)
    names = {(run.config.env, run.agent) for run in collect([tmp_path]).runs}
    assert names == {
        ("CartPole-v1", "dqn learning_rate=0.001"),
        ("CartPole-v1", "dqn learning_rate=0.002"),
        ("Acrobot-v1", "dqn learning_rate=0.001"),
    }


def test_settings_that_follow_the_environment_do_not_split_an_agent(tmp_path: Path) -> None:
    a_run(tmp_path, "CartPole-v1", "dqn", 0, steps=400)
    a_run(tmp_path, "Acrobot-v1", "dqn", 0, steps=900)
    assert {run.agent for run in collect([tmp_path]).runs} == {"dqn"}


def test_references_put_all_tasks_on_one_scale(root: Path, tmp_path: Path) -> None:
    (tmp_path / "scale.csv").write_text("environment,low,high\nCartPole-v1,0,10\nAcrobot-v1,0,10\n", encoding="utf-8")
    found = report([root], references=read_references(tmp_path / "scale.csv"))
    rows = {row["agent"]: row for row in found.tables["tasks"].records()}
    assert rows["dqn"]["mean"].startswith("1.1 [")
    assert rows["dbs-dqn"]["interquartile mean"].startswith("2.1 [")
    partly = report([root], references={"CartPole-v1": (0.0, 10.0)})
    assert any("Acrobot-v1 is not in it" in note for note in partly.notes)
    assert "mean" not in partly.tables["tasks"].header


def test_profiles_are_the_shares_above_each_level_where_there_is_a_common_scale(root: Path, tmp_path: Path) -> None:
    assert report([root]).profiles is None
    found = report([root], references=dict.fromkeys(("CartPole-v1", "Acrobot-v1"), (0.0, 10.0)))
    assert found.profiles is not None
    levels, shares = found.profiles
    assert set(shares) == {"dqn", "dbs-dqn"}  # 1, 1.1, 1.2 and 2, 2.1, 2.2 on both environments
    assert np.interp([0.9, 1.15, 1.3], levels, shares["dqn"].value) == pytest.approx([1, 1 / 3, 0], abs=0.02)
    assert np.interp([1.9, 2.15], levels, shares["dbs-dqn"].value) == pytest.approx([1, 1 / 3], abs=0.02)
    assert all((one.low <= one.value).all() and (one.value <= one.high).all() for one in shares.values())
    page = write(found, tmp_path / "out", command="c")
    assert (page.parent / "profiles.svg").is_file()
    assert "Share of runs above each score" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["a,1,1\n", "a,1\n", "a,x,2\n", "a,nan,2\n", "environment,low,high\na,1,2,3\n"])
def test_references_that_are_none_are_refused_with_their_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "scale.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"scale\.csv, line \d is not"):
        read_references(tmp_path / "scale.csv")


@pytest.mark.parametrize(
    "env", ["ALE/MsPacman-v5", "atari/MsPacman", "MsPacmanNoFrameskip-v4", "atari/UpNDown", "atari/Qbert(protocol='x')"]
)
def test_atari_names_have_random_and_human_scores(env: str) -> None:
    found = human_references(env)
    assert (found is None) == env.startswith("MsPacman")
    if found is not None:
        assert found[0] < found[1]


def test_curve_is_the_mean_of_the_runs_that_have_come_so_far(root: Path) -> None:
    runs = [run for run in collect([root]).runs if (run.config.env, run.agent) == ("CartPole-v1", "dqn")]
    found = curve(runs, "evaluation")
    assert found.steps.tolist() == [100, 200, 300, 400]
    assert found.mean.tolist() == [3.5, 6.0, 8.5, 11.0]
    assert found.low[3] == pytest.approx(mean_interval([10.0, 11.0, 12.0]).low)
    alone = curve(runs[:1], "evaluation")
    assert alone.mean.tolist() == [2.5, 5.0, 7.5, 10.0]
    assert np.isnan(alone.low).all()


def test_series_have_no_value_before_their_first_or_after_their_last_step() -> None:
    series = Series(np.array([10.0, 30.0]), np.array([1.0, 3.0]))
    assert evaluations_at(series, [5, 10, 29, 30, 31]).tolist() == pytest.approx(
        [math.nan, 1, 1, 3, math.nan], nan_ok=True
    )
    assert episodes_at(series, [20, 40, 60]).tolist() == pytest.approx([1, 3, math.nan], nan_ok=True)
    assert np.isnan(evaluations_at(Series(np.array([]), np.array([])), [1.0])).all()


def test_latex_escapes_names_and_csv_keeps_every_digit() -> None:
    table = Table(caption="50 %", header=("a_b", "x"), rows=[("C:\\{x}", 0.1 + 0.2)])
    assert r"C:\textbackslash{}\{x\} & 0.3 \\" in table.latex()
    assert r"\caption{50 \%}" in table.latex()
    assert "0.30000000000000004" in table.csv()


def test_page_and_files_of_a_report_are_whole_and_escaped(tmp_path: Path) -> None:
    nasty = "<img src=x onerror=alert(1)>"
    for seed in range(2):
        for preset in LEVELS:
            a_run(tmp_path / "runs", nasty, preset, seed)
    page = write(report([tmp_path / "runs"]), tmp_path / "out", command=f"dynaboltz report '{nasty}'")
    html = page.read_text(encoding="utf-8")
    assert "<img" not in html
    assert "&lt;img src=x" in html
    assert "<script" not in html
    names = {path.name for path in page.parent.iterdir()}
    assert {"scores.csv", "scores.tex", "report.json", "curve-1.svg", "curve-1.pdf", "curve-1.png"} <= names
    assert len(json.loads((page.parent / "report.json").read_text(encoding="utf-8"))["runs"]) == 4


def test_report_of_the_same_rows_has_the_same_bytes(root: Path, tmp_path: Path) -> None:
    pages = [write(report([root]), tmp_path / name, command="c") for name in ("a", "b")]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    for path in pages[0].parent.iterdir():
        assert path.read_bytes() == (pages[1].parent / path.name).read_bytes(), path.name


@pytest.mark.parametrize(
    ("flag", "begins"),
    [("--csv", "environment,agent,"), ("--latex", r"\begin{table}"), ("--json", "{"), ("", "Score of each")],
)
def test_command_prints_one_form_and_writes_the_rest(
    root: Path, tmp_path: Path, capsys: Output, flag: str, begins: str
) -> None:
    out = tmp_path / "out"
    assert main(["report", str(root), "--out", str(out), *([flag] if flag else [])]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(begins)
    assert "report: 12 runs →" in printed.err
    assert (out / "index.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "there is no folder nowhere"),
        (["."], "there is no run to report on"),
        ([], "needs a folder"),
        ([".", "--csv", "--json"], "one form"),
        (["runs", "--baseline", "dqm"], "did you mean 'dqn'"),
        (["runs", "--score", "median"], "unknown score"),
    ],
)
def test_command_says_what_is_wrong(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output, arguments: list[str], words: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path if arguments[:1] == ["runs"] else tmp_path / "empty")
    assert main(["report", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert root.is_dir()


def test_unknown_score_is_refused(root: Path) -> None:
    with pytest.raises(UnknownNameError, match="evaluation"):
        compare(collect([root]).runs, score="evaluatoin")


def test_page_of_a_report_opens_with_nothing_on_the_console(browser: Any, root: Path, tmp_path: Path) -> None:
    page = write(report([root]), tmp_path / "out", command="dynaboltz report runs")
    for look in ({}, {"dark": True}, {"width": 390, "height": 844}):
        browser.open(page, **look)
        assert browser.complaints == []
        assert {address.split(":")[0] for address in browser.requests} <= {"file", "data"}
        assert browser.run("document.documentElement.scrollWidth") <= look.get("width", 1100)
