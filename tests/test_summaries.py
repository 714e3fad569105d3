"""Summaries and the grammar of specs: values, round trips, and text that must not get through."""

from __future__ import annotations

import math
import pickle
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynaboltz import (
    Dynamic,
    Fixed,
    Summary,
    UnknownNameError,
    UserError,
    boltzmann,
    capped,
    epsilon_mixture,
    exponential,
    hard_max,
    linear,
    log_sum_exp,
    mean,
    mellowmax,
    parse_summary,
    piecewise,
    power,
    soft_mellowmax,
)
from dynaboltz.operators import OPERATORS
from dynaboltz.text import Call, parse

fixed: Any = Fixed
dynamic: Any = Dynamic
"""The same without types, to be called as the types forbid."""

Q = np.array([[0.0, 1.0, 3.0], [2.0, 2.0, -1.0]])


def test_fixed_is_the_operator_at_every_time() -> None:
    for t in (0, 7, 1e9):
        assert (Fixed(boltzmann, 5)(Q, t) == boltzmann(Q, 5.0)).all()
        assert (Fixed(hard_max)(Q, t) == [3.0, 2.0]).all()


def test_dynamic_is_the_operator_at_the_schedules_beta() -> None:
    dbs = Dynamic(boltzmann, power(2))
    for t in (0, 1, 3):
        assert (dbs(Q, t) == boltzmann(Q, float(t**2))).all()
        assert dbs.beta(t) == t**2


def test_dynamic_with_an_overflowing_schedule_is_the_maximum() -> None:
    assert (Dynamic(boltzmann, exponential(2))(Q, 1e6) == [3.0, 2.0]).all()


def test_fixed_beta_is_kept_as_a_float_and_none_without() -> None:
    assert type(Fixed(boltzmann, 5).beta(3)) is float
    assert fixed(boltzmann, np.float32(5)) == Fixed(boltzmann, 5.0)
    assert Fixed(mean).beta(3) is None


def test_summary_passes_axis_and_mask_on() -> None:
    mask = np.array([[True, True, False], [False, True, True]])
    for summary in (Fixed(mellowmax, 2.0), Dynamic(mellowmax, linear(2.0))):
        assert (summary(Q.T, 1, axis=0, mask=mask.T) == mellowmax(Q, 2.0, mask=mask)).all()


betas = st.floats(1e-300, allow_nan=False)
sharp = st.one_of(st.sampled_from([boltzmann, mellowmax, log_sum_exp]), st.builds(soft_mellowmax, st.floats(0, 1e300)))
blunt = st.one_of(st.sampled_from([hard_max, mean]), st.builds(epsilon_mixture, st.floats(0, 1)))
schedules = st.one_of(
    st.builds(power, st.floats(0, 9), st.floats(0, 1e9)),
    st.builds(linear, st.floats(0, 1e9), start=st.floats(0, 1e9)),
    st.builds(lambda p, c: capped(power(p), c), st.floats(0, 9), st.floats(0, math.inf)),
    st.just(piecewise(((0, 1.0), (10, 5.0)))),
)
summaries: st.SearchStrategy[Summary] = st.one_of(
    st.builds(Fixed, sharp, betas), st.builds(Fixed, blunt), st.builds(Dynamic, sharp, schedules)
)


@given(summaries)
def test_text_of_a_summary_parses_back_to_it(summary: Summary) -> None:
    assert parse_summary(str(summary)) == summary


@given(summaries)
def test_summary_survives_pickling_and_hashes_as_its_equal(summary: Summary) -> None:
    copy = pickle.loads(pickle.dumps(summary))
    assert copy == summary
    assert hash(copy) == hash(summary)


def test_the_round_trip_covers_every_operator() -> None:
    names = {"boltzmann", "mellowmax", "log_sum_exp", "soft_mellowmax", "hard_max", "mean", "epsilon_mixture"}
    assert names == set(OPERATORS)


@pytest.mark.parametrize(
    ("spec", "summary"),
    [
        ("hard_max", Fixed(hard_max)),
        ("hard_max()", Fixed(hard_max)),
        (" mean ", Fixed(mean)),
        ("boltzmann(5)", Fixed(boltzmann, 5)),
        ("boltzmann(beta=5.0)", Fixed(boltzmann, 5)),
        ("boltzmann(inf)", Fixed(boltzmann, math.inf)),
        ("boltzmann(power(2))", Dynamic(boltzmann, power(2))),
        ("boltzmann(beta=power(2, c=0.5))", Dynamic(boltzmann, power(2, c=0.5))),
        ("soft_mellowmax(2, 5)", Fixed(soft_mellowmax(2), 5)),
        ("soft_mellowmax(2, beta=5)", Fixed(soft_mellowmax(2), 5)),
        ("soft_mellowmax(beta=linear(1), alpha=2)", Dynamic(soft_mellowmax(2), linear(1))),
        ("epsilon_mixture(0.1)", Fixed(epsilon_mixture(0.1))),
        ("mellowmax(beta=capped(power(2), 50))", Dynamic(mellowmax, capped(power(2), 50))),
        ("boltzmann(beta=piecewise(((0, 1), (5, 2.5))))", Dynamic(boltzmann, piecewise(((0, 1), (5, 2.5))))),
        ("boltzmann(beta=piecewise([(0, 1), (5, 2.5)]))", Dynamic(boltzmann, piecewise(((0, 1), (5, 2.5))))),
    ],
)
def test_spec_reads_as_the_summary(spec: str, summary: Summary) -> None:
    assert parse_summary(spec) == summary


@pytest.mark.parametrize(
    ("summary", "text"),
    [
        (Fixed(hard_max), "hard_max"),
        (Fixed(boltzmann, 5), "boltzmann(beta=5)"),
        (Fixed(boltzmann, math.inf), "boltzmann(beta=inf)"),
        (Fixed(epsilon_mixture(0.1)), "epsilon_mixture(epsilon=0.1)"),
        (Dynamic(soft_mellowmax(2), linear(0.5, start=1)), "soft_mellowmax(alpha=2, beta=linear(0.5, start=1))"),
    ],
)
def test_summary_prints_as_its_spec(summary: Summary, text: str) -> None:
    assert str(summary) == repr(summary) == text


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("boltzman(beta=5)", "unknown operator 'boltzman'\n  did you mean 'boltzmann'?  known: boltzmann, eps"),
        ("hardmax", "did you mean 'hard_max'?"),
        ("zzz", "unknown operator 'zzz'\n  known: boltzmann"),
        ("boltzmann(beta=powr(2))", "unknown schedule 'powr'\n  did you mean 'power'?"),
        ("boltzmann(bet=2)", "unknown argument of boltzmann: 'bet'\n  did you mean 'beta'?  known: beta"),
        ("soft_mellowmax(alfa=2, beta=3)", "unknown argument of soft_mellowmax: 'alfa'\n  did you mean 'alpha'?"),
        ("soft_mellowmax(beta=3)", "missing a required argument: 'alpha'\n  it reads soft_mellowmax(alpha, beta)"),
        ("epsilon_mixture", "missing a required argument: 'epsilon'"),
        ("epsilon_mixture(0.1, 5)", "epsilon_mixture(epsilon=0.1) has no beta, got 5"),
        ("boltzmann(2, 3)", "too many positional arguments\n  it reads boltzmann(beta)"),
        ("boltzmann", "boltzmann needs a beta: Fixed(boltzmann, 5.0), or as text 'boltzmann(beta=5)'"),
        (
            "soft_mellowmax(2)",
            "needs a beta: Fixed(soft_mellowmax(alpha=2), 5.0), or as text 'soft_mellowmax(alpha=2, beta=5)'",
        ),
        ("hard_max(3)", "hard_max has no beta, got 3; write Fixed(hard_max)"),
        ("hard_max(beta=power(2))", "hard_max has no beta for a schedule to set"),
        ("power(2)", "'power(2)' is a schedule, not an operator\n  did you mean 'boltzmann(beta=power(2))'?"),
        ("boltzmann(beta=-1)", "beta must be a number of at least 0 (inf is the maximum), got -1"),
        ("boltzmann(beta=nan)", "cannot read 'boltzmann(beta=nan)': nan is not a value"),
        ("max", "unknown operator 'max'\n  did you mean 'hard_max'?"),
        ("boltzmann(beta='5')", "beta must be a number or a schedule in \"boltzmann(beta='5')\", got '5'"),
        ("boltzmann(beta=(1, 2))", "beta must be a number or a schedule"),
        ("boltzmann(beta=1, beta=2)", "boltzmann has an argument twice"),
        ("log_sum_exp(beta=0)", "log_sum_exp is infinite at beta = 0; use mellowmax"),
        ("epsilon_mixture(epsilon=2)", "epsilon must be a finite number from 0 to 1, got 2"),
        ("soft_mellowmax(alpha=power(2), beta=3)", "alpha must be a finite number from 0 up"),
    ],
)
def test_wrong_spec_is_refused_with_what_to_do(spec: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_summary(spec)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "spec", ["boltzman(beta=5)", "boltzmann(beta=powr(2))", "boltzmann(bet=5)", "1 +", "mean(7, 8)"]
)
def test_error_says_where_the_spec_stands(spec: str) -> None:
    with pytest.raises(UserError, match=r"studies/a\.toml"):
        parse_summary(spec, "studies/a.toml")


HOSTILE = {
    "import": "__import__('os').system('touch hacked')",
    "call of import": "__import__('os')",
    "lambda": "lambda: 0",
    "argument lambda": "boltzmann(beta=lambda: 0)",
    "attribute": "boltzmann.traits",
    "attribute of argument": "boltzmann(beta=().__class__)",
    "subscript": "boltzmann[0]",
    "arithmetic": "boltzmann(beta=9**9**9)",
    "comprehension": "boltzmann(beta=[x for x in (1,)])",
    "f-string": "boltzmann(beta=f'{1}')",
    "walrus": "boltzmann(beta=(x := 5))",
    "star": "boltzmann(*(5,))",
    "double star": "boltzmann(**{'beta': 5})",
    "dict": "boltzmann(beta={})",
    "set": "boltzmann(beta={1})",
    "comparison": "boltzmann(beta=1 < 2)",
    "conditional": "boltzmann(beta=1 if 1 else 2)",
    "bool": "boltzmann(beta=True)",
    "none": "boltzmann(beta=None)",
    "bytes": "boltzmann(beta=b'5')",
    "complex": "boltzmann(beta=5j)",
    "ellipsis": "boltzmann(beta=...)",
    "negated text": "boltzmann(beta=-'5')",
    "call of a call": "boltzmann(5)(3)",
    "statement": "import os",
    "two lines": "mean\nmean",
    "semicolon": "mean; mean",
    "unclosed": "boltzmann(beta=5",
    "null byte": "mean\0",
    "surrogate": "mean\ud800",
    "number": "5",
    "minus number": "-5",
    "string": "'boltzmann'",
    "tuple": "(1, 2)",
    "empty": "",
    "blank": "  \n ",
    "a million characters": "mean" + " " * 10**6,
    "deep parentheses": "(" * 400 + ")" * 400,
    "deep minus": "-" * 900 + "1",
    "deep calls": "f(" * 300 + ")" * 300,
    "deep tuple": "boltzmann(beta=" + "(" * 150 + "1" + ",)" * 150 + ")",
    "many digits": "boltzmann(beta=" + "9" * 5000 + ")",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_quickly_shortly_and_without_running_it(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.perf_counter()
    with pytest.raises(UserError) as caught:
        parse_summary(HOSTILE[name])
    assert time.perf_counter() - began < 1.0
    assert len(str(caught.value)) < 400
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_as_the_users_error(text: str) -> None:
    try:
        summary = parse_summary(text)
    except UserError:
        return
    assert isinstance(summary, (Fixed, Dynamic))


@given(st.text("abeh_lmoptwrznxi()[]{}=,.-+*'\"\\0123456789 \n", max_size=40))
def test_any_text_of_the_grammars_own_characters_is_read_or_refused(text: str) -> None:
    try:
        assert isinstance(parse(f"boltzmann(beta={text})"), Call)
    except UserError:
        return


@pytest.mark.parametrize("spec", [None, 5, b"mean", ["mean"], hard_max])
def test_spec_that_is_no_text_is_refused(spec: Any) -> None:
    with pytest.raises(UserError, match=r"expected a spec like 'boltzmann\(beta=power\(2\)\)', got"):
        parse_summary(spec)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: fixed(boltzmann), "boltzmann needs a beta: Fixed(boltzmann, 5.0)"),
        (lambda: fixed(hard_max, 5.0), "hard_max has no beta, got 5.0; write Fixed(hard_max)"),
        (lambda: fixed(boltzmann, -1), "beta must be a number of at least 0 (inf is the maximum), got -1"),
        (lambda: fixed(boltzmann, math.nan), "got nan"),
        (lambda: fixed(boltzmann, sharpness=True), "got True"),
        (lambda: fixed(boltzmann, "5"), "got '5'"),
        (lambda: fixed(boltzmann, power(2)), "beta must be a number of at least 0"),
        (lambda: fixed(log_sum_exp, 0), "log_sum_exp is infinite at beta = 0; use mellowmax"),
        (lambda: fixed("boltzmann", 5), "expected an operator, for instance boltzmann, got 'boltzmann'"),
        (lambda: fixed(soft_mellowmax, 5), "soft_mellowmax has parameters, write soft_mellowmax(alpha=...)"),
        (lambda: fixed(power(2), 5), "expected an operator, for instance boltzmann, got power(2)"),
        (lambda: dynamic(power(2), boltzmann), "expected an operator, for instance boltzmann, got power(2)"),
        (lambda: dynamic(boltzmann, 5.0), "expected a schedule, for instance power(2), got 5.0"),
        (lambda: dynamic(boltzmann, boltzmann), "expected a schedule, for instance power(2), got boltzmann"),
        (lambda: dynamic(hard_max, power(2)), "hard_max has no beta for a schedule to set; write Fixed(hard_max)"),
    ],
)
def test_wrong_part_of_a_summary_is_refused(build: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        build()
    assert message in str(caught.value)


def test_negative_beta_from_a_schedule_is_refused_when_it_comes_up() -> None:
    falling = Dynamic(boltzmann, linear(-1, start=2))
    assert falling(Q, 2).shape == (2,)
    with pytest.raises(UserError, match=r"beta must be at least 0 .*, got -1"):
        falling(Q, 3)


def test_unknown_operator_error_holds_its_parts() -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse_summary("boltzman(5)")
    assert (caught.value.kind, caught.value.name, caught.value.known) == ("operator", "boltzman", sorted(OPERATORS))
