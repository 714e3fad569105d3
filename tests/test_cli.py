"""The commands as a user types them: exact output, errors in one line, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dynaboltz import boltzmann
from dynaboltz.cli import COMMANDS, main

HELP = """\
dynaboltz: dynamic Boltzmann softmax Bellman updates

usage: dynaboltz COMMAND [OPTIONS]

  lens       what each operator makes of a row of action values
  solve      a finite MDP: values, a policy and a proven bound on their error
  show       a solution: value map and policy, on the terminal or as a figure
  mdp        check, convert and show finite MDPs
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


def test_lens_as_json_holds_the_operator_s_value(capsys: Output) -> None:
    assert main(["lens", "0", "1", "--summary", "boltzmann(beta=2)", "hard_max", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["value"] == boltzmann([0.0, 1.0], 2.0).item()
    assert (second["value"], second["beta"], second["at_most"]) == (1.0, None, 0.0)


def test_doctor_reports_every_core_package(capsys: Output) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["packages"]
    core = {package["name"] for package in found if not package["extra"]}
    assert {"numpy", "numba", "scipy", "gymnasium", "tyro", "rich", "array-api-compat"} == core
    assert all(package["version"] for package in found if package["name"] == "numpy")


def test_reproduce_lists_the_claims(capsys: Output) -> None:
    assert main(["reproduce", "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("proposition-1 ")


def test_reproduce_writes_numbers_figures_and_page(tmp_path: Path, capsys: Output) -> None:
    assert main(["reproduce", "--only", "proposition-2", "--out", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"index.html", "proposition-2.json", "proposition-2.svg", "proposition-2.pdf"}
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"reproduce: done. 1 claims: 1 holds → {tmp_path / 'index.html'}"


def test_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "dynaboltz"], capture_output=True, text=True, check=True)
    assert done.stdout == HELP
