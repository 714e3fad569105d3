"""Wrong settings: each is refused before anything runs, in words that say what, where and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynaboltz.cli import main
from dynaboltz.runs import RunConfig

Output = pytest.CaptureFixture[str]

CARTPOLE = ["CartPole-v1", "--preset", "dqn"]


def put(change: str) -> list[str]:
    return [*CARTPOLE, "--set", change]


LINE: dict[str, tuple[list[str], str]] = {
    "no environment": (["--preset", "dqn"], "env is not set"),
    "empty environment": ([""], "env must name an environment"),
    "misspelt environment": (["CartPole-v2"], "did you mean 'CartPole-v1'"),
    "misspelt game": (["minatar/brekout"], "did you mean 'breakout'"),
    "unknown keyword of an environment": (["CartPole-v1(lenght=3)"], "lenght"),
    "continuous actions": (["Pendulum-v1"], "the action space must be Discrete"),
    "missing module": (["no_such_module:factory"], "no_such_module"),
    "unknown preset": (["CartPole-v1", "--preset", "dqnn"], "did you mean 'dqn'?"),
    "missing file": (["--config", "missing.toml"], "cannot read missing.toml"),
    "folder for a file": (["--config", "."], "it is not a regular file"),
    "no sign": (put("steps"), "--set takes key=value, got 'steps'"),
    "no key": (put("=5"), "--set takes key=value, got '=5'"),
    "twice": ([*CARTPOLE, "--steps", "5", "--set", "steps=6"], "steps is given twice on the command line: '5' and '6'"),
    "unknown key": (put("stepz=5"), "unknown key 'stepz' in the command line\n  did you mean 'steps'?"),
    "key without its table": (put("learning_rate=1"), "did you mean 'agent.learning_rate'?"),
    "misspelt key of a table": (put("agent.dicsount=1"), "did you mean 'agent.discount'?"),
    "table for a key": (put("agent=5"), "agent is a table of settings, not one of them"),
    "steps in words": ([*CARTPOLE, "--steps", "many"], "steps must be a whole number, got 'many' in the command line"),
    "steps in parts": ([*CARTPOLE, "--steps", "1.5"], "steps must be a whole number, got '1.5'"),
    "no steps": ([*CARTPOLE, "--steps", "0"], "steps must be at least 1, got 0\n  steps was set in the command line"),
    "negative seed": ([*CARTPOLE, "--seed", "-1"], "seed must be at least 0, got -1"),
    "huge seed": ([*CARTPOLE, "--seed", "99999999999999999999"], "seed must be at least 0 and at most"),
    "seed and seeds": ([*CARTPOLE, "--seed", "1", "--seeds", "0..3"], "not both"),
    "seeds in words": ([*CARTPOLE, "--seeds", "all"], "--seeds takes a range such as 0..9 or a list"),
    "seeds backwards": ([*CARTPOLE, "--seeds", "9..0"], "--seeds takes a range such as 0..9 or a list"),
    "seed named twice": ([*CARTPOLE, "--seeds", "0..3,2"], "--seeds names a seed twice"),
    "too many seeds": ([*CARTPOLE, "--seeds", "0..99999"], "--seeds names more than 10,000 seeds"),
    "no jobs": ([*CARTPOLE, "--seeds", "0..1", "--jobs", "0"], "jobs must be from 1 to 1,024, got 0"),
    "jobs for one seed": ([*CARTPOLE, "--jobs", "4"], "name them, such as --seeds 0..9"),
    "no environments": (put("n_envs=0"), "n_envs must be at least 1"),
    "too many environments": (put("n_envs=5000"), "n_envs must be at least 1 and at most 4,096, got 5,000"),
    "unknown sink": (put("sinks=tensorbord"), "did you mean 'tensorboard'?"),
    "no memory": (put("memory_limit_gb=0"), "memory_limit_gb must be above 0, got 0"),
    "switch of another kind": (put("agent.double=maybe"), "agent.double must be true or false, got 'maybe'"),
    "negative evaluation": (put("evaluation.episodes=-1"), "evaluation.episodes must be at least 0"),
    "share above 1": (put("evaluation.epsilon=1.5"), "evaluation.epsilon must be from 0 to 1, got 1.5"),
    "nothing kept": (put("saving.keep=0"), "saving.keep must be at least 1, got 0"),
    "time that runs back": (put("saving.period_seconds=-1"), "saving.period_seconds must be at least 0"),
    "discount above 1": (put("agent.discount=1.5"), "discount: must be a number of at least 0 and at most 1"),
    "NaN": (put("agent.learning_rate=nan"), "agent.learning_rate must be a number, got 'nan'"),
    "no learning": (put("agent.learning_rate=0"), "learning_rate: must be a number above 0"),
    "misspelt operator": (put("agent.summary=boltzman(5)"), "did you mean 'boltzmann'?"),
    "negative beta": (put("agent.summary=boltzmann(-5)"), "beta must be a number of at least 0"),
    "code": (put("agent.summary=__import__('os')"), "unknown operator '__import__'"),
    "misspelt network": (put("agent.network=mpl"), "did you mean 'mlp'?"),
    "network for pictures": (put("agent.network=nature"), "nature"),
    "no layers": (put("agent.hidden="), "hidden: must be from 1 to 16 layer sizes"),
    "misspelt optimiser": (put("agent.optimiser=adamm"), "did you mean 'adam'?"),
    "optimiser's own setting": (put("agent.optimiser=adam(beta3=1)"), "beta3"),
    "period without a unit": (put("agent.target_period=500"), "must be a count from 1 with its unit"),
    "epsilon above 1": (put("agent.epsilon=2"), "epsilon: must stay from 0 to 1"),
    "batch above the start": (put("agent.batch_size=5000"), "replay_start_steps: must be at least batch_size"),
    "start above the replay": (
        put("agent.replay_start_steps=200000"), "replay_capacity_steps: must be at least replay_start_steps",
    ),
    "Munchausen of another operator": (put("agent.munchausen=0.9"), "the log-policy is that of log_sum_exp"),
    "c of an operator without one": (put("agent.c_learning=corrected"), "c_learning: learns c of boltzmann"),
    "too much memory": (
        [*CARTPOLE, "--set", "memory_limit_gb=0.001", "--set", "agent.replay_capacity_steps=1000000"],
        "memory_limit_gb allows 1 MB",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), LINE.values(), ids=list(LINE))
def test_wrong_command_line_is_refused(arguments: list[str], message: str, tmp_path: Path, capsys: Output) -> None:
    assert main(["train", *arguments, "--out", str(tmp_path / "runs")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert message in told.err
    assert "Traceback" not in told.err
    assert not list(tmp_path.glob("runs/**/checkpoints"))


FILES = {
    "no TOML": ("env: CartPole-v1", "is not TOML"),
    "binary": ("\0\1\2", "is not TOML"),
    "unknown key": ('env = "CartPole-v1"\nstep = 5', "did you mean 'steps'?"),
    "unknown table": ('env = "CartPole-v1"\n[learner]\nrate = 5', "unknown key 'learner.rate'"),
    "text for a number": ('env = "CartPole-v1"\nsteps = "many"', "steps must be a whole number, got 'many' in "),
    "switch for a number": ('env = "CartPole-v1"\nsteps = true', "steps must be a whole number, got True in "),
    "number for a list": (
        'env = "CartPole-v1"\n[agent]\nhidden = 64',
        "agent.hidden must be a list, each a whole number",
    ),
    "list for a number": ('env = "CartPole-v1"\nseed = [1]', "seed must be a whole number, got [1]"),
    "unknown preset": ('env = "CartPole-v1"\npreset = "qdn"', "unknown preset 'qdn' in "),
    "value of a table": ('env = "CartPole-v1"\nagent = 3', "agent is a table of settings"),
    "deep": ("x = " + "[" * 5000, "is not TOML"),
    "long": ("#" * 1_100_000, "is longer than"),
}


@pytest.mark.parametrize(("text", "message"), FILES.values(), ids=list(FILES))
def test_wrong_file_is_refused_and_named(text: str, message: str, tmp_path: Path, capsys: Output) -> None:
    file = tmp_path / "my.toml"
    file.write_text(text)
    assert main(["train", "--config", str(file), "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "my.toml" in told


FOLDERS: dict[str, tuple[list[str], str]] = {
    "resume nothing": (["resume", "nowhere"], "there is no run in nowhere"),
    "evaluate nothing": (["evaluate", "nowhere"], "there is no run in nowhere"),
    "no episodes": (["evaluate", "RUN", "--episodes", "0"], "episodes must be from 1 to 1,000,000, got 0"),
    "too random": (["evaluate", "RUN", "--epsilon", "2"], "epsilon must be from 0 to 1, got 2"),
    "no weights yet": (["evaluate", "RUN", "--weights", "best"], "no best weights yet"),
}


@pytest.mark.parametrize(("arguments", "message"), FOLDERS.values(), ids=list(FOLDERS))
@pytest.mark.usefixtures("toys")
def test_wrong_folder_is_refused(arguments: list[str], message: str, tmp_path: Path, capsys: Output) -> None:
    from dynaboltz.runs import home_of

    config = RunConfig(env="CartPole-v1")
    home = home_of(config, tmp_path)
    home.folder.mkdir(parents=True)
    home.prepare(config)
    assert main([str(home.folder) if word == "RUN" else word for word in arguments]) == 2
    assert message in capsys.readouterr().err


def test_folder_above_a_run_names_it(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "config.toml").touch()
    assert main(["resume", str(tmp_path)]) == 2
    assert f"did you mean {tmp_path / 'a' / 'b'}?" in capsys.readouterr().err


def test_there_are_forty_and_more() -> None:
    assert len({message for _, message in (*LINE.values(), *FILES.values(), *FOLDERS.values())}) >= 40
