"""How far a claim's test is: the loop that takes long says so, and whoever started the test may listen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_listener: ContextVar[Callable[[float], object]] = ContextVar("listener", default=lambda share: share)


@contextmanager
def listening(listener: Callable[[float], object]) -> Iterator[None]:
    """A context in which ``listener`` is told the share of the work that is done, from 0 to 1."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def each(items: Sequence[T]) -> Iterator[T]:
    """The items, one by one; after each it is told which share of them is done.

    >>> told = []
    >>> with listening(told.append):
    ...     found = [2 * item for item in each([1, 2])]
    >>> found, told
    ([2, 4], [0.5, 1.0])
    """
    for number, item in enumerate(items, 1):
        yield item
        _listener.get()(number / len(items))
