"""TOML: settings read from a file with the place of each, and written so that they read back as they were."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynaboltz.errors import UserError
from dynaboltz.files import opened
from dynaboltz.runs.settings import NONE, Given

LONGEST_BYTES = 1 << 20
"""No file of settings is longer; nesting deeper than Python's stack cannot be reached with it."""


def read(path: Path) -> dict[str, Given]:
    """Every value of the file by dotted key.

    Raises:
        UserError: if it cannot be read, is not TOML (with the line), or is absurdly long.
    """
    with opened(path) as file:
        content = file.read(LONGEST_BYTES + 1)
    if len(content) > LONGEST_BYTES:
        raise UserError(f"{path} is longer than {LONGEST_BYTES:,} bytes: that is no file of settings")
    try:
        tree = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise UserError(f'{path} is not TOML: {fault}\n  for instance: env = "CartPole-v1"') from None
    return {key: Given(value, str(path)) for key, value in _flat(tree).items()}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def write(values: Mapping[str, Any], comment: str = "") -> str:
    """The settings as TOML: plain keys first, then one table for each first part of the dotted ones."""
    lines = [f"# {line}" for line in comment.splitlines()]
    tables = dict.fromkeys(key.rpartition(".")[0] for key in values)
    for table in sorted(tables, key=lambda name: (name != "", list(tables).index(name))):
        if table:
            lines += ["", f"[{table}]"]
        lines += [
            f"{key.rpartition('.')[2]} = {_value(value)}"
            for key, value in values.items() if key.rpartition(".")[0] == table
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if value is None:
        return f'"{NONE}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"{value:+}".removeprefix("+")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return str(value)
