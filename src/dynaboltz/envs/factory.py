"""A user's own environments: ``package.module:factory``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from dynaboltz.envs.names import written
from dynaboltz.envs.spec import Environments
from dynaboltz.errors import UnknownNameError, UserError
from dynaboltz.text import short


def make_own(name: str, keywords: dict[str, Any], *, n: int, seed: int, stream: int) -> Environments:
    """The environments of a factory, called with ``keywords``.

    * A ``gymnasium.Env``: the factory is called ``n`` times.
    * A ``VectorEnv``: called once, with ``num_envs`` if it has such a parameter; it must hold ``n`` environments.
    * ``Environments``: called once, with ``n``, ``seed`` and ``stream``, which must be parameters of it.
    """
    import gymnasium

    factory = loaded(name)
    given = {**_common(factory, n, seed, stream), **keywords}
    made = _called(factory, name, given)
    if isinstance(made, Environments):
        if made.n != n:
            raise UserError(f"{name} made {made.n} environments, not the {n} that were asked for")
        return made
    if isinstance(made, gymnasium.vector.VectorEnv):
        from dynaboltz.envs.vector import VectorEnvironments

        if made.num_envs != n:
            raise UserError(
                f"{name} made {made.num_envs} environments, not the {n} that were asked for\n"
                "  give the factory a parameter num_envs, or ask for as many as it makes"
            )
        return VectorEnvironments(made, name=written(name, keywords), seed=seed, stream=stream)
    if isinstance(made, gymnasium.Env):
        from dynaboltz.envs.gym import GymWorld
        from dynaboltz.envs.world import Worlds

        envs = [made, *(_called(factory, name, given) for _ in range(n - 1))]
        if len({id(env) for env in envs}) < n:
            raise UserError(f"{name} returned the same environment twice; a factory must make a new one at each call")
        return Worlds([GymWorld(env, name) for env in envs], name=written(name, keywords), seed=seed, stream=stream)
    raise UserError(
        f"{name} must return a gymnasium.Env, a gymnasium.vector.VectorEnv or dynaboltz Environments, got {short(made)}"
    )


def loaded(name: str) -> Callable[..., Any]:
    """The callable that ``package.module:factory`` names; a module beside the working directory counts."""
    module_name, _, path = name.partition(":")
    found: Any = imported(module_name, f"the environment {name!r}")
    for part in path.split("."):
        if not hasattr(found, part):
            known = [word for word in vars(found) if not word.startswith("_")] if hasattr(found, "__dict__") else []
            raise UnknownNameError("factory", part, known, name)
        found = getattr(found, part)
    if not callable(found):
        raise UserError(f"{name} must be callable, got {short(found)}")
    factory: Callable[..., Any] = found
    return factory


def imported(module: str, purpose: str) -> ModuleType:
    """A user's module, from where Python looks for modules or from the working directory."""
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as fault:
        if fault.name is None or not (module == fault.name or module.startswith(f"{fault.name}.")):
            raise UserError(f"{purpose}: {module} needs {fault.name!r}, which is not installed") from fault
        raise UserError(
            f"{purpose}: there is no module {fault.name!r}\n"
            f"  it must be installed, or lie in the working directory {here}"
        ) from fault
    except Exception as fault:
        raise UserError(f"{purpose}: importing {module} fails: {type(fault).__name__}: {fault}") from fault
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def _common(factory: Callable[..., Any], n: int, seed: int, stream: int) -> dict[str, Any]:
    """What the factory is given beside the user's keywords."""
    parameters = _parameters(factory) or {}
    if {"n", "seed", "stream"} <= parameters.keys():
        return {"n": n, "seed": seed, "stream": stream}
    return {"num_envs": n} if "num_envs" in parameters else {}


def _called(factory: Callable[..., Any], name: str, keywords: dict[str, Any]) -> Any:
    parameters = _parameters(factory)
    open_ended = parameters is None or any(kind is inspect.Parameter.VAR_KEYWORD for kind in parameters.values())
    for key in keywords:
        if parameters is not None and not open_ended and key not in parameters:
            raise UnknownNameError(f"argument of {name}:", key, parameters)
    try:
        return factory(**keywords)
    except Exception as fault:
        with_what = ", ".join(f"{key}={value!r}" for key, value in keywords.items())
        raise UserError(f"{name}({with_what}) fails: {type(fault).__name__}: {fault}") from fault


def _parameters(factory: Callable[..., Any]) -> dict[str, Any] | None:
    """Name → kind; None if Python cannot tell."""
    try:
        return {name: parameter.kind for name, parameter in inspect.signature(factory).parameters.items()}
    except (TypeError, ValueError):
        return None
