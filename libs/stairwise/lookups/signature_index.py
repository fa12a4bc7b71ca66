"""The structures of one signature over one partition: every key's rows, and what lookups have asked of them.

    rows ──where──▶ keys ──numbers──▶ substreams ──┬─▶ R-INT, B-INT, L-INT   for each partial that is needed
                                                   └─▶ CI-COUNT, CI-SUM, extremes   for the bounds that are asked

An index is made of the rows that are kept, and kept up to date from then on. What it was not made for it cannot
answer: another one is made in its place that can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from stairwise.aggregates.ranks import rank
from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Expr
from stairwise.expressions.views import Ints, Words, float64_view, int64_view, order_keys, validity
from stairwise.lookups.extent import WindowExtent
from stairwise.lookups.settled_rows import SettledRows
from stairwise.lookups.statement import Bound, Lookup, LookupSignature, Need
from stairwise.lookups.tally import Tally, Total
from stairwise.reports.cells import canonical_column
from stairwise.schema import Instant, Stream, Type
from stairwise.state.key_table import KeyTable
from stairwise.structures.contract import Arrivals, Intervals, Structure
from stairwise.structures.count_filter import CountFilter
from stairwise.structures.extreme_filter import ExtremeFilter
from stairwise.structures.extreme_intervals import ExtremeIntervals
from stairwise.structures.row_index import RowIndex
from stairwise.structures.running_intervals import RunningIntervals
from stairwise.structures.substreams import Substreams
from stairwise.structures.sum_filter import SumFilter
from stairwise.structures.summands import EXTREMES, columns_of

_FILTERED = frozenset({"SUM", "MAX", "MIN"})
"""Bounds on these have a filter of their own that must be there before the rows."""
_MOST_ASKED, _FEW_ASKED = 4096, 64
"""Statements that are remembered, with the numbers of the keys that they name, if they name no more than that."""
_ALL_KNOWN = -2
"""In place of a number of keys: no key that may come changes what was found."""
_FEW_KEYS = 100_000
_NONE: Ints = np.empty(0, np.int64)


class SignatureIndex:
    """What one partition keeps for the lookups of a signature."""

    def __init__(
        self,
        stream: Stream,
        signature: LookupSignature,
        needs: Iterable[Need],
        bounds: Iterable[Bound],
        *,
        indexed: bool = False,
    ) -> None:
        """``indexed``: does it know each key's rows, for aggregates that have no structure?"""
        self._stream = stream
        self._signature = signature
        self.needs = frozenset(needs)
        self.filtered = frozenset((b.function, b.args) for b in bounds if b.function in _FILTERED)
        """The functions that have a filter for their bounds, with their arguments."""
        self._table = KeyTable([key.type.arrow for key in signature.keys])
        self._sums = {need: RunningIntervals() for need in self.needs}
        self._best = {n: ExtremeIntervals(largest=n.family == "max") for n in self.needs if n.family in EXTREMES}
        self._sum_filters = {args: SumFilter() for function, args in self.filtered if function == "SUM"}
        self._extreme_filters = {f: ExtremeFilter() for f in self.filtered if f[0] != "SUM"}
        self._index = RowIndex() if indexed else None
        structures: list[Structure] = [*self._sums.values(), *self._best.values(), *self._sum_filters.values()]
        if self._index is not None:
            structures.append(self._index)
        self._substreams = Substreams(structures)
        self._counts = CountFilter(self._substreams)
        self.has_room = True
        """May it take more room than it must, to be quicker?"""
        self._asked: dict[str, tuple[int, Ints]] = {}
        """By the text of the statement: among how many keys its keys were looked for, and their numbers."""

    @property
    def keys(self) -> int:
        return self._substreams.keys

    @property
    def size_bytes(self) -> int:
        extremes = sum(extreme_filter.size_bytes for extreme_filter in self._extreme_filters.values())
        return self._substreams.size_bytes + self._counts.size_bytes + extremes + self._table.size_bytes

    @property
    def is_crowded(self) -> bool:
        """Are most of its keys such as have no rows any more, or never had? Numbers are not given twice."""
        return self.keys > max(_FEW_KEYS, 4 * self._substreams.keys_with_rows)

    @property
    def is_indexed(self) -> bool:
        return self._index is not None

    def serves(self, lookup: Lookup) -> bool:
        """Was it made for all that is needed?"""
        bound = lookup.bound
        if bound is not None and bound.function in _FILTERED and (bound.function, bound.args) not in self.filtered:
            return False
        if lookup.needs_numbers and not self.is_indexed:
            return False
        return lookup.must_look_through or self.needs.issuperset(lookup.needs)

    def update(self, rows: SettledRows, first: int) -> None:
        """Rows in stream order, later than all before; ``first`` is the number of the first of them."""
        numbers = np.arange(first, first + len(rows))
        if self._signature.where is not None:
            keep = selects(self._signature.where, rows.columns, len(rows), Faults())
            if not keep.all():
                rows, numbers = rows.filtered(keep), numbers[keep]
        if not len(rows):
            return
        times = rows.times
        number = self._table.numbers(self._key_columns(rows), len(rows))
        arrivals = self._substreams.add(number, times, len(self._table))
        arguments: dict[Expr, pa.Array] = {}
        for need in self.needs:
            args = [self._argument(arguments, expr, rows) for expr in need.args]
            self._add(need, arrivals, args)
        if self._index is not None:
            self._index.update(arrivals, numbers)
        self._counts.update(arrivals)
        for filtered_args, sum_filter in self._sum_filters.items():
            values = self._argument(arguments, filtered_args[0], rows)
            sum_filter.update(self._substreams, arrivals, _numbers(values))
        for (function, extreme_args), extreme_filter in self._extreme_filters.items():
            values = self._argument(arguments, extreme_args[0], rows)
            valid = validity(values)
            ranks = rank(values).keys
            some = slice(None) if valid is None else valid
            extreme_filter.update(number[some], times[some], (ranks if function == "MAX" else ~ranks)[some])

    def forget(self, horizon: Instant, *, give_back: bool = False) -> None:
        self._substreams.forget(horizon, give_back=give_back)
        for extreme_filter in self._extreme_filters.values():
            extreme_filter.forget(horizon)

    def numbers(self, columns: list[pa.Array], length: int, words: list[Words] | None = None) -> Ints:
        """The numbers of keys that are asked for, in canonical columns; −1 for one that never came."""
        return self._table.find(columns, length, words) if self.keys else np.full(length, -1, np.int64)

    def numbers_of(self, lookup: Lookup) -> Ints:
        """The same for keys that a statement names; of a statement that comes again they are known."""
        keys, known = self._asked.get(lookup.text, (-1, _NONE))
        if keys in (len(self._table), _ALL_KNOWN):
            return known
        known = self.numbers(lookup.asked_columns, len(lookup.asked or ()))
        if len(known) <= _FEW_ASKED:
            if len(self._asked) >= _MOST_ASKED:
                self._asked.clear()
            self._asked[lookup.text] = _ALL_KNOWN if (known >= 0).all() else len(self._table), known
        return known

    def active(self, rear: Instant) -> Ints:
        """The keys that have rows after ``rear``."""
        return self._substreams.active(rear)

    def candidates(self, bound: Bound, extent: WindowExtent, spread: int) -> Ints:
        """The keys that may meet a bound: by its filter, or all that have rows where that cannot tell.

        Where the rows of a key are spread over several partitions, a count or a sum is at least the bound over all only
        if it is at least its share in one of them.
        """
        rear = extent.rear
        found: Ints | None = None
        match bound.function:
            case "COUNT":
                least = math.floor(bound.value) + 1 if bound.strict else math.ceil(bound.value)
                found = self._counts.lookup(-(-least // spread), rear) if least >= 1 else None
            case "SUM":
                found = self._sum_filters[bound.args].lookup(self._substreams, bound.value / spread, rear)
            case "MAX" | "MIN":
                found = self._extreme_filters[bound.function, bound.args].lookup(rear, extent.front, _below(bound))
        return self.active(rear) if found is None else found

    def spans(self, number: Ints, extent: WindowExtent, rears: Ints | None = None) -> Intervals:
        """The rows of these keys in a stretch; each from a rear of its own on, if they are given."""
        if extent.each is not None:
            return self._substreams.last_up_to(number, extent.front, extent.each, extent.lag)
        if extent.first is not None and self._index is not None:
            return self._index.between(self._substreams.rings(number), number, extent.first, extent.end)
        return self._substreams.up_to(
            number, np.full(len(number), extent.rear) if rears is None else rears, extent.front
        )

    def count(self, total: Total, needs: Sequence[Need], number: int, extent: WindowExtent) -> None:
        """Add what the structures give for one key; all needs are sums."""
        if number < 0:
            return
        if extent.first is None or self._index is None:
            left, right, rows = self._substreams.span_of(number, extent.rear, extent.front)
        else:
            left, right, rows = self._substreams.span_of(number, extent.first - 1, extent.end - 1, self._index.numbers)
        total.rows += rows
        for sums, need in zip(total.sums, needs, strict=True):
            for column, value in self._sums[need].between(left, right).items():
                sums[column] = sums.get(column, 0) + value

    def tally_of(self, needs: Sequence[Need], number: Ints, extent: WindowExtent, rears: Ints | None = None) -> Tally:
        """What the structures give for keys, of which some may never have come."""
        known = number >= 0
        if known.all():
            return self.tally(needs, self.spans(number, extent, rears))
        some = self.spans(number[known], extent, None if rears is None else rears[known])
        return self.tally(needs, some).placed(np.flatnonzero(known), len(number), needs)

    def tally(self, needs: Sequence[Need], intervals: Intervals) -> Tally:
        """What the structures give for intervals."""
        sums = [self._sums[need].lookup(intervals) for need in needs]
        best = [self._best_of(need, intervals) for need in needs]
        return Tally(intervals.right - intervals.left, sums, best)

    def _best_of(self, need: Need, intervals: Intervals) -> Ints | None:
        best = self._best.get(need)
        return None if best is None else best.lookup(self._substreams, intervals, has_room=self.has_room)

    def describe(self, lookup: Lookup) -> str:
        """What it has for a lookup, and why that."""
        chosen = [f"; {need.family} by {self._best[need].describe()}" for need in lookup.needs if need in self._best]
        bound = lookup.bound
        if bound is not None and bound.function == "COUNT":
            chosen.append(f"; CI-COUNT with {self._counts.levels.describe()}")
        elif bound is not None and bound.function == "SUM":
            of = self._sum_filters[bound.args]
            chosen.append(
                f"; CI-SUM with {of.levels.describe()}"
                if of.is_usable
                else "; no CI-SUM: a value is negative or too large"
            )
        return f"structures over {self.keys} keys{''.join(chosen)}"

    def rows(self, intervals: Intervals) -> Ints:
        """The numbers of the rows of all intervals, in order."""
        if self._index is None:
            raise ValueError("this index does not know its rows")
        return self._index.lookup(intervals)

    def key_columns(self, number: Ints) -> list[pa.Array]:
        if not self._signature.keys:
            return []
        if self.keys > _FEW_KEYS:
            return self._table.columns(number)
        at = pa.array(
            number
        )  # to lay the few keys that are new behind the others costs less than to look in many places
        return [column.take(at) for column in self._table.all_columns()]

    def _key_columns(self, rows: SettledRows) -> list[pa.Array]:
        keys = (evaluate(key, rows.columns, len(rows), Faults()) for key in self._signature.keys)
        return [canonical_column(key) for key in keys]

    def _argument(self, known: dict[Expr, pa.Array], expr: Expr, rows: SettledRows) -> pa.Array:
        if expr not in known:
            known[expr] = evaluate(expr, rows.columns, len(rows), Faults())
        return known[expr]

    def _add(self, need: Need, arrivals: Arrivals, args: list[pa.Array]) -> None:
        if need.family not in EXTREMES:
            self._sums[need].update(arrivals, columns_of(need.family, args))
            return
        self._sums[need].update(arrivals, columns_of("count", args))
        best, ranks = self._best[need], rank(args[0])
        values = ranks.keys if ranks.valid is None else np.where(ranks.valid, ranks.keys, best.nothing)
        best.update(self._substreams, arrivals, values)


def _numbers(values: pa.Array) -> np.ndarray:
    """0 for a NULL."""
    view = float64_view(values) if pa.types.is_floating(values.type) else int64_view(values)
    valid = validity(values)
    return view if valid is None else np.where(valid, view, view.dtype.type(0))


def _below(bound: Bound) -> int:
    """The greatest rank that does not meet a bound on MAX; for MIN of ranks that are turned round."""
    is_max = bound.function == "MAX"
    if bound.args[0].type is Type.DOUBLE:
        edge = int(order_keys(np.array([bound.value], np.float64))[0])
        edge = edge if is_max else ~edge
        return edge if bound.strict else edge - 1
    if is_max:
        return math.floor(bound.value) if bound.strict else math.ceil(bound.value) - 1
    return ~math.ceil(bound.value) if bound.strict else ~(math.floor(bound.value) + 1)
