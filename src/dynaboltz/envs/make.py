"""Environments by name: one table of kinds, and Gymnasium's ids and a user's own factories beside it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from dynaboltz.envs.names import FORMS, split
from dynaboltz.errors import UserError
from dynaboltz.mdp.calls import whole

if TYPE_CHECKING:
    from dynaboltz.envs.spec import Environments

KINDS = {
    "atari": "dynaboltz.envs.atari:make_atari",
    "mdp": "dynaboltz.envs.mdp:make_mdp",
    "minatar": "dynaboltz.envs.minatar:make_minatar",
    "probe": "dynaboltz.envs.probes:make_probe",
}
"""What stands before the slash → ``make(name, keywords, *, n, seed, stream)``, imported when it is asked for."""

MODULE = re.compile(r"[A-Za-z_][\w.]*:[\w./-]+")
"""``package.module:Id-v0``, which Gymnasium reads, or ``package.module:factory``."""

VERSION = re.compile(r"-v\d+$")

MOST = 4096
"""Environments of one call; each of them is a Python object here."""


def make(name: str, *, n: int = 1, seed: int = 0, stream: int = 0) -> Environments:
    """``n`` environments in step.

    Args:
        name: a Gymnasium id (``CartPole-v1``), ``minatar/breakout``, ``atari/Breakout``, ``probe/beta``, an MDP of ours
            (``mdp/chain(states=5)``), or ``package.module:factory``, a callable that returns a ``gymnasium.Env``, a
            ``VectorEnv`` or ``Environments``. Keywords stand in brackets: ``CartPole-v1(max_episode_steps=200)``.
        n: how many.
        seed: all that is random in them follows from it, the stream, the number of the environment and of its episode.
        stream: 0 for training, 1 for evaluation, 2 for looking on: worlds of one seed that have no episode in common.

    >>> with make("probe/beta", n=2) as envs:
    ...     envs.reset().shape
    (2, 3)
    """
    n, seed = whole("n", n, 1, MOST), whole("seed", seed, 0)
    stream = whole("stream", stream, 0)
    head, keywords = split(name)
    return _maker(head)(keywords, n=n, seed=seed, stream=stream)


def _maker(head: str) -> Callable[..., Environments]:
    """What makes the environments of ``head``, once it has their keywords."""
    kind, slash, rest = head.partition("/")
    if slash and kind in KINDS:
        module, _, function = KINDS[kind].partition(":")
        make_kind = getattr(import_module(module), function)
        return lambda keywords, **common: make_kind(rest, keywords, **common)
    if MODULE.fullmatch(head) and not VERSION.search(head):
        from dynaboltz.envs.factory import make_own

        return lambda keywords, **common: make_own(head, keywords, **common)
    from dynaboltz.envs.gym import make_gym

    _check_known(head)
    return lambda keywords, **common: make_gym(head, keywords, **common)


def _check_known(head: str) -> None:
    """An error that names the nearest environment, if Gymnasium does not know ``head``."""
    import gymnasium

    if ":" in head:
        from dynaboltz.envs.factory import imported

        module, _, head = head.partition(":")
        imported(module, f"the environment {head!r}")
    elif head.startswith("ALE/"):
        game = VERSION.sub("", head[4:])
        raise UserError(
            f"{head!r}: Atari games have named protocols here, write 'atari/{game}'\n"
            f"  or 'ale_py:{head}' for the environment of Gymnasium"
        )
    if head in gymnasium.registry:
        return
    names = [*gymnasium.registry, *(f"{kind}/{word}" for kind, words in _words().items() for word in words)]
    lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(head.lower(), lower, n=3, cutoff=0.6)
    hint = f"did you mean {', '.join(repr(lower[name]) for name in near)}?  " if near else ""
    raise UserError(f"unknown environment {head!r}\n  {hint}known: {FORMS}")


def _words() -> dict[str, tuple[str, ...]]:
    """The names that the tables here hold, for messages."""
    from dynaboltz.envs.minatar import GAMES
    from dynaboltz.envs.probes import PROBES
    from dynaboltz.mdp import WORLDS

    return {"minatar": tuple(GAMES), "probe": tuple(PROBES), "mdp": tuple(WORLDS)}
