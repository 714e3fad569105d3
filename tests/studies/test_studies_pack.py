"""Packed runs: whole, small, the same bytes again, and nothing of the machine that made them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.cli import main
from dynaboltz.errors import StorageError, UserError
from dynaboltz.reports.collect import collect
from dynaboltz.runs import RunConfig, home_of, train
from dynaboltz.studies import Place, pack

Grid = Callable[..., tuple[RunConfig, ...]]
Output = pytest.CaptureFixture[str]


@pytest.fixture
def configs(grid: Grid, place: Place) -> tuple[RunConfig, ...]:
    """Three runs, of which two are finished."""
    found = grid(seeds=[0, 1, 2])
    for config in found[:2]:
        train(config, place.root)
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_packed_runs_are_read_as_the_runs_are(configs: tuple[RunConfig, ...], place: Place, tmp_path: Path) -> None:
    found = pack(configs, place, tmp_path / "packed")
    assert (found.runs, found.others, [one.seed for one in found.unfinished]) == (2, 0, [2])
    runs, packed = (collect([folder]).runs for folder in (place.root, tmp_path / "packed"))
    for one, other in zip(runs, packed, strict=True):
        assert (one.config, one.step, one.finished) == (other.config, other.step, other.finished)
        assert one.episodes.returns.tolist() == other.episodes.returns.tolist()
        assert one.evaluations.returns.tolist() == other.evaluations.returns.tolist() != []


def test_pack_holds_settings_rows_and_results_and_is_as_large_as_it_says(
    configs: tuple[RunConfig, ...], place: Place, tmp_path: Path
) -> None:
    found, there = pack(configs, place, tmp_path / "packed"), files(tmp_path / "packed")
    assert sorted(Path(name).name for name in there) == ["config.toml"] * 2 + ["results.csv"] + ["rows.jsonl.zst"] * 2
    assert found.size == sum(map(len, there.values()))
    place.prepare()
    place.write_results(configs)
    assert there["results.csv"] == place.results.read_bytes()


def test_pack_of_the_same_runs_made_elsewhere_has_the_same_bytes(
    configs: tuple[RunConfig, ...], place: Place, tmp_path: Path
) -> None:
    other = Place(tmp_path / "another machine's folder", "tiny")
    for config in configs[:2]:
        train(config, other.root)
    for one, into in ((place, "a"), (other, "b")):
        pack(configs, one, tmp_path / into)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert not any(str(tmp_path).encode() in content for content in files(tmp_path / "a").values())


def test_runs_of_another_study_stay_and_are_counted(
    configs: tuple[RunConfig, ...], place: Place, tmp_path: Path
) -> None:
    pack(configs[:1], place, tmp_path / "packed")
    before = files(tmp_path / "packed")
    found = pack(configs[1:], place, tmp_path / "packed")
    assert (found.runs, found.others) == (1, 1)
    assert before.items() - files(tmp_path / "packed").items() == {("results.csv", before["results.csv"])}


def test_rows_that_are_not_those_of_the_run_are_not_packed(
    configs: tuple[RunConfig, ...], place: Place, tmp_path: Path
) -> None:
    rows = home_of(configs[1], place.root).rows
    rows.write_bytes(rows.read_bytes().replace(b'"return": ', b'"return": 1', 1))
    with pytest.raises(StorageError, match="does not hold the rows that probe/beta dqn seed 1 ended with"):
        pack(configs, place, tmp_path / "packed")


def test_nothing_finished_is_nothing_to_pack(grid: Grid, place: Place, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of the 1 runs is finished"):
        pack(grid(), place, tmp_path / "packed")
    assert not (tmp_path / "packed").exists()


def test_folder_that_cannot_be_made_is_named_with_its_option(
    configs: tuple[RunConfig, ...], place: Place, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot make the folder .*file.*\n.*--pack"):
        pack(configs, place, tmp_path / "file")


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: content[:60] + b"?" + content[61:]])
def test_damaged_pack_is_noticed(
    configs: tuple[RunConfig, ...], place: Place, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    pack(configs[:1], place, tmp_path / "packed")
    (rows,) = (tmp_path / "packed").rglob("rows.jsonl.zst")
    rows.write_bytes(damage(rows.read_bytes()))
    found = collect([tmp_path / "packed"])
    assert not found.runs[0].finished
    assert found.notes


@pytest.fixture
def study(tmp_path: Path, place: Place) -> Path:
    """A study of three runs, of which one is finished."""
    file = tmp_path / "tiny.toml"
    text = 'preset = "dqn"\nseeds = "0..2"\n[settings]\nenv = "probe/beta"\nsteps = 60\n'
    file.write_text(f"{text}[settings.agent]\nreplay_start_steps = 50\nhidden = [8]\n", encoding="utf-8")
    assert main(["study", str(file), "--out", str(place.root), "--only", "seed=1", "--json"]) == 0
    return file


def test_command_packs_and_says_what_is_left_out(study: Path, place: Place, tmp_path: Path, capsys: Output) -> None:
    capsys.readouterr()
    arguments = ["study", str(study), "--out", str(place.root), "--pack", str(tmp_path / "packed")]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "1 of 3 runs are finished and packed" in printed
    assert "not finished: 2 runs, probe/beta dqn seed 0, probe/beta dqn seed 2" in printed
    assert main([*arguments, "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["others"], len(told["unfinished"])) == (1, 0, 2)
    assert told["bytes"] == sum(map(len, files(tmp_path / "packed").values()))


def test_command_refuses_to_pack_and_to_plan_at_once(study: Path, tmp_path: Path, capsys: Output) -> None:
    assert main(["study", str(study), "--pack", str(tmp_path / "p"), "--dry-run"]) == 2
    assert "--dry-run and --pack" in capsys.readouterr().err
