"""The groups of a query, kept up to date by rows that enter and leave its windows: those that changed are shown.

    τ      rows that move            group a: partial         shown
    10     +a 3  +a 4  +b 1          count 2, sum 7           +(a, 7) +(b, 1)
    20     +a 5  −a 3                count 2, sum 9           −(a, 7) +(a, 9)
    30     −b 1                                               −(b, 1)

    answers        ISTREAM, DSTREAM and CHANGES of a grouped SELECT, from the moves of rows (``changes.passage``)
    aggregates     those whose rows can be taken out again (counts, sums, averages, variances, slopes): exact, since
                   partials are; of all others the groups that changed are taken afresh from their own rows
    update         O(m log m) for m rows that entered or left; where groups are taken afresh, O(rows of these groups)
    space          the rows in the windows, and a partial for each group
    order          report times ascend
    from           seed 002 section 4.2 (algorithm 1: an expiring tuple is taken out of its group where the function
                   allows, else the group is computed anew from its tuples); seed 001 section 2.2.1

A report's changes are by value, and so may be found group by group as long as no two groups say the same: where the
keys are among the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.aggregation.group_rows import Grouping
from stairwise.aggregation.partials import Partials
from stairwise.algebra.query import Query, Select
from stairwise.changes.passage import Moves, Way
from stairwise.changes.touched_groups import Touched, before_each, combined, onto, touched_by
from stairwise.expressions.faults import Faults
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.tree import Field
from stairwise.expressions.views import Bools, Ints, int64_view
from stairwise.operators.preparation import row_expressions
from stairwise.reports.answers import Placed, grouped_answer, yields_items
from stairwise.reports.emission import Emissions
from stairwise.reports.expansion import changes
from stairwise.reports.moments import Moments
from stairwise.schema import Type
from stairwise.state.bags import Bags
from stairwise.state.key_table import KeyTable
from stairwise.state.row_buffer import PLACE
from stairwise.state.row_log import RowLog

_MANY = 4096
"""Up to so many rows, partials and groups are not looked through for those that nobody needs any more."""

WORK = 200_000
"""About how many rows are taken together where groups are computed anew."""

_OF_REPORT_TIME = frozenset({"REGR_INTERCEPT", "WINDOW_START", "WINDOW_END"})
"""They change from report to report though no row moves."""


def change_by_group(select: Select) -> bool:
    """Can the changes of a grouped SELECT be told from the groups that rows moved in?"""
    if not select.is_grouped or select.distinct or select.is_ordered or yields_items(select):
        return False
    if any(key.type is Type.HUGEINT for key in select.keys):
        return False  # no table of keys holds them
    if any(aggregate.function in _OF_REPORT_TIME for aggregate in select.aggregates):
        return False
    shown = {output.expr.index for output in select.outputs if isinstance(output.expr, Field)}
    return shown.issuperset(range(len(select.keys)))


def is_subtractable(select: Select) -> bool:
    """Can rows that leave be taken out of its groups, whichever rows these were?"""
    return Partials(select.aggregates).is_subtractable


class ChangingGroups:
    """What a grouped query shows of rows of which it is known when they enter and leave."""

    def __init__(self, query: Query, passage: Way, faults: Faults, *, are_partials: bool = False) -> None:
        """``passage`` is the way of the rows, which stand there under the numbers that they get here. They may be
        partials already, of rows that come and go together."""
        select = query.relation
        assert isinstance(select, Select)
        self.query, self._select, self._passage = query, select, passage
        self._faults = faults
        self._names = [name for name, _ in row_expressions(select)]
        fields = [pa.field(name, expr.type.arrow) for name, expr in row_expressions(select)]
        self._are_partials = are_partials
        if are_partials:
            fields = [*fields[: len(select.keys)], *Grouping(select).partials.schema]
        self._rows = RowLog(pa.schema([*fields, *(pa.field(name, pa.int64()) for name in PLACE)]))
        self._grouping = Grouping(select)
        self._partials = self._grouping.partials
        self._keys = KeyTable([key.type.arrow for key in select.keys])
        self._log = RowLog(self._partials.schema)
        """The partials of groups as they stood when they last changed."""
        self._at, self._held = np.zeros(0, np.int64), np.zeros(0, np.int64)
        """By group: where its partial is (−1: nowhere), and how many rows it has."""
        self._bags = None if self._partials.is_subtractable else Bags()
        """By group its rows, where partials do not tell what is left when some leave."""
        self._groups = 0
        """How many groups have rows."""
        self._kept = 0
        """How many rows were kept when they were last looked through."""
        self._has_begun = False

    def numbers(self, values: Sequence[pa.Array], places: Rows) -> Ints:
        """The numbers of new rows, from their keys and arguments: they hold until changes are asked for."""
        columns = [*values, places.time, places.partition.astype(np.int64), places.sequence]
        return self._rows.append([pa.array(c) for c in columns], len(places.time))

    def changes(self, moments: Moments) -> Emissions:
        """What changes at some moments, at least one, all behind those that were asked for before."""
        moves = self._passage.moves(moments)
        rows = self._rows.take(moves.number)
        group = self._keys.numbers([rows.column(name) for name in self._names[: len(self._select.keys)]], len(rows))
        self._know(len(self._keys))
        begins = not self._select.keys and not self._has_begun
        touched = touched_by(group, moves.report, len(moments), begins=begins)
        moved = np.bincount(touched.of, weights=moves.diff, minlength=len(touched)).astype(np.int64)
        held = self._held[touched.group] + _summed(moved, touched)
        partials = self._after(touched, moves, rows) if self._bags is None else self._afresh(touched, moves, self._bags)
        lines = changes(
            self.query.emit,
            self._answer(touched, partials, self._exist(held), self._faults),
            self._answer(touched, *self._before(touched, partials, held), Faults()),
        )
        self._remember(touched, partials, held)
        self._forget()
        times, ordinals = moments.times[lines.cell], moments.ordinals[lines.cell]
        return Emissions(times, ordinals, lines.diff, lines.rows, len(moments))

    def _know(self, groups: int) -> None:
        more = 2 * groups - len(self._held)
        if groups > len(self._held):
            self._held = np.concatenate([self._held, np.zeros(more, np.int64)])
            self._at = np.concatenate([self._at, np.full(more, -1, np.int64)])

    def _exist(self, held: Ints) -> Bools:
        """Which groups are in the answer: those that have rows; what is not grouped always is."""
        return held > 0 if self._select.keys else np.ones(len(held), bool)

    # ── partials ─────────────────────────────────────────────────────────────────────────────────────────────

    def _after(self, touched: Touched, moves: Moves, rows: pa.RecordBatch) -> list[pa.Array]:
        """The partial of each group after each report at which rows of it move: its rows are added and taken out."""
        entered, left = (self._lifted(touched, rows, np.flatnonzero(moves.diff == diff)) for diff in (1, -1))
        at = self._at[touched.group]
        known = np.flatnonzero(at >= 0)
        whole = onto(self._partials, self._log.take(at[known]).columns, known, entered, len(touched))
        return self._partials.subtract(whole, left)

    def _lifted(self, touched: Touched, rows: pa.RecordBatch, some: Ints) -> list[pa.Array]:
        """The partials of some rows up to each report."""
        mine = rows.take(pa.array(some))
        return combined(self._partials, self._lift(mine, touched.of[some], len(touched)), touched)

    def _lift(self, rows: pa.RecordBatch, codes: Ints, groups: int) -> list[pa.Array]:
        """The partials of rows, each of which says its group."""
        if self._are_partials:
            return self._partials.combine(rows.columns[len(self._select.keys) : -len(PLACE)], codes, groups)
        return self._grouping.lift(rows, _places(rows), codes, groups)

    def _afresh(self, touched: Touched, moves: Moves, bags: Bags) -> list[pa.Array]:
        """The same from all rows of these groups, each of which counts from one report on until another."""
        groups = touched.group[touched.first]
        owner, old = bags.take(groups)
        enters, leaves = moves.diff > 0, moves.diff < 0
        group = np.concatenate([owner, touched.group[touched.of[enters]]])
        number = np.concatenate([old, moves.number[enters]])
        begin = np.concatenate([np.zeros(len(old), np.int64), moves.report[enters]])
        order = np.argsort(number)
        group, number, begin = group[order], number[order], begin[order]
        end = np.full(len(number), touched.reports, np.int64)
        end[np.searchsorted(number, moves.number[leaves])] = moves.report[leaves]
        stays = np.flatnonzero(end == touched.reports)
        stays = stays[np.argsort(group[stays], kind="stable")]
        bags.put(groups, group[stays], number[stays])
        start, stop = touched.between(group, begin, end)
        edges = np.bincount(start, minlength=len(touched) + 1) - np.bincount(stop, minlength=len(touched) + 1)
        piece = np.cumsum(np.cumsum(edges)[:-1]) // WORK
        bounds = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(touched)]
        parts = [self._summed_up(number, start, stop, *bound) for bound in pairwise(bounds)]
        return [pa.concat_arrays(columns) for columns in zip(*parts, strict=True)]

    def _summed_up(self, number: Ints, start: Ints, stop: Ints, low: int, high: int) -> list[pa.Array]:
        """The partials of the pairs low ≤ i < high, from rows each of which counts in those from start to stop."""
        start, stop = np.clip(start, low, high), np.clip(stop, low, high)
        rows = self._rows.take(np.repeat(number, stop - start))
        return self._lift(rows, expand_ranges(start - low, stop - start), high - low)

    def _before(self, touched: Touched, after: list[pa.Array], held: Ints) -> tuple[list[pa.Array], Bools]:
        """The partial of each group before each of these reports, and whether it was in the answer then."""
        first = np.flatnonzero(touched.first)
        base = self._at[touched.group[first]]
        exists = self._exist(np.concatenate(([0], held[:-1]))[: len(held)])
        exists[first] = self._exist(self._held[touched.group[first]]) & (base >= 0)
        return before_each(touched, after, self._log.take(base[base >= 0]).columns, base >= 0), exists

    def _answer(self, touched: Touched, partials: list[pa.Array], exists: Bools, faults: Faults) -> Placed:
        """Output rows of the groups that are in the answer, by report."""
        at = np.flatnonzero(exists)
        index = pa.array(at)
        keys = self._keys.columns(touched.group[at])
        of = touched.report[at]
        taken = [column.take(index) for column in partials]
        groups = self._grouping.group_rows(of, keys, self._partials.lower(taken, np.zeros(len(at), np.int64)))
        return grouped_answer(self._select, groups, faults).in_order()

    # ── what is kept ─────────────────────────────────────────────────────────────────────────────────────────

    def _remember(self, touched: Touched, partials: list[pa.Array], held: Ints) -> None:
        self._has_begun = True
        last = touched.last()
        group, held = touched.group[last], held[last]
        self._groups += int(np.count_nonzero(held)) - int(np.count_nonzero(self._held[group]))
        stays = self._exist(held)
        index = pa.array(np.flatnonzero(last)[stays])
        columns = [column.take(index) for column in partials]
        self._held[group], self._at[group] = held, -1
        self._at[group[stays]] = self._log.append(columns, len(index))

    def _forget(self) -> None:
        """Forget rows that have left, partials that were replaced and groups without rows, when they are many."""
        if len(self._rows) > 2 * self._kept + _MANY:
            numbers = self._rows.keep(np.unique(self._passage.numbers()))
            self._kept = len(self._rows)
            self._passage.renumber(numbers)
            if self._bags is not None:
                self._bags.renumber(numbers)
        if len(self._keys) > 4 * self._groups + _MANY and self._select.keys:
            used = np.flatnonzero(self._held[: len(self._keys)])
            at, held = self._at[used], self._held[used]
            numbers = self._keys.keep(used)[used]
            self._at, self._held = np.empty(len(used), np.int64), np.empty(len(used), np.int64)
            self._at[numbers], self._held[numbers] = at, held
            if self._bags is not None:
                self._bags.keep(used, numbers)
        if len(self._log) > 2 * self._groups + _MANY:
            stand = np.flatnonzero(self._at >= 0)
            places = np.sort(self._at[stand])
            self._at[stand] = self._log.keep(places)[self._at[stand]]


def _places(rows: pa.RecordBatch) -> Rows:
    time, partition, sequence = (int64_view(rows.column(name)) for name in PLACE)
    return Rows(time, partition.astype(np.int32), sequence)


def _summed(numbers: Ints, touched: Touched) -> Ints:
    """Running sums within each group."""
    total = np.cumsum(numbers)
    start = np.flatnonzero(touched.first)
    base = np.repeat((total - numbers)[start], np.diff(np.append(start, len(numbers))))
    return np.asarray(total - base)
