"""Where Kafka put what a publisher sent: by partition, the offsets of its messages and how many rows each has.

    in.trades/2   … 17 18 19 20 21 22 23 24 …         runs   (17, 3 messages of 1 row)
                    ●  ●  ●  ○  ●  ●  ○  ○                   (21, 2 messages of 1 row)
                    ours        others'

Messages of equal size that follow each other are one run, so the only publisher of a stream has few of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping


class Deliveries:
    def __init__(self) -> None:
        self.rows = 0
        self._runs: dict[int, list[list[int]]] = {}
        """By partition, in order: the first offset of a run, how many messages it has, and how many rows each."""

    def add(self, partition: int, offset: int, rows: int) -> None:
        """A message that Kafka has; those of a partition come in the order of their offsets."""
        self.rows += rows
        runs = self._runs.setdefault(partition, [])
        if runs and runs[-1][2] == rows and runs[-1][0] + runs[-1][1] == offset:
            runs[-1][1] += 1
        else:
            runs.append([offset, 1, rows])

    def ends(self) -> dict[int, int]:
        """Of each partition that has any, the offset behind the last."""
        return {partition: runs[-1][0] + runs[-1][1] for partition, runs in self._runs.items()}

    def rows_below(self, offsets: Mapping[int, int]) -> int:
        """How many rows are in messages below the offsets given."""
        return sum(
            min(max(offsets.get(partition, 0) - first, 0), count) * rows
            for partition, runs in self._runs.items()
            for first, count, rows in runs
        )

    def rows_at(self, partition: int, offset: int) -> int:
        """How many rows the message there has; 0 if it is somebody else's."""
        runs = self._runs.get(partition, [])
        at = bisect_right(runs, offset, key=lambda run: run[0]) - 1
        if at < 0:
            return 0
        first, count, rows = runs[at]
        return rows if offset < first + count else 0
