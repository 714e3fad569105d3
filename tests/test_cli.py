"""The commands as a user types them: exact output, errors in one line, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dynaboltz import boltzmann, paper
from dynaboltz.cli import COMMANDS, main
from dynaboltz.errors import MissingExtraError
from dynaboltz.paper import CLAIMS
from dynaboltz.paper.claim import Evidence

HELP = """\
dynaboltz: dynamic Boltzmann softmax Bellman updates

usage: dynaboltz COMMAND [OPTIONS]

  lens       what each operator makes of a row of action values
  solve      a finite MDP: values, a policy and a proven bound on their error
  show       a solution: value map and policy, on the terminal or as a figure
  mdp        check, convert and show finite MDPs
  learn      a tabular agent, thousands of seeds at once, on a finite MDP or a Gymnasium environment
  train      an agent, from a preset or a file of settings; what was begun goes on
  resume     a run that was interrupted, to the same bits as without the interruption
  evaluate   a run's weights, by episodes that its training never saw
  watch      a run as a live page on this machine: curves, speed, the agent playing
  play       watch an environment and an agent: in the terminal, in a window, as a video
  study      a grid of runs, on this machine or a cluster; what is done stays done
  report     runs compared: tables, curves and one page; unfinished runs are welcome
  reproduce  the paper's claims: numbers, figures and the verdict of each
  doctor     what is installed, what is missing and the command that installs it

dynaboltz COMMAND --help tells a command's options; --version the version;
--debug, with any command, shows the traceback of an error.
"""

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_the_commands(arguments: list[str], capsys: Output) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out == HELP


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"usage: dynaboltz {command}" in capsys.readouterr().out


def test_version_is_printed(capsys: Output) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("dynaboltz 0.")


WRONG = {
    "unknown command": (["lenz"], "unknown command 'lenz'\n  did you mean 'lens'?"),
    "no values": (["lens"], "lens needs at least one action value"),
    "unknown operator": (["lens", "0", "1", "--summary", "boltzman"], "did you mean 'boltzmann'?"),
    "misspelt schedule": (["lens", "0", "--summary", "boltzmann(beta=powr(2))"], "did you mean 'power'?"),
    "negative beta": (["lens", "0", "1", "--summary", "boltzmann(beta=-1)"], "beta must be a number of at least 0"),
    "missing beta": (["lens", "0", "--summary", "boltzmann"], "boltzmann needs a beta"),
    "superfluous beta": (["lens", "0", "--summary", "hard_max(beta=1)"], "has no beta"),
    "not a number": (["lens", "nan", "1"], "action values must be finite"),
    "all illegal": (["lens", "--summary", "mean", "--", "-inf"], "no legal action"),
    "negative time": (["lens", "0", "1", "--t", "-1"], "time must be"),
    "code": (["lens", "0", "--summary", "__import__('os').getcwd()"], "cannot read"),
    "no such model": (["solve", "frozenlake", "--discount", "0.9"], "unknown world 'frozenlake'"),
    "missing model": (["solve", "model.tra", "--discount", "0.9"], "cannot read model.tra"),
    "discount above 1": (["solve", "two_cycle", "--discount", "2"], "discount must be a number from 0 to 1, got 2"),
    "endless episode": (["solve", "two_cycle", "--discount", "1"], "use a discount below 1"),
    "unknown method": (["solve", "two_cycle", "--discount", "0.9", "--method", "mpj"], "did you mean 'mpi'?"),
    "wrong target": (["solve", "two_cycle", "--discount", "0.9", "--out", "x.parquet"], "known: .csv, .npz"),
    "resume from nothing": (["solve", "two_cycle", "--discount", "0.9", "--resume"], "--checkpoint FOLDER"),
    "show a missing file": (["show", "missing.npz"], "cannot read missing.npz"),
    "convert without a target": (["mdp", "convert", "two_cycle"], "convert takes a source and a target"),
    "malformed world": (["mdp", "check", "garnet(states=5, bogus=1)"], "argument of garnet: 'bogus'"),
    "unknown section": (["reproduce", "theroy"], "did you mean 'theory'?"),
    "unknown claim": (["reproduce", "--only", "theorem2"], "did you mean 'theorem-2'?"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=list(WRONG))
def test_mistake_is_explained_with_exit_code_2(arguments: list[str], message: str, capsys: Output) -> None:
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert message in output.err
    assert "Traceback" not in output.err


def test_unwritable_folder_is_explained(tmp_path: Path, capsys: Output) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["reproduce", "--only", "proposition-2", "--out", str(blocked / "out")]) == 2
    assert "choose another with --out" in capsys.readouterr().err


def test_malformed_option_has_exit_code_2(capsys: Output) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["lens", "one"])
    assert stop.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(ValueError, match="unknown command"):
        main(["lenz", "--debug"])


def test_lens_prints_value_bound_and_weights(capsys: Output) -> None:
    assert main(["lens", "0", "1", "3", "--summary", "boltzmann(beta=power(2))", "--t", "1"]) == 0
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["operator", "t", "β", "value", "max", "−", "value", "at", "most", "d/dβ", "weights"]
    assert row.split() == (
        ["boltzmann(beta=power(2))", "1", "2.64558", "0.354421", "0.463056", "0.709257", "0.042", "0.114", "0.844"]
    )


def test_lens_bounds_the_distance_for_the_legal_actions_alone(capsys: Output) -> None:
    assert main(["lens", "0", "-inf", "3", "--summary", "boltzmann(beta=2)", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["at_most"] == boltzmann.traits.gap(2.0, 2) < boltzmann.traits.gap(2.0, 3)


@pytest.mark.parametrize(
    ("options", "says"), [([], "is lost; --checkpoint FOLDER keeps it"), (["--checkpoint", "ck"], "is in ck; --resume")]
)
def test_interrupted_solve_says_what_is_kept(
    options: list[str], says: str, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dynaboltz.planning.solve", interrupted)
    assert main(["solve", "two_cycle", "--discount", "0.9", *options]) == 130
    output = capsys.readouterr()
    assert says in output.err
    assert output.out == ""


def test_lens_as_json_holds_the_operator_s_value(capsys: Output) -> None:
    assert main(["lens", "0", "1", "--summary", "boltzmann(beta=2)", "hard_max", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["value"] == boltzmann([0.0, 1.0], 2.0).item()
    assert (second["value"], second["beta"], second["at_most"]) == (1.0, None, 0.0)


def test_solve_prints_map_and_proven_bound(capsys: Output) -> None:
    assert main(["solve", "map(text='S.G')", "--discount", "0.5", "--error", "1e-9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "map(text='S.G'): 3 states, 4 actions, 8 transitions"
    assert lines[1].startswith("converged: hard_max by auto, γ = 0.5")
    assert "(proven, rounding included)" in lines[2]
    assert lines[-1] == "→ 0.500 → 1.000 · 0.000"


def test_solve_that_does_not_converge_says_so_with_exit_code_1(capsys: Output) -> None:
    arguments = ["solve", "two_cycle", "--discount", "0.95", "--summary", "boltzmann(beta=3)", "--max-sweeps", "20"]
    assert main(arguments) == 1
    output = capsys.readouterr().out
    assert "not converged" in output
    assert "max_sweeps = 20 sweeps are done" in output


def test_solution_is_written_shown_and_drawn(tmp_path: Path, capsys: Output) -> None:
    solution, table, figure = tmp_path / "s.npz", tmp_path / "s.csv", tmp_path / "map.svg"
    for target in (solution, table):
        assert main(["solve", "paper_grid", "--discount", "0.9", "--out", str(target)]) == 0
    printed = capsys.readouterr().out.split("\n\n")[1]
    assert main(["show", str(solution), "--figure", str(figure)]) == 0
    assert capsys.readouterr().out.split("\n\n")[1].strip() == printed.strip()
    assert figure.read_text(encoding="utf-8").startswith("<?xml")
    first = table.read_text(encoding="utf-8").splitlines()[1].split(",")
    assert (first[0], first[6]) == ("0", "right")
    assert float(first[3]) <= 0.9**27 <= float(first[4])


def test_show_refuses_a_file_that_is_no_solution(tmp_path: Path, capsys: Output) -> None:
    assert main(["mdp", "convert", "two_cycle", str(tmp_path / "m.npz")]) == 0
    capsys.readouterr()
    assert main(["show", str(tmp_path / "m.npz")]) == 2
    assert "unexpected member" in capsys.readouterr().err


def test_solve_resumes_from_its_checkpoint_to_the_same_values(tmp_path: Path, capsys: Output) -> None:
    base = ["solve", "chain(states=30, slip=0.2)", "--discount", "0.99", "--error", "1e-10", "--method", "jacobi"]
    state = str(tmp_path / "state")
    assert main([*base, "--out", str(tmp_path / "whole.csv")]) == 0
    assert main([*base, "--checkpoint", state, "--max-sweeps", "50"]) == 1
    assert main([*base, "--checkpoint", state, "--resume", "--out", str(tmp_path / "resumed.csv")]) == 0
    capsys.readouterr()
    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "resumed.csv").read_bytes()


def test_mdp_check_says_what_a_model_holds(capsys: Output) -> None:
    assert main(["mdp", "check", "paper_grid", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["states"] == 86


def test_mdp_show_draws_the_map(capsys: Output) -> None:
    assert main(["mdp", "show", "map(text='S#/.G')"]) == 0
    assert capsys.readouterr().out == "S#\n.G\n"


def test_doctor_reports_every_core_package(capsys: Output) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["packages"]
    core = {package["name"] for package in found if not package["extra"]}
    assert {"numpy", "numba", "scipy", "gymnasium", "tyro", "rich", "array-api-compat", "zstandard"} == core
    assert all(package["version"] for package in found if package["name"] == "numpy")


def test_doctor_groups_packages_by_the_extras_of_the_project(capsys: Output) -> None:
    """Development tools are left out, those of one system alone too."""
    main(["doctor", "--json"])
    extras = {package["extra"] for package in json.loads(capsys.readouterr().out)["packages"]}
    assert extras == {"", "atari", "deep", "minatar", "report", "scale", "track", "umb", "video"}


def test_reproduce_lists_the_claims_by_section(capsys: Output) -> None:
    assert main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "theory"
    assert lines[1].startswith("  proposition-1 ")
    assert [line.split()[0] for line in lines if line.startswith("  ")] == [
        claim.name for section in dict.fromkeys(c.section for c in CLAIMS.values())
        for claim in CLAIMS.values() if claim.section == section
    ]  # fmt: skip


def test_reproduce_leaves_out_what_an_extra_is_missing_for(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: object) -> Evidence:
        raise MissingExtraError("torch", "deep", "the second claim")

    first = CLAIMS["proposition-2"]
    monkeypatch.setattr(paper, "CLAIMS", {"first": first, "second": replace(first, name="second", test=missing)})
    assert main(["reproduce", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "left out\n    the second claim needs the package 'torch'" in out
    assert "pip install 'dynaboltz[deep]'" in out
    assert f"done. 1 claims: 1 holds, 1 left out → {tmp_path / 'index.html'}" in out
    assert main(["reproduce", "--only", "second", "--out", str(tmp_path)]) == 1
    assert "the second claim needs" in capsys.readouterr().err


def test_reproduce_writes_numbers_figures_and_page(tmp_path: Path, capsys: Output) -> None:
    assert main(["reproduce", "--only", "proposition-2", "--out", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"index.html", "proposition-2.json", "proposition-2.svg", "proposition-2.pdf"}
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"reproduce: done. 1 claims: 1 holds → {tmp_path / 'index.html'}"


def test_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "dynaboltz"], capture_output=True, text=True, check=True)
    assert done.stdout == HELP
