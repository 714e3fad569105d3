"""The page in a real browser: curves, the agent's values, nothing on the console, nothing of a run taken for markup."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dynaboltz.runs import home_of

PATIENCE_SECONDS = 120.0
CURVES = "document.querySelectorAll('#curves .panel svg polyline').length"
ROWS = "[...document.querySelectorAll('[data-part=actions] tr')]"
ACTIONS = f"{ROWS}.map((row) => [...row.cells].map((one) => one.textContent))"
HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>&lt;b&gt;"


def text(part: str) -> str:
    return f"document.querySelector('[data-part={part}]').textContent"


def until(browser: Any, script: str) -> Any:
    """What an expression is in the page, once it is true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := browser.run(script)):
        assert time.monotonic() < end, f"{script} never came true; on the console: {browser.complaints}"
        time.sleep(0.05)
    return found


def points(browser: Any, panel: str, nth: int = 0) -> list[tuple[float, float]]:
    """The points of a curve."""
    line = f"document.querySelectorAll('[data-panel={panel}] polyline')[{nth}].getAttribute('points')"
    return [(float(x), float(y)) for x, y in (one.split(",") for one in browser.run(line).split())]


@pytest.fixture
def show(browser: Any, serve: Any) -> Any:
    """The page of a run in the browser, which leaves it before its server ends: it would go on asking."""

    @contextlib.contextmanager
    def begin(folder: Path, *options: str, **look: Any) -> Iterator[Any]:
        with serve(folder, *options) as page:
            try:
                browser.open(page.address, **look)
                yield page
            finally:
                browser.open("about:blank")

    return begin


def episodes(append: Callable[..., None], path: Path, steps: range, value: float = 1.0) -> None:
    append(path, *({"kind": "episode", "step": step, "return": value * step} for step in steps))


@pytest.mark.parametrize("look", [{}, {"dark": True}, {"width": 390, "height": 844}])
def test_page_shows_the_curves_and_the_agent_s_values(
    look: dict[str, Any], browser: Any, show: Any, trained: Any
) -> None:
    with show(trained.home.folder, **look) as page:
        until(browser, f"{CURVES} >= 8 && {ACTIONS}.length === 2 && {ACTIONS}.every((row) => row[2])")
        assert browser.run(text("phase")) == "finished"
        assert browser.run(text("step")) == "700 of 700 steps, 100\u00a0%"
        assert browser.run(text("title")) == "CartPole-v1: dbs-dqn"
        assert [row[0] for row in browser.run(ACTIONS)] == ["left", "right"]
        states = "[...document.querySelectorAll('[data-part=state] tr')].map((row) => row.cells[0].textContent)"
        assert browser.run(states) == ["max", "boltzmann"]
        assert browser.run("document.querySelector('[data-part=picture]').naturalWidth") >= 200
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        assert browser.complaints == []
        assert {address.split("?")[0].rpartition("/")[0] for address in browser.requests if "data:" not in address} == {
            f"http://{page.server.host}"
        }


def test_page_draws_every_number_of_the_rows_that_has_a_panel(browser: Any, show: Any, trained: Any) -> None:
    with show(trained.home.folder, "--no-agent"):
        until(browser, CURVES)
        panels = browser.run("[...document.querySelectorAll('.panel')].map((one) => one.dataset.panel)")
        assert panels == ["return", "loss", "beta", "c", "gap", "entropy", "q_mean", "epsilon"]
        rows = [json.loads(line) for line in trained.home.rows.read_text().splitlines()]
        learning = [row for row in rows if row["kind"] == "learning"]
        for name in ("loss", "gap", "entropy", "q_mean"):
            drawn = points(browser, name)
            values = [row[name] for row in learning if name in row]
            assert len(drawn) == len(values)
            assert max(range(len(values)), key=values.__getitem__) == min(range(len(values)), key=lambda i: drawn[i][1])
        assert browser.run("document.getElementById('stage').hidden") is True


def test_chosen_action_is_marked_and_has_the_longest_bar(browser: Any, show: Any, trained: Any) -> None:
    with show(trained.home.folder):
        until(browser, "document.querySelector('[data-part=actions] .chosen') !== null")
        browser.click("[data-part=pause]")
        number = "Number(row.cells[2].textContent.replace('−', '-'))"
        width = "parseFloat(row.querySelector('.bar span').style.width)"
        found = browser.run(f"{ROWS}.map((row) => [row.className.includes('chosen'), {number}, {width}])")
        chosen, other = sorted(found, reverse=True)
        assert (chosen[0], other[0]) == (True, False)
        assert chosen[1] >= other[1]
        assert chosen[2] == 100 >= other[2]


def test_pause_holds_the_play_and_play_goes_on(browser: Any, show: Any, trained: Any) -> None:
    with show(trained.home.folder, "--fps", "30"):
        until(browser, text("counts"))
        browser.press("[data-part=pause]", "Enter")
        until(browser, f"{text('pause')} === 'Play'")
        asked = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/moment')).length"
        browser.run("performance.clearResourceTimings()")
        until(
            browser, "performance.getEntriesByType('resource').filter((one) => one.name.includes('/state')).length > 1"
        )
        assert browser.run(asked) <= 1  # one may have been under way
        browser.press("[data-part=pause]", "Enter")
        until(browser, f"{asked} > 2")


def test_page_grows_with_the_rows_and_starts_again_where_they_do(
    browser: Any, show: Any, begun: Any, append: Callable[..., None]
) -> None:
    home = begun[0]
    with show(home.folder, "--no-agent"):
        until(browser, f"{text('phase')} === 'waiting'")
        assert browser.run("document.querySelector('[data-part=waiting]').hidden") is False
        episodes(append, home.rows, range(10, 60, 10))
        until(browser, f"{text('episodes')} === '5'")
        assert len(points(browser, "return")) == 5
        episodes(append, home.rows, range(60, 80, 10))
        until(browser, f"{text('episodes')} === '7'")
        home.rows.write_bytes(b"".join(home.rows.read_bytes().splitlines(keepends=True)[:3]))
        until(browser, f"{text('episodes')} === '3'")
        assert len(points(browser, "return")) == 3
        assert browser.complaints == []


def test_pointer_over_a_curve_tells_its_numbers(
    browser: Any, show: Any, begun: Any, append: Callable[..., None]
) -> None:
    home = begun[0]
    episodes(append, home.rows, range(100, 700, 100), value=0.5)
    with show(home.folder, "--no-agent"):
        until(browser, CURVES)
        told = "document.querySelector('[data-panel=return] .legend b').textContent"
        assert browser.run(told) == "300"  # the last one
        box = browser.run(
            "(() => { const b = document.querySelector('[data-panel=return] svg').getBoundingClientRect();"
            " return [b.x, b.y, b.width, b.height]; })()"
        )
        browser("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + 64, y=box[1] + box[3] / 2)
        assert browser.run(told) == "50"
        assert browser.run("document.querySelector('[data-panel=return] output').textContent") == "at step 100"
        browser("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + 64, y=5)
        assert browser.run(told) == "300"


@pytest.mark.parametrize(
    "values", [[0.0] * 5, [1e-30, 2e-30], [1e300, -1e300], [5.0], [1.0, 1.0 + 1e-15], [1e-9, 1e9, 1e18], [-3.0, 7.0]]
)
def test_curve_of_any_numbers_stays_within_its_panel(
    values: list[float], browser: Any, show: Any, begun: Any, append: Callable[..., None]
) -> None:
    home = begun[0]
    append(home.rows, *({"kind": "learning", "step": 100 * i, "beta": v, "loss": v} for i, v in enumerate(values)))
    with show(home.folder, "--no-agent"):
        until(browser, CURVES)
        for panel in ("beta", "loss"):
            drawn = points(browser, panel)
            assert len(drawn) == len(values)
            assert all(0 <= x <= 1100 and 0 <= y <= 170 for x, y in drawn)
        labels = browser.run(
            "[...document.querySelectorAll('#curves svg text')].map((one) => [one.textContent, one.getBBox().x])"
        )
        assert all("NaN" not in label and x > -1 for label, x in labels), labels
        assert browser.complaints == []


def test_names_and_messages_of_a_run_are_text_and_nothing_else(
    browser: Any, show: Any, settings: Any, tmp_path: Path, append: Callable[..., None]
) -> None:
    config = settings(name=HOSTILE)
    home = home_of(config, tmp_path)
    home.prepare(config)
    append(home.journal, {"time": HOSTILE, "pid": 1, "event": "start"}, {"event": "error", "message": HOSTILE})
    append(home.rows, {"kind": HOSTILE, "step": 1}, {"kind": "learning", "step": 2, "loss": HOSTILE, "beta": 2.0})
    with show(home.folder):
        until(browser, f"{text('phase')} === 'failed'")
        until(browser, CURVES)
        assert browser.run(text("note")) == HOSTILE
        assert browser.run(text("title")) == f"CartPole-v1: {HOSTILE}"
        assert browser.run("document.title") == f"CartPole-v1: {HOSTILE}, seed 0"
        assert browser.run("[document.images.length, document.scripts.length]") == [1, 1]
        assert browser.complaints == []


def test_page_itself_runs_no_script_that_is_not_its_own(browser: Any, show: Any, begun: Any) -> None:
    with show(begun[0].folder, "--no-agent"):
        for tried in (
            "document.body.innerHTML = '<b>theirs</b>'",
            "document.body.setAttribute('onclick', 'window.theirs = 1')",
            "document.body.append(Object.assign(document.createElement('script'), {text: 'window.theirs = 1'}))",
        ):
            browser.run(f"(() => {{ try {{ {tried} }} catch {{ }} }})(); document.body.click()")
            assert browser.run("typeof window.theirs + document.querySelectorAll('b').length") == "undefined0", tried
        other = "fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused')"
        assert browser.run(other) == "refused"


def test_page_without_its_token_tells_nothing_of_the_run(browser: Any, serve: Any, trained: Any) -> None:
    with serve(trained.home.folder, "--no-agent") as page:
        for address in (f"http://{page.server.host}/", page.address[:-1], f"http://{page.server.host}/state"):
            browser.open(address)
            shown = browser.run("document.documentElement.textContent")
            assert shown.strip() == "the token is missing or wrong; open the address that watch printed"


def test_another_site_gets_nothing_even_with_the_token(
    browser: Any, serve: Any, show: Any, begun: Any, trained: Any
) -> None:
    """A page on another port asks, as any site's page could that has somehow learned the token."""
    with serve(trained.home.folder, "--no-agent") as other, show(begun[0].folder, "--no-agent") as ours:
        until(browser, f"{text('phase')} === 'waiting'")
        browser("Page.setBypassCSP", enabled=True)
        try:
            browser.open(ours.address)
            for target in ("/state", f"/?token={other.server.token}"):
                for mode in ("cors", "no-cors"):
                    asked = (
                        f"fetch('http://{other.server.host}{target}', {{mode: '{mode}', headers: '{mode}' === 'cors' ?"
                        f" {{'X-Dynaboltz-Token': '{other.server.token}'}} : {{}}}}).then((answer) => answer.text(),"
                        " () => '')"
                    )
                    assert browser.run(asked) == ""
        finally:
            browser("Page.setBypassCSP", enabled=False)


def test_page_says_when_watch_has_ended(browser: Any, serve: Any, begun: Any) -> None:
    with serve(begun[0].folder, "--no-agent") as page:
        browser.open(page.address)
        until(browser, f"{text('phase')} === 'waiting'")
    until(browser, f"{text('phase')} === 'no answer'")
    assert "this page tries again" in browser.run(text("note"))
    browser.open("about:blank")
