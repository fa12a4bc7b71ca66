"""What subscribers see of a query: rows with a time and a diff, in their final order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from stairwise.schema import Instant


@dataclass(frozen=True)
class Emission:
    """The lines of one query at one report: ``diff`` (+1 or −1) and the output columns of each."""

    time: Instant
    ordinal: int
    diff: np.ndarray
    rows: pa.RecordBatch
    until: np.ndarray | None = None
    """The report time from which each row is gone, where that is known."""

    @property
    def times(self) -> np.ndarray:
        """The time of each line."""
        return np.full(self.rows.num_rows, self.time, np.int64)


@dataclass(frozen=True)
class Emissions:
    """The lines of one query at many reports, in one piece.

    Line i stands at (``times[i]``, ``ordinals[i]``). Reports that show nothing leave no line; ``reports``
    counts them too.
    """

    times: np.ndarray
    ordinals: np.ndarray
    diff: np.ndarray
    rows: pa.RecordBatch
    reports: int
    until: np.ndarray | None = None
    """The report time from which each row is gone: where it is known, rows that leave have no lines."""

    def spans(self) -> Iterator[tuple[Instant, int, slice]]:
        """Of each report that shows something its time, its ordinal, and where its lines are."""
        moments = np.stack([self.times, self.ordinals])
        edges = np.flatnonzero(np.any(np.diff(moments) != 0, axis=0)) + 1
        bounds = [0, *edges.tolist(), len(self.times)] if len(self.times) else []
        for start, stop in pairwise(bounds):
            yield int(self.times[start]), int(self.ordinals[start]), slice(start, stop)

    def split(self) -> Iterator[Emission]:
        """Report by report, those that show something."""
        for time, ordinal, span in self.spans():
            rows = self.rows.slice(span.start, span.stop - span.start)
            yield Emission(time, ordinal, self.diff[span], rows)
