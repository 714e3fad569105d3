"""What tests of more than one folder share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from dynaboltz.paper import CLAIMS
from dynaboltz.paper.claim import Evidence


@pytest.fixture(scope="session")
def evidence() -> Callable[[str], Evidence]:
    """What the quick test of a claim finds, once a session."""
    return cache(lambda name: CLAIMS[name].quick(np.random.default_rng(1)))
