"""The order of a partition: which rows are on time, their sequence numbers, and the watermark after them.

      ts    5   9   7   3   9  12          LATENESS 3
      high  5   9   9   9   9  12          highest timestamp so far
      mark  1   5   5   5   5   8          high − LATENESS − 1, after the row
                        ✗                  3 is at or below 5, the mark after the row before it: late

Lateness is decided row by row, so it does not matter how rows are cut into batches. LATENESS may be altered between two
batches: the watermark stays where it is until the new one passes it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from stairwise.schema import DAWN, Duration, Instant


@dataclass(frozen=True)
class Position:
    """Where a partition stands: all that has to survive a crash."""

    sequence: int = 0
    """The number of the next row that is on time."""
    highest: Instant = DAWN
    """The highest timestamp seen."""
    floor: Instant = DAWN
    """The watermark is never below it: what an idle partition was given, or where it was when LATENESS was altered."""

    def watermark(self, lateness: Duration) -> Instant:
        """No row at or below this follows."""
        return self.floor if self.highest == DAWN else max(self.floor, self.highest - lateness - 1)

    def raised(self, watermark: Instant) -> Position:
        """The position after the partition was given this watermark."""
        return replace(self, floor=max(self.floor, watermark))


@dataclass(frozen=True)
class Sequenced:
    on_time: pa.RecordBatch
    sequence: int
    """The number of the first row on time."""
    late: pa.RecordBatch
    is_late: np.ndarray
    """For each row of the input."""
    watermark_before: np.ndarray
    """The watermark that each late row was judged by."""
    position: Position
    """Where the partition stands after these rows."""


def sequence(rows: pa.RecordBatch, time: np.ndarray, position: Position, lateness: Duration) -> Sequenced:
    """Judge and number the rows of one partition, in the order in which they came."""
    highest = max(position.highest, int(time.max())) if len(time) else position.highest
    if _is_all_on_time(time, highest, position, lateness):
        after = replace(position, sequence=position.sequence + len(time), highest=highest)
        nothing = np.zeros(0, np.int64)
        return Sequenced(rows, position.sequence, rows.slice(0, 0), np.zeros(len(time), bool), nothing, after)
    high = np.maximum.accumulate(np.concatenate(([position.highest], time)))
    before = np.maximum(np.where(high[:-1] == DAWN, DAWN, high[:-1] - lateness - 1), position.floor)
    late = time <= before
    on_time, rejected = rows.filter(pa.array(~late)), rows.filter(pa.array(late))
    after = replace(position, sequence=position.sequence + on_time.num_rows, highest=highest)
    return Sequenced(on_time, position.sequence, rejected, late, before[late], after)


def _is_all_on_time(time: np.ndarray, highest: Instant, position: Position, lateness: Duration) -> bool:
    """The two usual cases, told without judging each row: rows in order, and rows that are all within the lateness."""
    if not len(time):
        return True
    lowest = int(time.min())
    if lowest > max(highest - lateness - 1, position.floor):
        return True
    return lowest > position.watermark(lateness) and bool((time[1:] >= time[:-1]).all())
