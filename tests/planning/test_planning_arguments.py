"""Every wrong argument is a UserError that names it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dynaboltz.errors import UserError
from dynaboltz.mdp import build_world
from dynaboltz.planning import solve

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"discount": 1.5}, "discount"),
    ({"discount": -0.1}, "discount"),
    ({"discount": math.nan}, "discount"),
    ({"discount": "0.9"}, "discount"),
    ({"discount": True}, "discount"),
    ({"error": 0.0}, "error must be a number above 0"),
    ({"error": -1e-6}, "error"),
    ({"error": math.nan}, "error"),
    ({"error": math.inf}, "error"),
    ({"max_sweeps": 0}, "max_sweeps"),
    ({"max_sweeps": 1.5}, "max_sweeps"),
    ({"max_sweeps": True}, "max_sweeps"),
    ({"threads": 0}, "threads"),
    ({"threads": 1.0}, "threads"),
    ({"summary": "boltzman(3)"}, "did you mean 'boltzmann'"),
    ({"summary": "boltzmann"}, "needs a beta"),
    ({"summary": 3}, "summary"),
    ({"summary": "power(2)"}, "is a schedule"),
    ({"summary": "boltzmann(beta=linear(-1, start=3))"}, "β must be at least 0"),
    ({"summary": "log_sum_exp(beta=linear(1, start=-1))"}, "β must be above 0"),
    ({"method": "jacoby"}, "did you mean 'jacobi'"),
    ({"method": 3}, "method"),
    ({"method": "mpi(evaluations=0)"}, "evaluations"),
    ({"method": "mpi(evaluations=1.5)"}, "evaluations"),
    ({"method": "mpi(sweeps=3)"}, "argument"),
    ({"method": "gauss_seidel(order='random')"}, "order"),
    ({"method": "mpi", "summary": "boltzmann(3)"}, "computes the maximum only"),
    ({"method": "gauss_seidel", "summary": "mean"}, "computes the maximum only"),
    ({"initial": [0.0]}, "initial must have the shape"),
    ({"initial": np.zeros((10, 1))}, "initial must have the shape"),
    ({"initial": [math.nan] * 10}, "got nan in state 0"),
    ({"initial": [0.0, math.inf] + [0.0] * 8}, "got inf in state 1"),
    ({"initial": "zeros"}, "initial"),
    ({"initial": [None] * 10}, "initial"),
    ({"trace": "all"}, "trace"),
    ({"trace": 1}, "trace"),
    ({"trace": True}, "method 'auto' has none"),
    ({"trace": True, "method": "jacobi", "optimum": [1.0]}, "optimum must have the shape"),
    ({"optimum": np.zeros(10)}, "optimum is for the trace"),
    ({"progress": 3}, "progress must be callable"),
    ({"resume": True}, "resume needs the checkpoint"),
    ({"resume": 1}, "resume must be True or False"),
    ({"resume": True, "checkpoint": "/nowhere/at/all.npz"}, "there is no checkpoint"),
    ({"checkpoint": "/nowhere/at/all.npz"}, "the folder of checkpoint"),
    ({"checkpoint": 3}, "checkpoint must be a path"),
    ({"checkpoint_seconds": -1.0}, "checkpoint_seconds"),
]


@pytest.mark.parametrize(
    ("wrong", "named"), WRONG, ids=lambda value: str(value)[:40] if isinstance(value, dict) else ""
)
def test_planning_wrong_argument_is_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(UserError) as refused:
        solve(build_world("chain(states=10)"), **({"discount": 0.9} | wrong))
    assert named in str(refused.value)


def test_planning_something_that_is_no_model_is_refused() -> None:
    with pytest.raises(UserError, match="expected an MDP, got str"):
        solve("chain(states=10)", discount=0.9)  # type: ignore[arg-type]


def test_planning_an_empty_folder_holds_no_checkpoint(tmp_path: Any) -> None:
    with pytest.raises(UserError, match="there is no checkpoint in"):
        solve(build_world("chain"), discount=0.9, checkpoint=tmp_path, resume=True)


def test_planning_a_file_is_no_checkpoint(tmp_path: Any) -> None:
    np.savez(tmp_path / "other.npz", values=np.zeros(3))
    with pytest.raises(UserError, match="is a file; name a folder"):
        solve(build_world("chain"), discount=0.9, checkpoint=tmp_path / "other.npz", resume=True)
