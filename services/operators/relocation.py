"""A checkpoint that lies elsewhere than it did: moved, restored from a copy, or mounted under another path.

Spark notes by absolute paths where the schemas of its state are, and everything else by names within the checkpoint:

    state/0/_metadata/v2/17    v2
                               {…"stateSchemaFilePaths": ["file:/was/here/state/0/_stateSchema/default/0_9f3c"]…}
                                                          └─ rewritten ─┘

So these paths are made right before Spark reads them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from services.operators.checkpoint import foreign, torn

log = logging.getLogger(__name__)


def relocate(checkpoint: Path) -> None:
    """Let a checkpoint name itself by where it is now; raises if a schema that Spark will ask for is missing."""
    here = checkpoint.absolute()
    for operator in sorted((here / "state").glob("*/")):
        notes = sorted(_numbered(operator / "_metadata" / "v2"), key=lambda note: int(note.name))
        for note in notes:
            schemas = _relocate(note, here, operator)
            if note is notes[-1]:
                _check(here, schemas)


def _numbered(directory: Path) -> Iterator[Path]:
    """The files that Spark has finished writing."""
    return (path for path in directory.glob("*") if path.name.isdecimal())


def _relocate(note: Path, checkpoint: Path, operator: Path) -> list[Path]:
    """Rewrite one note of an operator, if need be; the schemas that it names."""
    version, _, text = note.read_text().partition("\n")
    try:
        said: dict[str, Any] = msgspec.json.decode(text)
        stores = [store for store in said["stateStoreInfo"] if "stateSchemaFilePaths" in store]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise foreign(checkpoint, f"{note} can't be read: {error}") from error
    schemas, is_moved = [], False
    for store in stores:
        before = store["stateSchemaFilePaths"]
        found = [operator / "_stateSchema" / path.rpartition("/_stateSchema/")[2] for path in before]
        store["stateSchemaFilePaths"] = [
            f"{was.partition('/')[0]}{is_}" for was, is_ in zip(before, found, strict=True)
        ]
        is_moved |= store["stateSchemaFilePaths"] != before
        schemas += found
    if is_moved:
        log.info("the checkpoint was moved: %s is rewritten", note)
        _replace(note, f"{version}\n{msgspec.json.encode(said).decode()}")
    return schemas


def _check(checkpoint: Path, schemas: list[Path]) -> None:
    for schema in schemas:
        if not schema.exists():
            raise torn(checkpoint, f"{schema} is missing")


def _replace(note: Path, text: str) -> None:
    """All of it or nothing. Its checksum goes first: without one a file is taken as it is."""
    unfinished = note.with_name(f".{note.name}.relocated.tmp")
    with unfinished.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    note.with_name(f".{note.name}.crc").unlink(missing_ok=True)
    os.replace(unfinished, note)
