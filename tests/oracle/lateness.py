"""Which rows are on time: from raw rows in order of arrival to the rows that a stream has.

ts    5   9   7   3   9  12          LATENESS 3
mark  1   5   5   5   5   8          highest so far − LATENESS − 1, after the row
                  ✗                  3 is at or below 5, the mark after the row before it: late
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stairwise.schema import DAWN, Duration, Instant
from tests.oracle.rows import OracleRow


def on_time(arrivals: Iterable[OracleRow], lateness: Duration) -> tuple[list[OracleRow], list[OracleRow]]:
    """The rows that are on time, numbered anew in each partition, and those that are late."""
    marks: dict[int, Instant] = {}
    counts: dict[int, int] = {}
    kept: list[OracleRow] = []
    late: list[OracleRow] = []
    for row in arrivals:
        mark = marks.get(row.partition, DAWN)
        if row.ts <= mark:
            late.append(row)
            continue
        number = counts.get(row.partition, 0)
        kept.append(replace(row, sequence=number))
        counts[row.partition] = number + 1
        marks[row.partition] = max(mark, row.ts - lateness - 1)
    return kept, late
