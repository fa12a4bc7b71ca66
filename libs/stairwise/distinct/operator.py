"""Duplicate elimination for all windows of a signature: one table of most recent appearances serves every one.

    insert ──▶ filter, values ──▶ rows wait
    advance ─▶ what is due ─▶ rows up to the front join the log ─▶ the log is published ─▶ phantoms go
    plan ────▶ queries join and leave; one that joins sees back as far as the log does

    answers        SELECT DISTINCT over time windows of one lag, any ranges and slides
    update         O(log r) a row, vectorised, whatever the number of windows
    lookup         a query's whole set O(its suffix of the log), its changes O(appearances that came and that fell
                   behind its rear): see ``distinct_expansion``
    space          the values of the widest window
    order          any, as long as no row comes at or below the watermark
    from           seed 000 section 4, seed 001 section 3.5.2

A window's lag only moves time: rows join the log when the front reaches them, so that no appearance replaces another
before a window that ends between them has reported. Windows of different lags are different signatures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Query
from stairwise.distinct.appearances import AppearanceLog
from stairwise.expressions.faults import Faults
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.preparation import Preparation
from stairwise.operators.roster import Roster, Rostered
from stairwise.operators.signature import DistinctSignature
from stairwise.reports.cells import canonical_column
from stairwise.reports.contract import Batch, PlanChange, Report
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.state.pages import from_page, number_of, numbered, to_page
from stairwise.state.row_buffer import TIME, RowBuffer
from stairwise.state.store import Store

WORK = 400_000
"""About how many values all reports of a block may show together."""

BULK = 131_072
"""Rows that wait for a report before they join the log without one."""

APPEARED = "_appeared"
_STATE, _LOG, _WAITING = b"m", b"a", b"w"
APPEARANCES = b"appearances"
"""Under this name a published report says what stands beside its appearances."""


class _State(msgspec.Struct):
    """What has to survive beside the log and the rows that wait."""

    first: int
    settled: Instant
    published: Instant
    low: Instant
    overflow: int
    division: int


class _Header(msgspec.Struct):
    """What a published report says beside its appearances."""

    lag: Duration
    first_row: Instant
    sealed_at: Instant | None


@dataclass(frozen=True)
class Appearances:
    """What a signature says at some report times: the log as it stands at the last of them.

    ``fresh`` is where the appearances begin that were not published before.
    """

    signature: str
    lag: Duration
    times: Ints
    rears: Ints
    """The lowest one at each of the times: no query that is due asks for what lies there or below."""
    time: Ints
    key: Ints
    previous: Ints
    following: Ints
    values: list[pa.Array]
    """By number, the values that ``key`` speaks of."""
    fresh: int
    first_row: Instant
    sealed_at: Instant | None

    def showing(self, rears: Ints, fronts: Ints) -> tuple[Ints, Ints]:
        """Of some windows, the appearances that stand for their values: the number of the window, and where it is."""
        start = np.searchsorted(self.time, rears, side="right")
        count = np.maximum(np.searchsorted(self.time, fronts, side="right") - start, 0)
        at, of = expand_ranges(start, count), np.repeat(np.arange(len(fronts)), count)
        counts = self.following[at] > fronts[of]
        return of[counts], at[counts]

    def held(self, times: Ints) -> Appearances:
        """The same at other times, of a run: nothing shows then."""
        return replace(self, times=times, rears=times, sealed_at=None)

    def standing(self) -> Iterator[Report]:
        """One by one, and each for itself: every value of the widest window that is due, with its last appearance."""
        of, at = self.showing(self.rears, self.times - self.lag)
        index = pa.array(self.key[at])
        rows = self._published([values.take(index) for values in self.values], self.time[at])
        yield from self._split(rows, np.searchsorted(of, np.arange(len(self.times) + 1)))

    def _published(self, columns: list[pa.Array], appeared: Ints) -> pa.RecordBatch:
        header = msgspec.msgpack.encode(_Header(self.lag, self.first_row, self.sealed_at))
        names = [*(f"value{i}" for i in range(len(columns))), APPEARED]
        rows = pa.RecordBatch.from_arrays([*columns, pa.array(appeared)], names=names)
        return rows.replace_schema_metadata({APPEARANCES: header})

    def _split(self, rows: pa.RecordBatch, edges: Ints) -> Iterator[Report]:
        for time, (start, stop) in zip(self.times.tolist(), pairwise(edges.tolist()), strict=True):
            yield Report(self.signature, time, rows.slice(start, stop - start))


def appearances_of(report: Report) -> Appearances:
    """A report that stands for itself, as it was published."""
    header = msgspec.msgpack.decode(report.rows.schema.metadata[APPEARANCES], type=_Header)
    *values, appeared = report.rows.columns
    time = int64_view(appeared)
    return Appearances(
        report.signature,
        header.lag,
        np.array([report.time]),
        np.array([DAWN]),
        time,
        np.arange(len(time)),
        np.full(len(time), DAWN),
        np.full(len(time), DUSK),
        values,
        0,
        header.first_row,
        header.sealed_at,
    )


class SharedDistinct(Rostered):
    """Evaluates the DISTINCT queries of one signature."""

    algorithm = "log of appearances"

    def __init__(self, signature: DistinctSignature, queries: Sequence[Query], store: Store) -> None:
        """Goes on from what is in the store. A query that the store does not know begins with the stream."""
        self.signature = signature
        self.name = signature.name
        self._store = store
        page = store.get(_STATE)
        state = _State(0, DAWN, DAWN, DAWN, 0, 0) if page is None else msgspec.msgpack.decode(page, type=_State)
        super().__init__(Roster(queries, store), Faults(state.overflow, state.division))
        self._settled, self._published, self._low = state.settled, state.published, state.low
        """Up to where rows have joined the log, its appearances are published, and it has forgotten."""
        self._preparation = Preparation(signature.select, 0)
        self._buffer = RowBuffer(store, _WAITING, self._preparation.schema, state.first)
        self._log = AppearanceLog([value.type.arrow for value in signature.keys])
        self._pages, self._written = 0, 0
        """How many appearances of the log are in the store, in how many pages."""
        self._is_rewritten = False
        """Has the log been compacted, so that its pages are to be written anew?"""
        self._load()
        self._waiting = 0
        """About how many rows came since the last report."""

    def _load(self) -> None:
        for key, page in self._store.scan(_LOG):
            *values, time, previous = from_page(page).columns
            self._log.restore(values, int64_view(time), int64_view(previous))
            self._pages = number_of(_LOG, key) + 1
        self._written = len(self._log)

    # ── queries come and go ──────────────────────────────────────────────────────────────────────────────────

    def plan(self, change: PlanChange) -> None:
        self._change(change, self._low)

    @property
    def nbytes(self) -> int:
        """About how much memory its log takes."""
        return self._log.nbytes

    @property
    def most_rows(self) -> int:
        """About how many rows a report of one window has at the most."""
        return len(self._log) + self._waiting

    # ── rows in, appearances out ─────────────────────────────────────────────────────────────────────────────

    def insert(self, batch: Batch) -> None:
        if batch.stream != self.signature.stream.name:
            return
        if batch.highest > DAWN:
            self._roster.observe(batch.lowest, batch.highest)
        if not self._roster.queries:  # nobody is here: who joins later sees what comes after
            self._low = max(self._low, batch.highest)
            return
        if batch.rows.num_rows:
            self._waiting += batch.rows.num_rows
            self._buffer.add(self._preparation.rows(batch, DAWN, self._faults))

    def advance(self, watermark: Instant) -> Iterator[Appearances]:
        if watermark < self._next_due and self._waiting < BULK:
            self._roster.passed(watermark)
            return
        self._waiting = 0
        self._buffer.settle(watermark)
        for times, rears in self._roster.due_with_rears(watermark):
            fresh = self._join_log(times)
            for piece in self._pieces(times):
                yield self._block(times[piece], rears[piece], fresh, watermark)
                fresh = int(np.searchsorted(self._log.time, self._published, side="right"))
            if watermark < DUSK:
                self._tidy(int(times[-1]))
        if DAWN < watermark < DUSK:
            if self._buffer.end - self._buffer.first > BULK:
                self._join_log(np.array([watermark]))
            self._roster.passed(watermark)
            self._tidy(watermark)
            self._roster.drop_ended(watermark)
            self._next_due = self._roster.next_after(watermark)

    def _join_log(self, times: Ints) -> int:
        """Let the rows up to the last front join the log, and give where those begin that were not published."""
        fronts = times - self.signature.lag
        if fronts[-1] > self._settled:
            start = self._buffer.first
            stop = int(self._buffer.passed(fronts[-1:])[0])
            rows = self._buffer.rows(start, stop)
            time = int64_view(rows.column(TIME))
            values = [canonical_column(rows.column(i)) for i in range(len(self.signature.keys))]
            self._log.append(values, time, np.searchsorted(fronts, time, side="left"))
            self._buffer.drop(stop)
            self._settled = int(fronts[-1])
        return int(np.searchsorted(self._log.time, self._published, side="right"))

    def _pieces(self, times: Ints) -> Iterator[slice]:
        per_piece = max(1, WORK // max(1, len(self._log)))
        for start in range(0, len(times), per_piece):
            yield slice(start, start + per_piece)

    def _block(self, times: Ints, rears: Ints, fresh: int, watermark: Instant) -> Appearances:
        log = self._log
        self._published = int(times[-1]) - self.signature.lag
        self._roster.passed(int(times[-1]))
        course = self._roster.course
        sealed_at = course.last_row if watermark >= DUSK else None
        return Appearances(
            self.name,
            self.signature.lag,
            times,
            rears,
            log.time,
            log.key,
            log.previous,
            log.following,
            log.keys.all_columns(),
            fresh,
            course.first_row,
            sealed_at,
        )

    def _tidy(self, reached: Instant) -> None:
        """Remove phantoms when there are many of them: all times up to ``reached`` are behind."""
        if not self._log.is_due_for_compaction():
            return
        self._low = max(self._low, self._roster.oldest_rear(reached))
        lag = self.signature.lag
        self._log.compact(self._low, reached - lag, *self._roster.last_fronts(reached, lag))
        self._is_rewritten = True

    def flush(self) -> None:
        if self._is_rewritten:
            for key in self._store.keys(_LOG):
                self._store.delete(key)
            self._pages, self._written, self._is_rewritten = 0, 0, False
        if self._written < len(self._log):
            log, start = self._log, self._written
            columns = [*log.values(start), pa.array(log.time[start:]), pa.array(log.previous[start:])]
            page = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
            self._store.put(numbered(_LOG, self._pages), to_page(page))
            self._pages += 1
            self._written = len(self._log)
        self._buffer.flush()
        self._roster.flush()
        counted = (self._faults.overflow, self._faults.division)
        state = _State(self._buffer.first, self._settled, self._published, self._low, *counted)
        self._store.put(_STATE, msgspec.msgpack.encode(state))
