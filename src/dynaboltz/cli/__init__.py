"""The command line: one file a command, each of which parses, calls one function and prints.

A command's module is imported when it is called, so that ``dynaboltz --help`` costs what Python costs to start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "lens": "what each operator makes of a row of action values",
    "solve": "a finite MDP: values, a policy and a proven bound on their error",
    "show": "a solution: value map and policy, on the terminal or as a figure",
    "mdp": "check, convert and show finite MDPs",
    "learn": "a tabular agent, thousands of seeds at once, on a finite MDP or a Gymnasium environment",
    "train": "an agent, from a preset or a file of settings; what was begun goes on",
    "resume": "a run that was interrupted, to the same bits as without the interruption",
    "evaluate": "a run's weights, by episodes that its training never saw",
    "watch": "a run as a live page on this machine: curves, speed, the agent playing",
    "play": "watch an environment and an agent: in the terminal, in a window, as a video",
    "study": "a grid of runs, on this machine or a cluster; what is done stays done",
    "report": "runs compared: tables, curves and one page; unfinished runs are welcome",
    "reproduce": "the paper's claims: numbers, figures and the verdict of each",
    "doctor": "what is installed, what is missing and the command that installs it",
}
"""Name → one line of help; the module ``dynaboltz.cli.<name>`` has ``main(arguments) -> exit code``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a failed run, 2 for a mistake in what was asked."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0
    if arguments[0] == "--version":
        from importlib.metadata import version

        print(f"dynaboltz {version('dynaboltz')}")
        return 0
    from dynaboltz.errors import DynaboltzError, UnknownNameError

    name, *rest = arguments
    try:
        if name not in COMMANDS:
            raise UnknownNameError("command", name, COMMANDS)
        code = import_module(f"dynaboltz.cli.{name}").main(rest)
        sys.stdout.flush()
    except DynaboltzError as error:
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader (head, less) has left; nothing more to say, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return int(code)


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {help_}" for name, help_ in COMMANDS.items())
    return (
        "dynaboltz: dynamic Boltzmann softmax Bellman updates\n\n"
        "usage: dynaboltz COMMAND [OPTIONS]\n\n"
        f"{lines}\n\n"
        "dynaboltz COMMAND --help tells a command's options; --version the version;\n"
        "--debug, with any command, shows the traceback of an error."
    )
