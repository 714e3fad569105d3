"""Parts of pages: inline drawings, cells, policy, embedded data."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest

from dynaboltz.errors import UserError
from dynaboltz.mdp import build_world
from dynaboltz.planning import solve
from dynaboltz.reports.figures import GRID, INK, PAPER, Figure, canvas, save
from dynaboltz.reports.page import WEB, all_numbers, cell, embedded_json, inline_svg, inline_svgs, policy
from dynaboltz.reports.sweeps import SUMMARIES, sweep_data


def test_inline_svg_prefixes_ids_and_drops_its_size() -> None:
    svg = '<?xml?><svg width="3pt" height="2pt" viewBox="0 0 3 2"><g id="a"/><use href="#a" fill="url(#a)"/></svg>'
    assert inline_svg(svg, "f") == (
        '<svg viewBox="0 0 3 2" fill="currentColor" aria-hidden="true">'
        '<g id="f-a"/><use href="#f-a" fill="url(#f-a)"/></svg>'
    )


def test_inline_svg_has_no_id_that_nothing_refers_to_and_so_none_twice() -> None:
    drawn = '<g id="b">\n<image\n id="c"/><image id="c"/></g><path id="d"/><use xlink:href="#d"/>'
    svg = f'<svg viewBox="0 0 3 2">{drawn}</svg>'
    assert inline_svg(svg, "f") == (
        '<svg viewBox="0 0 3 2" fill="currentColor" aria-hidden="true">'
        '<g>\n<image/><image/></g><path id="f-d"/><use xlink:href="#f-d"/></svg>'
    )


def test_inline_svg_takes_the_colours_of_the_page_and_keeps_those_of_data() -> None:
    styles = "".join(f'<g style="fill: {colour}"/>' for colour in (INK, GRID, PAPER, "#000000", "#555555", "#0072b2"))
    found = inline_svg(f'<svg viewBox="0 0 9 2">{styles}</svg>', "f")
    for colour in ("currentColor", "var(--line)", "none", "currentColor", "var(--soft)", "#0072b2"):
        assert f"fill: {colour}" in found
    assert 'class="wide"' in found


def test_inline_svg_shortens_coordinates_but_not_factors() -> None:
    svg = '<svg viewBox="0 0 1 1"><path d="M 1.23456 2.5 L -3.99999 4"/><g transform="scale(0.0859375)"/></svg>'
    assert 'd="M 1.23 2.5 L -3.99 4"/><g transform="scale(0.0859375)"' in inline_svg(svg, "f")


def test_letters_are_drawn_once_for_all_figures_of_a_page() -> None:
    letter, other = '<path id="DejaVuSans-41" d="M 1 2"/>', '<path id="DejaVuSans-42" d="M 3 4" transform="scale(2)"/>'
    uses = [f'<use xlink:href="#DejaVuSans-4{i}"/><g id="a"/><use href="#a"/>' for i in (1, 2)]
    one = f'<svg viewBox="0 0 1 1"><defs>{letter}</defs>{uses[0]}</svg>'
    two = f'<svg viewBox="0 0 1 1"><defs>{letter}\n{other}</defs>{uses[0]}{uses[1]}</svg>'
    found = inline_svgs({"f": one, "g": two})
    page = found["f"] + found["g"]
    assert page.count("M 1 2") == page.count("M 3 4") == 1
    assert page.startswith('<svg width="0" height="0"')
    assert page.count('<use xlink:href="#glyph-0"/>') == 2
    assert page.count('<use xlink:href="#glyph-1"/>') == 1
    assert '<path id="glyph-1" d="M 3 4" transform="scale(2)"/>' in page
    assert '<use href="#g-a"/>' in found["g"]
    assert inline_svgs({}) == {}


def test_saved_figure_has_the_colours_that_a_page_replaces(tmp_path: Path) -> None:
    svg = save(Figure(name="f", caption="", alt="", draw=lambda: canvas()[0]), tmp_path, ("svg", "png"))
    assert all(colour in svg for colour in (INK, GRID, PAPER))
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    assert not (tmp_path / "f.pdf").exists()


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567, "1,234,567"), (0.00001234, "1.234 × 10⁻⁵"), (-0.5, "−0.5"), (True, "yes"), ("x", "x"), (2.0, "2")],
)
def test_cell_reads_like_print(value: object, text: str) -> None:
    assert cell(value) == text


def test_numbers_are_told_from_words() -> None:
    rows = [("a", 1, "84.72", "1.5 [1, 2]", "12 %"), ("b", 2.5, "−3", "2 [1, 3]", "none")]
    assert [all_numbers(rows, column) for column in range(5)] == [False, True, True, True, False]
    few = [("", "", np.float64(2)), ("0.1 [0, 0.2]", None, ""), ("0 (no interval)", "", -1)]
    assert [all_numbers(few, column) for column in range(3)] == [True, False, True]


def test_policy_allows_the_scripts_of_the_page_and_nothing_else() -> None:
    digest = base64.b64encode(hashlib.sha256(b"x()").digest()).decode()
    assert policy(["x()"]) == (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    assert policy([]).endswith("script-src 'none'")


def test_embedded_json_cannot_end_its_element() -> None:
    text = embedded_json({"name": "</script><script>alert(1)</script>", "bound": [math.inf, 1.0]})
    assert "<" not in text
    assert json.loads(text) == {"name": "</script><script>alert(1)</script>", "bound": [None, 1.0]}


@pytest.mark.parametrize("name", ["lens.js", "sweep.js", "page.css"])
def test_page_parts_name_no_address(name: str) -> None:
    text = (WEB / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert "@import" not in text
    assert "eval(" not in text


def test_sweep_data_is_the_planner_s_trace() -> None:
    world = build_world("paper_grid(walls='interleaved')")
    data = sweep_data(world, 0.9, sweeps=12)
    assert [trace["name"] for trace in data["traces"]] == list(SUMMARIES)
    trace = data["traces"][1]
    values = np.frombuffer(base64.b64decode(trace["values"]), "<f4").reshape(13, -1)
    ours = solve(
        world, discount=0.9, summary=trace["summary"], method="jacobi", error=1e-300, max_sweeps=12, trace="values"
    ).trace
    assert ours is not None
    assert ours.values is not None
    assert values == pytest.approx(ours.values, abs=1e-6)
    assert trace["bound"] == ours.bound.tolist()
    assert trace["beta"] == [t**2 for t in range(1, 13)]


def test_sweep_data_holds_its_last_entry_where_nothing_changes_any_more() -> None:
    data = sweep_data(build_world("grid(rows=2, cols=2)"), 0.9, sweeps=9, summaries={"max": "hard_max"})
    (trace,) = data["traces"]
    assert len(trace["bound"]) == len(trace["loss"]) == len(trace["beta"]) == 9
    assert trace["loss"][-1] == 0.0


def test_sweep_data_needs_a_map() -> None:
    with pytest.raises(UserError, match="map"):
        sweep_data(build_world("chain(states=4)"), 0.9)
