"""From TOML to runs: what is asked is what is run, and what is wrong is named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.cli import main
from dynaboltz.errors import UserError
from dynaboltz.runs import Given
from dynaboltz.studies import parse_study, read_study, select
from dynaboltz.studies.study import parse_seeds

FILES = sorted((Path(__file__).parents[2] / "studies").glob("*.toml"))


def study(**tree: Any) -> Any:
    return parse_study({"preset": "dqn", "settings": {"env": "probe/beta"}} | tree, "my.toml", default_name="my")


def test_study_has_every_combination_of_its_axes() -> None:
    found = study(seeds="0..1", axes={"env": ["CartPole-v1", "Acrobot-v1"], "agent.learning_rate": [0.1, 0.2, 0.3]})
    points = {(one.env, one.agent.learning_rate, one.seed) for one in found.configs}
    assert len(found.configs) == len(points) == 12
    assert ("Acrobot-v1", 0.3, 1) in points


def test_study_does_all_of_one_seed_before_the_next() -> None:
    found = study(seeds=[4, 2], axes={"env": ["CartPole-v1", "Acrobot-v1"]})
    assert [one.seed for one in found.configs] == [4, 4, 2, 2]


def test_study_has_a_run_once_that_is_asked_for_twice() -> None:
    found = study(axes={"agent.summary": ["boltzmann(5)", "boltzmann(beta=5)", "hard_max"]})
    assert [str(one.agent.parsed_summary) for one in found.configs] == ["boltzmann(beta=5)", "hard_max"]
    assert found.repeated == 1


def test_agents_are_named_variants_and_their_names_are_those_of_the_runs() -> None:
    agents = {"slow": {"agent.learning_rate": 1e-5}, "double": {"preset": "ddqn", "agent": {"n_step": 3}}}
    slow, double = study(agents=agents).configs
    assert (slow.name, slow.agent.learning_rate, slow.agent.double) == ("slow", 1e-5, False)
    assert (double.name, double.agent.n_step, double.agent.double) == ("double", 3, True)


def test_worlds_bring_their_own_settings() -> None:
    found = study(worlds={"a": {"env": "CartPole-v1", "steps": 10}, "b": {"env": "Acrobot-v1", "steps": 20}})
    assert [(one.env, one.steps) for one in found.configs] == [("CartPole-v1", 10), ("Acrobot-v1", 20)]


def test_preset_takes_the_scale_of_each_world() -> None:
    found = parse_study(
        {"axes": {"env": ["minatar/breakout", "CartPole-v1"], "preset": ["dqn"]}}, "x", default_name="x"
    )
    assert [one.agent.network for one in found.configs] == ["minatar", "mlp"]


def test_change_from_the_command_line_comes_over_all() -> None:
    tree = {"preset": "dqn", "worlds": {"a": {"env": "CartPole-v1", "steps": 10}}}
    found = parse_study(tree, "x", default_name="x", changes={"steps": Given("77", "a line", written=True)})
    assert found.configs[0].steps == 77


def test_selection_keeps_what_every_text_allows() -> None:
    configs = study(seeds="0..2", axes={"env": ["probe/beta", "CartPole-v1"]}).configs
    kept = select(configs, ["env=probe/*", "seed=0,2"])
    assert [(one.env, one.seed) for one in kept] == [("probe/beta", 0), ("probe/beta", 2)]


@pytest.mark.parametrize("text", ["env", "envs=probe/beta", "env=nowhere/*"])
def test_selection_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--only"):
        select(study().configs, [text])


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"axis": {}}, "unknown key 'axis' in my.toml\n  did you mean 'axes'?"),
    "unknown setting": (
        {"settings": {"stepz": 1}},
        "unknown key 'stepz' in my.toml, [settings]\n  did you mean 'steps'?",
    ),
    "unknown axis": ({"axes": {"summary": ["mean"]}}, "did you mean 'agent.summary'?"),
    "unknown in agent": ({"agents": {"a": {"agent": {"lr": 1}}}}, "unknown key 'agent.lr' in my.toml, [agents.a]"),
    "unknown preset": ({"preset": "dqm"}, "unknown preset 'dqm' in my.toml\n  did you mean 'dqn'?"),
    "axis without values": ({"axes": {"env": []}}, "env in my.toml, [axes] must be a list of values, got []"),
    "axis of one": ({"axes": {"env": "CartPole-v1"}}, "must be a list of values, got 'CartPole-v1'"),
    "agent no table": ({"agents": {"a": "dqn"}}, "agents.a in my.toml must be a table of settings, got 'dqn'"),
    "two axes": (
        {"axes": {"steps": [1, 2]}, "worlds": {"a": {"steps": 5}}},
        "steps is given by two axes of my.toml\n  my.toml, [worlds.a]\n  my.toml, [axes]",
    ),
    "seed as axis": ({"axes": {"seed": [1]}}, "the seeds of a study stand at the top"),
    "seeds backwards": ({"seeds": "4..2"}, 'seeds in my.toml must be a list such as [0, 1, 2], or text such as "0..4"'),
    "seeds twice": ({"seeds": [1, 1]}, "seeds in my.toml names a seed twice"),
    "wrong value": ({"axes": {"steps": ["many"]}}, "steps must be a whole number, got 'many' in my.toml, [axes]"),
    "too many": ({"seeds": "0..9999", "axes": {"steps": list(range(1, 99))}}, "my.toml asks for 980,000 runs"),
    "preset twice": ({"settings": {"preset": "dqn"}}, "preset is given twice in my.toml"),
    "name no text": ({"name": 3}, "name in my.toml must be text, got 3"),
}


@pytest.mark.parametrize(("tree", "message"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_in_a_study_is_named_with_its_place(tree: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as fault:
        study(**tree)
    assert message in str(fault.value)


def test_file_that_is_no_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("seeds = [1\n[axes]\n")
    with pytest.raises(UserError, match=r"bad\.toml is not TOML.*line"):
        read_study(path)


@pytest.mark.parametrize("value", ["1..", "a..b", "0..999999999", [], [-1], [True], 3, [1.0]])
def test_seeds_that_are_no_seeds_are_refused(value: Any) -> None:
    with pytest.raises(UserError, match="here must be a list"):
        parse_seeds(value, "here")


SHIPPED = {
    "breakout": 2 * 5,
    "breakout-random": 3,
    "classic": 2 * 7 * 10,
    "minatar": 5 * 7 * 5,
    "minatar-clock": 5 * 5 * 3,
    "minatar-random": 5 * 5,
    "paper-atari": 49 * 3 * 3,
    "six-curves": 6 * 3 * 3,
    "seaquest-c": 21,
}


def test_shipped_studies_are_those_that_are_known() -> None:
    assert {path.stem for path in FILES} == set(SHIPPED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_shipped_study_has_the_runs_that_it_promises(path: Path) -> None:
    found = read_study(path)
    assert (len(found.configs), found.repeated) == (SHIPPED[path.stem], 0)
    assert found.section
    assert found.about


def test_curves_of_the_paper_are_runs_of_its_atari_study() -> None:
    by_name = {path.stem: {one.identity for one in read_study(path).configs} for path in FILES}
    assert by_name["six-curves"] < by_name["paper-atari"]


def test_atari_studies_follow_the_protocol_of_mnih_et_al() -> None:
    from dynaboltz.envs.protocols import protocol
    from dynaboltz.runs.settings import flat

    asked = dict(protocol("nature2015").run)
    for path in FILES:
        if path.stem in ("paper-atari", "six-curves"):
            for config in read_study(path).configs:
                settings = flat(config)
                assert {key: settings[key] for key in asked} == asked


def test_study_of_the_docs_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    found = parse_study(tomllib.loads(text), "docs", default_name="docs")
    assert len(found.configs) == 2 * 2 * 5
    assert {config.name for config in found.configs} == {"slow", "fast"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--calibrate"], "--calibrate is for --dry-run"),
        (["--dry-run", "--pack", "rows"], "two different things"),
        (["--only", "env"], "--only takes key=pattern"),
        (["--set", "steps"], "--set takes key=value"),
        (["--on", "moon"], "unknown executor 'moon'"),
        (["--jobs", "0"], "--jobs must be from 1"),
    ],
    ids=lambda part: part if isinstance(part, str) else " ".join(part),
)
def test_command_refuses_before_any_run_begins(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "runs"
    assert main(["study", str(FILES[0]), "--out", str(out), *options]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
