"""Whole lookups over four partitions, in one process: thresholds of a filter, and windows by rows.

Figures are CPU seconds of lookups that take turns with those that they are compared with, so that what else the machine
does falls on both. Rows come in between lookups, as many as at 200,000 a second.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from bench.report import Goal
from stairwise.lookups.answer import put_together
from stairwise.lookups.gather import held_at, look_up
from stairwise.lookups.homes import homes
from stairwise.lookups.partition_history import PartitionHistory, Retain
from stairwise.lookups.scan import finished
from stairwise.lookups.statement import Lookup, read_lookup
from stairwise.schema import Column, Stream, Type

PARTITIONS = 4
KEYS = 100_000
BATCH = 4096
HISTORY = 1 << 20
"""Rows of the stream before anything is asked."""
THRESHOLDS = 1000
LOOKUPS_A_BATCH = 20
"""A thousand lookups a second beside 200,000 rows."""
WINDOW = HISTORY // 2
FILTER_GOAL, ROWS_GOAL = 50.0, 2.0

COLUMNS = (Column("ts", Type.TIMESTAMP, False), Column("k", Type.BIGINT), Column("n", Type.BIGINT))
STREAM = Stream("s", COLUMNS, timestamp_by="ts", partition_by="k", partitions=PARTITIONS)


class Rows:
    """A stream a row a millisecond, some keys far more often than others, each row at home."""

    def __init__(self) -> None:
        self.histories = {
            number: PartitionHistory(STREAM, number, Retain(2**60, 2**60)) for number in range(PARTITIONS)
        }
        self.end = 0
        self._chance = np.random.default_rng(1)
        self._homes = homes(pa.array(np.arange(KEYS)), PARTITIONS)
        while self.end < HISTORY:
            self.take()

    def take(self) -> None:
        times = np.arange(self.end, self.end + BATCH)
        keys = (KEYS * self._chance.random(BATCH) ** 3).astype(np.int64)
        values = self._chance.integers(0, 1000, BATCH)
        self.end += BATCH
        for number, history in self.histories.items():
            mine = self._homes[keys] == number
            columns = [pa.array(column[mine]) for column in (times, keys, values)]
            history.take(pa.RecordBatch.from_arrays(columns, schema=STREAM.arrow_schema), self.end - 1)

    def look_up(self, lookup: Lookup) -> pa.RecordBatch:
        return look_up(lookup, self.end - 1, self.histories)

    def scan(self, lookup: Lookup) -> pa.RecordBatch:
        """The same without structures."""
        at = self.end - 1
        parts = [finished(h.scan(lookup, extent).work()) for h, extent in held_at(lookup, at, self.histories)]
        return put_together(lookup, at, parts)

    def settle(self) -> None:
        """Take the last batch into the structures, which the first lookup after it would do."""
        for history in self.histories.values():
            history.number_at(self.end)

    def warm(self, lookups: Iterable[Lookup]) -> None:
        """Ask until there are structures."""
        for lookup in lookups:
            for _ in range(8):
                self.look_up(lookup)


def cpu(call: Callable[[], object]) -> float:
    begin = time.process_time_ns()
    call()
    return (time.process_time_ns() - begin) / 1e9


def thresholds(rows: Rows) -> Goal:
    """A thousand thresholds in any order, each as often as the others."""
    text = f"SELECT k, COUNT(*) AS c FROM s [RANGE {WINDOW} ms] GROUP BY k HAVING COUNT(*) > "
    # From what the fiftieth key has down to a third of it: 50 to some hundred keys.
    counts = np.sort(rows.look_up(read_lookup(text + "0", {"s": STREAM})).column("c").to_numpy())[::-1]
    asked = np.linspace(int(counts[50]) // 3, int(counts[50]), THRESHOLDS).astype(np.int64)
    lookups = [read_lookup(f"{text}{threshold}", {"s": STREAM}) for threshold in asked.tolist()]
    rows.warm(lookups[:1])
    chance = np.random.default_rng(2)
    order = chance.permutation(THRESHOLDS)
    for number in order.tolist():  # each once, so that the levels are those that are asked
        rows.look_up(lookups[number])
    filtered, scanned = [], []
    for turn, number in enumerate(chance.permutation(THRESHOLDS).tolist()):
        if turn % LOOKUPS_A_BATCH == 0:
            rows.take()
            rows.settle()
        filtered.append(cpu(lambda: rows.look_up(lookups[number])))  # noqa: B023 - called at once
        if turn % 100 == 0:
            scanned.append(cpu(lambda: rows.scan(lookups[number])))  # noqa: B023
            if not rows.scan(lookups[number]).equals(rows.look_up(lookups[number])):
                raise AssertionError("the filter and the scan differ")
    times = float(np.mean(scanned) / np.mean(filtered))
    figure = f"{times:.0f} times ({np.mean(filtered) * 1e6:.0f} µs against {np.mean(scanned) * 1e3:.1f} ms)"
    name = f"{THRESHOLDS:,} thresholds over {KEYS:,} keys against a scan"
    return Goal(name, f"{FILTER_GOAL:.0f} times or more", figure, times >= FILTER_GOAL)


def by_rows(rows: Rows) -> Goal:
    """The sum of one key over the last rows, and over the time that they take."""
    where = "WHERE k = 17"
    pair = [
        read_lookup(f"SELECT SUM(n) AS v, COUNT(*) AS c FROM s [{window}] {where}", {"s": STREAM})
        for window in (f"ROWS {WINDOW}", f"RANGE {WINDOW} ms")
    ]
    rows.warm(pair)
    spent: tuple[list[float], list[float]] = ([], [])
    for turn in range(2000):
        if turn % LOOKUPS_A_BATCH == 0:
            rows.take()
            rows.settle()
        for lookup, seconds in zip(pair, spent, strict=True):
            seconds.append(cpu(lambda: rows.look_up(lookup)))  # noqa: B023
    ratio = float(np.median(spent[0]) / np.median(spent[1]))
    figure = f"{ratio:.1f} times ({np.median(spent[0]) * 1e6:.0f} µs against {np.median(spent[1]) * 1e6:.0f} µs)"
    return Goal(f"[ROWS {WINDOW:,}] against [RANGE]", f"{ROWS_GOAL:.0f} times or less", figure, ratio <= ROWS_GOAL)


def measure() -> list[Goal]:
    rows = Rows()
    return [thresholds(rows), by_rows(rows)]


if __name__ == "__main__":
    for goal in measure():
        print(goal, file=sys.stdout)
