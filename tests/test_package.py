"""What the package promises to whoever imports it."""

from __future__ import annotations

import ast
import importlib
from importlib.metadata import version
from pathlib import Path

import pytest

import dynaboltz


@pytest.mark.parametrize("name", dynaboltz.__all__)
def test_every_public_name_is_importable(name: str) -> None:
    assert getattr(dynaboltz, name) is not None


def test_public_names_are_those_a_type_checker_sees() -> None:
    tree = ast.parse(Path(dynaboltz.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dynaboltz.")
        for alias in node.names
    }
    assert typed == set(dynaboltz.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'softmax'"):
        _ = dynaboltz.softmax


def test_version_is_that_of_the_distribution() -> None:
    assert dynaboltz.__version__ == version("dynaboltz")


@pytest.mark.parametrize("module", ["operators", "theory"])
def test_package_exports_what_it_lists(module: str) -> None:
    package = importlib.import_module(f"dynaboltz.{module}")
    assert all(hasattr(package, name) for name in package.__all__)
    assert len(package.__all__) == len(set(package.__all__))
