"""Reading files that may be hostile: plain files only, and errors that name the line."""

from __future__ import annotations

from pathlib import Path

from dynaboltz.errors import UserError
from dynaboltz.files import opened


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 text file."""
    with opened(path) as file:
        try:
            return file.read().decode("utf-8").splitlines()
        except UnicodeDecodeError as fault:
            raise UserError(f"{path} is not a text file: byte {fault.start} is not UTF-8") from fault


def bad_line(path: Path, number: int, message: str) -> UserError:
    """The error for line ``number`` (from 1) of a text file."""
    return UserError(f"{path}, line {number}: {message}")


def parse_int(path: Path, line: int, what: str, word: str, limit: int) -> int:
    """``word`` as an integer from 0 to ``limit`` − 1."""
    # Only digits: int() would accept '1_0', ' 1' and the digits of any script.
    if not (word.isascii() and word.isdigit()) or len(word) > 18:
        raise bad_line(path, line, f"the {what} must be an integer from 0, got {word[:40]!r}")
    value = int(word)
    if value >= limit:
        raise bad_line(path, line, f"the {what} is {value}; it must lie in 0 … {limit - 1}")
    return value


def parse_float(path: Path, line: int, what: str, word: str) -> float:
    """``word`` as a number, or as a fraction ``1/3``."""
    top, _, bottom = word.partition("/")
    try:
        return float(top) / float(bottom) if bottom else float(word)
    except (ValueError, ZeroDivisionError):
        raise bad_line(path, line, f"the {what} must be a number, got {word[:40]!r}") from None
