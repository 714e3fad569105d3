"""The one grammar of specs, ``name(3, key=power(2))``: read without executing anything, and written back.

Operators, schedules and whatever else has a text form are tables of factories; this module knows none of them.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dynaboltz.errors import UnknownNameError, UserError


@dataclass(frozen=True, slots=True)
class Call:
    """``name(args, key=value)``, where values are numbers, strings, tuples or calls; a bare name has no arguments."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def parse(text: str, where: str = "", *, example: str = "boltzmann(beta=power(2))", longest: int = 1000) -> Call:
    """The spec as a tree; ``example`` is for the message if it cannot be read.

    >>> parse("boltzmann(beta=power(2))").kwargs["beta"].args
    (2,)
    """
    place = f" in {where}" if where else ""
    if isinstance(text, str) and len(text) > longest:
        raise UserError(f"a spec has at most {longest:,} characters{place}; {short(text)} has {len(text):,}")
    if not isinstance(text, str) or not text.strip():
        raise UserError(f"expected a spec like {example!r}{place}, got {short(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        call = _node(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(
            f"cannot read {short(text)}{place}: {error.args[0] if error.args else error}\n"
            f"  a spec is a name with numbers, strings, tuples or specs in brackets, like {example!r}"
        ) from None
    if not isinstance(call, Call):
        raise UserError(f"expected a name in {short(text)}{place}, got the value {short(call)}")
    return call


def short(value: object) -> str:
    """``repr(value)``, cut to 80 characters: for messages."""
    written = repr(value)
    return written if len(written) <= 80 else f"{written[:77]}..."


def _node(node: ast.AST) -> Any:
    match node:
        case ast.Name(id="inf"):
            return math.inf
        case ast.Name(id="nan"):
            raise ValueError("nan is not a value")
        case ast.Name(id=name):
            return Call(name)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            names = [keyword.arg for keyword in keywords]
            if None in names:
                raise ValueError("** is not part of a spec")
            if len(set(names)) < len(names):
                raise ValueError(f"{name} has an argument twice")
            return Call(name, tuple(map(_node, args)), {str(k.arg): _node(k.value) for k in keywords})
        case ast.Constant(value=value) if value is None or isinstance(value, (bool, int, float, str)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if type(value) in (int, float):
            return -value  # type: ignore[operator]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
            return -math.inf
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return tuple(map(_node, elements))
    raise ValueError(f"{ast.unparse(node)!r} is not a name, a number, a tuple or a call")


def build(
    kind: str, table: Mapping[str, Callable[..., Any]], call: Call, where: str = "", *, taken: tuple[str, ...] = ()
) -> Any:
    """The object that ``call`` names in ``table``; a wrong name or argument is an error that names the nearest one.

    ``taken`` are the arguments that the caller has read already, for the messages.
    """
    if call.name not in table:
        raise UnknownNameError(kind, call.name, table, where)
    factory = table[call.name]
    signature = inspect.signature(factory)
    for key in call.kwargs:
        if key not in signature.parameters:
            known = [*signature.parameters, *taken]
            raise UnknownNameError(f"argument of {call.name}:", key, known, where)
    try:
        signature.bind(*call.args, **call.kwargs)
    except TypeError as error:
        usage = f"{call.name}({', '.join([*signature.parameters, *taken])})"
        raise UserError(f"{kind} {call.name!r}: {error}{where and ' in '}{where}\n  it reads {usage}") from None
    return factory(*call.args, **call.kwargs)


def write(name: str, value: Any) -> str:
    """The spec of a dataclass instance: its name and its fields, without those that have their default value.

    The first field is positional; a spec parses back to an equal object.
    """
    parts = []
    for position, field in enumerate(dataclasses.fields(value)):
        current = getattr(value, field.name)
        if field.default is not dataclasses.MISSING and current == field.default:
            continue
        parts.append(f"{'' if position == 0 else field.name + '='}{literal(current)}")
    return f"{name}({', '.join(parts)})"


def literal(value: Any) -> str:
    """A value as it is written in a spec."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, tuple):
        inner = ", ".join(map(literal, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value) if not isinstance(value, str) else repr(value)
