"""The page in a real browser, from a file with the network off: both sliders driven, nothing on the console."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynaboltz import boltzmann, log_sum_exp, mellowmax
from dynaboltz.mdp import build_world
from dynaboltz.paper import CLAIMS
from dynaboltz.paper.page import write_page
from dynaboltz.paper.reproduce import run
from dynaboltz.planning import solve
from dynaboltz.theory import sharp_gap

LENS_ROWS = "[...document.querySelectorAll('#lens tr[data-operator]')].map((row) => ({...row.dataset}))"
SWEEP_ROWS = "[...document.querySelectorAll('#sweep tr[data-side]')].map((row) => ({...row.dataset}))"
BETA_AT = "10 ** (-2 + 5 * (Number(document.querySelector('#lens-beta').value) - 1) / 298)"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    return write_page([run(CLAIMS[name], folder) for name in ("table-medians", "table-wins")], folder, seed=0)


def lens(browser: Any) -> dict[str, dict[str, float]]:
    return {
        row["operator"]: {key: float(row[key]) for key in ("value", "gap", "bound")} for row in browser.run(LENS_ROWS)
    }


def expect(rows: dict[str, dict[str, float]], values: list[float], beta: float) -> None:
    """Every number of the lens is the one of our own operators."""
    q = np.array(values, np.float64)
    for name, operator in {"Boltzmann": boltzmann, "log-sum-exp": log_sum_exp, "mellowmax": mellowmax}.items():
        assert rows[name]["value"] == pytest.approx(float(operator(q, beta)), rel=1e-9, abs=1e-12), (name, beta)
    assert rows["max"]["value"] == q.max()
    assert rows["Boltzmann"]["bound"] == pytest.approx(sharp_gap(beta, q.size), rel=1e-9)
    assert all(row["gap"] <= row["bound"] * (1 + 1e-9) for row in rows.values())


def test_page_opens_from_a_file_with_nothing_fetched_and_nothing_on_the_console(browser: Any, page: Path) -> None:
    for look in ({}, {"dark": True}, {"width": 390, "height": 844}, {"print_": True}):
        browser.open(page, **look)
        assert browser.complaints == []
        assert {address.split(":")[0] for address in browser.requests} <= {"file", "data"}
        assert browser.run("document.querySelectorAll('#lens tr[data-operator]').length") == 4


def test_page_refuses_to_fetch_and_to_run_a_script_that_is_not_its_own(browser: Any, page: Path) -> None:
    browser.open(page)
    assert browser.run("fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'refused')") == "refused"
    browser.run(
        "const s = document.createElement('script'); s.textContent = 'window.theirs = 1'; document.body.append(s)"
    )
    assert browser.run("typeof window.theirs") == "undefined"


def test_lens_follows_its_slider_by_keyboard_and_by_mouse(browser: Any, page: Path) -> None:
    browser.open(page)
    browser.press("#lens-beta", "ArrowRight", 25)
    after_keys = browser.run(BETA_AT)
    expect(lens(browser), [0, 1, 3], after_keys)
    browser.click("#lens-beta", across=0.8)
    after_mouse = browser.run(BETA_AT)
    assert after_mouse > 30 > after_keys > 0.6743
    expect(lens(browser), [0, 1, 3], after_mouse)
    assert browser.run("document.querySelector('#lens-beta').getAttribute('aria-valuetext')").startswith("β = ")
    assert browser.complaints == []


def test_lens_at_its_ends_is_the_mean_and_the_maximum(browser: Any, page: Path) -> None:
    browser.open(page)
    browser.press("#lens-beta", "Home")
    low = lens(browser)
    assert [low[name]["value"] for name in ("Boltzmann", "mellowmax")] == pytest.approx([4 / 3, 4 / 3])
    assert low["log-sum-exp"]["value"] == low["Boltzmann"]["bound"] == np.inf
    browser.press("#lens-beta", "End")
    assert {row["value"] for row in lens(browser).values()} == {3.0}
    assert browser.run("document.querySelector('#lens [data-part=shown]').textContent") == "∞"


def test_lens_takes_the_reader_s_values_and_shows_the_worst_row(browser: Any, page: Path) -> None:
    browser.open(page)
    browser.click("#lens [data-part=add]")
    browser.run(
        "const box = document.querySelectorAll('#lens input[type=number]')[1]; box.value = '-2.5';"
        "box.dispatchEvent(new Event('input'))"
    )
    expect(lens(browser), [0, -2.5, 3, 3], browser.run(BETA_AT))
    browser.click("#lens [data-part=worst]")
    worst = lens(browser)["Boltzmann"]
    assert worst["gap"] == pytest.approx(worst["bound"], rel=1e-9)
    browser.click("#lens [data-part=reset]")
    expect(lens(browser), [0, 1, 3], browser.run(BETA_AT))


def test_lens_ignores_what_is_no_number(browser: Any, page: Path) -> None:
    browser.open(page)
    before = lens(browser)
    browser.run(
        "const box = document.querySelector('#lens input[type=number]'); box.value = '';"
        "box.dispatchEvent(new Event('input'))"
    )
    assert lens(browser) == before
    assert browser.run("document.querySelector('#lens input[type=number]').getAttribute('aria-invalid')") == "true"


def test_sweep_slider_shows_the_planner_s_sweeps_and_the_band_closing(browser: Any, page: Path) -> None:
    world = build_world("paper_grid(walls='interleaved')")
    trace = solve(
        world,
        discount=0.9,
        summary="boltzmann(beta=power(2))",
        method="jacobi",
        error=1e-300,
        max_sweeps=60,
        trace=True,
    ).trace
    assert trace is not None
    browser.open(page)
    bounds = []
    for sweep in (11, 16, 36):
        browser.press(
            "#sweep-slider", "ArrowRight", sweep - browser.run("Number(document.querySelector('#sweep-slider').value)")
        )
        left, right = browser.run(SWEEP_ROWS)
        bounds.append(float(left["bound"]))
        assert float(left["bound"]) == pytest.approx(trace.bound[sweep - 1])
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 0.01 < float(right["bound"])  # with a fixed β nothing is proven of V*
    assert float(right["loss"]) > 0.1 > float(left["loss"])
    assert browser.complaints == []


def test_sweep_maps_differ_where_their_summaries_do_and_not_from_themselves(browser: Any, page: Path) -> None:
    browser.open(page)
    apart = "document.querySelector('#sweep [data-part=apart]').textContent"
    assert browser.run(apart) != "0"
    browser.run(
        "const pick = document.querySelector('#sweep-right'); pick.value = '1'; pick.dispatchEvent(new Event('change'))"
    )
    assert browser.run(apart) == "0"
    cells = "[...document.querySelectorAll('#sweep [data-part=map-left] [data-state]')]"
    assert len(set(browser.run(f"{cells}.map((cell) => cell.getAttribute('fill'))"))) > 10


def test_sweep_cell_is_chosen_by_keyboard_and_by_mouse(browser: Any, page: Path) -> None:
    browser.open(page)
    cell = "document.querySelector('#sweep [data-part=cell]').textContent"
    browser.click('#sweep [data-part="map-left"] [data-cell="8,8"]')
    assert browser.run(cell).startswith("row 9, column 9,")
    browser.press('#sweep [data-part="map-left"]', "ArrowLeft", 2)
    assert browser.run(cell).startswith("row 9, column 6,")  # over the wall


def test_sweep_plays_and_pauses(browser: Any, page: Path) -> None:
    browser.open(page)
    browser.click("#sweep [data-part=play]")
    assert browser.run("document.querySelector('#sweep [data-part=play]').textContent") == "Pause"
    moved = (
        "new Promise((done) => { const slider = document.querySelector('#sweep-slider'), began = slider.value;"
        " const look = setInterval(() => { if (slider.value !== began) { clearInterval(look); done(true); } }, 20); })"
    )
    assert browser.run(moved)
    browser.click("#sweep [data-part=play]")
    assert browser.run("document.querySelector('#sweep [data-part=play]').textContent") == "Play"


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
def test_page_never_scrolls_sideways(browser: Any, page: Path, width: int) -> None:
    browser.open(page, width=width, height=800)
    assert browser.run("document.documentElement.scrollWidth") <= width


def test_page_is_dark_where_the_reader_wants_it(browser: Any, page: Path) -> None:
    shade = "getComputedStyle(document.body).backgroundColor"
    browser.open(page)
    light = browser.run(shade)
    browser.open(page, dark=True)
    assert (light, browser.run(shade)) == ("rgb(255, 255, 255)", "rgb(15, 20, 25)")


def test_controls_have_names(browser: Any, page: Path) -> None:
    browser.open(page)
    controls = "[...document.querySelectorAll('input, select, button, svg[role=img]')]"
    named = "e.getAttribute('aria-label') || (e.labels && e.labels.length) || e.textContent.trim()"
    nameless = f"{controls}.filter((e) => !({named})).map((e) => e.outerHTML.slice(0, 80))"
    assert browser.run(nameless) == []
