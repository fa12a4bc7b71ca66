"""What decoding gives: rows in their order, what among them is bad, and the way back to the bytes that came."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.streams.rows import BadRow

BLOCK_ROWS = 16_384
"""About how many rows are decoded at a time."""


@dataclass(frozen=True)
class Bad:
    """A message, or a part of one, that is no row."""

    message: int
    """Which of those given."""
    rows: int
    reason: BadRow
    excerpt: bytes | None
    """The part; None for the whole message."""


Part = tuple[int, int, bytes | None]
"""Of a message (by number), how many rows, and their bytes; None for all of the message."""


@dataclass(frozen=True)
class DecodedRows:
    """Some rows in their order, and the bad ones among them."""

    rows: pa.RecordBatch
    message: np.ndarray
    """For each row, which of the messages it came from."""
    bad: list[Bad]
    parts: Callable[[np.ndarray], Iterable[Part]] = lambda _: ()
    """Some of the rows (by number) as they came."""
