"""Work that two threads share: what the one begins and need not have done at once, the other does when it is free."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class Side:
    """Calls that wait for nothing the caller does before :meth:`end`; without a second thread they are made at once.

    Two threads for two cores: a third, of its own for these calls, would take turns with the other two. Whoever makes a
    call, what it gives is the same.
    """

    def __init__(self, *, shared: bool) -> None:
        self.shared = shared
        self._calls: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = deque()
        self._begun: list[Future[Any]] = []
        self._changed = threading.Condition()

    def begin(self, call: Callable[..., Result], *arguments: Any) -> Callable[[], Result]:
        """Leave a call to whoever is free; what is returned makes it now, or waits for its result."""
        if not self.shared:
            found = call(*arguments)
            return lambda: found
        result: Future[Result] = Future()
        self._begun.append(result)
        with self._changed:
            self._calls.append((result, call, arguments))
            self._changed.notify()

        def wait() -> Result:
            self.help()
            return result.result()

        return wait

    def help(self) -> None:
        """Make the calls that nobody has begun to make."""
        while self._calls:
            try:
                result, call, arguments = self._calls.popleft()
            except IndexError:  # the other thread was quicker
                return
            try:
                found = call(*arguments)
            except BaseException as fault:
                result.set_exception(fault)
                if not isinstance(fault, Exception):  # an interrupt is this thread's own
                    raise
            else:
                result.set_result(found)

    def help_until(self, done: Future[Any]) -> None:
        """Make what calls there are until the other thread has done its work."""
        done.add_done_callback(self._wake)
        while not done.done():
            self.help()
            with self._changed:
                self._changed.wait_for(lambda: self._calls or done.done())

    def end(self) -> None:
        """All calls are made when this returns."""
        self.help()
        while self._begun:
            self._begun.pop().result()

    def _wake(self, _done: Future[Any]) -> None:
        with self._changed:
            self._changed.notify()
