"""Windows of the last n rows, as windows of the last n instants of a clock that ticks once a row.

    time            10   10   13   20   20   20             the rows of the stream in order
    row number       1    2    3    4    5    6
    [ROWS 4 SLIDE 2]           (0, 4] at 4    (2, 6] at 6   is RANGE 4 SLIDE 2 by the number
    reports at                        20, first of its instant      20, third of its instant

    answers        SELECT, SELECT DISTINCT and groups over windows that slide by rows
    update         that of the operator by numbers: O(log r) a row, whatever the windows hold
    lookup         that of the operator by numbers; changes of rows and sets: O(what changed)
    space          that of the operator by numbers, and the rows above the watermark
    order          any, as long as no row comes at or below the watermark
    from           seed 002 section 3 (a count-based window expires rows first in, first out, as a time-based one does)

Rows are numbered when their order is final. A filter applies to rows that are numbered already, so it changes nothing
about which rows the window reaches. The windows of a signature are nested as those by time are, and share one operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from stairwise.cql.query import Input, Query, Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.buffer import PLACE, TIME, RowBuffer
from stairwise.operators.contract import Batch, PlanChange, Report
from stairwise.operators.emission import Emissions
from stairwise.operators.store import Store
from stairwise.schema import TIME_COLUMN, Column, Instant, Stream, Type
from stairwise.sharing.distinct import SharedDistinct
from stairwise.sharing.distinct_expansion import DistinctExpansion
from stairwise.sharing.due import Life
from stairwise.sharing.expansion import SharedExpansion
from stairwise.sharing.flow import SharedFlow
from stairwise.sharing.flow_expansion import FlowExpansion
from stairwise.sharing.operator import SharedAggregation
from stairwise.sharing.signature import (
    DistinctSignature,
    FlowSignature,
    Signature,
    distinct_signature_of,
    flow_signature_of,
    signature_of,
)
from stairwise.sharing.stair import Stair
from stairwise.windows.schedule import ordinals
from stairwise.windows.spec import RowsWindow, TimeWindow

NUMBER = "_number"
_OF_TIME = ("REGR_SLOPE", "REGR_INTERCEPT")
_COUNT, _WAITING = b"N", b"W"


@dataclass(frozen=True)
class CountedSignature:
    """What queries over windows of rows have to agree in: what they would have to if numbers were times."""

    stream: Stream
    by_number: Signature | DistinctSignature | FlowSignature

    @property
    def name(self) -> str:
        return f"{self.by_number.name}/rows"


def counted_signature_of(query: Query) -> CountedSignature | None:
    """A query's signature, where it asks one window that slides by rows, and does not calculate with time."""
    select = query.relation
    if not isinstance(select, Select) or len(select.inputs) != 1:
        return None
    if any(aggregate.function in _OF_TIME for aggregate in select.aggregates):
        return None
    window = select.inputs[0].window
    if not isinstance(window, RowsWindow) or window.row_slide is None:
        return None
    changed = by_number(query)
    found = distinct_signature_of(changed) or flow_signature_of(changed) or signature_of(changed)
    return None if found is None else CountedSignature(select.inputs[0].stream, found)


def by_number(query: Query) -> Query:
    """The same query over the stream whose time is the number of a row."""
    select = query.relation
    assert isinstance(select, Select)
    (source,) = select.inputs
    window = source.window
    assert isinstance(window, RowsWindow)
    assert window.row_slide is not None
    over = Input(_numbered(source.stream), TimeWindow(window.rows, window.row_slide), source.alias)
    return replace(query, relation=replace(select, inputs=(over,)))


def _numbered(stream: Stream) -> Stream:
    """The stream with the number of each row behind its other columns, as its time."""
    time = () if stream.timestamp_by is not None else (Column(TIME_COLUMN, Type.TIMESTAMP, nullable=False),)
    columns = (*stream.columns, *time, Column(NUMBER, Type.TIMESTAMP, nullable=False))
    return replace(stream, columns=columns, timestamp_by=NUMBER)


@dataclass(frozen=True)
class CountedBlock:
    """What a signature says at some rows, by their numbers, and where these rows stand in time."""

    by_number: Any
    first: int
    """The number of the first row of which the place is known."""
    row_times: Ints
    row_ordinals: Ints

    @property
    def times(self) -> Ints:
        """The report times."""
        block = self.by_number
        numbers: Ints = block.steps.time if isinstance(block, Stair) else block.times
        times: Ints = self.row_times[numbers - self.first]
        return times


class SharedCounted:
    """Evaluates the queries of one signature over windows of rows."""

    def __init__(self, signature: CountedSignature, queries: Sequence[Query], store: Store) -> None:
        """Goes on from what is in the store."""
        self.signature = signature
        self.name = signature.name
        self.queries = list(queries)
        self._store = store
        numbered = [by_number(query) for query in queries]
        self._operator = _operator_for(signature.by_number, numbered, store)
        count = store.get(_COUNT)
        self._count = 0 if count is None else int(count)
        """How many rows are numbered."""
        self._buffer = RowBuffer(store, _WAITING, signature.stream.arrow_schema, self._count)

    def life(self, query: str) -> Life:
        return self._operator.life(query)

    def faults(self, query: Query) -> Faults:
        return self._operator.faults(query)

    def plan(self, change: PlanChange) -> None:
        raise NotImplementedError("a query over the last rows that comes or goes is evaluated by itself")

    def insert(self, batch: Batch) -> None:
        if batch.stream == self.signature.stream.name and batch.rows.num_rows:
            time = batch.rows.column(self.signature.stream.time_column)
            partition = pa.array(np.full(batch.rows.num_rows, batch.partition, np.int64))
            sequence = pa.array(np.asarray(batch.sequence, np.int64))
            columns = [*batch.rows.columns, time, partition, sequence]
            self._buffer.add(pa.RecordBatch.from_arrays(columns, names=[*batch.rows.schema.names, *PLACE]))

    def advance(self, watermark: Instant) -> Iterator[Report]:
        for block in self.advance_blocks(watermark):
            yield Report(self.name, int(block.times[-1]), pa.RecordBatch.from_arrays([], names=[]))

    def advance_blocks(self, watermark: Instant) -> Iterator[CountedBlock]:
        """The rows up to the watermark are numbered, and what is due by their numbers is said."""
        self._buffer.settle(watermark)
        rows = self._buffer.rows(self._count, self._buffer.end)
        if not rows.num_rows:
            return
        first, self._count = self._count + 1, self._buffer.end
        self._buffer.drop(self._count)
        numbers = np.arange(first, self._count + 1)
        columns = [*(rows.column(name) for name in self.signature.stream.arrow_schema.names), pa.array(numbers)]
        named = pa.RecordBatch.from_arrays(columns, names=[*self.signature.stream.arrow_schema.names, NUMBER])
        self._operator.insert(Batch(self.signature.stream.name, 0, named, numbers, first, self._count))
        times = int64_view(rows.column(TIME))
        places = ordinals(times).astype(np.int64)
        for block in self._operator.advance_blocks(self._count):
            yield CountedBlock(block, first, times, places)

    def flush(self) -> None:
        self._operator.flush()
        self._buffer.flush()
        self._store.put(_COUNT, b"%d" % self._count)


def _operator_for(
    signature: Signature | DistinctSignature | FlowSignature, queries: Sequence[Query], store: Store
) -> SharedAggregation | SharedDistinct | SharedFlow:
    if isinstance(signature, DistinctSignature):
        return SharedDistinct(signature, queries, store)
    if isinstance(signature, FlowSignature):
        return SharedFlow(signature, queries, store)
    return SharedAggregation(signature, queries, store)


class CountedExpansion:
    """What one query shows of its signature's rows."""

    def __init__(self, query: Query, life: Life) -> None:
        self.query = query
        self._expansion = _expansion_for(by_number(query), life)
        self.life, self.faults = life, self._expansion.faults

    def expand(self, block: CountedBlock) -> Emissions | None:
        """Its lines; None where it is not due."""
        emitted: Emissions | None = self._expansion.expand(block.by_number)
        if emitted is None:
            return None
        at = emitted.times - block.first
        return replace(emitted, times=block.row_times[at], ordinals=block.row_ordinals[at])


def _expansion_for(query: Query, life: Life) -> Any:
    if distinct_signature_of(query) is not None:
        return DistinctExpansion(query, life)
    if flow_signature_of(query) is not None:
        return FlowExpansion(query, life)
    return SharedExpansion(query, life)
