"""The join for all windows of a signature: every row probes the widest windows once, and what it finds is published.

insert ──▶ conditions on one input, columns ──▶ rows wait
advance ─▶ what is due ─▶ rows up to the front probe ─▶ joined rows with the times of their rows ─▶ old rows go
           when many rows wait, they probe before anything is due
plan ────▶ queries join and leave; the widest windows follow

answers        joins of two or more streams, or of a stream with itself, over time windows of any ranges and slides
update         O(1) a row and a match, whatever the number of windows (``join.probe``)
lookup         each query's membership and expiry follow from the times: see ``join_expansion``
space          the rows that the widest windows reach; what is published is not kept
order          any, as long as no row comes at or below the watermark
from           seed 000 section 4 (a row is probed once against the group of windows over the other stream)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Query, Select, time_windows
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints, int64_view
from stairwise.join.pair_slices import Granules, PairSlices, granules_of, is_sliced, sliced
from stairwise.join.probe import WAIT, JoinedInputs, Probe, Stay
from stairwise.join.standing import StandingJoins
from stairwise.join.stay import stay_of
from stairwise.operators.due import Course
from stairwise.operators.roster import Roster, Rostered
from stairwise.operators.signature import JoinSignature
from stairwise.reports.contract import Batch, PlanChange, Report
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.store import Store

_STATE, _ROWS = b"m", b"r"
JOIN = b"join"
"""Under this name a published report says what stands beside its joined rows."""


class _State(msgspec.Struct):
    """What has to survive beside the rows and the queries."""

    firsts: list[int]
    published: list[int]
    low: Instant
    overflow: int
    division: int


class _Header(msgspec.Struct):
    """What a published report says beside its joined rows."""

    first_row: Instant
    sealed_at: Instant | None


@dataclass(frozen=True)
class JoinBlock:
    """What a signature says at some report times: the joined rows that have come about since those before."""

    signature: str
    times: Ints
    found: list[JoinedInputs]
    first_row: Instant
    sealed_at: Instant | None
    granules: Granules = ()
    """Slices of the times of rows, of which all queries have all or nothing."""
    _sliced: dict[tuple[object, ...], PairSlices] = field(default_factory=dict, compare=False, repr=False)

    def sliced(self, select: Select) -> PairSlices | None:
        """The partials of its joined rows by group and slices: computed once for all that group and aggregate alike."""
        found = [joined for joined in self.found if len(joined)]
        asked = (select.keys, select.aggregates)
        if found and asked not in self._sliced:
            self._sliced[asked] = sliced(select, found, self.granules)
        return self._sliced.get(asked)

    @property
    def ordinals(self) -> Ints:
        return np.zeros(len(self.times), np.int64)

    def held(self, times: Ints) -> JoinBlock:
        """The same at other times, of a run: nothing has come about."""
        return replace(self, times=times, found=[], sealed_at=None, _sliced={})


def join_block_of(report: Report) -> JoinBlock:
    """A report that stands for itself, as it was published."""
    header = msgspec.msgpack.decode(report.rows.schema.metadata[JOIN], type=_Header)
    inputs = [name for name in report.rows.schema.names if name.startswith("time")]
    asked = {int(name[1:]): report.rows.column(name) for name in report.rows.schema.names[len(inputs) :]}
    columns = [asked.get(i) for i in range(max(asked, default=-1) + 1)]
    found = JoinedInputs([int64_view(report.rows.column(name)) for name in inputs], columns)
    return JoinBlock(report.signature, np.array([report.time]), [found], header.first_row, header.sealed_at)


class SharedJoin(Rostered):
    """Evaluates the joins of one signature."""

    algorithm = "one probe a row"

    def __init__(self, signature: JoinSignature, queries: Sequence[Query], store: Store) -> None:
        """Goes on from what is in the store. A query that the store does not know begins with the streams."""
        self.signature = signature
        self.name = signature.name
        self._store = store
        page = store.get(_STATE)
        inputs = len(signature.streams)
        none = _State([0] * inputs, [0] * inputs, DAWN, 0, 0)
        state = none if page is None else msgspec.msgpack.decode(page, type=_State)
        super().__init__(Roster(queries, store), Faults(state.overflow, state.division))
        self._low = state.low
        """Rows up to here are gone, or some of them may be."""
        self._probe = Probe(signature.select, store, _ROWS, state.firsts)
        self._streams = {stream.name for stream in signature.streams}
        self._stays = self._widest(self.queries)
        self._granules = _granules(self.queries)
        self._waiting = 0
        """About how many rows have not probed yet."""
        self._published = state.published
        """The positions behind the rows of which it is published what they join with."""
        self._found: list[JoinedInputs] = []
        """What is not published yet of what rows have found."""
        self._has_changed = False
        """Have queries come or gone since the widest windows were looked at?"""
        self.generation = 0
        """It grows when the widest windows have changed."""
        self._find_again()

    def _find_again(self) -> None:
        """Rows that have probed before a report was due find what they find in the windows as they are now."""
        self._found = []
        if self._published != self._probe.ends:
            self._found.append(self._probe.again(self._published, self._stays, Faults()))

    def _widest(self, queries: Sequence[Query]) -> list[Stay]:
        """For each input, how long a row can matter to any of some queries."""
        stays = [[stay_of(w) for w in time_windows(_select(query)) or ()] for query in queries]
        if not stays:
            return [Stay(0, 0)] * len(self.signature.streams)
        return [Stay(min(s.begins for s in of), max(s.ends for s in of)) for of in zip(*stays, strict=True)]

    # ── queries come and go ──────────────────────────────────────────────────────────────────────────────────

    def plan(self, change: PlanChange) -> None:
        self._change(change, self._low)
        self._has_changed = True

    def _follow(self) -> None:
        """Let the widest windows follow the queries, once for all that have come and gone."""
        if self._has_changed:
            self._stays, self._has_changed = self._widest(self.queries), False
            self._granules = _granules(self.queries)
            self.generation += 1
            self._find_again()

    def _kept_above(self, watermark: Instant) -> Instant:
        return watermark - min(stay.ends for stay in self._widest(self._roster.staying()))

    def history(self, query: str) -> JoinBlock:
        """What is published already in the windows of a query, as a block at its last report: the expansion of one that
        joins now, or is made again, begins with it."""
        asked = self._roster.queries[query]
        stays = [stay_of(w) for w in time_windows(_select(asked)) or ()]
        found = self._probe.everything(stays, Faults(), self._published)
        times, first_row = self._roster.last_report(query), self._roster.course.first_row
        return JoinBlock(self.name, times, [found], first_row, None, _granules([asked]))

    def standing(self) -> StandingJoins:
        """What rows that are here have made, as far as it was published."""
        times = [pa.field(f"time{i}", pa.int64()) for i in range(len(self._stays))]
        asked = [pa.field(output.name, output.type.arrow) for output in self.signature.select.outputs]
        asking = [(time_windows(_select(q)) or (), self.life(q.name)) for q in self.queries]
        standing = StandingJoins(pa.schema([*times, *asked]), self._stays, asking)
        standing.add(self._probe.everything(self._stays, Faults(), self._published))
        return standing

    @property
    def course(self) -> Course:
        return self._roster.course

    @property
    def nbytes(self) -> int:
        """About how much memory its rows take."""
        return self._probe.nbytes

    # ── rows in, joined rows out ─────────────────────────────────────────────────────────────────────────────

    def insert(self, batch: Batch) -> None:
        if batch.stream not in self._streams:
            return
        if batch.highest > DAWN:
            self._roster.observe(batch.lowest, batch.highest)
        if not self._roster.queries:  # nobody is here: who joins later sees what comes after
            self._low = max(self._low, batch.highest)
        elif batch.rows.num_rows:
            self._waiting += batch.rows.num_rows
            self._probe.insert(batch, DAWN, self._faults)

    def advance(self, watermark: Instant) -> Iterator[JoinBlock]:
        self._follow()
        if watermark < self._next_due:
            self._roster.passed(watermark)
            if self._waiting > WAIT:
                self._settle(watermark)
            return
        for times in self._roster.due(watermark):
            reached = int(times[-1])
            self._settle(reached)
            found, self._found, self._published = self._found, [], self._probe.ends
            self._roster.passed(reached)
            first_row, last_row = self._roster.course[1:]
            sealed_at = last_row if watermark >= DUSK else None
            yield JoinBlock(self.name, times, found, first_row, sealed_at, self._granules)
            if watermark < DUSK:
                self._low = max(self._low, reached - min(stay.ends for stay in self._stays))
                self._probe.evict(reached, self._stays)
        if DAWN < watermark < DUSK:
            self._roster.passed(watermark)
            if self._roster.drop_ended(watermark):
                self._stays = self._widest(self.queries)
                self.generation += 1
            self._next_due = self._roster.next_after(watermark)

    def _settle(self, watermark: Instant) -> None:
        """The rows up to the watermark probe."""
        self._found += self._probe.settle(watermark, self._stays, self._faults)
        self._waiting = 0

    def flush(self) -> None:
        self._roster.flush()
        counted = (self._faults.overflow, self._faults.division)
        state = _State(self._probe.flush(), self._published, self._low, *counted)
        self._store.put(_STATE, msgspec.msgpack.encode(state))


class JoinPublication:
    """The reports of a signature, each for itself: with all joined rows that any query shows then."""

    def __init__(self, operator: SharedJoin) -> None:
        self._operator = operator
        self._standing: StandingJoins | None = None
        """What is published and can still show."""
        self._generation = -1

    def reports(self, block: JoinBlock) -> Iterator[Report]:
        if self._standing is None or self._generation != self._operator.generation:
            self._standing, self._generation = self._operator.standing(), self._operator.generation
        else:
            for found in block.found:
                self._standing.add(found)
        header = {JOIN: msgspec.msgpack.encode(_Header(block.first_row, block.sealed_at))}
        sealed = block.sealed_at is not None
        for time, rows in self._standing.reports(block.times, self._operator.course, sealed=sealed):
            yield Report(block.signature, time, rows.replace_schema_metadata(header))


def _granules(queries: Sequence[Query]) -> Granules:
    return granules_of(time_windows(_select(query)) or () for query in queries if is_sliced(_select(query)))


def _select(query: Query) -> Select:
    assert isinstance(query.relation, Select)
    return query.relation
