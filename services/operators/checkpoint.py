"""Whose checkpoint it is: one that another release or another number of shards has left is refused, not misread."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stairwise.errors import ConfigError

FORMAT = 3
"""Of what shards keep in Spark's state. Who changes that counts on: the checkpoints of before are then refused."""
OF_SPARK = "metadata"
"""The file with which Spark begins a checkpoint."""
OURS = "stairwise.json"

PROCEDURE = (
    "go on with the release and the number of shards that wrote it; or stop operators, move the directory away and "
    "start again: all of s.* that is retained is evaluated anew, and results drops the repeats (docs/operations.md)"
)


class Mark(msgspec.Struct, frozen=True):
    """What a checkpoint was written by."""

    format: int
    shards: int


def claim(checkpoint: Path, shards: int) -> None:
    """Make sure that a checkpoint can be gone on from, and mark a new one."""
    wanted, mark = Mark(FORMAT, shards), checkpoint / OURS
    if not mark.exists():
        if (checkpoint / OF_SPARK).exists():
            raise foreign(checkpoint, "it does not say which release wrote it")
        checkpoint.mkdir(parents=True, exist_ok=True)
        mark.write_bytes(msgspec.json.encode(wanted))
        return
    try:
        found = msgspec.json.decode(mark.read_bytes(), type=Mark)
    except msgspec.DecodeError as error:
        raise foreign(checkpoint, str(error)) from error
    if found.format != FORMAT:
        raise foreign(checkpoint, f"its format is {found.format}, that of this release {FORMAT}")
    if found.shards != shards:
        raise ConfigError(f"the checkpoint {checkpoint} is of {found.shards} shards, not {shards}", hint=PROCEDURE)


def foreign(checkpoint: Path | str, why: str) -> ConfigError:
    return ConfigError(f"the checkpoint {checkpoint} was written by another release: {why}", hint=PROCEDURE)
