"""A live page of a run on this machine: its curves, and its agent at play; nothing of the run is ever written.

The page is served to this machine alone (:mod:`dynaboltz.watch.gate` says to whom), by a process of its own that
ends with the one that started it.
"""

from dynaboltz.watch.server import Watcher, watch

__all__ = ["Watcher", "watch"]
