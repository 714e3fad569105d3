"""A user's own world and network, as the README has them, train from the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dynaboltz.cli import main

PAGE = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_own_world_and_network_of_the_readme_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (block,) = (one for one in blocks if "def world" in one and "def network" in one)
    assert block.count("\n") < 15
    (tmp_path / "mine.py").write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^dynaboltz (train mine:world .*) --steps \d+$", PAGE, re.MULTILINE)
    small = ["--set", "agent.replay_start_steps=100", "--set", "evaluation.episodes=1"]
    assert main([*command.split(), "--steps", "300", *small]) == 0
    assert "300 steps" in capsys.readouterr().out
    assert len(list(tmp_path.glob("runs/mine-world/dbs-dqn/*/seed-0-*/result.json"))) == 1
