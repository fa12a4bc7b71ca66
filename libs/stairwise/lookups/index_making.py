"""An index that is being made of the rows that are kept, slice by slice, before anybody can ask it.

rows kept     ├──────────────────────────────┤──── those that come meanwhile
making        ├────┼────┼──▶ next                  by whoever has the time: nobody else sees the index yet
adopted                                      ├──┤  what it still lacks is given to it at once, and it is in use
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from stairwise.lookups.scan import Work
from stairwise.lookups.settled_rows import SettledRows
from stairwise.lookups.signature_index import SignatureIndex
from stairwise.lookups.statement import LookupSignature
from stairwise.schema import Instant


class IndexMaking:
    """An index without all of its rows yet. One caller at a time gives it rows."""

    def __init__(self, signature: LookupSignature, index: SignatureIndex, time_column: int) -> None:
        self.signature = signature
        self.index = index
        self.next = 0
        """The number of the first row that it does not have."""
        self.size_bytes = 0
        """As of the last slice, to be read from other threads."""
        self.is_given_up = False
        """Set by whoever keeps the indexes: what is left to make is not worth it any more."""
        self._time_column = time_column

    def work(self, pieces: Iterable[tuple[pa.RecordBatch, int]]) -> Work[None]:
        """Give it rows: each piece is a slice, with the number of its first row."""
        for rows, first in pieces:
            if self.is_given_up:
                return
            self.add(SettledRows.of(rows, self._time_column), first)
            yield

    def forget(self, horizon: Instant) -> None:
        """Rows at or before an instant were dropped meanwhile."""
        self.index.forget(horizon, give_back=True)
        self.size_bytes = self.index.size_bytes

    def add(self, rows: SettledRows, first: int) -> None:
        self.index.update(rows, first)
        self.next = first + len(rows)
        self.size_bytes = self.index.size_bytes
