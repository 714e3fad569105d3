"""The run's agent at play, in a thread of its own that rests while nobody looks."""

from __future__ import annotations

import base64
import contextlib
import os
import struct
import sys
import threading
import time
import zlib
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

import numpy as np

from dynaboltz.envs import Environments, make
from dynaboltz.envs.scenes import Scene, scenes
from dynaboltz.envs.spec import Spec, Step
from dynaboltz.errors import DynaboltzError
from dynaboltz.runs import Home, RunConfig
from dynaboltz.watch.weights import Place, newest

STREAM = 2
"""Keeps these episodes apart from those of training and evaluation."""
AWAY_SECONDS = 3.0
"""After which nobody looks any more."""
FRESH_SECONDS = 3.0
"""Between looks for newer weights."""
CLOSING_SECONDS = 0.8
"""How long the last moment of an episode stands still."""
LARGEST = 640
"""Pixels of a picture's longer side; a larger one is made smaller."""
NICENESS = 5
"""So much does the play stand back behind the training."""
LONGEST_TEXT = 20_000


class Mind:
    """Acts by a network alone: no replay, no learner; so that to look on takes next to no memory."""

    def __init__(self, config: RunConfig, spec: Spec) -> None:
        from dynaboltz.deep.engine import make_engine
        from dynaboltz.deep.stacker import Stacker

        self._engine = make_engine(replace(config.agent, overlap=False), spec, seed=config.seed, device="cpu")
        self._stacker = Stacker(1, spec)
        self._rng = np.random.default_rng([config.seed, STREAM])
        self._epsilon, self._actions = config.evaluation.epsilon, spec.n_actions
        self.load = self._engine.parameters.load
        self.close = self._engine.close

    def begin(self, observation: np.ndarray) -> None:
        """First observations (1, *shape)."""
        self._stacker.begin(observation)

    def values(self) -> np.ndarray:
        """Action values (1, A)."""
        return self._engine.values(self._stacker.inputs, "online").copy()

    def act(self) -> np.ndarray:
        """The best action or, as often as in the run's own evaluations, any."""
        if self._rng.random() < self._epsilon:
            return self._rng.integers(self._actions, size=1)
        best: np.ndarray = self.values().argmax(axis=1)
        return best

    def observe(self, step: Step) -> None:
        """What the action led to."""
        self._stacker.push(step)


class Stage:
    """Plays from when it is looked at until nobody looks any more.

    Args:
        home: of the run.
        config: of the run.
        which: ``last`` or ``best`` weights.
        fps: decisions a second.
        beta: tells β of now.
    """

    def __init__(
        self, home: Home, config: RunConfig, *, which: str, fps: float, beta: Callable[[], float | None]
    ) -> None:
        self.home, self.config, self.which, self.fps, self._beta_now = home, config, which, fps, beta
        self._summary = config.agent.parsed_summary
        self._ended, self._looked, self._looked_at = threading.Event(), threading.Event(), 0.0
        self._moment: dict[str, Any] = {"n": 1, "message": "the agent is being made ready"}
        self._place: Place | None = None
        self._beta: float | None = None
        self._next_check = 0.0
        self._thread = threading.Thread(target=self._run, name="stage", daemon=True)
        self._thread.start()

    def look(self, after: int) -> dict[str, Any]:
        """The present moment, or nothing but its number where that is ``after``."""
        self._looked_at = time.monotonic()
        self._looked.set()
        moment = self._moment
        return {"n": moment["n"]} if moment["n"] == after else moment

    def close(self) -> None:
        """End the play."""
        self._ended.set()
        self._looked.set()
        self._thread.join(5)

    def _run(self) -> None:
        if sys.platform == "linux":
            os.nice(NICENESS)  # there it is that of this thread alone: requests are still answered at once
        while self._watched():
            try:
                self._play()
            except DynaboltzError as fault:
                self._tell(str(fault))
            except Exception as fault:  # whatever an environment of others may raise
                self._tell(f"{type(fault).__name__}: {fault}")
            self._ended.wait(FRESH_SECONDS)

    def _watched(self) -> bool:
        """Wait until somebody looks; false once it is to end."""
        while not self._ended.is_set() and time.monotonic() > self._looked_at + AWAY_SECONDS:
            self._looked.clear()
            self._looked.wait(60)
        return not self._ended.is_set()

    def _play(self) -> None:
        found = newest(self.home, self.which, run=self.config.identity)
        if found is None:
            after = "evaluation" if self.which == "best" else "checkpoint"
            self._tell(f"there are no weights yet: the agent plays after the run's first {after}")
            return
        with self._begin(0) as envs:
            mind = Mind(self.config, envs.spec)
        try:
            self._place = found[0]
            mind.load(found[1])
            self._check(mind)
            moments = scenes(self._begin, mind, episodes=1 << 40, max_steps=self.config.evaluation.max_steps)
            assert isinstance(moments, Generator)
            with contextlib.closing(moments):
                for scene in moments:
                    self._show(scene)
                    if not self._watched():
                        return
                    self._check(mind)
        finally:
            mind.close()

    def _begin(self, episode: int) -> Environments:
        return make(self.config.env, seed=self.config.seed + episode, stream=STREAM)

    def _check(self, mind: Mind) -> None:
        """Take newer weights and the β of now, if it is time to look for them."""
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + FRESH_SECONDS
        self._beta = self._beta_now()
        found = newest(self.home, self.which, besides=self._place, run=self.config.identity)
        if found is not None:
            self._place = found[0]
            mind.load(found[1])

    def _show(self, scene: Scene) -> None:
        began = time.monotonic()
        picture = None if scene.picture is None else base64.b64encode(png(smaller(scene.picture))).decode("ascii")
        labels = [scene.spec.label(action)[:40] for action in range(scene.spec.n_actions)]
        self._moment = {
            "n": self._moment["n"] + 1, "weights_step": None if self._place is None else self._place.step,
            "episode": scene.episode + 1, "step": scene.step, "reward": scene.reward, "total": scene.total,
            "note": scene.note, "action": scene.action, "labels": labels, "picture": picture,
            "text": scene.text[:LONGEST_TEXT] if picture is None else "",
            **self._valued(scene.values),
        }  # fmt: skip
        pause = max(CLOSING_SECONDS, 1 / self.fps) if scene.note else 1 / self.fps
        self._ended.wait(max(0.0, began + pause - time.monotonic()))

    def _valued(self, values: np.ndarray | None) -> dict[str, Any]:
        """The action values and what the run's operator makes of them, beside their maximum."""
        if values is None:
            return {"values": None}
        operator = self._summary.operator
        beta = self._beta if self._beta is not None else self._summary.beta(1) if _fixed(self._summary) else None
        known = beta is not None or not operator.traits.takes_beta
        made = float(operator(values, beta if operator.traits.takes_beta else None)) if known else None
        return {
            "values": values.tolist(), "max": float(values.max()), "operator": operator.name, "made": made,
            "beta": beta if operator.traits.takes_beta else None,
        }  # fmt: skip

    def _tell(self, message: str) -> None:
        if self._moment.get("message") != message:
            self._moment = {"n": self._moment["n"] + 1, "message": message[:2000]}


def _fixed(summary: object) -> bool:
    return hasattr(summary, "sharpness")


def smaller(picture: np.ndarray) -> np.ndarray:
    """The mean of every square of k × k pixels, so that the picture is not larger than ``LARGEST``."""
    k = -(-max(picture.shape[:2]) // LARGEST)
    if k == 1:
        return picture
    high, wide = (size // k for size in picture.shape[:2])
    squares = picture[: high * k, : wide * k].reshape(high, k, wide, k, -1)
    means: np.ndarray = squares.mean(axis=(1, 3)).astype(np.uint8)
    return means


def png(picture: np.ndarray) -> bytes:
    """A picture ``(height, width, 3)`` uint8 as a PNG file (ISO/IEC 15948), of one chunk of data."""
    height, width, _ = picture.shape
    lines = np.zeros((height, 1 + 3 * width), np.uint8)  # each begins with the number of its filter: none
    lines[:, 1:] = picture.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
