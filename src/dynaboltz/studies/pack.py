"""Finished runs in a small folder: settings and rows, compressed, to be kept, sent or shipped.

``<into>/results.csv`` and, laid out as the runs are, ``config.toml`` and ``rows.jsonl.zst`` of each. A report reads
such a folder as it reads the runs. Checkpoints, weights, journals and locks stay behind: nothing in the pack says when
or on which machine a run was made, and the same runs make the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

from dynaboltz.errors import StorageError, UserError
from dynaboltz.files import make_folder, opened, write_atomically
from dynaboltz.runs import RunConfig, home_of
from dynaboltz.studies.place import Place, results
from dynaboltz.studies.study import label

LEVEL = 19
"""Of compression; rows take a fortieth of a second each and three quarters of what gzip makes of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """What a folder of packed runs came to hold."""

    runs: int
    """Packed now."""
    size: int
    """Their bytes, the table of results included."""
    unfinished: tuple[RunConfig, ...]
    """Asked for, and left out."""
    others: int
    """Runs that were in the folder before and are not among these; they stay."""


def pack(configs: Sequence[RunConfig], place: Place, into: Path) -> Pack:
    """Pack the finished ones among the runs.

    Raises:
        UserError: none is finished, or the folder cannot be written.
        StorageError: the rows of a finished run are not those that it ended with.
    """
    found = [(config, record) for config in configs if (record := place.finished(config)) is not None]
    if not found:
        raise UserError(f"none of the {len(configs)} runs is finished in {place.root}\n  name their folder with --out")
    try:
        make_folder(into)
    except UserError as fault:
        raise UserError(str(fault).replace("--out", "--pack")) from None
    size, homes = 0, set()
    for config, record in found:
        home, packed = home_of(config, place.root), home_of(config, into)
        with opened(home.rows) as file:
            rows = file.read()
        if hashlib.sha256(rows).hexdigest() != record.get("rows"):
            raise StorageError(
                f"{home.rows} does not hold the rows that {label(config)} ended with\n"
                f"  remove {home.folder} and work the study off again"
            )
        with opened(home.config) as file:
            settings = file.read()
        make_folder(packed.folder)
        for path, content in ((packed.config, settings), (compressed(packed.rows), _compress(rows))):
            size += len(content)
            if not path.is_file() or path.read_bytes() != content:
                write_atomically(path, content)
        homes.add(packed.folder.resolve())
    table = results(found)
    write_atomically(into / "results.csv", table)
    others = sum(path.parent.resolve() not in homes for path in into.rglob("config.toml"))
    done = {config.identity for config, _ in found}
    unfinished = tuple(config for config in configs if config.identity not in done)
    return Pack(runs=len(found), size=size + len(table.encode()), unfinished=unfinished, others=others)


def compressed(rows: Path) -> Path:
    """Where the rows of a packed run are."""
    return rows.with_name(f"{rows.name}.zst")


def _compress(rows: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(rows)
