"""What reading a file gives: pieces of it as rows of a stream, and what was wrong with the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from stairwise.streams.reason_codes import Code


@dataclass(frozen=True)
class Rejected:
    """A row of a file that is none of the stream: where it stands, why, and what it says."""

    number: int
    """Its line, or its row where the file has no lines; from 1."""
    code: Code
    field: str | None
    message: str
    raw: str


@dataclass(frozen=True)
class Chunk:
    rows: pa.RecordBatch
    """With the stream's Arrow schema."""
    rejected: list[Rejected] = field(default_factory=list)


Clock = Callable[[], int]
"""Milliseconds since the epoch: the time of rows whose stream declares none."""
