"""The layers import downward only, files stay readable, and heavy libraries stay out of the way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "dynaboltz"

ORDER = (
    "errors", "scalars", "files", "archive", "storage", "text", "operators", "schedules", "summaries", "theory", "mdp",
    "planning", "tabular", "envs", "deep", "runs", "studies", "reports", "watch", "paper", "cli",
)  # fmt: skip
"""Each layer may import those before it and itself."""

HEAVY = {"torch", "jax", "numba", "llvmlite", "matplotlib", "jinja2", "ray", "ale_py", "gymnasium", "tyro", "rich"}
"""Imported at the top of a module only where the module is about nothing else."""

MAY_IMPORT_AT_TOP = {
    "deep/custom.py": {"torch"},
    "deep/device.py": {"torch"},
    "deep/backward.py": {"torch"},
    "deep/heads.py": {"torch"},
    "deep/layers.py": {"torch"},
    "deep/pictures.py": {"numba"},
    "deep/torch_engine.py": {"torch"},
    "deep/steps.py": {"numba", "llvmlite"},
    "deep/target_rows.py": {"numba"},
    "deep/replay_rows.py": {"numba"},
    "operators/compiled.py": {"numba"},
    "operators/elementary.py": {"numba"},
    "operators/lanes.py": {"numba", "llvmlite"},
    "deep/compiled_products.py": {"numba", "llvmlite"},
    "deep/compiled_passes.py": {"numba"},
    "operators/tiles.py": {"numba", "llvmlite"},
    "envs/atari_frames.py": {"numba"},
    "mdp/gym_env.py": {"gymnasium"},
    "cli/lens.py": {"tyro"},
    "cli/mdp.py": {"tyro"},
    "cli/play.py": {"tyro"},
    "cli/show.py": {"tyro"},
    "cli/study.py": {"tyro"},
    "cli/solve.py": {"tyro"},
    "planning/chains.py": {"numba"},
    "planning/kernels.py": {"numba"},
    "tabular/compiled.py": {"numba"},
    "tabular/kernels.py": {"numba"},
    "tabular/registers.py": {"numba", "llvmlite"},
    "tabular/rows.py": {"numba"},
    "cli/learn.py": {"tyro"},
    "cli/doctor.py": {"tyro"},
    "cli/evaluate.py": {"tyro"},
    "cli/report.py": {"tyro"},
    "cli/reproduce.py": {"tyro"},
    "cli/resume.py": {"tyro"},
    "cli/train.py": {"tyro"},
    "cli/watch.py": {"tyro"},
}

FILES = sorted(SOURCE.rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [alias.name for alias in node.names] if node.module == "dynaboltz" else [""]
            found += [f"{node.module}.{name}".rstrip(".") for name in names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_imports_only_its_own_layer_and_those_before_it(path: Path) -> None:
    own = layer(path)
    if own in ("__init__", "__main__"):
        return
    allowed = set(ORDER[: ORDER.index(own) + 1])
    for name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        if name.startswith("dynaboltz."):
            assert name.split(".")[1] in allowed, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_leaves_heavy_libraries_to_the_functions_that_need_them(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = ast.Module([node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], [])
    heavy = {name.split(".")[0] for name in imports(top)} & HEAVY
    assert heavy <= MAY_IMPORT_AT_TOP.get(str(path.relative_to(SOURCE)), set())


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_module_fits_a_reader(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_every_package_has_a_place_in_the_order() -> None:
    assert {layer(path) for path in FILES} - {"__init__", "__main__"} <= set(ORDER)


@pytest.mark.parametrize("statement", ["import dynaboltz", "from dynaboltz import Dynamic, boltzmann, power"])
def test_import_brings_in_no_heavy_library(statement: str) -> None:
    unwanted = "{'torch', 'jax', 'numba', 'scipy.optimize', 'matplotlib'}"
    code = f"{statement}; import sys; print(sorted({unwanted} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_starts_without_numpy() -> None:
    code = "import sys; from dynaboltz.cli import main; main(['--help']); print({'numpy', 'tyro'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
