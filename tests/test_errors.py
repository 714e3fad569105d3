"""Errors build their own message, and the shell's exit code goes with them."""

from __future__ import annotations

import pytest

import dynaboltz
from dynaboltz import DynaboltzError, MissingExtraError, UnknownNameError, UserError


def test_users_mistake_exits_with_two_and_a_failure_with_one() -> None:
    assert (UserError.exit_code, UnknownNameError.exit_code) == (2, 2)
    assert (DynaboltzError.exit_code, MissingExtraError.exit_code) == (1, 1)


@pytest.mark.parametrize(
    ("error", "base"), [(UserError, ValueError), (UnknownNameError, UserError), (MissingExtraError, ImportError)]
)
def test_errors_are_caught_as_python_expects(error: type[Exception], base: type[Exception]) -> None:
    assert issubclass(error, base)
    assert issubclass(error, DynaboltzError)


def test_unknown_name_names_the_nearest_and_all_that_are_known() -> None:
    error = UnknownNameError("operator", "boltzman", ["mean", "boltzmann"], "studies/gridworld.toml")
    assert str(error) == (
        "unknown operator 'boltzman' in studies/gridworld.toml\n  did you mean 'boltzmann'?  known: boltzmann, mean"
    )
    assert (error.kind, error.name, error.known) == ("operator", "boltzman", ["boltzmann", "mean"])


def test_unknown_name_that_is_a_part_of_one_is_taken_for_it() -> None:
    assert "did you mean 'hard_max'?" in str(UnknownNameError("operator", "max", ["mean", "hard_max"]))


def test_unknown_name_that_is_near_none_gets_no_hint() -> None:
    assert str(UnknownNameError("operator", "qqq", ["mean"])) == "unknown operator 'qqq'\n  known: mean"


def test_missing_extra_holds_the_command_that_installs_it() -> None:
    message = str(MissingExtraError("torch", "deep", "training a network"))
    assert message == (
        "training a network needs the package 'torch', which is not installed\n"
        "  install it with: pip install 'dynaboltz[deep]'"
    )


def test_all_that_is_exported_can_be_imported() -> None:
    assert [name for name in dynaboltz.__all__ if not hasattr(dynaboltz, name)] == []
