"""Groups over a landmark window, which rows come into and never leave: those that grew are told, with what they were.

    τ      rows                      group a: accumulator      told
    10     a 3, a 4, b 1             count 2, sum 7            (a, 7), (b, 1)
    20     a 5                       count 3, sum 12           (a, 7 → 12)
    30     none                                                nothing

    answers        ISTREAM, DSTREAM and CHANGES of GROUP BY over [FROM t1], [UNTIL t2] and [FROM t1 UNTIL t2]
    aggregates     any with associative partials, which all are; none is taken out again
    update         O(1) a row and aggregate
    lookup         O(m log m) for m pairs of a group and a report at which it grows, however many groups there are
    space          a partial for each group, in the store up to two; those of the slices above the watermark
    order          any, as long as no row comes at or below the watermark
    from           seed 002 section 3.2 (landmark windows) and section 4.2 (groups that are touched)

The store has accumulators in the order in which they were written: a flush writes those that grew, and now and then all
of them, when most of what is written has been replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.aggregation.group_rows import Grouping
from stairwise.aggregation.landmark import ComingSlices
from stairwise.aggregation.slices import Slices
from stairwise.algebra.query import Query, Select
from stairwise.changes.touched_groups import before_each, combined, onto, touched_by
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Bools, Ints, int64_view
from stairwise.operators.signature import LandmarkSignature
from stairwise.reports.answers import Placed, grouped_answer
from stairwise.reports.contract import Batch, Joined, Left, Life, PlanChange
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import changes
from stairwise.reports.runs import Reach, reach_of
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.pages import from_page, number_of, numbered, to_page
from stairwise.state.row_log import RowLog
from stairwise.state.store import Store
from stairwise.windows.schedule import Agenda, next_report

_STATE, _COMING, _PASSED = b"m", b"c", b"p"

_MANY = 4096
"""Up to so many accumulators are not looked through for those that have been replaced."""


class _State(msgspec.Struct):
    """What has to survive beside the accumulators and the slices above the watermark."""

    course: tuple[Instant, Instant, Instant] = (DAWN, DUSK, DAWN)
    """Passed, first row, last row."""
    life: Life = Life()
    last: Instant | None = None
    overflow: int = 0
    division: int = 0


@dataclass(frozen=True)
class GrownGroups:
    """What a landmark says at some report times: the groups that grew at each, by group, then report."""

    signature: str
    times: Ints
    report: Ints
    """For each group that grew, the number of the report."""
    keys: list[pa.Array]
    after: list[pa.Array]
    """Its partial from then on."""
    before: list[pa.Array]
    existed: Bools
    """Was it there before?"""

    @property
    def ordinals(self) -> Ints:
        return np.zeros(len(self.times), np.int64)


class GrowingGroups:
    """Evaluates the queries of one signature, which differ in EMIT alone and come together."""

    algorithm = "one accumulator a group, those that grow are told"

    def __init__(self, signature: LandmarkSignature, queries: Sequence[Query], store: Store) -> None:
        """Goes on from what is in the store."""
        self.signature, self.name = signature, signature.name
        self._known = {query.name: query for query in queries}
        self._store = store
        self._source = signature.select.inputs[0]
        self._coming = ComingSlices(signature.select)
        self._partials, self._keys = self._coming.partials, self._coming.keys
        self._log = RowLog(self._partials.schema)
        """The accumulators as they stood when they last grew."""
        self._at = np.zeros(0, np.int64)
        """By group, where its accumulator is; −1: nowhere."""
        page = store.get(_STATE)
        state = _State() if page is None else msgspec.msgpack.decode(page, type=_State)
        self._agenda = Agenda((self._source.window,), *state.course)
        self._life, self._last = state.life, state.last
        """``last``: when it reported last; None where it has not yet."""
        self._faults = Faults(state.overflow, state.division)
        self._written, self._pages = 0, 0
        """How many accumulators are in the store, replaced ones among them, and the number of the next page of them."""
        self._grown: list[Ints] = []
        """The groups that have grown since the last flush."""
        self._load()

    @property
    def queries(self) -> list[Query]:
        return list(self._known.values())

    def life(self, query: str) -> Life:
        return self._life

    def faults(self, query: Query) -> Faults:
        return self._faults

    @property
    def all_faults(self) -> Faults:
        return self._faults

    def plan(self, change: PlanChange) -> None:
        match change:
            case Joined():
                self._known[change.query.name] = change.query
                self._life = Life(change.after, DUSK, change.horizon)
                if change.after > DAWN:  # the stream has rows already: reports need not wait for one
                    self.skip(change.after)
                    self._agenda.observe(change.after, change.horizon)
            case Left():
                self._life = self._life._replace(until=change.after)

    # ── where nothing changes ────────────────────────────────────────────────────────────────────────────────

    def reach(self, *, settled: bool) -> Reach | None:
        return reach_of(self.queries[0]) if self._known else None

    def next_due(self, instant: Instant) -> Instant:
        following = next_report(self._agenda.windows, instant + 1)
        return DUSK if following is None else following

    def skip(self, until: Instant) -> None:
        self._agenda.passed = max(self._agenda.passed, until)

    # ── rows in, groups that grew out ────────────────────────────────────────────────────────────────────────

    def insert(self, batch: Batch) -> None:
        if batch.stream != self._source.stream.name:
            return
        if batch.highest > DAWN:
            self._agenda.observe(batch.lowest, batch.highest)
        if batch.rows.num_rows:
            self._coming.insert(batch, self._life.horizon, self._faults)

    def advance(self, watermark: Instant) -> Iterator[GrownGroups]:
        self._coming.settle()
        for times in self._agenda.blocks(watermark):
            mine = times[(times > self._life.after) & (times <= self._life.until)]
            if len(mine):
                yield self._block(mine)

    def _block(self, times: Ints) -> GrownGroups:
        front = -(-times // self._slide)
        taken = self._coming.take(int(front[-1]))
        begins = not self._keys_asked and self._last is None
        report = np.searchsorted(front, taken.number, side="left")
        touched = touched_by(taken.key, report, len(times), begins=begins)
        self._know(len(self._keys))
        came = self._partials.combine(taken.columns, touched.of, len(touched))
        at = self._at[touched.group]
        known = np.flatnonzero(at >= 0)
        stood = self._log.take(at[known]).columns
        after = onto(self._partials, stood, known, combined(self._partials, came, touched), len(touched))
        first = self._at[touched.group[touched.first]]
        before = before_each(touched, after, self._log.take(first[first >= 0]).columns, first >= 0)
        existed = ~touched.first
        existed[touched.first] = first >= 0
        last = touched.last()
        self._remember(touched.group[last], [column.filter(pa.array(last)) for column in after])
        self._last = int(times[-1])
        return GrownGroups(self.name, times, touched.report, self._keys.columns(touched.group), after, before, existed)

    @property
    def _slide(self) -> int:
        slide: int = self._source.window.slide  # type: ignore[union-attr]
        return slide

    @property
    def _keys_asked(self) -> bool:
        return bool(self.signature.select.keys)

    def history(self, query: str) -> GrownGroups | None:
        """All groups as they stand, as if they had come at the last report; None where there was none."""
        if self._last is None:
            return None
        groups = np.flatnonzero(self._at >= 0)
        stand = self._log.take(self._at[groups]).columns
        nothing = np.zeros(len(groups), np.int64)
        keys = self._keys.columns(groups)
        return GrownGroups(self.name, np.array([self._last]), nothing, keys, stand, stand, nothing > 0)

    def _know(self, groups: int) -> None:
        if groups > len(self._at):
            self._at = np.concatenate([self._at, np.full(2 * groups - len(self._at), -1, np.int64)])

    def _remember(self, groups: Ints, partials: list[pa.Array]) -> None:
        self._at[groups] = self._log.append(partials, len(groups))
        self._grown.append(groups)
        if len(self._log) > 2 * len(self._keys) + _MANY:
            stand = np.flatnonzero(self._at >= 0)
            self._at[stand] = self._log.keep(np.sort(self._at[stand]))[self._at[stand]]

    # ── the store ────────────────────────────────────────────────────────────────────────────────────────────

    def flush(self) -> None:
        self._write_accumulators()
        slices = self._coming.slices
        self._store.put(_COMING, to_page(_batch([pa.array(slices.number), *self._rows_of(slices.key, slices.columns)])))
        course = (self._agenda.passed, self._agenda.first_row, self._agenda.last_row)
        counted = (self._faults.overflow, self._faults.division)
        self._store.put(_STATE, msgspec.msgpack.encode(_State(course, self._life, self._last, *counted)))

    def _write_accumulators(self) -> None:
        grown = np.unique(np.concatenate([np.zeros(0, np.int64), *self._grown]))
        self._grown = []
        if self._written + len(grown) > 2 * len(self._keys) + _MANY:
            for key in list(self._store.keys(_PASSED)):
                self._store.delete(key)
            self._written, grown = 0, np.flatnonzero(self._at >= 0)
        if len(grown):
            partials = self._log.take(self._at[grown]).columns
            self._store.put(numbered(_PASSED, self._pages), to_page(_batch(self._rows_of(grown, partials))))
            self._written, self._pages = self._written + len(grown), self._pages + 1

    def _rows_of(self, groups: Ints, partials: list[pa.Array]) -> list[pa.Array]:
        return [*self._keys.columns(groups), *partials]

    def _load(self) -> None:
        for key, page in self._store.scan(_PASSED):
            groups, partials = self._known_groups(from_page(page).columns)
            self._remember(groups, partials)
            self._written += len(groups)
            self._pages = number_of(_PASSED, key) + 1
        self._grown = []
        coming = self._store.get(_COMING)
        if coming is not None:
            number, *columns = from_page(coming).columns
            self._coming.slices = Slices(int64_view(number), *self._known_groups(columns))

    def _known_groups(self, columns: list[pa.Array]) -> tuple[Ints, list[pa.Array]]:
        width = len(self.signature.select.keys)
        length = len(columns[0]) if columns else 0
        groups = self._keys.numbers(columns[:width], length)
        self._know(len(self._keys))
        return groups, columns[width:]


def _batch(columns: list[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])


class GrowingExpansion:
    """The changes of one query, out of the groups that grew."""

    def __init__(self, query: Query, life: Life) -> None:
        select = query.relation
        assert isinstance(select, Select)
        self.query, self.life, self.faults = query, life, Faults()
        self._select, self._grouping = select, Grouping(select)

    def expand(self, block: GrownGroups) -> Emissions | None:
        """Its lines: what is not grouped is there from the first report on, everything else when it has grown."""
        now = self._answer(block, block.after, np.ones(len(block.report), bool), self.faults)
        before = self._answer(block, block.before, block.existed, Faults())
        lines = changes(self.query.emit, now, before)
        times = block.times[lines.cell]
        return Emissions(times, np.zeros(len(times), np.int64), lines.diff, lines.rows, len(block.times))

    def _answer(self, block: GrownGroups, partials: list[pa.Array], some: Bools, faults: Faults) -> Placed:
        mask = pa.array(some)
        lowered = self._grouping.partials.lower([c.filter(mask) for c in partials], block.times[block.report[some]])
        groups = self._grouping.group_rows(block.report[some], [key.filter(mask) for key in block.keys], lowered)
        return grouped_answer(self._select, groups, faults).in_order()
