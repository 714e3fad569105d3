"""A window that shows the moments of an episode, and takes keys where no agent plays."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from dynaboltz.envs.drawing import Canvas
from dynaboltz.envs.scenes import Random
from dynaboltz.envs.screens import CLOSING_SECONDS
from dynaboltz.errors import DynaboltzError

if TYPE_CHECKING:
    from dynaboltz.envs.scenes import Scene
    from dynaboltz.envs.spec import Spec

KEYS = {"Left": "left", "Right": "right", "Up": "up", "Down": "down", "space": "fire"}
"""Keys → what an action is called; digits are actions by their number."""


class Keyboard(Random):
    """An actor that does what key is held; any action while none has ever been, the first while none is."""

    def __init__(self, spec: Spec, rng: np.random.Generator) -> None:
        super().__init__(spec, rng)
        self._spec, self._held, self._touched = spec, 0, False

    def press(self, key: str) -> None:
        """A key went down."""
        action = int(key) if key.isdecimal() else self._named(KEYS.get(key, key))
        if action is not None and action < self._spec.n_actions:
            self._held, self._touched = action, True

    def release(self) -> None:
        """All keys are up."""
        self._held = 0

    def act(self) -> np.ndarray:
        """The action of the key."""
        return np.array([self._held]) if self._touched else super().act()

    def _named(self, name: str) -> int | None:
        labels = self._spec.action_labels or ()
        return labels.index(name) if name in labels else None


class Window:
    """An open window with one picture."""

    def __init__(self, root: Any, keyboard: Keyboard | None) -> None:
        self._root, self.is_open = root, True
        self._picture: Any = None
        root.title("dynaboltz play")
        root.resizable(width=False, height=False)
        root.protocol("WM_DELETE_WINDOW", self._leave)
        root.bind("<Escape>", self._leave)
        if keyboard is not None:
            root.bind("<KeyPress>", lambda event: keyboard.press(str(event.keysym)))
            root.bind("<KeyRelease>", lambda _: keyboard.release())
        self._label: Any = None

    def show(self, picture: np.ndarray, seconds: float) -> None:
        """Put ``picture`` up for ``seconds``, or until the window is closed."""
        import tkinter

        until = time.monotonic() + seconds
        content = b"P6 %d %d 255\n" % (picture.shape[1], picture.shape[0]) + picture.tobytes()
        self._picture = tkinter.PhotoImage(master=self._root, data=content, format="PPM")
        if self._label is None:
            self._label = tkinter.Label(self._root, borderwidth=0)
            self._label.pack()
        self._label.configure(image=self._picture)
        while self.is_open:
            self._root.update()
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.02))

    def close(self) -> None:
        """Take the window away."""
        self._root.destroy()

    def _leave(self, *_: Any) -> None:
        self.is_open = False


def show_window(scenes: Iterable[Scene], fps: float, keyboard: Keyboard | None = None) -> None:
    """Show the moments, until they end or the window is closed."""
    canvas, window = Canvas(), Window(_opened(), keyboard)
    try:
        for scene in scenes:
            window.show(canvas.draw(scene), CLOSING_SECONDS if scene.note else 1 / fps)
            if not window.is_open:
                return
    finally:
        window.close()


def _opened() -> Any:
    try:
        import tkinter
    except ImportError as fault:
        raise DynaboltzError(
            "a window needs Python's tkinter, which is not installed\n"
            "  install it with: apt install python3-tk (or the like of your system), or use --text or --video FILE"
        ) from fault
    try:
        return tkinter.Tk()
    except tkinter.TclError as fault:
        raise DynaboltzError(f"cannot open a window: {fault}\n  use --text, or --video FILE") from fault
