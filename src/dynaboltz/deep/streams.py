"""One seed, many independent streams of random numbers: each by its name, and each saved as it stands."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """The stream of this name; streams of other names are independent of it, whatever is drawn from them."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))))


def stream_state(rng: np.random.Generator) -> dict[str, Any]:
    """Where a stream is."""
    return dict(rng.bit_generator.state)


def restore_stream(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Go to where a stream was."""
    rng.bit_generator.state = state
