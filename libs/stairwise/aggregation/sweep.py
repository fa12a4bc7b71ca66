"""One sweep over the slices for a block of report times: the partials behind all steps of all their stairs at once.

    slices        ├──┤├──┤├──┤├──┤├──┤├──┤├──┤
    sums from     0  3  4  4  9  11 12 15 20       step (2, 6]:   15 − 4
    the oldest
    best of 2     ├──────┤├──────┤ ...             step (1, 6]:   the best of 4 that begins the step and the best
    best of 4     ├──────────────┤                                of 4 that ends it; that they overlap does no harm
                      ├──────────────┤

    answers        the partials of many (rear, front] with any fronts, by key
    aggregates     sums and counts of any kind by subtraction, extremes by overlapping powers of two; all others are
                   combined step by step from the nodes of the tree (``combined`` of ``walk``)
    update         none
    lookup         O((n + m) k) for n slices, m steps and k keys; extremes O((n log n + m) k)
    space          O((n + m) k)
    order          none
    from           running intervals (R-INT): seed 004 section 3.2, here over exact numbers, which subtract without loss

A walk gives all steps of one front and has a price of its own; a stream that is read from a file passes thousands of
report times in one go, each with few steps. The tables have a row for each slice and a column for each key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stairwise.aggregates import grouped, limbs
from stairwise.aggregates.extremes import Extreme
from stairwise.aggregates.ranks import rank
from stairwise.aggregation.found_partials import Found
from stairwise.aggregation.partials import Kept
from stairwise.aggregation.slice_store import SliceStore
from stairwise.aggregation.slices import Slices, joined, no_slices
from stairwise.aggregation.walk_tables import exact_words
from stairwise.expressions.views import Bools, Ints, decimal_words, from_numpy, from_words, int64_view


def swept(store: SliceStore, first: Ints, last: Ints) -> Found:
    """The partials of steps that begin with slices ``first`` and end with slices ``last``."""
    some = first <= last
    oldest = int(first[some].min(initial=np.iinfo(np.int64).max))
    newest = int(last[some].max(initial=-1))
    slices = joined([no_slices(store.partials.schema), *store.layer(0).span(oldest, newest)])
    begin, end = np.where(some, first - oldest, 0), np.where(some, last + 1 - oldest, 0)
    table = _Table(slices, max(0, newest - oldest + 1), len(store.keys), begin, end, oldest)
    present = None if store.is_global else table.present()
    columns: list[pa.Array] = []
    for kept in store.partials.kept:
        columns += table.answers(kept, present)
    if present is None:
        bounds = np.arange(len(first) + 1) * table.keys
        key = np.tile(np.arange(table.keys), len(first))
    else:
        bounds = np.searchsorted(present, np.arange(len(first) + 1) * table.keys)
        key = present % table.keys
    return Found(bounds[:-1], bounds[1:], key, columns, is_shared=False)


@dataclass(frozen=True)
class _Table:
    """Slices by keys, and the steps over them: step i takes rows ``begin[i]`` up to, not including, ``end[i]``."""

    slices: Slices
    rows: int
    keys: int
    begin: Ints
    end: Ints
    oldest: int

    @property
    def place(self) -> Ints:
        """The cell of each partial."""
        return (self.slices.number - self.oldest) * self.keys + self.slices.key

    def present(self) -> Ints | None:
        """The cells, steps by keys, that have rows; None where all have."""
        if len(self.slices) == self.rows * self.keys and bool((self.begin < self.end).all()):
            return None
        found = self._between(self._summed(np.ones(len(self.slices), np.int64)), None)
        return np.flatnonzero(found) if not found.all() else None

    def answers(self, kept: Kept, cells: Ints | None) -> list[pa.Array]:
        """The columns of one partial for some cells of all steps (None: for all)."""
        if isinstance(kept.algebra, Extreme):
            return [self._extremes(self.slices.columns[kept.start], kept.algebra, cells)]
        fields = enumerate(kept.algebra.state, kept.start)
        return [self._sums(self.slices.columns[place], field.type, cells) for place, field in fields]

    def _sums(self, column: pa.Array, dtype: pa.DataType, cells: Ints | None) -> pa.Array:
        if pa.types.is_int64(dtype):
            return from_numpy(self._between(self._summed(int64_view(column)), cells))
        if pa.types.is_decimal(dtype):
            return from_words(
                exact_words([decimal_words(column)], lambda parts: self._between(self._summed(parts[0]), cells))
            )
        digits = limbs.Accumulator(self.rows * self.keys)
        digits.add_lists(column, self.place)
        steps = len(self.begin) * self.keys if cells is None else len(cells)
        found = digits.mapped(steps, lambda values: self._between(self._accumulated(values), cells))
        return found.to_lists()

    def _summed(self, values: Ints) -> Ints:
        """Row i holds the sums of all slices below i."""
        table = np.zeros(self.rows * self.keys, np.int64)
        table[self.place] = values
        return self._accumulated(table)

    def _accumulated(self, values: Ints) -> Ints:
        table = np.zeros((self.rows + 1, self.keys), np.int64)
        np.cumsum(values.reshape(self.rows, self.keys), axis=0, out=table[1:])
        return table

    def _between(self, table: Ints, cells: Ints | None) -> Ints:
        """What each step adds to the sums. Numbers that have wrapped round do so again: the difference is right."""
        if cells is None:
            return (table[self.end] - table[self.begin]).reshape(-1)
        step, key = np.divmod(cells, self.keys)
        return table[self.end[step], key] - table[self.begin[step], key]

    def _extremes(self, column: pa.Array, algebra: Extreme, cells: Ints | None) -> pa.Array:
        nothing = grouped.INT64_MIN if algebra.largest else grouped.INT64_MAX
        ranks = rank(column)
        table = np.full(self.rows * self.keys, nothing)
        table[self.place] = ranks.keys if ranks.valid is None else np.where(ranks.valid, ranks.keys, nothing)
        best = self._best(table.reshape(self.rows, self.keys), np.maximum if algebra.largest else np.minimum, nothing)
        best = best.reshape(-1) if cells is None else best.reshape(-1)[cells]
        return ranks.values(best, self._seen(ranks.valid, cells))

    def _seen(self, valid: Bools | None, cells: Ints | None) -> Bools | None:
        """Which cells have a value; None where all have."""
        if valid is None and (cells is not None or len(self.slices) == self.rows * self.keys):
            return None if cells is not None else np.repeat(self.begin < self.end, self.keys)
        values = np.ones(len(self.slices), np.int64) if valid is None else valid.astype(np.int64)
        return self._between(self._summed(values), cells) > 0

    def _best(self, table: npt.NDArray[np.int64], better: np.ufunc, nothing: np.int64) -> Ints:
        """The best of each step: of the widest power of two that begins it and of the one that ends it."""
        best = np.full((len(self.begin), self.keys), nothing)
        width = self.end - self.begin
        length = 1
        while True:
            mine = np.flatnonzero((width >= length) & (width < 2 * length))
            if len(mine):
                best[mine] = better(table[self.begin[mine]], table[self.end[mine] - length])
            if 2 * length > int(width.max(initial=0)):
                return best
            table = better(table[:-length], table[length:])
            length *= 2
