"""How much memory there is, as the system and a container say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynaboltz.storage import available_bytes, memory


def test_available_memory_is_of_a_plausible_size() -> None:
    found = available_bytes()
    assert found is not None
    assert 1 << 24 < found < 1 << 50


def test_container_limits_what_is_available_and_gives_back_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("50000000\n")
    (tmp_path / "memory.current").write_text("45000000\n")
    (tmp_path / "memory.stat").write_text("anon 1\nfile 9\ninactive_file 30000000\nactive_file 4000000\n")
    assert available_bytes() == 50_000_000 - 45_000_000 + 34_000_000


def test_container_without_a_limit_leaves_it_to_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CONTROL_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    found = available_bytes()
    assert found is not None
    assert found > 1 << 24
