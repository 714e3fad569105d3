"""Settings: the fields of a frozen dataclass, by dotted key, as text, TOML and Python write them.

A field's annotation says what is allowed and the docstring under it is its help, so that a setting is described once.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import inspect
import itertools
import math
import textwrap
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from dynaboltz.errors import UserError
from dynaboltz.text import short

T = TypeVar("T")

NONE, ON, OFF = "none", ("true", "yes", "on"), ("false", "no", "off")
"""How text says that a setting has no value, that it holds, and that it does not."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One field."""

    key: str
    """Dotted: ``agent.learning_rate``."""
    kind: Any
    """Its annotation."""
    default: Any
    """``dataclasses.MISSING`` where it has to be given."""
    help: str
    """The docstring under the field, on one line."""


@dataclass(frozen=True, slots=True)
class Given:
    """A value that somebody has given, and where."""

    value: Any
    place: str
    """For messages: ``my.toml``, ``the command line``."""
    written: bool = False
    """Whether the value is text to be read (from a command line) and not a value already (from TOML)."""


def settings_of(kind: type, prefix: str = "") -> dict[str, Setting]:
    """Every setting of a dataclass and of the dataclasses among its fields, by dotted key.

    >>> @dataclass(frozen=True)
    ... class Pace:
    ...     steps: int = 100
    >>> settings_of(Pace, "run.")["run.steps"].default
    100
    """
    helps = field_helps(kind)
    hints = typing.get_type_hints(kind)
    found: dict[str, Setting] = {}
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            found |= settings_of(typing.cast("type", hint), f"{prefix}{field.name}.")
            continue
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        found[prefix + field.name] = Setting(prefix + field.name, hint, default, helps.get(field.name, ""))
    return found


@functools.cache
def field_helps(kind: type) -> Mapping[str, str]:
    """The docstring under each field, as it stands in the source; empty where there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body  # type: ignore[attr-defined]
    found = {}
    for field, after in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            text = ast.literal_eval(after.value) if isinstance(after.value, ast.Constant) else ""
            found[field.target.id] = " ".join(str(text).split())
    return found


def flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """The settings of a dataclass instance by dotted key."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(values):
        value = getattr(values, field.name)
        if dataclasses.is_dataclass(value):
            found |= flat(value, f"{prefix}{field.name}.")
        else:
            found[prefix + field.name] = value
    return found


def build(kind: type[T], given: Mapping[str, Given], base: Mapping[str, Any], prefix: str = "") -> T:
    """An instance of ``kind`` from the settings given; the others are those of ``base``, else the defaults.

    An error of a value, or of the class about a value, names the place that it came from.
    """
    arguments: dict[str, Any] = {}
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        key, hint = prefix + field.name, hints[field.name]
        if dataclasses.is_dataclass(hint):
            arguments[field.name] = build(typing.cast("type", hint), given, base, f"{key}.")
        elif key in given:
            arguments[field.name] = read(hint, given[key], key)
        elif key in base:
            arguments[field.name] = base[key]
    missing = [
        f.name
        for f in dataclasses.fields(kind)  # type: ignore[arg-type]
        if f.init and f.name not in arguments and f.default is f.default_factory is dataclasses.MISSING
    ]
    if missing:
        key = prefix + missing[0]
        raise UserError(f"{key} is not set\n  give it as --{key.replace('_', '-')}, or as {key} in a TOML file")
    try:
        return kind(**arguments)
    except UserError as error:
        raise _placed(error, given, prefix) from None


def _placed(error: UserError, given: Mapping[str, Given], prefix: str) -> UserError:
    """The same error with the places of the settings that its first line names."""
    words = str(error).split("\n", maxsplit=1)[0].replace(":", " ").replace(",", " ").replace("=", " ").split()
    blamed = [
        f"{key} was set in {at.place}" for key, at in given.items() if key.startswith(prefix)
        if key.removeprefix(prefix) in words or key in words
    ]  # fmt: skip
    return UserError("\n  ".join([str(error), *blamed]))


def read(kind: Any, given: Given, key: str) -> Any:
    """The value given for ``key``, as its annotation wants it.

    >>> read(int, Given("1e5", "the command line", written=True), "steps")
    100000
    >>> read(tuple[int, ...], Given([64, 64], "my.toml"), "agent.hidden")
    (64, 64)
    """
    try:
        return _fit(kind, _from_text(kind, given.value) if given.written else given.value)
    except ValueError as fault:
        reason = f": {fault}" if fault.args and fault.args[0] else ""
        raise UserError(f"{key} must be {described(kind)}, got {short(given.value)} in {given.place}{reason}") from None


def check(values: Any, prefix: str = "") -> None:
    """Refuse an instance with a field that is not what its annotation says; repair what is only written otherwise.

    1e5 for an int becomes 100000 and a list for a tuple becomes a tuple, so that equal settings are equal.
    """
    hints = typing.get_type_hints(type(values))
    for field in dataclasses.fields(values):
        value, hint = getattr(values, field.name), hints[field.name]
        if dataclasses.is_dataclass(hint):
            if not isinstance(value, typing.cast("type", hint)):
                name = getattr(hint, "__name__", hint)
                raise UserError(f"{prefix}{field.name} must be of the class {name}, got {short(value)}")
            continue
        try:
            object.__setattr__(values, field.name, _fit(hint, value))
        except ValueError:
            raise UserError(f"{prefix}{field.name} must be {described(hint)}, got {short(value)}") from None


def described(kind: Any) -> str:
    """What an annotation allows, in words."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(NONE if one is type(None) else described(one) for one in arguments)
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin is tuple:
        return f"a list, each {described(arguments[0])}"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(kind, str(kind))


def written(value: Any) -> str:
    """A value as it stands on a command line."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return ",".join(map(written, value))
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _from_text(kind: Any, text: str) -> Any:
    """What a command line's text says, before its type is looked at."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _first(arguments, lambda one: _fit(one, _from_text(one, text)))
    if kind is type(None):
        return None if text.lower() == NONE else text
    if origin is Literal:
        return next((choice for choice in arguments if str(choice) == text), text)
    if origin is tuple:
        parts = [part.strip() for part in text.strip("[]() ").split(",")]
        return [_from_text(arguments[0], part) for part in parts if part]
    if kind is bool and text.lower() in ON + OFF:
        return text.lower() in ON
    if kind in (int, float):
        try:
            return int(text)
        except ValueError:
            return float(text) if _is_number(text) else text
    return text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _fit(kind: Any, value: Any) -> Any:
    """``value`` as ``kind`` has it; ValueError if it is something else."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None or value == NONE:
            return _fit(type(None) if type(None) in arguments else arguments[0], None)
        return _first([one for one in arguments if one is not type(None)], lambda one: _fit(one, value))
    if kind is type(None):
        if value is not None:
            raise ValueError
        return None
    if origin is Literal:
        if value not in arguments or isinstance(value, bool) != any(isinstance(one, bool) for one in arguments):
            raise ValueError
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError
        return tuple(_fit(arguments[0], one) for one in value)
    return _fit_plain(kind, value)


def _fit_plain(kind: Any, value: Any) -> Any:
    """A number, a switch or text, where it is that or only written otherwise."""
    if isinstance(value, bool) != (kind is bool):
        raise ValueError
    if kind is int and isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if kind is float and isinstance(value, int):
        return float(value)
    if kind is str and isinstance(value, (int, float)):
        return str(value)
    if not isinstance(value, kind) or (kind is float and math.isnan(value)):
        raise ValueError
    return value


def _first(kinds: Any, reading: Any) -> Any:
    for kind in kinds:
        try:
            return reading(kind)
        except ValueError:
            continue
    raise ValueError


def unknown_key(key: str, known: Mapping[str, Setting], place: str, *, also: tuple[str, ...] = ()) -> UserError:
    """The error about a key that is none of the settings: what may be meant, else what there is."""
    name = key.replace("-", "_")
    tables = sorted({one.rpartition(".")[0] for one in known if "." in one})
    if name in tables:
        return UserError(
            f"{name} is a table of settings, not one of them, in {place}\n  for instance {_inside(known, name)[0]}"
        )
    near = [one for one in known if one.endswith(f".{name}")]
    near = near or difflib.get_close_matches(name, [*known, *also], n=1, cutoff=0.7)
    if near:
        return UserError(f"unknown key {key!r} in {place}\n  did you mean {near[0]!r}?")
    table = name.rpartition(".")[0]
    listed = _inside(known, table) if table in tables else [*_inside(known, ""), *also, *(f"{one}.…" for one in tables)]
    return UserError(f"unknown key {key!r} in {place}\n  known: {', '.join(sorted(listed))}")


def _inside(known: Mapping[str, Setting], table: str) -> list[str]:
    return [key for key in known if key.rpartition(".")[0] == table]
