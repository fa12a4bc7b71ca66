"""All grouped time-window queries of a signature in one operator: one slice store, one stair per report time.

    insert ──▶ filter, keys, arguments, once ──▶ slices
    advance ─▶ close slices ─▶ what is due ─▶ walk ─▶ stairs ─▶ evict
    plan ────▶ queries join and leave: windows, cuts and partials follow

A query that joins sees what is retained: down to the oldest cut from which on all edges of its window are cuts that
others ask for, too, and all its partials were kept. That is its horizon (``aged_cuts``). A plan change says how high
the rows of before it reach: other cuts and partials hold above that, and a horizon is never higher. It follows from the
topics, not from the rows that a run happens to have seen. A query that leaves takes with it, at its last report, the
partials and the history, and with the next slices the cuts, that only it needed. As slices grow older than the finer
windows reach, they are merged. What a query says never depends on the others: the same rows lie between the same two
instants however they are sliced, and all partials are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from stairwise.aggregation.aged_cuts import AgedCuts, aged_cuts
from stairwise.aggregation.cuts import cuts_at
from stairwise.aggregation.found_partials import Found
from stairwise.aggregation.needs import Needs, select_of, window_of
from stairwise.aggregation.partials import Partials
from stairwise.aggregation.signature_rows import SharedRows
from stairwise.aggregation.slice_pages import Pages, State
from stairwise.aggregation.slice_store import SliceStore
from stairwise.aggregation.stair import Stair, answer_name, key_name
from stairwise.aggregation.step_finding import found, pieces
from stairwise.algebra.query import Query
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Expr
from stairwise.expressions.views import from_numpy
from stairwise.operators.due import DueWindows, Steps, frames_of
from stairwise.operators.roster import Roster, Rostered
from stairwise.operators.signature import Signature
from stairwise.reports.contract import Batch, Joined, Left, PlanChange
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.store import Store

EVICTED_PART = 32
"""History is evicted when about one part in so many of it is not needed any more."""


class SharedAggregation(Rostered):
    """Evaluates the queries of one signature; its reports are stairs."""

    algorithm = "slices and stair"

    def __init__(self, signature: Signature, queries: Sequence[Query], store: Store) -> None:
        """Goes on from what is in the store. A query that the store does not know begins with the stream."""
        self.signature = signature
        self.name = signature.name
        super().__init__(Roster(queries, store), Faults())
        self._rows = SharedRows(signature)
        self._needs = Needs()
        self._slices = SliceStore([key.type.arrow for key in signature.keys], Partials(()))
        self._names: list[str] = []
        """Of the answers in a stair."""
        self._pages = Pages(store)
        self._cuts_change_above: Instant | None = None
        """From where on other cuts are to hold, if they are."""
        self._next_eviction = DAWN
        """Up to there what could be evicted is not worth it."""
        self._standing: tuple[Instant, AgedCuts] | None = None
        """The cuts of the queries that stay: those that join at the same instant add none to them."""
        self._aged: tuple[DueWindows, AgedCuts] | None = None
        """The cuts that some windows ask for as they grow old."""
        self._load()

    def _load(self) -> None:
        state = self._pages.state()
        for query in self.queries:
            self._needs.enter(query, stays=self.life(query.name).until == DUSK)
        self._keep_partials(DAWN)
        if state is None:
            self._slices.eras.change(cuts_at(self._needs.edges), DAWN)
            return
        self._needs.restore(state.since)
        spelled = {repr(expr): expr for expr in self._expressions()}
        self._rows.faults = {spelled[text]: Faults(*counts) for text, counts in state.faults.items() if text in spelled}
        self._pages.load(self._slices, state)

    # ── queries come and go ──────────────────────────────────────────────────────────────────────────────────

    def plan(self, change: PlanChange) -> None:
        """A query joins or leaves. No row above what the change says was seen has come."""
        match change:
            case Joined():
                self._join(change)
            case Left():
                self._leave(change)

    def _join(self, change: Joined) -> None:
        seen = change.seen_before(self.signature.stream.lateness)
        above = max(change.horizon, self._beyond(seen))
        horizon = max(change.horizon, self._horizon(change.query, change.after, above))
        self._roster.faults_before[change.query.name] = self._counted(change.query)
        self._roster.begin(change, horizon, seen)
        self._needs.enter(change.query, stays=True)
        self._next_due = DAWN
        self._follow(above)

    def _leave(self, change: Left) -> None:
        query = self._roster.leave(change.query, change.after)
        if query is None:
            return
        self._standing = None
        self._needs.leave(query)
        self._next_due = DAWN
        self._follow(self._beyond(change.seen_before(self.signature.stream.lateness)))
        self._drop_ended(self._roster.course.passed)

    def _beyond(self, seen: Instant) -> Instant:
        """Where other cuts and partials may begin: above every row that has come."""
        if self._roster.course.last_row > seen:
            raise ValueError(
                f"the plan of {self.name} changes where rows reached up to {seen}, but rows up to"
                f" {self._roster.course.last_row} have come: a change must be told before rows that come after it"
            )
        return seen

    def _horizon(self, query: Query, after: Instant, above: Instant) -> Instant:
        """How far back a query can see: a function of the plan and of ``after``, not of what has come or is gone."""
        if after <= DAWN:
            return DAWN
        if self._standing is None or self._standing[0] != after:
            layout = self._roster.layout
            self._standing = after, aged_cuts(layout, layout.until == DUSK)
        _, standing = self._standing
        return standing.horizon(frames_of(window_of(query)), after, above, self._needs.kept_since(query))

    def _drop_ended(self, watermark: Instant) -> None:
        ended = self._roster.drop_ended(watermark)
        for query in ended:
            self._needs.end(query)
        if ended:
            self._next_eviction = DAWN
            self._keep_partials(DUSK)

    def _follow(self, above: Instant) -> None:
        """Let cuts and partials follow the queries."""
        self._change_cuts_below(above)
        self._cuts_change_above = above
        self._keep_partials(above)

    def _change_cuts_below(self, above: Instant) -> None:
        if self._cuts_change_above not in (None, above):
            self._change_cuts()

    def _change_cuts(self) -> None:
        """Cut as the queries need it from now on: once for all that came and went in the meantime."""
        if self._cuts_change_above is not None:
            self._slices.end_at(self._cuts_change_above)
            self._slices.eras.change(cuts_at(self._needs.edges), self._cuts_change_above)
            self._cuts_change_above = None

    def _keep_partials(self, above: Instant) -> None:
        partials = self._needs.partials(self._slices.partials, above)
        if partials is not self._slices.partials:
            self._slices.keep(partials)
            self._names = [answer_name(aggregate) for aggregate in partials.aggregates]
            self._pages.rewrite()

    # ── rows in, stairs out ──────────────────────────────────────────────────────────────────────────────────

    def insert(self, batch: Batch) -> None:
        if batch.stream != self.signature.stream.name or not self._roster.queries:
            return
        if batch.highest > DAWN:
            self._roster.observe(batch.lowest, batch.highest)
        if batch.rows.num_rows:
            self._change_cuts()
            self._slices.insert(self._rows.prepare(batch, self._slices.partials.args), batch.lowest, batch.highest)

    def advance(self, watermark: Instant) -> Iterator[Stair]:
        if watermark < min(self._slices.next_end, self._next_due):
            self._roster.passed(watermark)
            return
        self._change_cuts()
        self._slices.close(watermark)
        layout = self._roster.layout
        for steps in layout.blocks(self._roster.course, watermark):
            for piece in pieces(self._slices, steps):
                self._roster.passed(int(piece.time[-1]))
                yield self._published(piece, found(self._slices, piece), watermark)
        if watermark <= DAWN:
            return
        if watermark < DUSK:
            self._roster.passed(watermark)
            if watermark >= self._next_eviction:
                low = layout.oldest_rear(watermark)
                self._slices.evict(low)
                self._next_eviction = watermark + (watermark - low) // EVICTED_PART
            self._merge_aged(layout, watermark)
        self._drop_ended(watermark)
        self._next_due = self._roster.next_after(watermark)

    def _merge_aged(self, layout: DueWindows, watermark: Instant) -> None:
        """Slices that no report above the watermark tells apart become one."""
        if self._aged is None or self._aged[0] is not layout:
            self._aged = layout, aged_cuts(layout)
        elif not self._slices.has_grown:
            return
        cuts = self._aged[1]
        if cuts.vary_by_age:
            self._slices.merge(cuts.at_or_after(self._slices.ends, watermark))

    def _published(self, steps: Steps, parts: list[Found], watermark: Instant) -> Stair:
        tables: list[list[pa.Array]] = []
        starts, stops, step, row = [], [], 0, 0
        for part in parts:
            starts.append(part.start + row)
            stops.append(part.stop + row)
            times = part.times(steps.time[step : step + len(part.start)])
            tables.append(self._slices.partials.lower(part.columns, times))
            step, row = step + len(part.start), row + len(part.key)
        columns = tables[0] if len(tables) == 1 else [pa.concat_arrays(c) for c in zip(*tables, strict=True)]
        names = self._names
        if self.signature.keys:
            key = parts[0].key if len(parts) == 1 else np.concatenate([part.key for part in parts])
            index = from_numpy(key.astype(np.int32, copy=False))
            dictionaries = self._slices.keys.all_columns()
            columns = [*(pa.DictionaryArray.from_arrays(index, d, safe=False) for d in dictionaries), *columns]
            names = [*(key_name(i) for i in range(len(dictionaries))), *names]
        rows = pa.RecordBatch.from_arrays(columns, names=names)
        sealed_at = self._roster.course.last_row if watermark >= DUSK else None
        start = starts[0] if len(starts) == 1 else np.concatenate(starts)
        stop = stops[0] if len(stops) == 1 else np.concatenate(stops)
        return Stair(self.name, steps, start, stop, rows, self._roster.course.first_row, sealed_at)

    # ── what is asked of it ──────────────────────────────────────────────────────────────────────────────────

    def _counted(self, query: Query) -> tuple[int, int]:
        faults = self._rows.counted(select_of(query))
        return faults.overflow, faults.division

    @property
    def all_faults(self) -> Faults:
        """How often any expression of the signature had no number to give."""
        faults = Faults()
        for counted in self._rows.faults.values():
            faults.add(counted)
        return faults

    @property
    def nbytes(self) -> int:
        """About how much memory its slices take."""
        return self._slices.nbytes

    @property
    def most_rows(self) -> int:
        """About how many rows a report of one window has at the most."""
        return max(1, len(self._slices.keys))

    def _expressions(self) -> Iterator[Expr]:
        yield from self.signature.keys
        yield from self._slices.partials.args
        if self.signature.where is not None:
            yield self.signature.where

    def flush(self) -> None:
        self._change_cuts()
        faults = {repr(e): (f.overflow, f.division) for e, f in self._rows.faults.items() if f.total}
        self._pages.flush(self._slices, State(since=self._needs.since, faults=faults))
        self._roster.flush()
