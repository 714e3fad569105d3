"""Round trips through every format, and other people's readers on what we write."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynaboltz.errors import UserError
from dynaboltz.mdp import FORMATS, MDP, WORLDS, build_world, read, write

TEXTS = {name: name for name in WORLDS} | {"map": "map(text='S.#/..G', slip=0.1)"}
CHECKERS = [".tra", ".drn", ".umb"]


def held(mdp: MDP) -> MDP:
    """What the formats of model checkers hold of a model."""
    parts = {field.name: getattr(mdp, field.name) for field in dataclasses.fields(mdp)}
    lost = {"transition_reward": None, "state_labels": None, "grid": None}
    return MDP(**parts | lost | {"probability": mdp.probability.astype(np.float64)})


def rows(mdp: MDP) -> list[tuple[Any, ...]]:
    """State, action by name, reward, next states and probabilities of each row."""
    return sorted(
        (
            int(state),
            mdp.action_name(int(mdp.action[row])).split()[-1],
            float(mdp.reward[row]),
            tuple(mdp.next_state[mdp.row_ptr[row] : mdp.row_ptr[row + 1]].tolist()),
            tuple(mdp.probability[mdp.row_ptr[row] : mdp.row_ptr[row + 1]].tolist()),
        )
        for row, state in enumerate(mdp.row_states())
    )


def requires(suffix: str) -> None:
    if suffix == ".umb":
        pytest.importorskip("umbi")


@pytest.mark.parametrize("text", TEXTS.values())
def test_mdp_npz_round_trip_keeps_every_bit(text: str, tmp_path: Path) -> None:
    world = build_world(text)
    write(world, tmp_path / "m.npz")
    assert read(tmp_path / "m.npz").equals(world)


@pytest.mark.parametrize("suffix", CHECKERS)
@pytest.mark.parametrize("text", TEXTS.values())
def test_mdp_checker_format_round_trip_keeps_every_bit_it_holds(text: str, suffix: str, tmp_path: Path) -> None:
    requires(suffix)
    world = build_world(text)
    write(world, tmp_path / f"m{suffix}")
    assert read(tmp_path / f"m{suffix}").equals(held(world))


def test_mdp_map_round_trip_keeps_every_bit(tmp_path: Path) -> None:
    world = build_world("paper_grid")
    write(world, tmp_path / "m.txt")
    assert read(tmp_path / "m.txt").equals(world)


def test_mdp_map_refuses_what_a_map_does_not_say(tmp_path: Path) -> None:
    for text in ("grid(slip=0.1)", "chain"):
        with pytest.raises(UserError, match=r"not that of a map without slip"):
            write(build_world(text), tmp_path / "m.txt")
    assert list(tmp_path.iterdir()) == []


@st.composite
def models(draw: st.DrawFn) -> MDP:
    states, actions = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    terminal = rng.random(states) < 0.3
    terminal[0] = False
    available = (rng.random((states, actions)) < 0.6) | (np.arange(actions) == rng.integers(actions))
    p = rng.random((states, actions, states)) * (rng.random((states, actions, states)) < 0.5)
    p[..., 0] += 0.1
    p /= p.sum(axis=2, keepdims=True)
    p[~available | terminal[:, None]] = 0
    rewards = rng.normal(size=draw(st.sampled_from([(states, actions), (states, actions, states)])))
    return MDP.from_arrays(
        p,
        rewards,
        layout="sas",
        available=available,
        terminal=terminal,
        start=draw(st.sampled_from([None, 0])),
        action_labels=draw(st.sampled_from([None, [f"do_{a}" for a in range(actions)]])),
    )


@settings(deadline=None, max_examples=40)
@given(models())
def test_mdp_npz_round_trip_of_random_models(tmp_path_factory: pytest.TempPathFactory, model: MDP) -> None:
    path = tmp_path_factory.mktemp("npz") / "m.npz"
    write(model, path)
    assert read(path).equals(model)


@settings(deadline=None, max_examples=40)
@given(models(), st.sampled_from(CHECKERS))
def test_mdp_checker_format_round_trip_of_random_models(
    tmp_path_factory: pytest.TempPathFactory, model: MDP, suffix: str
) -> None:
    """Text names actions by label, in order of appearance, so rows are compared by what they do."""
    requires(suffix)
    path = tmp_path_factory.mktemp("checker") / f"m{suffix}"
    write(model, path)
    back = read(path)
    assert rows(back) == rows(model)
    assert np.array_equal(back.terminal, model.terminal)


def test_mdp_npz_of_one_model_is_one_file(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        write(build_world("garnet"), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_mdp_npz_compressed_by_numpy_is_read(tmp_path: Path) -> None:
    world = build_world("paper_grid")
    write(world, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        np.savez_compressed(tmp_path / "b.npz", **arrays)
    assert read(tmp_path / "b.npz").equals(world)


@pytest.mark.parametrize("suffix", FORMATS)
def test_mdp_failed_write_leaves_the_old_file_and_no_other(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requires(suffix)
    path = tmp_path / f"m{suffix}"
    write(build_world("paper_grid(walls='empty')"), path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"cannot write .*: No space left on device"):
        write(build_world("paper_grid"), path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("suffix", FORMATS)
def test_mdp_write_replaces_the_file_and_never_writes_into_it(suffix: str, tmp_path: Path) -> None:
    """A second name of the old file still shows the old file, whole."""
    requires(suffix)
    path, kept = tmp_path / f"m{suffix}", tmp_path / "kept"
    write(build_world("paper_grid(walls='empty')"), path)
    before = path.read_bytes()
    os.link(path, kept)
    write(build_world("paper_grid"), path)
    assert kept.read_bytes() == before
    assert path.read_bytes() != before


@pytest.mark.parametrize("suffix", FORMATS)
def test_mdp_write_into_a_missing_directory_is_a_clear_error(suffix: str, tmp_path: Path) -> None:
    requires(suffix)
    with pytest.raises(UserError, match=r"cannot write .*No such file"):
        write(build_world("paper_grid"), tmp_path / "none" / f"m{suffix}")


def test_mdp_checker_formats_refuse_start_probabilities_they_cannot_hold(tmp_path: Path) -> None:
    uneven = MDP.from_transitions([0, 1], [0, 0], [1, 0], [1.0, 1.0], [0.0, 0.0], start=[0.25, 0.75])
    for suffix in CHECKERS:
        with pytest.raises(UserError, match="set of first states"):
            write(uneven, tmp_path / f"m{suffix}")


def test_mdp_checker_formats_refuse_labels_they_would_tear_apart(tmp_path: Path) -> None:
    spaced = MDP.from_transitions([0], [0], [0], [1.0], [0.0], action_labels=["go on"])
    for suffix in CHECKERS:
        with pytest.raises(UserError, match="'go on' has a space"):
            write(spaced, tmp_path / f"m{suffix}")


def test_mdp_prism_files_read_as_the_manual_says(tmp_path: Path) -> None:
    world = MDP.from_transitions(
        [0, 0, 0],
        [0, 0, 1],
        [0, 1, 1],
        [0.25, 0.75, 1.0],
        [2.0, 2.0, 0.0],
        terminal=[1],
        start=0,
        action_labels=["x", "y"],
    )
    write(world, tmp_path / "m.tra")
    assert (tmp_path / "m.tra").read_text() == "2 3 4\n0 0 0 0.25 x\n0 0 1 0.75 x\n0 1 1 1.0 y\n1 0 1 1.0\n"
    assert (tmp_path / "m.lab").read_text() == '0="init" 1="deadlock"\n0: 0\n1: 1\n'
    assert (tmp_path / "m.trew").read_text() == "2 3 2\n0 0 0 2.0\n0 0 1 2.0\n"


def test_mdp_prism_states_without_choices_are_terminal(tmp_path: Path) -> None:
    (tmp_path / "m.tra").write_text("# Transitions (MDP)\n3 1 2\n0 0 1 0.4 east\n0 0 2 0.6 east\n")
    model = read(tmp_path / "m.tra")
    assert np.flatnonzero(model.terminal).tolist() == [1, 2]
    assert model.action_labels == ("east",)


def test_mdp_prism_state_and_transition_rewards_add(tmp_path: Path) -> None:
    (tmp_path / "m.tra").write_text("2 2 3\n0 0 0 0.5\n0 0 1 0.5\n1 0 0 1\n")
    (tmp_path / "m.srew").write_text('# Reward structure "r"\n# State rewards\n2 1\n0 10\n')
    (tmp_path / "m.trew").write_text("2 2 2\n0 0 1 4\n1 0 0 1\n")
    assert read(tmp_path / "m.tra").reward.tolist() == [12.0, 1.0]


def test_mdp_prism_writing_removes_the_state_rewards_of_an_older_model(tmp_path: Path) -> None:
    (tmp_path / "m.srew").write_text("2 1\n0 10\n")
    world = build_world("two_cycle")
    write(world, tmp_path / "m.tra")
    assert read(tmp_path / "m.tra").equals(world)


def test_mdp_prism_choices_that_share_a_name_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "m.tra").write_text("1 2 2\n0 0 0 1 go\n0 1 0 1 go\n")
    model = read(tmp_path / "m.tra")
    assert model.action.tolist() == [0, 1]
    assert model.action_labels is None


def test_mdp_drn_reward_models_are_chosen_by_name(tmp_path: Path) -> None:
    text = (
        "@type: MDP\n@reward_models\ncost gain\n@nr_states\n1\n@nr_choices\n1\n"
        "@model\nstate 0 [1, 20]\n\taction a [3, 40]\n\t\t0 : 1\n"
    )
    (tmp_path / "m.drn").write_text(text)
    assert read(tmp_path / "m.drn", reward="cost").reward.tolist() == [4.0]
    assert read(tmp_path / "m.drn", reward="gain").reward.tolist() == [60.0]
    with pytest.raises(UserError, match=r"cost, gain; say which"):
        read(tmp_path / "m.drn")
    with pytest.raises(UserError, match="did you mean 'gain'"):
        read(tmp_path / "m.drn", reward="gains")


@pytest.mark.parametrize("text", TEXTS.values())
def test_mdp_umb_is_read_by_umbi(text: str, tmp_path: Path) -> None:
    ats = pytest.importorskip("umbi.ats")
    world = build_world(text)
    write(world, tmp_path / "m.umb")
    theirs = ats.read(tmp_path / "m.umb")
    assert theirs.num_states == world.n_states
    going = [choice for choice in theirs.choices if not world.terminal[choice.state]]
    assert [branch.prob for choice in going for branch in choice.branches] == world.probability.tolist()
    assert [branch.target for choice in going for branch in choice.branches] == world.next_state.tolist()
    assert [choice.action for choice in going] == world.action.tolist()


def storm_model(path: Path) -> Any:
    stormpy = pytest.importorskip("stormpy")
    return stormpy.build_model_from_drn(path) if path.suffix == ".drn" else stormpy.build_model_from_umb(path)


@pytest.mark.parametrize("suffix", [".drn", ".umb"])  # what Storm calls .tra is a format of its own
@pytest.mark.parametrize("text", TEXTS.values())
def test_mdp_checker_format_is_read_by_storm(text: str, suffix: str, tmp_path: Path) -> None:
    requires(suffix)
    world = build_world(text)
    write(world, tmp_path / f"m{suffix}")
    theirs = storm_model(tmp_path / f"m{suffix}")
    matrix = theirs.transition_matrix
    going = [
        row
        for state in np.flatnonzero(~world.terminal).tolist()
        for row in range(matrix.get_row_group_start(state), matrix.get_row_group_end(state))
    ]
    entries = [(entry.column, entry.value) for row in going for entry in matrix.get_row(row)]
    assert [column for column, _ in entries] == world.next_state.tolist()
    assert [value for _, value in entries] == pytest.approx(world.probability.tolist(), abs=1e-15)
    ends = theirs.labeling.get_states("deadlock") if theirs.labeling.contains_label("deadlock") else []
    assert sorted(ends) == np.flatnonzero(world.terminal).tolist()
    assert world.start is not None
    assert list(theirs.initial_states) == np.flatnonzero(world.start).tolist()
    (rewards,) = theirs.reward_models.values()
    paid = rewards.state_action_rewards
    assert [paid[row] for row in going] == pytest.approx(world.reward.tolist(), abs=1e-14)


@pytest.mark.parametrize("suffix", [".drn", ".umb"])
@pytest.mark.parametrize("text", ["maintenance", "grid(slip=0.25)", "inventory"])
def test_mdp_checker_format_written_by_storm_is_read(text: str, suffix: str, tmp_path: Path) -> None:
    requires(".umb")
    storm_io = pytest.importorskip("stormpy.io")
    world = build_world(text)
    write(world, tmp_path / "ours.umb")
    theirs = storm_model(tmp_path / "ours.umb")
    {".drn": storm_io.export_to_drn, ".umb": storm_io.export_to_umb}[suffix](theirs, str(tmp_path / f"m{suffix}"))
    back = read(tmp_path / f"m{suffix}")
    assert np.array_equal(back.terminal, world.terminal)
    assert [row[:2] for row in rows(back)] == [row[:2] for row in rows(world)]
    for theirs_row, ours in zip(rows(back), rows(world), strict=True):
        assert theirs_row[3] == ours[3]
        assert theirs_row[2] == pytest.approx(ours[2], abs=1e-8)  # Storm's text has ten digits
        assert theirs_row[4] == pytest.approx(ours[4], abs=1e-9)
