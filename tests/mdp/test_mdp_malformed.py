"""Every malformed input is a ``UserError`` that names the place, the value found and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from dynaboltz.errors import UserError
from dynaboltz.mdp import MDP, build_world, load, read, write

P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
R = np.zeros((2, 3))
NAMES: dict[str, Any] = {"state_labels": ["dry", "wet"], "action_labels": ["go", "wait", "stop"]}


def changed(table: Any, *at: int, to: float) -> Any:
    copy = np.array(table, np.float64)
    copy[at] = to
    return copy


def rows(**parts: Any) -> MDP:
    """Two states with one row each, with some part replaced."""
    given: dict[str, Any] = {"state": [0, 1], "action": [0, 0], "row_ptr": [0, 1, 2], "next_state": [1, 0]}
    given |= {"probability": [1.0, 1.0], "reward": [0.0, 0.0]}
    return MDP.from_rows(**(given | parts))


def raw(**parts: Any) -> MDP:
    """The same model through the class itself, with some part replaced."""
    index, number = np.int32, np.float64
    given: dict[str, Any] = {
        "state_ptr": np.array([0, 1, 2], index),
        "action": np.array([0, 0], index),
        "row_ptr": np.array([0, 1, 2], index),
        "next_state": np.array([1, 0], index),
        "probability": np.array([1.0, 1.0], number),
        "reward": np.array([0.0, 0.0], number),
        "n_actions": 1,
        "terminal": np.array([False, False]),
    }
    return MDP(**(given | parts))


ARRAYS: dict[str, tuple[Callable[[], Any], str]] = {
    "a number for a model": (
        lambda: load(3),  # type: ignore[arg-type]
        "expected the name of a model, such as 'FrozenLake-v1' or a file, got 3",
    ),
    "sum below one": (
        lambda: MDP.from_arrays(changed(P, 0, 0, 0, to=0.4), R),
        "state 0, action 0: .*sum to 0.9, not to 1",
    ),
    "sum above one": (
        lambda: MDP.from_arrays(changed(P, 2, 1, 0, to=1.0) + changed(np.zeros_like(P), 2, 1, 1, to=0.1), R, **NAMES),
        r"state 1 'wet', action 2 'stop': .*sum to 1\.1",
    ),
    "row of zeros": (
        lambda: MDP.from_arrays(changed(P, 1, 0, 0, to=0), R),
        "state 0, action 1: all probabilities are 0",
    ),
    "zero sum of stored zeros": (
        lambda: MDP.from_transitions([0, 0], [0, 1], [0, 0], [1.0, 0.0], [0.0, 0.0]),
        "state 0, action 1: .*sum to 0.0",
    ),
    "negative probability": (
        lambda: MDP.from_arrays(changed(P, 0, 0, 0, to=-0.5), R, **NAMES),
        r"state 0 'dry', action 0 'go', next state 0: the probability is -0\.5",
    ),
    "NaN probability": (
        lambda: MDP.from_arrays(changed(P, 0, 1, 1, to=np.nan), R),
        "state 1, action 0, next state 1: .* nan",
    ),
    "infinite probability": (lambda: MDP.from_arrays(changed(P, 0, 1, 1, to=np.inf), R), "state 1, action 0, .* inf"),
    "NaN reward": (
        lambda: MDP.from_arrays(P, changed(R, 1, 2, to=np.nan), **NAMES),
        "state 1 'wet', action 2 'stop', .*reward is nan",
    ),
    "minus infinite reward": (
        lambda: MDP.from_arrays(P, changed(R, 0, 1, to=-np.inf)),
        "state 0, action 1, .*-inf.*action set",
    ),
    "infinite transition reward": (
        lambda: MDP.from_arrays(P, changed(np.zeros_like(P), 0, 0, 1, to=np.inf)),
        "state 0, action 0, next state 1: the reward is inf",
    ),
    "P of two dimensions": (lambda: MDP.from_arrays(P[0], R), r"P must have the shape \(A, S, S\).*got \(2, 2\)"),
    "P not square": (lambda: MDP.from_arrays(np.ones((2, 3, 4)), R), r"P of shape \(2, 3, 4\)"),
    "P empty": (lambda: MDP.from_arrays(np.ones((0, 2, 2)), R), r"got \(0, 2, 2\)"),
    "P ragged": (lambda: MDP.from_arrays([[[1.0], [0.5, 0.5]]], R), "P is not a table"),
    "P of text": (lambda: MDP.from_arrays([[["a"]]], R), "P must hold real numbers"),
    "P complex": (lambda: MDP.from_arrays(P * 1j, R), "P must hold real numbers, got values of type complex128"),
    "R transposed": (lambda: MDP.from_arrays(P, R.T), r"R must have the shape \(S, A\) = \(2, 3\).*got \(3, 2\)"),
    "R of the wrong layout": (
        lambda: MDP.from_arrays(P, np.zeros((2, 3, 2))),
        r"R of shape \(2, 3, 2\) must have the shape of P",
    ),
    "R of one dimension": (lambda: MDP.from_arrays(P, np.zeros(3)), r"got \(3,\)"),
    "unknown layout": (lambda: MDP.from_arrays(P, R, layout="aas"), "layout must be 'ass'.*got 'aas'"),
    "wrong layout": (lambda: MDP.from_arrays(P, R, layout="sas"), r"is not of the shape \(S, A, S\)"),
    "available of the wrong shape": (
        lambda: MDP.from_arrays(P, R, available=np.ones((3, 2), bool)),
        r"available must be .*\(2, 3\)",
    ),
    "probabilities of a missing action": (
        lambda: MDP.from_arrays(P, R, available=np.array([[True, False, True], [True, True, True]])),
        "state 0, action 1: has probabilities, but available",
    ),
    "state without actions": (
        lambda: MDP.from_transitions([0], [0], [1], [1.0], [0.0], state_labels=["dry", "wet"]),
        "state 1 'wet' has no actions and is not terminal",
    ),
    "terminal state with a way out": (
        lambda: MDP.from_arrays(P, R, terminal=[0]),
        "state 0 is terminal but has actions",
    ),
    "terminal state with a paid loop": (
        lambda: MDP.from_transitions([0, 1], [0, 0], [1, 1], [1.0, 1.0], [0.0, 2.0], terminal=[1]),
        "state 1 is terminal but has actions",
    ),
    "terminal out of range": (
        lambda: MDP.from_arrays(P, R, terminal=[2]),
        "terminal names state 2; states lie in 0 … 1",
    ),
    "terminal twice": (lambda: MDP.from_arrays(P, R, terminal=[0, 0]), "terminal names a state twice"),
    "terminal mask of the wrong size": (
        lambda: MDP.from_arrays(P, R, terminal=np.zeros(3, bool)),
        r"shape \(2,\), got \(3,\)",
    ),
    "next state out of range": (lambda: rows(next_state=[1, 7], n_states=2), "state 1, action 0, next state 7.*0 … 1"),
    "negative next state": (lambda: rows(next_state=[-1, 0]), "state 0, action 0, next state -1"),
    "negative state": (lambda: rows(state=[-1, 1]), "state -1, action 0"),
    "action out of range": (lambda: rows(action=[0, 5], n_actions=2), "state 1, action 5"),
    "row given twice": (lambda: rows(state=[1, 1]), "state 1, action 0: given twice, as row 0 and 1"),
    "row without transitions": (lambda: rows(row_ptr=[0, 0, 2]), "state 0, action 0: row 0 has no transitions"),
    "row_ptr of the wrong size": (lambda: rows(row_ptr=[0, 2]), "row_ptr must have 3 entries, got 2"),
    "row_ptr beyond the end": (lambda: rows(row_ptr=[0, 1, 3]), "row_ptr must run from 0 to 2, got 0 to 3"),
    "columns of unequal length": (lambda: rows(probability=[1.0]), "probability must have 2 entries, got 1"),
    "states that are not integers": (lambda: rows(state=[0.0, 1.0]), "state must hold integers"),
    "states of two dimensions": (lambda: rows(state=[[0, 1]]), "state must have one dimension"),
    "no transitions at all": (
        lambda: MDP.from_transitions([], [], [], [], []),
        "at least one state that has an action",
    ),
    "no states": (lambda: rows(n_states=0), "n_states must be an integer of at least 1, got 0"),
    "start out of range": (lambda: rows(start=2), "start is state 2"),
    "start that does not sum to one": (lambda: rows(start=[0.5, 0.4]), "start probabilities sum to 0.9"),
    "negative start": (lambda: rows(start=[1.5, -0.5]), r"start probability of state 1 is -0\.5"),
    "start of the wrong size": (lambda: rows(start=[1.0]), "start must have 2 entries"),
    "labels of the wrong number": (
        lambda: rows(state_labels=["a", "b", "c"], n_states=2),
        "state_labels must have 2 entries.*got 3",
    ),
    "label used twice": (lambda: rows(state_labels=["a", "a"]), "state 1 has the label 'a', which state 0 has"),
    "label that is no text": (lambda: rows(action_labels=[3]), "action_labels must be a tuple of strings"),
    "sparse P of unequal shapes": (
        lambda: MDP.from_scipy([csr_array(np.eye(2)), csr_array(np.eye(3))], np.zeros((2, 2))),
        r"P of action 1 must have the shape \(2, 2\), got \(3, 3\)",
    ),
    "sparse P that is dense": (lambda: MDP.from_scipy([np.eye(2)], np.zeros((2, 1))), "P must be a sequence of SciPy"),
    "sparse R of the wrong number": (
        lambda: MDP.from_scipy([csr_array(np.eye(2))], [csr_array(np.eye(2))] * 2),
        "one matrix for each of the 1 actions, got 2",
    ),
    "sparse P with an empty row": (
        lambda: MDP.from_scipy([csr_array(changed(np.eye(2), 1, 1, to=0))], np.zeros((2, 1))),
        "state 1, action 0: all probabilities are 0",
    ),
    "function to an unknown state": (
        lambda: MDP.from_function("ab", ["go"], lambda *_: [(1.0, "z", 0.0)]),
        "state 'a', action 'go': step returned .*'z'",
    ),
    "function without outcomes": (
        lambda: MDP.from_function("ab", ["go"], lambda *_: []),
        "state 'a', action 'go': .*no transitions",
    ),
    "function with a short outcome": (
        lambda: MDP.from_function("ab", ["go"], lambda *_: [(1.0, "a")]),
        "state 'a', action 'go'",
    ),
    "function with a state twice": (
        lambda: MDP.from_function("aa", ["go"], lambda *_: []),
        "state 'a' is listed 2 times",
    ),
    "function with an unknown terminal": (
        lambda: MDP.from_function("ab", ["go"], lambda *_: [], terminal="c"),
        "terminal names 'c'",
    ),
    "class: rows out of order": (
        lambda: raw(state_ptr=np.array([0, 2, 2]), terminal=np.array([False, True])),
        "state 0, action 0: the actions of a state must be in increasing order",
    ),
    "class: next states out of order": (
        lambda: raw(
            state_ptr=np.array([0, 1, 1]),
            action=np.array([0]),
            row_ptr=np.array([0, 2]),
            probability=np.array([0.5, 0.5]),
            reward=np.array([0.0]),
            terminal=np.array([False, True]),
        ),
        "state 0, action 0, next state 0: the next states of a row must be in increasing order",
    ),
    "class: pointer that falls": (
        lambda: raw(state_ptr=np.array([0, 3, 2])),
        "state_ptr must not decrease, but entry 2 is 2 after 3",
    ),
    "class: pointer that starts late": (
        lambda: raw(row_ptr=np.array([1, 1, 2])),
        "row_ptr must run from 0 to 2, got 1",
    ),
    "class: float indices": (
        lambda: raw(action=np.array([0.0, 0.0])),
        "action must be a one-dimensional array of integers",
    ),
    "class: list for an array": (lambda: raw(reward=[0.0, 0.0]), "reward must be .* got list"),
    "class: half precision": (
        lambda: raw(probability=np.ones(2, np.float16)),
        "probability must be float64 or float32",
    ),
    "class: index beyond 32 bits": (
        lambda: raw(next_state=np.array([2**40, 0])),
        f"next state {2**40}: next states must lie in 0 … 1",
    ),
    "class: probability above one": (
        lambda: raw(probability=np.array([1.0, 1.5])),
        r"state 1, action 0, next state 0: the probability is 1\.5",
    ),
    "class: transition rewards that disagree": (
        lambda: raw(transition_reward=np.array([0.0, 1.0])),
        "state 1, action 0: the reward is 0.0, but the transition rewards average 1.0",
    ),
    "class: no actions": (lambda: raw(n_actions=0), "n_actions must be an integer of at least 1"),
}

TEXTS: dict[str, tuple[str, str]] = {
    "map with an unknown mark": ("map(text='S.x/..G')", "map line 1, column 3: unknown character 'x'"),
    "map with a short row": ("map(text='S../..G/..')", "map line 3 has 2 characters where line 1 has 3"),
    "map without a goal": ("map(text='S../...')", "no goal: mark at least one cell with G"),
    "map of ends only": ("map(text='GH')", "every cell of the map ends the episode"),
    "map that is empty": ("map(text='')", "the map is empty"),
    "map that is no text": ("map(text=3)", "a map must be text, got int"),
    "map of another alphabet": ("map(text='Ｓ.G')", "column 1: unknown character"),
    "map missing": ("map", "missing a required argument: 'text'"),
    "slip above one": ("grid(slip=1.5)", r"slip must be a probability in \[0, 1\], got 1\.5"),
    "slip as text": ("grid(slip='0.1')", "slip must be .* got '0.1'"),
    "rows as a float": ("grid(rows=3.0)", "rows must be an integer of at least 1, got 3.0"),
    "one cell": ("grid(rows=1, cols=1)", "at least two cells"),
    "unknown walls": ("grid(walls='interleave')", "did you mean 'interleaved'"),
    "random walls without a seed": ("grid(walls=0.2)", "random walls need a seed"),
    "a seed without random walls": ("grid(seed=3)", "seed is for random walls"),
    "unknown precision": ("grid(precision='float16')", "precision must be 'float64' or 'float32'"),
    "a grid that cannot fit": ("grid(rows=10000000, cols=10000000)", r"would need about .* GiB"),
    "branching above states": ("garnet(states=3, branching=4)", "branching must be an integer from 1 to 3, got 4"),
    "negative seed": ("garnet(seed=-1)", "seed must be an integer of at least 0"),
    "a garnet that cannot fit": ("garnet(states=1000000000, actions=1000)", r"'garnet' would need about .* GiB"),
    "chain of one": ("chain(states=1)", "states must be an integer of at least 2, got 1"),
    "bandit without arms": ("bandit(rewards=[])", "at least one number"),
    "bandit with an infinite arm": ("bandit(rewards=[0, 1e999])", "reward 1 must be a number"),
    "beta of zero": ("tight_bandit(beta=0)", "beta must be a number from"),
    "true for a number": ("maintenance(levels=True)", "levels must be an integer"),
    "wear above one": ("maintenance(wear=2)", "wear must be a number from 0 to 1, got 2"),
    "demand of zero": ("inventory(demand=0)", "demand must be a number"),
    "a value without its key": ("grid(10)", "every value needs its key in 'grid.10.', but 10 has none"),
    "an expression": ("grid(rows=2+3)", r"cannot read .*2 \+ 3. is not a name, a number"),
    "a parenthesis left open": ("grid(rows=3", "cannot read 'grid.rows=3'.*never closed"),
    "keys unpacked": ("grid(**{'rows': 3})", r"\*\* is not part of a spec"),
    "an attribute": ("os.system(x=1)", "cannot tell what|cannot read"),
    "deep nesting": ("bandit(rewards=" + "[" * 5000 + "]" * 5000 + ")", "cannot read"),
    "an endless text": ("grid(rows=" + "1" * 200_000 + ")", "at most 100,000 characters.*has 200,011"),
    "nothing": ("", "cannot tell what '' is"),
    "a sentence": ("my model", "cannot tell what 'my model' is"),
    "an unknown suffix": ("./model.xyz", "unknown file format '.xyz'"),
    "a missing file": ("missing.npz", "cannot read missing.npz: No such file"),
}

DRN = "@type: MDP\n@reward_models\nr\n@nr_states\n2\n@nr_choices\n2\n@model\n"
DRN += "state 0 [0] init\n\taction a [1]\n\t\t1 : 1\nstate 1 [0]\n\taction a [0]\n\t\t0 : 1\n"
TRA = "2 2 3\n0 0 0 0.5 go\n0 0 1 0.5 go\n1 0 0 1 go\n"

FILES: dict[str, tuple[dict[str, str], str]] = {
    "tra: empty": ({"m.tra": ""}, r"m\.tra, line 1: the header must be the 3 numbers"),
    "tra: header of a Markov chain": ({"m.tra": "2 3\n0 0 1\n"}, r"line 1: the header must be the 3 numbers"),
    "tra: header of words": ({"m.tra": "a b c\n"}, r"line 1: the states must be an integer from 0, got 'a'"),
    "tra: cut off": ({"m.tra": "2 2 3\n0 0 0 0.5\n"}, r"line 1: the header says 3 transitions, but 1 lines follow"),
    "tra: billions of states": (
        {"m.tra": "1000000000 1 1\n0 0 0 1\n"},
        r"1000000000 states cannot all occur in 1 trans",
    ),
    "tra: state out of range": ({"m.tra": TRA.replace("1 0 0 1", "2 0 0 1")}, r"line 4: the state is 2; .* 0 … 1"),
    "tra: target out of range": ({"m.tra": TRA.replace("1 0 0 1", "1 0 9 1")}, r"line 4: the next state is 9"),
    "tra: negative choice": ({"m.tra": TRA.replace("1 0 0 1", "1 -1 0 1")}, r"line 4: the choice must be .* got '-1'"),
    "tra: probability of words": (
        {"m.tra": TRA.replace("0.5", "half")},
        r"line 2: the probability must be a number, got 'half'",
    ),
    "tra: probability nan": (
        {"m.tra": TRA.replace("1 0 0 1", "1 0 0 nan")},
        r"line 4: state 1, choice 0: the probability is nan",
    ),
    "tra: sum": ({"m.tra": TRA.replace("0 0 1 0.5", "0 0 1 0.4")}, r"m\.tra: state 0, action 0 'go': .* sum to 0\.9"),
    "tra: short line": ({"m.tra": TRA.replace("1 0 0 1 go", "1 0 0")}, r"line 4: a transition is"),
    "tra: line twice": (
        {"m.tra": TRA.replace("0 0 1 0.5", "0 0 0 0.5")},
        r"line 3: state 0, choice 0 leads to 0 a second time",
    ),
    "tra: two names": ({"m.tra": TRA.replace("0 0 1 0.5 go", "0 0 1 0.5 stay")}, r"line 3: .* called 'go' and 'stay'"),
    "tra: choices miscounted": (
        {"m.tra": TRA.replace("2 2 3", "2 5 3")},
        r"header says 5 choices, but the lines have 2",
    ),
    "tra: not text": ({"m.tra": "2 2 3\udcff"}, r"m\.tra is not a text file: byte 5"),
    "lab: undeclared": ({"m.tra": TRA, "m.lab": '0="init"\n0: 3\n'}, r"m\.lab, line 2: label '3' is not declared"),
    "lab: bad declaration": ({"m.tra": TRA, "m.lab": "init\n"}, r"m\.lab, line 1: labels are declared as"),
    "lab: state out of range": ({"m.tra": TRA, "m.lab": '0="init"\n7: 0\n'}, r"m\.lab, line 2: the state is 7"),
    "lab: no colon": ({"m.tra": TRA, "m.lab": '0="init"\n0 0\n'}, r"m\.lab, line 2: a state's labels are"),
    "srew: infinite": ({"m.tra": TRA, "m.srew": "2 1\n0 inf\n"}, r"m\.srew, line 2: the reward is inf"),
    "srew: twice": ({"m.tra": TRA, "m.srew": "2 2\n0 1\n0 1\n"}, r"m\.srew, line 3: state 0 is given twice"),
    "srew: miscounted": ({"m.tra": TRA, "m.srew": "2 2\n0 1\n"}, r"m\.srew, line 1: the header says 2 entries, but 1"),
    "trew: of no transition": (
        {"m.tra": TRA, "m.trew": "2 2 1\n1 0 1 5\n"},
        r"m\.trew, line 2: .* 1 0 1 is not in m\.tra",
    ),
    "trew: short line": ({"m.tra": TRA, "m.trew": "2 2 1\n1 0 1\n"}, r"m\.trew, line 2: a transition reward is"),
    "drn: empty": ({"m.drn": ""}, r"there is no @model"),
    "drn: another type": ({"m.drn": DRN.replace("MDP", "CTMC")}, r"line 1: .*@type MDP, got 'CTMC'"),
    "drn: parameters": ({"m.drn": "@parameters\np q\n" + DRN}, r"line 2: a model with parameters"),
    "drn: unknown key": ({"m.drn": "@players\n" + DRN}, r"line 1: unknown key '@players'"),
    "drn: billions of states": (
        {"m.drn": DRN.replace("@nr_states\n2", "@nr_states\n2000000000")},
        r"line 5: @nr_states is 2000000000, more than",
    ),
    "drn: states miscounted": (
        {"m.drn": DRN.replace("@nr_states\n2", "@nr_states\n3")},
        r"header says 3 states, but the file has 2",
    ),
    "drn: states out of order": (
        {"m.drn": DRN.replace("state 1", "state 0")},
        r"line 12: state 1 was expected, got state 0",
    ),
    "drn: transition before an action": (
        {"m.drn": DRN.replace("state 1 [0]\n\taction a [0]\n", "state 1 [0]\n")},
        r"line 13: a transition needs an action",
    ),
    "drn: action before a state": (
        {"m.drn": DRN.replace("state 0 [0] init\n", "")},
        r"line 9: an action needs .* a state above it",
    ),
    "drn: probability of words": (
        {"m.drn": DRN.replace("0 : 1\n", "0 : x\n")},
        r"line 14: the probability must be a number, got 'x'",
    ),
    "drn: probability above one": (
        {"m.drn": DRN.replace("0 : 1\n", "0 : 2\n")},
        r"line 14: state 1: the probability 2\.0",
    ),
    "drn: sum": ({"m.drn": DRN.replace("0 : 1\n", "0 : 0.5\n")}, r"m\.drn: state 1, action 0 'a': .* sum to 0\.5"),
    "drn: reward nan": ({"m.drn": DRN.replace("[1]", "[nan]")}, r"line 10: the reward is nan"),
    "drn: reward missing": (
        {"m.drn": DRN.replace("@reward_models\nr", "@reward_models\nq r")},
        r"has the reward models q, r; say which",
    ),
    "drn: bracket left open": ({"m.drn": DRN.replace("[1]", "[1")}, r"line 10: the rewards in brackets"),
    "drn: target out of range": ({"m.drn": DRN.replace("\t\t1 : 1", "\t\t5 : 1")}, r"line 11: the next state is 5"),
    "drn: cut off": ({"m.drn": DRN[:40]}, r"no @model; this is not a .drn file, or it is cut off"),
    "txt: unknown mark": ({"m.txt": "S.\n.?\n"}, r"m\.txt: map line 2, column 2: unknown character '\?'"),
    "txt: no goal": ({"m.txt": "S.\n"}, r"m\.txt: the map has no goal"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_mdp_malformed_arrays_are_refused_by_their_place(case: str) -> None:
    build, says = ARRAYS[case]
    with pytest.raises(UserError, match=says):
        build()


@pytest.mark.parametrize("case", TEXTS)
def test_mdp_malformed_text_is_refused_by_its_place(case: str) -> None:
    text, says = TEXTS[case]
    with pytest.raises(UserError, match=says):
        load(text)


@pytest.mark.parametrize("case", FILES)
def test_mdp_malformed_file_is_refused_by_its_line(case: str, tmp_path: Path) -> None:
    files, says = FILES[case]
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match=says):
        read(tmp_path / next(iter(files)))


@pytest.mark.parametrize("good", [TRA, DRN])
def test_mdp_malformed_files_differ_from_a_good_one(good: str, tmp_path: Path) -> None:
    path = tmp_path / ("m.tra" if good is TRA else "m.drn")
    path.write_text(good)
    assert read(path).n_states == 2


def test_mdp_malformed_reward_choice_is_refused_where_there_is_none(tmp_path: Path) -> None:
    for suffix in (".npz", ".tra", ".txt"):
        write(build_world("paper_grid"), tmp_path / f"m{suffix}")
        with pytest.raises(UserError, match="leave out reward='r'"):
            read(tmp_path / f"m{suffix}", reward="r")
