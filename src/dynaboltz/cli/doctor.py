"""What is installed, what is missing and the command that installs it."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version

import tyro


@dataclass(frozen=True, kw_only=True)
class Options:
    """See the module."""

    json: bool = False
    """Print JSON instead of a table."""


@dataclass(frozen=True, slots=True)
class Package:
    """One dependency."""

    name: str
    extra: str
    """The extra that brings it; empty for the core."""
    version: str | None
    """None where it is not installed."""


def packages() -> list[Package]:
    """Every dependency that the installed distribution names, development tools left out."""
    found = []
    for requirement in requires("dynaboltz") or []:
        wanted, _, marker = requirement.partition(";")
        name = re.split(r"[\s\[<>=!~]", wanted, maxsplit=1)[0]
        named = re.search(r"""extra\s*==\s*['"]([^'"]+)['"]""", marker)
        extra = named[1] if named else ""
        if extra == "dev":
            continue
        try:
            found.append(Package(name, extra, version(name)))
        except PackageNotFoundError:
            found.append(Package(name, extra, None))
    return found


def main(arguments: Sequence[str]) -> int:
    """Parse, look, print; 1 if a core package is missing."""
    options = tyro.cli(Options, args=arguments, prog="dynaboltz doctor", description=__doc__)
    found = packages()
    machine = {
        "dynaboltz": version("dynaboltz"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }
    if options.json:
        print(json.dumps({"machine": machine, "packages": [asdict(package) for package in found]}, indent=2))
    else:
        print("  ".join(f"{key} {value}" for key, value in machine.items()))
        width = max(len(package.name) for package in found)
        for extra in dict.fromkeys(package.extra for package in found):
            group = [package for package in found if package.extra == extra]
            print(f"\n{extra or 'core'}")
            for package in group:
                print(f"  {package.name:<{width}}  {package.version or 'missing'}")
            if any(package.version is None for package in group):
                print(f"  install with: pip install 'dynaboltz{f'[{extra}]' if extra else ''}'")
    return int(any(package.version is None and not package.extra for package in found))
