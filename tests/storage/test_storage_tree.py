"""What is saved is what is found, to the bit; what cannot be saved is refused by its place in the tree."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from dynaboltz.errors import UserError
from dynaboltz.storage import Store, Weights
from dynaboltz.storage.tree import put_together, take_apart

NUMBERS = stn.boolean_dtypes() | stn.integer_dtypes(endianness="?") | stn.floating_dtypes(endianness="?")
ARRAYS = stn.arrays(NUMBERS | stn.complex_number_dtypes(endianness="?"), stn.array_shapes(min_dims=0, min_side=0))
PLAIN = stn.arrays(stn.floating_dtypes(sizes=(32, 64), endianness="<"), stn.array_shapes(min_dims=0, min_side=0))
WEIGHTS = st.dictionaries(st.text("abc.", min_size=1), PLAIN, max_size=3).map(Weights)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.integers(-(2**200), 2**200) | st.floats() | st.text() | st.binary()
    | ARRAYS | WEIGHTS
)  # fmt: skip
NODES = st.recursive(LEAVES, lambda node: st.lists(node, max_size=4) | st.dictionaries(st.text(), node, max_size=4))
TREES = st.dictionaries(st.text(), NODES, max_size=5)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype.newbyteorder(a.dtype.byteorder) and a.shape == b.shape and equal_bits(a, b)
    if isinstance(a, Mapping):
        return type(a) is type(b) and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return isinstance(b, float) and (a == b or (math.isnan(a) and math.isnan(b))) and str(a) == str(b)
    return type(a) is type(b) and bool(a == b)


def equal_bits(a: Any, b: Any) -> bool:
    return bool(a.astype(b.dtype).tobytes() == b.tobytes())


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(TREES)
def test_store_finds_what_was_saved(tree: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Store(Path(folder), run="one").save(3, tree)
        found = Store(Path(folder), run="one").load()
    assert found is not None
    assert (found.step, found.skipped) == (3, [])
    assert same(tree, found.tree)


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_tree_is_put_together_from_its_parts(tree: dict[str, Any]) -> None:
    parts = take_apart(tree)
    assert same(tree, put_together(parts.skeleton, parts.arrays, parts.weights))


@pytest.mark.parametrize("kind", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_store_finds_a_stream_that_goes_on_where_it_was(kind: str, tmp_path: Path) -> None:
    stream = np.random.Generator(getattr(np.random, kind)(7))
    stream.integers(0, 5, 3, np.uint32)
    Store(tmp_path, run="one").save(0, {"stream": stream.bit_generator.state})
    ahead = stream.normal(size=5)
    found = Store(tmp_path, run="one").load()
    assert found is not None
    other = np.random.Generator(getattr(np.random, kind)())
    other.bit_generator.state = found.tree["stream"]
    assert other.normal(size=5).tobytes() == ahead.tobytes()


def test_store_keeps_the_bits_of_every_nan_in_an_array(tmp_path: Path) -> None:
    odd = np.array([0x7FF8000000000001, 0xFFF0000000000000, 0x8000000000000000], np.uint64).view(np.float64)
    Store(tmp_path, run="one").save(0, {"odd": odd})
    found = Store(tmp_path, run="one").load()
    assert found is not None
    assert found.tree["odd"].tobytes() == odd.tobytes()


def test_store_finds_arrays_of_more_than_one_block_and_views_in_any_order(tmp_path: Path) -> None:
    large = np.random.default_rng(0).integers(0, 3, (1100, 4001)).astype(np.uint8)
    tree = {"whole": large, "turned": large.T, "part": large[::3, ::-2], "zeros": np.zeros(5_000_000, np.uint8)}
    place = Store(tmp_path, run="one").save(0, tree)
    found = Store(tmp_path, run="one").load()
    assert found is not None
    assert all(np.array_equal(found.tree[name], tree[name]) for name in tree)
    assert (place / "arrays.zst").stat().st_size < large.size


def test_store_finds_arrays_and_weights_that_can_be_written_to(tmp_path: Path) -> None:
    Store(tmp_path, run="one").save(0, {"a": np.zeros(3), "w": Weights(x=np.zeros(3))})
    found = Store(tmp_path, run="one").load()
    assert found is not None
    found.tree["a"][0] = found.tree["w"]["x"][0] = 1.0


def test_weights_are_a_safetensors_file_that_others_read(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    place = Store(tmp_path, run="one").save(0, {"online": Weights(first=np.arange(6.0).reshape(2, 3))})
    np.testing.assert_array_equal(load_file(place / "online.safetensors")["first"], np.arange(6.0).reshape(2, 3))


def test_weights_whose_places_make_the_same_name_have_files_of_their_own(tmp_path: Path) -> None:
    tree = {"a/b": Weights(x=np.zeros(1)), "a-b": Weights(x=np.ones(1)), "A-B": Weights(x=np.full(1, 2.0))}
    Store(tmp_path, run="one").save(0, tree)
    found = Store(tmp_path, run="one").load()
    assert found is not None
    assert [float(found.tree[name]["x"][0]) for name in tree] == [0.0, 1.0, 2.0]


def nested(depth: int) -> dict[str, Any]:
    return {"in": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        ({"a": {"b": object()}}, "cannot save a.b: it is a object"),
        ({"a": [1, {2}]}, "cannot save a.1: it is a set"),
        ({"a": {3: 4}}, "cannot save a: it has the key 3; keys are texts"),
        ({"a": np.array(["x"])}, "cannot save a: it is an array of <U1"),
        ({"a": np.array([object()])}, "cannot save a: it is an array of object"),
        ({"a": Weights(x=cast("Any", 3))}, "cannot save a.x: it is a int; weights are NumPy arrays by name"),
        ({"a": Weights(x=np.zeros(2, np.complex128))}, "cannot save the weights a.safetensors"),
        (nested(70), "is deeper than 64 levels"),
        ([1], "a checkpoint is a dict, got list"),
        ({"a": "x" * 5_000_000}, "keep long lists of numbers in NumPy arrays"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_store_refuses_by_its_place_what_cannot_be_saved(tree: Any, named: str, tmp_path: Path) -> None:
    store = Store(tmp_path, run="one")
    store.save(1, {"good": 1})
    with pytest.raises(UserError) as refused:
        store.save(2, tree)
    assert named in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["ckpt-000000000001"]


@pytest.mark.parametrize("step", [-1, True, 1.5, 1 << 62, "3"])
def test_store_refuses_a_step_that_is_no_count(step: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="step must be a whole number"):
        Store(tmp_path, run="one").save(step, {})


@pytest.mark.parametrize("keep", [0, True, 1.5])
def test_store_refuses_to_keep_none(keep: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="keep must be a whole number of at least 1"):
        Store(tmp_path, run="one", keep=keep)
