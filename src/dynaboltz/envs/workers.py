"""The processes of Gymnasium's ``AsyncVectorEnv``: called with a limit of time, and named when one fails.

This is the one kind of environment that can be stopped while it hangs. All others run inside this process, where
nothing but the end of the process ends a call that does not return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnasium.vector import AsyncVectorEnv

PATIENCE_SECONDS = 45.0
"""How long a step or reset of a worker may take."""


def bare(env: Any) -> Any:
    """The vector environment within its wrappers."""
    from gymnasium.vector import VectorWrapper

    while isinstance(env, VectorWrapper):
        env = env.env
    return env


def workers_of(env: Any) -> AsyncVectorEnv | None:
    """The vector environment if it has workers, wrapped or not."""
    from gymnasium.vector import AsyncVectorEnv

    within = bare(env)
    return within if isinstance(within, AsyncVectorEnv) else None


def call(env: AsyncVectorEnv, method: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """``env.step(…)`` or ``env.reset(…)``; an error after ``PATIENCE_SECONDS``."""
    getattr(env, f"{method}_async")(*arguments, **keywords)
    return getattr(env, f"{method}_wait")(timeout=PATIENCE_SECONDS)


def culprit(env: AsyncVectorEnv) -> tuple[int | None, str]:
    """The first worker that raised, ended or does not answer, and which of these it is."""
    pipes: list[Any] = env.parent_pipes
    for index, (process, pipe) in enumerate(zip(env.processes, pipes, strict=True)):
        if pipe is None:
            return index, "it raised"
        process.join(0.2)
        if process.exitcode is not None:
            return index, f"its process {process.pid} ended with exit code {process.exitcode}"
    for index, pipe in enumerate(pipes):
        if pipe is not None and (pipe.closed or not pipe.poll(0)):
            return index, f"its process gave no answer for {PATIENCE_SECONDS:g} s"
    return None, "a worker failed"


def kill(env: AsyncVectorEnv) -> None:
    """End the workers, also those that hang; Gymnasium's own close would first wait for an answer of the dead."""
    for process in env.processes:
        if process.is_alive():
            process.kill()
        process.join()
    pipes: list[Any] = env.parent_pipes
    for pipe in pipes:
        if pipe is not None:
            pipe.close()
    env.closed = True
