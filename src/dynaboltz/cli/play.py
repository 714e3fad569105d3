"""Watch an environment: an agent of a run, or actions at random; in the terminal, in a window or as a video.

For example:  dynaboltz play minatar/breakout
              dynaboltz play --run runs/CartPole-v1/dqn/hard_max/seed-0-1a2b3c4d --video cartpole.gif

The action values stand beside the picture. In a window without a run, keys choose the actions: arrows, space, digits.
Most of Gymnasium's environments draw themselves with pygame; where it is missing, a sketch or their numbers are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from dynaboltz.errors import UserError
from dynaboltz.mdp.calls import number, whole

if TYPE_CHECKING:
    import numpy as np

    from dynaboltz.envs import Environments, Spec
    from dynaboltz.envs.scenes import Actor

STREAM = 2
"""Keeps these episodes apart from those of training and evaluation."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    env: Annotated[str | None, tyro.conf.Positional] = None
    """Its name, as for train; that of the run if one is given."""
    run: Path | None = None
    """Folder of a run, whose agent then plays."""
    weights: Literal["last", "best"] = "last"
    """Of the run: the newest, or those with the best evaluation."""
    text: bool = False
    """Show it in the terminal; so it is if nothing else is asked for."""
    window: bool = False
    """Show it in a window."""
    video: Path | None = None
    """Write it into this .gif or .mp4 file."""
    seed: int = 0
    """Of the episodes."""
    episodes: int = 1
    """How many."""
    epsilon: float = 0.0
    """Share of random actions of the run's agent."""
    fps: float = 15.0
    """Steps a second."""
    max_steps: int = 1000
    """Steps after which an episode is cut."""


def main(arguments: Sequence[str]) -> int:
    """Parse, play, show."""
    parsed: Options = tyro.cli(
        tyro.conf.FlagCreatePairsOff[Options], args=arguments, prog="dynaboltz play", description=__doc__
    )
    options, env = parsed, _checked(parsed)
    import numpy as np

    from dynaboltz.envs import make
    from dynaboltz.envs.scenes import scenes
    from dynaboltz.envs.window import Keyboard, show_window

    def begin(episode: int) -> Environments:
        return make(env, seed=options.seed + episode, stream=STREAM)

    rng = np.random.default_rng([options.seed, STREAM])
    keyboard: Keyboard | None = None
    with begin(0) as envs:
        spec = envs.spec
    if options.run is not None:
        actor: Actor = _agent(options, options.run, env, spec, rng)
    else:
        actor = keyboard = Keyboard(spec, rng)
    moments = scenes(begin, actor, episodes=options.episodes, max_steps=options.max_steps)
    if options.window:
        show_window(moments, options.fps, keyboard)
    elif options.video is not None:
        from dynaboltz.envs.screens import save_video

        frames = save_video(moments, options.video, options.fps)
        print(f"written to {options.video}: {frames:,} frames, {frames / options.fps:.1f} s")
    else:
        from rich.console import Console

        from dynaboltz.envs.screens import show_text

        show_text(moments, Console(), options.fps)
    return 0


def _checked(options: Options) -> str:
    """The environment's name, once all options make sense."""
    if options.text + options.window + (options.video is not None) > 1:
        raise UserError("--text, --window and --video exclude each other: give one of them")
    whole("--seed", options.seed, 0)
    whole("--episodes", options.episodes, 1, 10_000)
    whole("--max-steps", options.max_steps, 1)
    number("--fps", options.fps, 0.1, 1000)
    number("--epsilon", options.epsilon, 0, 1)
    if options.env is not None:
        return options.env
    if options.run is None:
        raise UserError("play needs an environment, such as CartPole-v1, or --run and the folder of a run")
    from dynaboltz.runs import read_config

    return read_config(options.run).env


def _agent(options: Options, folder: Path, env: str, spec: Spec, rng: np.random.Generator) -> Actor:
    """The agent of a run, if it was made for such an environment."""
    from dynaboltz.envs import make
    from dynaboltz.runs import Home, read_config
    from dynaboltz.runs.evaluate import agent_of

    config = read_config(folder)
    with make(config.env, seed=options.seed, stream=STREAM) as envs:
        trained = envs.spec
    for what in ("shape", "dtype", "n_actions", "n_values", "stack"):
        if getattr(trained, what) != getattr(spec, what):
            raise UserError(
                f"the run's agent was made for {config.env} with {what} {getattr(trained, what)}, "
                f"but {env} has {getattr(spec, what)}"
            )
    _, agent = agent_of(Home(folder), config, options.weights)
    return agent.player(1, epsilon=options.epsilon, rng=rng)
