"""What must survive: checkpoints that are whole or not there, one process a folder, and an end that is asked for.

>>> import tempfile
>>> import numpy as np
>>> from pathlib import Path
>>> from dynaboltz.storage import Store, locked
>>> with tempfile.TemporaryDirectory() as name, locked(Path(name)):
...     store = Store(Path(name), run="example")
...     _ = store.save(1, {"values": np.arange(3.0), "streams": {"policy": 2**100, "note": None}})
...     _ = store.save(2, {"values": np.ones(3), "streams": {"policy": 2**101, "note": "half way"}})
...     found = store.load()
>>> found.step, found.tree["values"].tolist(), found.tree["streams"]["policy"] == 2**101, found.skipped
(2, [1.0, 1.0, 1.0], True, [])
"""

from dynaboltz.errors import StorageError
from dynaboltz.storage.foreign import ForeignError
from dynaboltz.storage.lock import locked
from dynaboltz.storage.memory import available_bytes, cores
from dynaboltz.storage.signals import Asked, graceful
from dynaboltz.storage.store import Loaded, Store
from dynaboltz.storage.tree import Tree, Weights

__all__ = [
    "Asked",
    "ForeignError",
    "Loaded",
    "StorageError",
    "Store",
    "Tree",
    "Weights",
    "available_bytes",
    "cores",
    "graceful",
    "locked",
]
