"""What tests of more than one folder share: the evidence of claims, and a browser.

The browser is a headless Chromium, driven over its DevTools pipe; tests skip where it is not installed.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from dynaboltz.paper import CLAIMS
from dynaboltz.paper.claim import Evidence

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_SECONDS = 60.0
"""Until a browser that says nothing counts as broken. No test passes or fails by how fast it is."""
ON_ITS_PIPE = (
    "import fcntl, os, sys\n"
    "ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]\n"
    "os.dup2(ends[0], 3); os.dup2(ends[1], 4)\n"
    "os.execv(sys.argv[3], sys.argv[3:])\n"
)
"""Chromium reads its orders from descriptor 3 and answers on 4."""


@pytest.fixture(scope="session")
def evidence() -> Callable[[str], Evidence]:
    """What the quick test of a claim finds, once a session."""
    return cache(lambda name: CLAIMS[name].quick(np.random.default_rng(1)))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if os.name != "posix":
        pytest.skip("the browser is driven over a pipe of POSIX")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser is installed, none of {', '.join(NAMES)} (Debian: apt-get install chromium)")
    with Browser(program, tmp_path_factory.mktemp("profile")) as tab:
        yield tab


class Browser:
    """One tab."""

    def __init__(self, program: str, profile: Path) -> None:
        orders, self._out = os.pipe()
        self._in, answers = os.pipe()
        root = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._process = subprocess.Popen(
            [
                sys.executable, "-c", ON_ITS_PIPE, str(orders), str(answers), program, "--headless=new", *root,
                "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run", "--disable-gpu",
                "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
                "--proxy-server=127.0.0.1:9", "--hide-scrollbars", "about:blank",
            ],
            pass_fds=(orders, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(orders)
        os.close(answers)
        self._buffer = b""
        self._numbers = itertools.count(1)
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send an order and return its answer; what happens meanwhile goes to ``events``."""
        number = next(self._numbers)
        order: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            order["sessionId"] = self._session
        os.write(self._out, json.dumps(order).encode() + b"\0")
        while (message := self._read()).get("id") != number:
            self.events.append(message)
        assert "error" not in message, f"{method}: {message}"
        result: dict[str, Any] = message["result"]
        return result

    def open(
        self, page: Path | str, *, width: int = 1100, height: int = 900, dark: bool = False, print_: bool = False
    ) -> None:
        """Load a file, with the network off, or an address at a size, and wait until it has loaded."""
        self.events.clear()
        phone = width < 600
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self(
            "Emulation.setEmulatedMedia", media="print" if print_ else "",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )  # fmt: skip
        file = page.resolve().as_uri() if isinstance(page, Path) else ""
        offline = bool(file)
        self("Network.emulateNetworkConditions", offline=offline, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        self("Page.navigate", url=file or page)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())

    def run(self, script: str) -> Any:
        """What an expression of JavaScript is in the page."""
        answer = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, selector: str, key: str, times: int = 1) -> None:
        """Focus an element and press a key, as a reader with a keyboard does."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        codes = {"ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38, "Home": 36, "End": 35, "Enter": 13}
        text = {"text": "\r"} if key == "Enter" else {}
        for _ in range(times):
            about = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
            self("Input.dispatchKeyEvent", type="keyDown", **about, **text)
            self("Input.dispatchKeyEvent", type="keyUp", **about)

    def click(self, selector: str, across: float = 0.5) -> None:
        """Press and let go of the mouse on an element, at a share of its width."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            " return [b.x, b.y, b.width, b.height]; })()"
        )
        at = {"x": box[0] + across * box[2], "y": box[1] + box[3] / 2, "button": "left", "clickCount": 1}
        self("Input.dispatchMouseEvent", type="mousePressed", **at)
        self("Input.dispatchMouseEvent", type="mouseReleased", **at)

    def picture(self, path: Path, *, whole: bool = True) -> bytes:
        """A screenshot as PNG, of the whole page or of what is in view."""
        content = base64.b64decode(
            self("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))["data"]
        )
        path.write_bytes(content)
        return content

    def _clip(self, whole: bool) -> dict[str, Any]:
        size = self("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}} if whole else {}

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings of the console since the page was opened, uncaught exceptions among them."""
        found = []
        for event in self.events:
            method, about = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(json.dumps(about["exceptionDetails"]))
            if method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                found.append(about["entry"]["text"])
            if method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
                found.append(json.dumps(about["args"]))
        return found

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for since it was opened."""
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [about["request"]["url"] for about in sent]

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE_SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"the browser said nothing for {PATIENCE_SECONDS:g} seconds"
            part = os.read(self._in, 1 << 20)
            assert part, f"the browser ended with code {self._process.wait()}"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found
