"""Runs a claim and writes what it found: a JSON file and figures."""

from __future__ import annotations

import hashlib
import json
import math
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynaboltz.errors import UnknownNameError
from dynaboltz.files import make_folder, write_atomically
from dynaboltz.paper.claim import Claim, Evidence
from dynaboltz.reports import figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A claim with what its test found and what was written."""

    claim: Claim
    evidence: Evidence
    seconds: float
    drawings: Mapping[str, str]
    """Figure name → SVG."""
    seed: int = 0
    full: bool = False

    @property
    def identity(self) -> str:
        """Twelve digits of the SHA-256 of claim, settings and seed: equal where the same thing was computed."""
        about = [self.claim.name, _plain(self.evidence.settings), self.seed, self.full]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def command(self) -> str:
        """What computes it again."""
        return f"dynaboltz reproduce --only {self.claim.name} --seed {self.seed}{' --full' if self.full else ''}"


def choose(claims: Mapping[str, Claim], section: str, only: Sequence[str]) -> list[Claim]:
    """The claims of a section ("all" for every one), or those named."""
    sections = {claim.section for claim in claims.values()}
    if section != "all" and section not in sections:
        raise UnknownNameError("section", section, {*sections, "all"})
    for name in only:
        if name not in claims:
            raise UnknownNameError("claim", name, claims)
    return [claim for claim in claims.values() if (claim.name in only if only else section in ("all", claim.section))]


def run(claim: Claim, folder: Path, *, seed: int = 0, full: bool = False) -> Outcome:
    """Test one claim, at its full size if it has one and that is asked for, and write ``<claim>.json`` and its figures.

    Its random numbers come from the root seed and its own name, so they do not depend on what else is run.
    """
    make_folder(folder)
    began = time.perf_counter()
    test = claim.full if full and claim.full else claim.test
    evidence = test(np.random.default_rng([seed, zlib.crc32(claim.name.encode())]))
    drawings = {figure.name: figures.save(figure, folder) for figure in evidence.figures}
    write_atomically(folder / f"{claim.name}.json", as_json(claim, evidence, seed))
    seconds = time.perf_counter() - began
    full = full and claim.full is not None
    return Outcome(claim=claim, evidence=evidence, seconds=seconds, drawings=drawings, seed=seed, full=full)


def as_json(claim: Claim, evidence: Evidence, seed: int) -> str:
    """Everything a claim's test found, as strict JSON: non-finite numbers are strings."""
    content = {
        "claim": claim.name,
        "title": claim.title,
        "where": claim.where,
        "says": claim.says,
        "verdict": evidence.verdict,
        "finding": evidence.finding,
        "command": evidence.command,
        "seed": seed,
        "settings": evidence.settings,
        "checks": [
            {"fact": check.fact, "of": check.of, "true": check.true, "detail": check.detail}
            for check in evidence.checks
        ],
        "tables": [{"caption": table.caption, "header": table.header, "rows": table.rows} for table in evidence.tables],
        "numbers": evidence.numbers,
    }
    return json.dumps(_plain(content), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
