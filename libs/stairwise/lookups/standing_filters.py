"""Standing filters: SubStream Filters that are asked again at each of their report times, over rows that all share.

    rows ──▶ history of the stream, kept once ──┬─▶ filter a at τ = 10, 20, 30 ...
                                              └─▶ filter b at τ = 15, 30 ...

answers     the groups that meet HAVING, at every report time of a sliding window
requires    what a lookup of the same SELECT does
update      that of the structures, once for all filters of a signature
report      a lookup at τ: O(log² K + answer) where HAVING has a bound that an index can tell
space       the rows back to the rear of the widest window, and the structures over them
order       stream order within a key; reports in order of time
source      seed 004 section 4, registered instead of asked

A filter is the part of a ``QueryOperator``, which knows when it reports: what its subscribers see is what any other
operator would have reported, and a function of the rows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Query
from stairwise.expressions.evaluate import selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.lookups.answer import groups_together
from stairwise.lookups.gather import parts_at
from stairwise.lookups.partition_history import PartitionHistory, Retain
from stairwise.lookups.statement import lookup_of
from stairwise.recompute.evaluation import QueryOperator
from stairwise.reports.blocks import Reports
from stairwise.reports.cells import Cells
from stairwise.reports.contract import Batch, Joined, Report
from stairwise.reports.expansion import report_schema
from stairwise.reports.moments import Moments
from stairwise.reports.runs import Islands, reports_and_runs
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.state.pages import concat, empty
from stairwise.state.store import MemoryStore

UNBOUNDED = Retain(2**60, 2**60)
"""What is kept follows from what filters still need."""


class FilterPart:
    """The SELECT of a standing filter. The rows are in the histories already when it hears of them."""

    algorithm = "lookups' structures"

    def __init__(self, query: Query, histories: Mapping[int, PartitionHistory]) -> None:
        self._lookup = lookup_of(query)
        self.select = self._lookup.select
        self._histories = histories
        self._schema = report_schema(query)
        self.needs_after: Instant = DUSK
        """Rows at or before it are in no report to come. Before the filter takes effect, it needs none."""

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None: ...

    def joined(self, change: Joined) -> None:
        self._lookup = replace(self._lookup, horizon=change.horizon)
        self.evict(change.after)

    def settle(self, watermark: Instant) -> None: ...

    def row_moments(self) -> tuple[Ints, Ints]:
        none: Ints = np.zeros(0, np.int64)
        return none, none

    def work(self, moments: Moments) -> Ints:
        return np.zeros(len(moments), np.int64)

    def answers(self, moments: Moments, faults: Faults) -> Cells:
        found = [self._groups(int(time), faults) for time in moments.times]
        of = np.repeat(np.arange(len(found)), [rows.num_rows for rows in found])
        return Cells(of, concat(found) if found else empty(self._schema))

    def _groups(self, time: Instant, faults: Faults) -> pa.RecordBatch:
        """The groups that meet HAVING: nobody asks for the others."""
        groups = groups_together(self._lookup, time, parts_at(self._lookup, time, self._histories))
        assert self.select.having is not None, "a standing filter has HAVING"
        kept: pa.RecordBatch = groups.keep(selects(self.select.having, groups.rows.columns, len(groups), faults)).rows
        return kept

    def evict(self, watermark: Instant) -> None:
        """The next report is above the watermark, and sees what its window holds then."""
        rear, _ = self._lookup.span(watermark) if watermark > DAWN else (DAWN, DAWN)
        self.needs_after = rear

    def flush(self) -> None: ...


class StandingFilters:
    """The filters over one stream, and its rows. A driver says when each joins, how far it may report, and leaves."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._histories = {number: PartitionHistory(stream, number, UNBOUNDED) for number in range(stream.partitions)}
        self._operators: dict[str, QueryOperator] = {}
        self._islands: dict[str, Islands] = {}
        self._reported: dict[str, Instant] = {}
        self._parts: dict[str, FilterPart] = {}

    @property
    def size_bytes(self) -> int:
        return sum(history.size_bytes for history in self._histories.values())

    def add(self, identity: str, query: Query) -> None:
        """A filter that takes effect when it joins; what is taken in from here on is kept for it."""
        part = FilterPart(query, self._histories)
        self._parts[identity] = part
        self._operators[identity] = QueryOperator(query, [part], MemoryStore())
        self._islands[identity], self._reported[identity] = Islands(), DAWN
        part.needs_after = DAWN

    def join(self, identity: str, change: Joined) -> None:
        self._operators[identity].plan(change)
        self._reported[identity] = change.after
        if change.horizon > DAWN:  # rows may have come up to there
            self._islands[identity].extend(np.array([change.horizon]), 0)

    def leave(self, identity: str) -> None:
        del self._operators[identity], self._parts[identity], self._islands[identity], self._reported[identity]

    def take(self, partition: int, rows: pa.RecordBatch, watermark: Instant) -> None:
        """The next rows of a partition, and its watermark afterwards; DUSK where it is sealed."""
        self._histories[partition].take(rows, watermark)

    def observe(self, identity: str, batch: Batch) -> None:
        """A filter's streams have had these rows since the filter was there."""
        operator = self._operators[identity]
        operator.insert(batch)
        self._islands[identity].add(batch, self.stream.time_column, operator.reach(settled=True))

    def reports(self, identity: str, watermark: Instant) -> Iterator[Report]:
        """What is final now; where nothing changes for long, a run."""
        operator, after = self._operators[identity], self._reported[identity]
        for leg in self._islands[identity].legs(operator, operator.reach(settled=True), after, watermark):
            yield from reports_and_runs(operator, lambda upto: _split(operator.advance(upto)), leg)
        self._reported[identity] = watermark

    def horizon(self, identity: str) -> Instant:
        return self._operators[identity].life(identity).horizon

    def release(self) -> None:
        """Drop the rows that no filter needs any more."""
        instant = min((part.needs_after for part in self._parts.values()), default=DUSK)
        if instant > DAWN:
            for history in self._histories.values():
                history.release(min(instant, history.watermark))


def _split(blocks: Iterable[Reports]) -> Iterator[Report]:
    return (report for block in blocks for report in block.split())
