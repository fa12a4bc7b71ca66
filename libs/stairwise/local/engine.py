"""Queries over streams in this process: rows in, in order of arrival; result lines out, as they become final.

feed ──▶ partitions ──▶ sequence, watermarks ──▶ operators ──▶ expansion ──▶ order of all queries ──▶ pieces
               late rows come back
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Query
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import int64_view
from stairwise.local.merge import Merge, QueryLines
from stairwise.local.running import LongRun, QueryCounts, running
from stairwise.local.watermarks import Watermarks
from stairwise.reports.contract import Batch
from stairwise.schema import Instant, Stream
from stairwise.state.store import MemoryStore, Store
from stairwise.streams.partition import split
from stairwise.streams.sequence import Position, sequence


@dataclass
class StreamCounts:
    rows: int = 0
    late: int = 0

    @property
    def on_time(self) -> int:
        return self.rows - self.late


@dataclass(frozen=True)
class Late:
    """Rows of one partition that came too late, and the watermark that each was judged by."""

    partition: int
    rows: pa.RecordBatch
    watermarks: np.ndarray


@dataclass(frozen=True)
class Leap:
    """A row lies so far beyond those before it that a query shows millions of equal reports in between."""

    run: LongRun
    stream: str
    row: dict[str, object]


class _Lane:
    """One stream on its way in."""

    def __init__(self, stream: Stream, partitions: int) -> None:
        self.stream = stream
        self.positions = [Position() for _ in range(partitions)]
        self.counts = StreamCounts()
        self.newest: pa.RecordBatch | None = None
        """The rows that came last."""

    def first_after(self, instant: Instant) -> dict[str, object] | None:
        """The first of the newest rows beyond an instant."""
        if self.newest is None:
            return None
        beyond = np.flatnonzero(int64_view(self.newest.column(self.stream.time_column)) > instant)
        return self.newest.slice(int(beyond[0]), 1).to_pylist()[0] if len(beyond) else None


class Engine:
    """Runs queries, in order of their definition, over streams that are split into ``partitions`` each."""

    def __init__(
        self,
        streams: Sequence[Stream],
        queries: Sequence[Query],
        partitions: int = 1,
        store: Callable[[], Store] = MemoryStore,
        *,
        sharing: bool = True,
        tell: Callable[[Leap], None] = lambda _: None,
    ) -> None:
        """Queries of one signature are evaluated together. Without ``sharing`` each has an operator of its own, which
        says the same and takes longer: tests and benchmarks compare with it. ``tell`` hears of leaps of time that make
        a query show millions of lines.
        """
        self._partitions = partitions
        self._lanes = {stream.name: _Lane(stream, partitions) for stream in streams}
        self._tell = tell
        self._runners, self._running = running(queries, store, self._tell_of, sharing=sharing)
        self._watermarks = Watermarks({stream.name: partitions for stream in streams})
        self._merge = Merge(len(queries))

    def feed(self, stream: str, rows: pa.RecordBatch) -> list[Late]:
        """Rows of a stream in order of arrival; those that are late come back."""
        lane = self._lanes[stream]
        lane.newest = rows
        late: list[Late] = []
        places = split(rows, lane.stream.partition_by, self._partitions, lane.counts.rows)
        lane.counts.rows += rows.num_rows
        for partition in range(self._partitions):
            mine = rows if self._partitions == 1 else rows.filter(pa.array(places == partition))
            if mine.num_rows:
                late += self._feed_partition(lane, partition, mine)
        lane.counts.late += sum(some.rows.num_rows for some in late)
        return late

    def _feed_partition(self, lane: _Lane, partition: int, rows: pa.RecordBatch) -> list[Late]:
        stream = lane.stream
        time = int64_view(rows.column(stream.time_column))
        done = sequence(rows, time, lane.positions[partition], stream.lateness)
        lane.positions[partition] = done.position
        if done.on_time.num_rows:
            on_time = int64_view(done.on_time.column(stream.time_column))
            lowest, highest = int(on_time.min()), int(on_time.max())
            numbers = np.arange(done.sequence, done.sequence + len(on_time))
            batch = Batch(stream.name, partition, done.on_time, numbers, lowest, highest)
            for runner in self._runners:
                runner.insert(batch)
        self._watermarks.reached(stream.name, partition, done.position.watermark(stream.lateness))
        if not done.late.num_rows:
            return []
        return [Late(partition, done.late, done.watermark_before)]

    def seal(self, stream: str) -> None:
        """No more rows of this stream."""
        self._watermarks.seal(stream)

    def watermark(self, stream: str) -> Instant:
        return self._watermarks.watermark([stream])

    def advance(self) -> Iterator[list[QueryLines]]:
        """Everything that is now final, in order, in pieces of bearable size."""
        goals = [self._watermarks.watermark(query.streams) for query in self._running]
        sources = {i: query.emissions(goals[i]) for i, query in enumerate(self._running)}
        yield from self._merge.drain(sources, goals)

    def _tell_of(self, run: LongRun) -> None:
        for stream in run.query.streams:
            row = self._lanes[stream.name].first_after(run.until)
            if row is not None:
                self._tell(Leap(run, stream.name, row))
                return

    def counts(self, stream: str) -> StreamCounts:
        return self._lanes[stream].counts

    def query_counts(self) -> list[tuple[Query, QueryCounts, Faults]]:
        return [(running.query, running.counts, running.faults) for running in self._running]

    def remake(self) -> None:
        """Tear every operator down and make it anew from its store: its state must be all in there."""
        for runner in self._runners:
            runner.remake()
