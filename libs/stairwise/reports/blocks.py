"""Reports by the block: what an operator says at many times, in one piece of columns.

    times      10   20   30   40
    offsets    0    2    2    5    6        report i holds rows[offsets[i] : offsets[i + 1]]
    rows       a b │    │ c d e │ f         none at 20

Windows that slide often report far more often than batches come. Everything behind an operator (HAVING,
projection, differences, text) therefore works on blocks, and one report is a block of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.reports.contract import Report


@dataclass(frozen=True)
class Reports:
    """Consecutive reports of one signature, in order of (time, ordinal)."""

    signature: str
    times: np.ndarray
    ordinals: np.ndarray
    offsets: np.ndarray
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.times)

    @property
    def of(self) -> np.ndarray:
        """For each row, the number of its report in this block."""
        return np.repeat(np.arange(len(self.times)), np.diff(self.offsets))

    @property
    def last(self) -> Reports:
        """The last report alone."""
        start, stop = int(self.offsets[-2]), int(self.offsets[-1])
        rows = self.rows.slice(start, stop - start)
        return Reports(self.signature, self.times[-1:], self.ordinals[-1:], np.array([0, stop - start]), rows)

    def held(self, times: np.ndarray) -> Reports:
        """One report as it stands at other times, of a run."""
        count = self.rows.num_rows
        rows = self.rows.take(pa.array(np.tile(np.arange(count), len(times))))
        return Reports(self.signature, times, np.zeros(len(times), np.int64), np.arange(len(times) + 1) * count, rows)

    def split(self) -> Iterator[Report]:
        """One by one, as they are published."""
        for i, (time, ordinal) in enumerate(zip(self.times.tolist(), self.ordinals.tolist(), strict=True)):
            start, stop = int(self.offsets[i]), int(self.offsets[i + 1])
            yield Report(self.signature, time, self.rows.slice(start, stop - start), ordinal)


def block_of(report: Report) -> Reports:
    """One report as a block."""
    return Reports(
        report.signature,
        np.array([report.time], np.int64),
        np.array([report.ordinal], np.int64),
        np.array([0, report.rows.num_rows], np.int64),
        report.rows,
    )


def block_by(signature: str, times: np.ndarray, ordinals: np.ndarray, of: np.ndarray, rows: pa.RecordBatch) -> Reports:
    """A block from rows that say which report they belong to; ``of`` ascends."""
    offsets = np.searchsorted(of, np.arange(len(times) + 1))
    return Reports(signature, times, ordinals, offsets, rows)
