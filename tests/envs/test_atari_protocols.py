"""Protocols are data: named, frozen, hashed, changed by keyword, and in agreement with what a run can be told."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dynaboltz.deep import PRESETS
from dynaboltz.envs.protocols import NOTES, PROTOCOLS, Protocol, protocol
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.runs.config import RunConfig

HASHES = {
    "nature2015": "119150fec8a3",
    "dqn3_lua": "e50e41a0fcb7",
    "dqn_zoo": "818b5e45e0d9",
    "dopamine": "061378579919",
    "machado2018": "dc7f22afe433",
    "atari100k": "a9c88656c748",
}


def test_protocols_are_these_and_no_hash_has_changed() -> None:
    assert {name: entry.hash[:12] for name, entry in PROTOCOLS.items()} == HASHES


def test_protocol_of_the_paper_is_that_of_the_paper() -> None:
    paper = protocol("nature2015")
    assert (paper.noops_least, paper.noops_most) == (1, 30)
    assert paper.cap_frames == 5 * 60 * 60
    assert paper.life_loss == "terminal"
    assert not paper.all_actions
    assert paper.sticky_actions == 0
    assert dict(paper.run)["evaluation.epsilon"] == 0.05
    assert dict(paper.run)["evaluation.episodes"] == 30


def test_protocols_differ_where_their_sources_differ() -> None:
    assert protocol("dqn_zoo").cap_frames == 108_000
    assert protocol("machado2018").sticky_actions == 0.25
    assert protocol("machado2018").all_actions
    assert protocol("machado2018").life_loss == "ignored"
    assert dict(protocol("dqn3_lua").run)["agent.target_period"] == "10000 steps"
    assert dict(protocol("nature2015").run)["agent.target_period"] == "10000 updates"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_protocol_changed_in_one_field_has_another_name_and_hash(name: str) -> None:
    changed = protocol(name, cap_frames=1234)
    assert str(changed) == f"{name}(cap_frames=1234)"
    assert changed.hash != protocol(name).hash
    assert str(protocol(name, cap_frames=protocol(name).cap_frames)) == name


@pytest.mark.parametrize("name", PROTOCOLS)
def test_protocol_asks_of_a_run_what_a_run_can_be_told(name: str) -> None:
    settings = dict(protocol(name).run)
    agent = {key.removeprefix("agent."): value for key, value in settings.items() if key.startswith("agent.")}
    changed = PRESETS["dqn-nature"](**agent)
    assert all(getattr(changed, key) == value for key, value in agent.items() if key != "optimiser")
    evaluation = {
        key.removeprefix("evaluation."): value for key, value in settings.items() if key.startswith("evaluation.")
    }
    config = RunConfig(env="atari/Pong", steps=int(settings["steps"]))
    told = dataclasses.replace(config.evaluation, **evaluation)  # type: ignore[arg-type]
    assert {key: getattr(told, key) for key in evaluation} == evaluation
    assert settings.keys() - {f"agent.{key}" for key in agent} - {f"evaluation.{key}" for key in evaluation} == {
        "steps"
    }


@pytest.mark.parametrize("name", PROTOCOLS)
def test_evaluation_of_a_protocol_cuts_where_its_world_does(name: str) -> None:
    entry = protocol(name)
    cut = dict(entry.run).get("evaluation.max_steps")
    if cut is not None and entry.cap_frames:
        assert cut == entry.cap_frames // entry.frames_per_action


def test_protocol_describes_every_field_with_what_there_is_to_know() -> None:
    entry = protocol("nature2015", sticky_actions=0.25)
    text = entry.describe()
    assert text.startswith(f"nature2015(sticky_actions=0.25)  {entry.hash[:12]}\n")
    assert "18000 emulator frames" in text
    assert "10000 updates" in text
    assert NOTES["agent.target_period"] in text
    assert all(name in text for name in entry.fields)


def test_protocol_cannot_be_altered_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        protocol().cap_frames = 0  # type: ignore[misc]


def test_unknown_protocol_and_field_name_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown protocol 'nature2014'\n  did you mean 'nature2015'\?"):
        protocol("nature2014")
    with pytest.raises(UnknownNameError, match=r"'noop_most'\n  did you mean 'noops_most'\?"):
        protocol("nature2015", noop_most=3)
    with pytest.raises(UnknownNameError, match=r"unknown field of the protocol dqn_zoo: 'run'"):
        protocol("dqn_zoo", run=())
    with pytest.raises(UnknownNameError, match=r"value of life_loss: 'terminall'\n  did you mean 'terminal'"):
        protocol("nature2015", life_loss="terminall")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("frames_per_action", 0),
        ("frames_per_action", 4.0),
        ("sticky_actions", 1.5),
        ("sticky_actions", float("nan")),
        ("all_actions", 1),
        ("noops_least", 31),
        ("noops_most", -1),
        ("cap_frames", -4),
        ("cap_frames", True),
        ("stack", 0),
    ],
)
def test_wrong_value_of_a_field_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(UserError, match=r"protocol nature2015: \w+ must be .*got"):
        protocol("nature2015", **{field: value})


def test_protocols_are_told_apart_by_hash() -> None:
    hashes = {entry.hash for entry in PROTOCOLS.values()}
    assert len(hashes) == len(PROTOCOLS)
    assert isinstance(protocol(), Protocol)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else f"`{value}`"


def test_page_of_atari_has_the_protocols_as_they_are() -> None:
    runs = [dict(entry.run) for entry in PROTOCOLS.values()]
    rows = {key: [entry.fields[key] for entry in PROTOCOLS.values()] for key in protocol().fields}
    expected = [f"| `{key}` | {' | '.join(map(_cell, values))} |" for key, values in rows.items()]
    asked = dict.fromkeys(key for run in runs for key in run)
    expected += [f"| `{key}` | {' | '.join(_cell(run[key]) if key in run else '' for run in runs)} |" for key in asked]
    expected.append(f"| hash | {' | '.join(f'`{entry.hash[:12]}`' for entry in PROTOCOLS.values())} |")
    page = (Path(__file__).parents[2] / "docs" / "atari.md").read_text(encoding="utf-8").splitlines()
    head = page.index("| | " + " | ".join(f"`{name}`" for name in PROTOCOLS) + " |")
    assert page[head + 2 : head + 2 + len(expected)] == expected
