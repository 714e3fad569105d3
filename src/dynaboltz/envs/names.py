"""The text that names environments, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynaboltz.errors import UserError
from dynaboltz.mdp.calls import parse_call
from dynaboltz.text import literal, short

FORMS = (
    "a Gymnasium id such as CartPole-v1, minatar/<game>, atari/<Game>, probe/<name>, mdp/<world>, "
    "package.module:factory"
)
"""All that a name can be, for messages."""


def split(name: str) -> tuple[str, dict[str, Any]]:
    """What stands before the brackets, and the keywords in them.

    >>> split("CartPole-v1(max_episode_steps=200)")
    ('CartPole-v1', {'max_episode_steps': 200})
    """
    if not isinstance(name, str) or not name.strip():
        raise UserError(f"an environment is named by a text: {FORMS}; got {short(name)}")
    head, bracket, inside = name.strip().partition("(")
    try:
        return head.strip(), dict(parse_call(f"env({inside}").kwargs) if bracket else {}
    except UserError as fault:
        raise UserError(
            f"cannot read the keywords of the environment {short(name)}\n"
            f"  they read like CartPole-v1(max_episode_steps=200): {str(fault).splitlines()[0]}"
        ) from fault


def written(head: str, keywords: Mapping[str, Any]) -> str:
    """``head(key=value, …)``, which ``split`` reads back.

    >>> written("minatar/asterix", {"ramping": False})
    'minatar/asterix(ramping=False)'
    """
    inside = ", ".join(f"{key}={literal(value)}" for key, value in keywords.items())
    return f"{head}({inside})" if inside else head
