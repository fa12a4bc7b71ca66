"""Whose checkpoint it is: one that another release or another number of shards has left is refused, not misread.

Workers write into it as well as the driver, so wherever they run it has to be the same directory.
"""

from __future__ import annotations

import platform
import uuid
from pathlib import Path

import msgspec

from stairwise.errors import ConfigError

FORMAT = 5
"""Of what shards keep in Spark's state and beside it. Who changes that counts on: checkpoints of before are refused."""
OF_SPARK = "metadata"
"""The file with which Spark begins a checkpoint."""
OURS = "stairwise.json"

PROCEDURE = (
    "go on with the release and the number of shards that wrote it; or stop operators, move the directory away and "
    "start again: all of s.* that is retained is evaluated anew, and results drops the repeats (docs/operations.md)"
)
WHOLE = (
    "restore all of it from one snapshot; or stop operators, move the directory away and start again: all of s.* that "
    "is retained is evaluated anew, and results drops the repeats (docs/operations.md)"
)


class Origin(msgspec.Struct, frozen=True):
    """What a checkpoint was written by."""

    format: int
    shards: int
    identity: str = ""
    """Which one it is: no other checkpoint has the same."""


def claim(checkpoint: Path, shards: int) -> str:
    """Make sure that a checkpoint can be gone on from, and mark a new one; gives its identity."""
    mark = checkpoint / OURS
    if not mark.exists():
        if (checkpoint / OF_SPARK).exists():
            raise foreign(checkpoint, "it does not say which release wrote it")
        checkpoint.mkdir(parents=True, exist_ok=True)
        new = Origin(FORMAT, shards, uuid.uuid4().hex)
        mark.write_bytes(msgspec.json.encode(new))
        return new.identity
    try:
        found = msgspec.json.decode(mark.read_bytes(), type=Origin)
    except msgspec.DecodeError as error:
        raise foreign(checkpoint, str(error)) from error
    if found.format != FORMAT:
        raise foreign(checkpoint, f"its format is {found.format}, that of this release {FORMAT}")
    if found.shards != shards:
        raise ConfigError(f"the checkpoint {checkpoint} is of {found.shards} shards, not {shards}", hint=PROCEDURE)
    _check_whole(checkpoint)
    return found.identity


def _check_whole(checkpoint: Path) -> None:
    """Make sure that what Spark has written is there: it begins a micro-batch when it has committed the one before."""
    begun, committed = _last(checkpoint / "offsets"), _last(checkpoint / "commits")
    if not begun - 1 <= committed <= begun:
        raise torn(checkpoint, f"micro-batch {begun} is the last that was begun, and {committed} the last committed")
    for needed in (OF_SPARK, "state"):
        if committed >= 0 and not (checkpoint / needed).exists():
            raise torn(checkpoint, f"{checkpoint / needed} is missing")


def _last(log: Path) -> int:
    """The number of the last micro-batch in one of Spark's logs; −1 if there is none."""
    return max((int(entry.name) for entry in log.glob("*") if entry.name.isdecimal()), default=-1)


def reach(checkpoint: Path, identity: str) -> None:
    """Make sure, where a worker runs, that it finds the very checkpoint that the driver has claimed."""
    mark = checkpoint / OURS
    if not mark.exists() or msgspec.json.decode(mark.read_bytes(), type=Origin).identity != identity:
        raise ConfigError(
            f"on {platform.node()}, {checkpoint} is not the checkpoint of the driver",
            hint="set STAIRWISE_DIR to a directory that the driver and all workers of Spark share (docs/operations.md)",
        )


def foreign(checkpoint: Path | str, why: str) -> ConfigError:
    return ConfigError(f"the checkpoint {checkpoint} was written by another release: {why}", hint=PROCEDURE)


def torn(checkpoint: Path, why: str) -> ConfigError:
    """A part of it was lost, or it was copied while operators ran."""
    return ConfigError(f"the checkpoint {checkpoint} is not whole: {why}", hint=WHOLE)
