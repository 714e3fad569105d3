"""Schedules: values by hand, limits, arrays as time, text, and what they refuse."""

from __future__ import annotations

import math
import pickle
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dynaboltz import (
    Schedule,
    UnknownNameError,
    UserError,
    capped,
    constant,
    exponential,
    linear,
    logarithmic,
    parse_schedule,
    piecewise,
    power,
)
from dynaboltz.schedules import SCHEDULES

EXAMPLES: tuple[Schedule, ...] = (
    constant(5.0), power(2), power(0.5, c=0.25), linear(0.5, start=1), linear(-2, start=3), exponential(1.5, c=2),
    exponential(0.9), logarithmic(2), piecewise(((0, 1.0), (100, 0.1))), piecewise(((2, 3.0), (4, 5.0), (9, 0.5))),
    piecewise(((3, 7.0),)), capped(power(2), 50), capped(capped(exponential(2), 1e6), 10),
)  # fmt: skip


def test_every_schedule_has_an_example() -> None:
    assert {schedule.name for schedule in EXAMPLES} == set(SCHEDULES)


@pytest.mark.parametrize(
    ("schedule", "t", "value"),
    [
        (constant(5), 1000, 5.0),
        (power(2), 0, 0.0),
        (power(2), 3, 9.0),
        (power(2, c=0.5), 4, 8.0),
        (power(0.5), 9, 3.0),
        (power(0, c=4), 0, 4.0),
        (linear(0.5, start=1), 4, 3.0),
        (linear(-1), 4, -4.0),
        (exponential(2), 10, 1024.0),
        (exponential(0.5, c=8), 3, 1.0),
        (logarithmic(), 0, 0.0),
        (logarithmic(2), math.e - 1, 2.0),
        (piecewise(((0, 1.0), (100, 0.1))), 50, 0.55),
        (piecewise(((2, 3.0), (4, 5.0), (8, 1.0))), 0, 3.0),
        (piecewise(((2, 3.0), (4, 5.0), (8, 1.0))), 3, 4.0),
        (piecewise(((2, 3.0), (4, 5.0), (8, 1.0))), 4, 5.0),
        (piecewise(((2, 3.0), (4, 5.0), (8, 1.0))), 5, 4.0),
        (piecewise(((2, 3.0), (4, 5.0), (8, 1.0))), 9, 1.0),
        (capped(power(2), 50), 7, 49.0),
        (capped(power(2), 50), 10, 50.0),
    ],
)
def test_schedule_by_hand(schedule: Schedule, t: float, value: float) -> None:
    found = schedule(t)
    assert type(found) is float
    assert found == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("schedule", "limit"),
    [
        (constant(5), 5), (constant(-1), -1), (power(2), math.inf), (power(2, c=-1), -math.inf), (power(0, c=3), 3),
        (power(2, c=0), 0), (linear(1), math.inf), (linear(-1, start=5), -math.inf), (linear(0, start=5), 5),
        (exponential(2), math.inf), (exponential(2, c=-1), -math.inf), (exponential(1, c=3), 3), (exponential(0.5), 0),
        (exponential(2, c=0), 0), (logarithmic(), math.inf), (logarithmic(-1), -math.inf), (logarithmic(0), 0),
        (piecewise(((0, 1.0), (5, 0.25))), 0.25), (capped(power(2), 50), 50), (capped(constant(3), 50), 3),
        (capped(power(2)), math.inf),
    ],
)  # fmt: skip
def test_limit_by_hand(schedule: Schedule, limit: float) -> None:
    assert schedule.limit == limit


@pytest.mark.parametrize("schedule", EXAMPLES, ids=str)
def test_limit_is_where_late_values_go(schedule: Schedule) -> None:
    late = schedule(1e300)
    if math.isinf(schedule.limit):
        assert late * math.copysign(1, schedule.limit) > schedule(1e3) * math.copysign(1, schedule.limit)
        assert abs(late) > 600
    else:
        assert late == pytest.approx(schedule.limit, abs=1e-12)


@pytest.mark.parametrize(
    ("schedule", "value"),
    [
        (power(2), math.inf), (power(2, c=-1), -math.inf), (power(2, c=0), 0.0), (exponential(2), math.inf),
        (exponential(2, c=-3), -math.inf), (exponential(2, c=0), 0.0), (capped(power(2), 7), 7.0),
        (capped(exponential(3), 7), 7.0), (linear(1e10), 1e210),
    ],
)  # fmt: skip
def test_overflow_gives_the_limit(schedule: Schedule, value: float) -> None:
    assert schedule(1e200) == value


TIMES = np.array([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 9.0, 50.0, 100.0, 1000.0])


@pytest.mark.parametrize("schedule", EXAMPLES, ids=str)
def test_numpy_time_gives_the_scalar_values(schedule: Schedule) -> None:
    assert np.allclose(schedule(TIMES), [schedule(t) for t in TIMES.tolist()], rtol=1e-14, atol=0)


@pytest.mark.parametrize("schedule", EXAMPLES, ids=str)
def test_integer_time_gives_the_scalar_values(schedule: Schedule) -> None:
    steps = np.arange(12)
    expected = [schedule(int(t)) for t in steps]
    assert np.allclose(schedule(steps), expected, rtol=1e-14, atol=0)
    assert np.allclose(schedule(torch.arange(12)), expected, rtol=1e-6, atol=1e-12)
    assert schedule(np.int64(7)) == schedule(7)


@pytest.mark.parametrize("schedule", EXAMPLES, ids=str)
def test_time_inside_jit_gives_the_scalar_values(schedule: Schedule) -> None:
    expected = [schedule(t) for t in TIMES[:-1].tolist()]
    assert np.allclose(jax.jit(schedule)(jnp.asarray(TIMES[:-1], jnp.float32)), expected, rtol=1e-5, atol=1e-12)
    assert np.allclose(jax.jit(schedule)(jnp.asarray(3)), schedule(3), rtol=1e-6)


@pytest.mark.parametrize("schedule", EXAMPLES, ids=str)
def test_torch_time_gives_the_scalar_values_and_type(schedule: Schedule) -> None:
    found = schedule(torch.as_tensor(TIMES))
    assert found.dtype == torch.float64
    assert np.allclose(found, [schedule(t) for t in TIMES.tolist()], rtol=1e-14, atol=0)


def test_overflow_in_an_array_gives_infinity_and_the_cap() -> None:
    assert power(2)(np.array([1e200])).tolist() == [math.inf]
    assert capped(power(2), 50)(np.array([1e200, 2.0])).tolist() == [50.0, 4.0]


numbers = st.floats(-1e300, 1e300)
positive = st.floats(1e-300, 1e300)
points = st.lists(st.tuples(st.floats(0, 1e300), numbers), min_size=1, max_size=4, unique_by=lambda p: p[0]).map(
    lambda ps: tuple(sorted(ps))
)
simple: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(constant, numbers),
    st.builds(power, st.floats(0, 1e3), numbers),
    st.builds(linear, numbers, numbers),
    st.builds(exponential, positive, numbers),
    st.builds(logarithmic, numbers),
    st.builds(piecewise, points),
)
schedules = st.recursive(simple, lambda inner: st.builds(capped, inner, st.floats(allow_nan=False)), max_leaves=4)


@given(schedules)
def test_text_of_a_schedule_parses_back_to_it(schedule: Schedule) -> None:
    assert parse_schedule(str(schedule)) == schedule


@given(schedules)
def test_schedule_survives_pickling_and_hashes_as_its_equal(schedule: Schedule) -> None:
    copy = pickle.loads(pickle.dumps(schedule))
    assert copy == schedule
    assert hash(copy) == hash(schedule)


@given(schedules, st.floats(0, 1e6))
def test_schedule_never_gives_nan(schedule: Schedule, t: float) -> None:
    assert not math.isnan(schedule(t))


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (constant(5.0), "constant(5)"),
        (power(2), "power(2)"),
        (power(2, c=0.5), "power(2, c=0.5)"),
        (linear(0.5, start=1), "linear(0.5, start=1)"),
        (logarithmic(), "logarithmic()"),
        (piecewise(((0, 1.0), (100, 0.1))), "piecewise(((0, 1), (100, 0.1)))"),
        (piecewise(((3, 7.0),)), "piecewise(((3, 7),))"),
        (capped(power(2), 1e300), "capped(power(2), largest=1e+300)"),
        (capped(power(2)), "capped(power(2))"),
    ],
)
def test_schedule_prints_as_its_shortest_spec(schedule: Schedule, text: str) -> None:
    assert str(schedule) == repr(schedule) == text


def test_plain_number_is_a_constant() -> None:
    assert parse_schedule(5) == parse_schedule(5.0) == constant(5)


def test_schedules_with_other_parameters_are_unequal() -> None:
    assert len({power(2), power(3), power(2, c=2), linear(2), constant(2)}) == 5


@pytest.mark.parametrize("schedule", EXAMPLES, ids=str)
@pytest.mark.parametrize("t", [-1, -1e-300, math.nan, math.inf, -math.inf, np.float64(-1), 10**400])
def test_time_that_is_negative_or_not_finite_is_refused(schedule: Schedule, t: float) -> None:
    with pytest.raises(UserError, match="time must be a finite number of at least 0, got") as caught:
        schedule(t)
    assert str(schedule) in str(caught.value)


@pytest.mark.parametrize("t", ["3", None, True, [1, 2], {}], ids=str)
def test_time_that_is_no_number_is_refused(t: Any) -> None:
    with pytest.raises(UserError, match=rf"power\(2\): time must be a number or an array, got {type(t).__name__}"):
        power(2)(t)


NAN, INF = math.nan, math.inf
untyped: Any = SimpleNamespace(**SCHEDULES)
"""To be called as the types forbid."""


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: untyped.constant(NAN), "constant: value must be a number, got nan"),
        (lambda: untyped.constant(INF), "constant: value must be finite, got inf"),
        (lambda: untyped.constant(value=True), "constant: value must be a number, got True"),
        (lambda: untyped.constant(10**400), "constant: value must be finite"),
        (lambda: untyped.power("2"), "power: p must be a number, got '2'"),
        (lambda: untyped.power(-1), "power: p must be at least 0, got -1"),
        (lambda: untyped.power(2, c=NAN), "power: c must be a number, got nan"),
        (lambda: untyped.linear(INF), "linear: slope must be finite, got inf"),
        (lambda: untyped.linear(1, start=None), "linear: start must be a number, got None"),
        (lambda: untyped.exponential(0), "exponential: g must be above 0, got 0"),
        (lambda: untyped.exponential(-2), "exponential: g must be above 0, got -2"),
        (lambda: untyped.logarithmic(1j), "logarithmic: c must be a number, got 1j"),
        (lambda: untyped.piecewise(()), "needs at least one point, with t rising from 0 or later"),
        (lambda: untyped.piecewise(((-1, 0.0),)), "needs at least one point, with t rising from 0 or later"),
        (lambda: untyped.piecewise(((1, 0.0), (1, 2.0))), "needs at least one point, with t rising from 0 or later"),
        (lambda: untyped.piecewise(((2, 0.0), (1, 2.0))), "needs at least one point, with t rising from 0 or later"),
        (lambda: untyped.piecewise(((0, NAN),)), "piecewise: value must be a number, got nan"),
        (lambda: untyped.piecewise((1, 2)), r"points must be pairs \(t, value\)"),
        (lambda: untyped.piecewise(3), r"points must be pairs \(t, value\)"),
        (lambda: untyped.piecewise(((1, 2, 3),)), r"points must be pairs \(t, value\)"),
        (lambda: untyped.capped(5, 3), "capped: needs a schedule, for instance"),
        (lambda: untyped.capped(power(2), NAN), "capped: largest must be a number, got nan"),
    ],
)
def test_wrong_parameter_is_refused(build: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build()


@pytest.mark.parametrize(("near", "name"), [("powr", "power"), ("Linear", "linear"), ("exponental", "exponential")])
def test_misspelt_schedule_names_the_nearest(near: str, name: str) -> None:
    with pytest.raises(UnknownNameError, match=f"unknown schedule '{near}' in a.toml\n  did you mean '{name}'"):
        parse_schedule(f"{near}(2)", "a.toml")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("power(2, k=3)", "unknown argument of power: 'k'"),
        ("linear(2, strat=3)", "did you mean 'start'"),
        ("power()", r"missing a required argument: 'p'\n  it reads power\(p, c\)"),
        ("power(1, 2, 3)", r"too many positional arguments\n  it reads power\(p, c\)"),
        ("power(2, p=2)", "multiple values for argument 'p'"),
        ("power(2, c=1, c=3)", "power has an argument twice"),
        ("capped(5, 3)", "capped: needs a schedule"),
        ("capped(powr(2), 3)", "did you mean 'power'"),
        ("power(1" + "0" * 400 + ")", "power: p must be finite"),
        ("3", "expected a name in '3', got the value 3"),
        ("boltzmann", "unknown schedule 'boltzmann'"),
    ],
)
def test_wrong_spec_is_refused(spec: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_schedule(spec)


@pytest.mark.parametrize("spec", [None, b"power(2)", ["power"], {}, math.nan, True])
def test_spec_that_is_no_text_is_refused(spec: Any) -> None:
    with pytest.raises(UserError, match=r"expected a spec|must be a number"):
        parse_schedule(spec)
