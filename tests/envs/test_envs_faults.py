"""What an environment does wrong is found at the step where it happens, and named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dynaboltz.envs import Environments, WorldError, make, workers
from dynaboltz.envs.faults import episode_seed
from dynaboltz.errors import UserError

SAID = {
    "raise": "RuntimeError: boom",
    "shape": r"shape \(3, 2\), not \(2, 3\)",
    "size": r"shape \(7,\), not \(2, 3\)",
    "nan": r"nan at \(1, 2\)",
    "overflow": r"1e\+300 at \(0, 1\)",
    "words": "not of real numbers",
    "reward nan": "the reward is nan",
    "reward inf": "the reward is -inf",
    "reward text": "the reward is 'much', not a number",
    "flag": "terminated is 'no', neither True nor False",
    "flag nan": "truncated is nan, neither True nor False",
    "four": r"step\(\) must return \(observation, reward, terminated, truncated, info\)",
    "nothing": r"step\(\) must return",
}


def until_the_fault(envs: Environments, action: int = 1) -> str:
    envs.reset()
    for _ in range(100):
        try:
            envs.step(np.full(envs.n, action))
        except WorldError as fault:
            return str(fault)
    pytest.fail("no fault was found in 100 steps")


@pytest.mark.parametrize("fault", SAID)
def test_fault_is_named_with_environment_seed_step_and_action(fault: str) -> None:
    name = f"own_worlds:Own(fault={fault!r}, at=0, episode=2)"
    with make(name, n=2, seed=6, stream=1) as envs:
        said = until_the_fault(envs)
    found = re.search(r"environment (\d), episode 2 \(seed (\d+)\), step 0, action 1 \(1\): (.*)", said)
    assert found, said
    assert int(found[2]) == episode_seed(6, 1, int(found[1]), 2)
    assert re.search(SAID[fault], found[3]), said
    assert said.startswith(name)


@pytest.mark.parametrize(("fault", "what"), [("reset", "RuntimeError: no bed"), ("reset shape", r"shape \(3,\)")])
def test_fault_of_a_reset_is_named_with_the_episode_that_it_was_to_begin(fault: str, what: str) -> None:
    with make(f"own_worlds:Own(fault={fault!r}, episode=1)", n=2) as envs:
        said = until_the_fault(envs)
    assert re.search(rf"episode 1 \(seed \d+\), step 0, reset: .*{what}", said), said


@pytest.mark.parametrize("wrong", [2, -4])
def test_number_outside_a_discrete_space_is_a_fault(wrong: int) -> None:
    with make(f"own_worlds:Shifted(wrong={wrong})") as envs:
        assert "not an integer from 0 to 4" in until_the_fault(envs)


VECTOR_SAID = {key: said for key, said in SAID.items() if key in ("nan", "reward nan", "reward inf")}


@pytest.mark.parametrize("fault", VECTOR_SAID)
def test_fault_in_a_vector_environment_names_the_one_that_has_it(fault: str) -> None:
    with make(f"own_worlds:vector(fault={fault!r})", n=3) as envs:
        said = until_the_fault(envs)
    assert "environment 1, episode 1, step 4, seed 0, action 1" in said
    assert VECTOR_SAID[fault].replace("\\", "") in said


def test_last_frame_that_is_not_given_is_a_fault() -> None:
    with make("own_worlds:Foreign(mode='SAME_STEP', final=False)", n=2) as envs:
        assert "final_obs" in until_the_fault(envs)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE_SECONDS", 1.0)


@pytest.mark.usefixtures("patience")
@pytest.mark.filterwarnings("ignore:.*ERROR")  # Gymnasium warns of the worker's error before it raises it
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("fault", "what"),
    [("raise", "boom"), ("exit", "ended with exit code -9"), ("hang", "no answer for 1 s"), ("size", "it raised")],
)
def test_worker_that_fails_is_named_and_none_is_left(fault: str, what: str) -> None:
    with make(f"own_worlds:vector(fault={fault!r}, workers=True)", n=3) as envs:
        pids = [process.pid for process in envs.env.processes]  # type: ignore[attr-defined]
        said = until_the_fault(envs)
    assert "environment 1, episode 1, step 4, seed 0, action 3" in said
    assert what in said
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_random_world_that_its_seed_does_not_rule_is_found_when_it_is_restored() -> None:
    with make("own_worlds:Forgetful") as envs, make("own_worlds:Forgetful") as again:
        envs.reset()
        envs.step(np.array([1]))
        with pytest.raises(WorldError, match=r"(?s)cannot be restored: episode 0.*random beyond its seed"):
            again.restore(envs.state())


@pytest.mark.parametrize(
    "change",
    [
        {"name": "probe/beta"},
        {"seed": 1},
        {"stream": 1},
        {"number": [0]},
        {"actions": None},
        {"digest": []},
        {"actions": [np.array([7]), np.array([0])]},
    ],
    ids=str,
)
def test_state_of_other_environments_is_refused(change: dict[str, object]) -> None:
    with make("probe/truncation", n=2) as envs:
        envs.reset()
        with pytest.raises(UserError):
            envs.restore(envs.state() | change)


def test_state_whose_actions_were_changed_is_found() -> None:
    with make("CartPole-v1", n=1) as envs:
        envs.reset()
        for action in (0, 1, 1, 0):
            envs.step(np.array([action]))
        tree = envs.state()
        tree["actions"] = [np.array([0, 1, 1, 1])]
        with pytest.raises(WorldError, match="after its 4 actions"):
            envs.restore(tree)
