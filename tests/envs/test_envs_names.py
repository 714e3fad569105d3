"""Names of environments, and what is said of wrong ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from dynaboltz.envs import make
from dynaboltz.envs.names import split, written
from dynaboltz.errors import DynaboltzError, UserError

WRONG = {
    "": "named by a text",
    "   ": "named by a text",
    "CartPol-v1": "did you mean 'CartPole-v1'",
    "cartpole-v1": "did you mean 'CartPole-v1'",
    "CartPole": "did you mean 'CartPole-v1'",
    "CartPole-v77": "did you mean 'CartPole-v1'",
    "minatr/breakout": "did you mean 'minatar/breakout'",
    "qqqq": "known: a Gymnasium id",
    "CartPole-v1(": "cannot read the keywords",
    "CartPole-v1(3)": "cannot read the keywords",
    "CartPole-v1(a=1)(b=2)": "cannot read the keywords",
    "CartPole-v1(a=__import__('os'))": "cannot read the keywords",
    "CartPole-v1(max_step=3)": "did you mean 'max_episode_steps'",
    "CartPole-v1(max_episode_steps=0)": "max_episode_steps",
    "FrozenLake-v1(map_name='9x9')": "cannot make",
    "Pendulum-v1": "must be Discrete",
    "Blackjack-v1": "FlattenObservation",
    "ALE/Pong-v5": "atari/Pong",
    "minatar/breakot": "did you mean 'breakout'",
    "minatar/breakout(sticky=0.1)": "did you mean 'sticky_actions'",
    "minatar/breakout(sticky_actions=1.5)": "from 0 to 1",
    "minatar/breakout(ramping=1)": "True or False",
    "minatar/": "unknown MinAtar game",
    "probe/betta": "did you mean 'beta'",
    "probe/beta(x=1)": "takes no keywords",
    "mdp/chian": "did you mean 'chain'",
    "mdp/chain(state=4)": "did you mean 'states'",
    "mdp/chain(max_steps=0)": "max_steps",
    "mdp/missing.npz": "missing.npz",
    "mdp/maintenance": "has no action 0 'run'",
    "nowhere.module:factory": "no module",
    "own_worlds:Ownn": "did you mean 'Own'",
    "own_worlds:number": "must be callable",
    "own_worlds:nothing": "must return",
    "own_worlds:broken": "fails",
    "own_worlds:broken(size=3)": "no size 3",
    "own_worlds:Own(fall='x')": "did you mean 'fault'",
    "own_worlds:unnamed": "autoreset_mode",
    "own_worlds:Foreign": "NEXT_STEP",
    "own_worlds:vector(mode='NEXT_STEP', workers=True, shared_memory=False)": "shared_memory",
    "own_worlds:vector(num_envs=5)": "not the 2 that were asked for",
    "own_worlds:same": "same environment twice",
    "own_worlds:Nowhere-v0": "unknown environment",
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_name_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(DynaboltzError, match=WRONG[name].replace("(", r"\(")) as caught:
        make(name, n=2)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "given",
    [{"n": 0}, {"n": 1.0}, {"n": True}, {"n": 10**6}, {"seed": -1}, {"seed": None}, {"stream": -1}, {"stream": "a"}],
)
def test_wrong_number_is_refused_by_its_name(given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(given))):
        make("probe/beta", **given)


@pytest.mark.parametrize(
    "name", ["CartPole-v1", "minatar/asterix(ramping=False, sticky_actions=0.2)", "mdp/map(text='SG')"]
)
def test_name_is_read_and_written_back(name: str) -> None:
    assert written(*split(name)) == name


def test_keywords_reach_the_environment() -> None:
    with make("CartPole-v1(max_episode_steps=3)") as envs:
        envs.reset()
        assert [bool(envs.step(np.array([at % 2])).over[0]) for at in range(3)] == [False, False, True]


def test_a_factory_of_our_own_environments_gets_number_seed_and_stream() -> None:
    with make("own_worlds:two", n=3, seed=4, stream=1) as ours, make("probe/match", n=3, seed=4, stream=1) as plain:
        assert ours.reset().tobytes() == plain.reset().tobytes()


def test_an_id_that_a_users_import_registers_is_found(own_module: Path) -> None:
    lines = "import gymnasium, own_worlds\ngymnasium.register('Registered-v3', entry_point=own_worlds.Own)\n"
    (own_module / "own_ids.py").write_text(lines, encoding="utf-8")
    try:
        with make("own_ids:Registered-v3", n=2) as envs:
            assert envs.reset().shape == (2, 2, 3)
    finally:
        gymnasium.registry.pop("Registered-v3", None)
        sys.modules.pop("own_ids", None)
