"""A query from rows to reports: when it reports, and its tree of SELECTs put together.

    insert ──▶ parts (one per SELECT: their rows or partials)
    advance ─▶ settle ─▶ moments that are due ─▶ answers of the parts ─▶ UNION ALL, EXCEPT ─▶ reports ─▶ evict

The agenda knows when the query reports; the parts know what their windows hold then. State is in the store: one
page for the agenda, and under a prefix of its own what each part keeps.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Except, Query, Relation, Select, Union, Widen, inputs, levels_of
from stairwise.expressions.evaluate import evaluate
from stairwise.expressions.faults import Faults
from stairwise.recompute.part import Part
from stairwise.reports.answers import grouped_answer
from stairwise.reports.blocks import Reports, block_by
from stairwise.reports.cells import Cells, union_all
from stairwise.reports.contract import Batch, Joined, Left, Life, PlanChange
from stairwise.reports.expansion import report_schema
from stairwise.reports.moments import Moments, by_level, merged, pieces
from stairwise.reports.multisets import difference
from stairwise.reports.runs import Reach, reach_of
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.store import Store
from stairwise.windows.schedule import Agenda, next_report

WORK = 200_000
"""About how many rows one block of reports is computed from."""

_AGENDA_KEY = b"agenda"


class _State(msgspec.Struct):
    """What has to survive of a query beside what its parts keep."""

    passed: Instant = DAWN
    first_row: Instant = DUSK
    last_row: Instant = DAWN
    after: Instant = DAWN
    horizon: Instant = DAWN
    until: Instant = DUSK
    overflow: int = 0
    division: int = 0


class QueryOperator:
    """Evaluates one query; its reports have the query's name as their signature."""

    def __init__(self, query: Query, parts: list[Part], store: Store) -> None:
        """``parts`` are the query's SELECTs from left to right, over the same store."""
        self.query = query
        self._parts = parts
        self._store = store
        self._streams = {stream.name for stream in query.streams}
        self._tables = {stream.name for stream in query.streams if stream.is_table}
        """Their rows neither begin nor end the reports."""
        self._levels = levels_of(query)
        self._schema = report_schema(query)
        page = store.get(_AGENDA_KEY)
        state = msgspec.msgpack.decode(page, type=_State) if page else _State()
        self._after, self._until, self._horizon = state.after, state.until, state.horizon
        self._faults = Faults(state.overflow, state.division)
        windows = tuple(source.window for source in inputs(query.relation))
        self._agenda = Agenda(windows, state.passed, state.first_row, state.last_row)
        self._reach = reach_of(query)

    @property
    def algorithm(self) -> str:
        return "; ".join(dict.fromkeys(self.algorithms))

    @property
    def algorithms(self) -> list[str]:
        """Of each SELECT, from left to right."""
        return [part.algorithm for part in self._parts]

    @property
    def queries(self) -> list[Query]:
        return [self.query]

    def life(self, query: str) -> Life:
        return Life(self._after, self._until, self._horizon)

    def faults(self, query: Query) -> Faults:
        return self._faults

    @property
    def all_faults(self) -> Faults:
        return self._faults

    def insert(self, batch: Batch) -> None:
        if batch.stream not in self._streams:
            return
        if batch.highest > DAWN and batch.stream not in self._tables:
            self._agenda.observe(batch.lowest, batch.highest)
        if batch.rows.num_rows:
            for part in self._parts:
                part.insert(batch, self._horizon, self._faults)

    def plan(self, change: PlanChange) -> None:
        match change:
            case Joined():
                self._after, self._horizon = change.after, change.horizon
                for part in self._parts:
                    part.joined(change)
                if change.after > DAWN:  # the streams have rows already: reports need not wait for one
                    self._agenda.passed = max(self._agenda.passed, change.after)
                    # The highest watermark that a partition had stands LATENESS + 1 below the last row.
                    self._agenda.observe(change.after, change.horizon)
            case Left():
                self._until = change.after

    def reach(self, *, settled: bool) -> Reach | None:
        return self._reach

    def next_due(self, instant: Instant) -> Instant:
        following = next_report(self._agenda.windows, instant + 1)
        return DUSK if following is None else following

    def skip(self, until: Instant) -> None:
        self._agenda.passed = max(self._agenda.passed, until)

    def advance(self, watermark: Instant) -> Iterator[Reports]:
        for part in self._parts:
            part.settle(watermark)
        for moments in self._moments(watermark):
            work = np.sum([part.work(moments) for part in self._parts], axis=0)
            for piece in pieces(moments, work, WORK):
                yield self._reports(moments[piece])
        for part in self._parts:
            part.evict(watermark)

    def _moments(self, watermark: Instant) -> Iterator[Moments]:
        """Every moment that is now due."""
        found = [part.row_moments() for part in self._parts]
        times = np.concatenate([times for times, _ in found])
        ordinals = np.concatenate([ordinals for _, ordinals in found])
        order = np.lexsort([ordinals, times])
        for moments in merged(self._agenda.blocks(watermark), times[order], ordinals[order]):
            due = (moments.times > self._after) & (moments.times <= self._until)
            start, stop = int(np.argmax(due)), int(due.sum())
            moments = moments[start : start + stop]
            if len(moments):
                yield moments if self._levels is None else by_level(moments, self._levels)

    def _reports(self, moments: Moments) -> Reports:
        answers = iter([part.answers(moments, self._faults) for part in self._parts])
        cells = self._put_together(self.query.relation, answers, top=True)
        if np.any(np.diff(cells.of) < 0):
            cells = cells.take(np.argsort(cells.of, kind="stable"))
        report = moments.reports()
        begins = np.concatenate(([True], np.diff(report) > 0))
        columns = cells.rows.columns
        if self._levels is not None:
            columns = [pa.array(moments.levels[cells.of]), *columns]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return block_by(self.query.name, moments.times[begins], moments.ordinals[begins], report[cells.of], rows)

    def _put_together(self, relation: Relation, answers: Iterator[Cells], *, top: bool) -> Cells:
        """The relation's answer from those of its SELECTs. Below the top, groups are finished to output rows."""
        match relation:
            case Select():
                cells = next(answers)
                if relation.is_grouped and not top:
                    return grouped_answer(relation, cells, self._faults).cells
                return cells
            case Union():
                left = self._put_together(relation.left, answers, top=False)
                return union_all(left, self._put_together(relation.right, answers, top=False))
            case Except():
                left = self._put_together(relation.left, answers, top=False)
                stays, _ = difference(left, self._put_together(relation.right, answers, top=False))
                return left.keep(stays)
            case Widen():
                rows = self._put_together(relation.input, answers, top=False)
                wide = [evaluate(o.expr, rows.rows.columns, len(rows), self._faults) for o in relation.outputs]
                return Cells(rows.of, pa.RecordBatch.from_arrays(wide, names=rows.rows.schema.names))

    def flush(self) -> None:
        for part in self._parts:
            part.flush()
        agenda, faults = self._agenda, self._faults
        state = _State(
            agenda.passed,
            agenda.first_row,
            agenda.last_row,
            self._after,
            self._horizon,
            self._until,
            faults.overflow,
            faults.division,
        )
        self._store.put(_AGENDA_KEY, msgspec.msgpack.encode(state))
