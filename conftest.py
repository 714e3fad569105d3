"""For every test and doctest."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_last_value() -> Iterator[None]:
    """A doctest leaves its last value in ``builtins._``, which libraries imported after it take for a translator."""
    yield
    vars(builtins).pop("_", None)
