"""One backward walk over the slices of a signature: the partials behind every step of a stair.

    slices      ├──┤├──┤├──┤├──┤├──┤├──┤├──┤
    runs              3     │    2   │  1  │        between successive rears
    step 1                           ├─────┤        run 1
    step 2                  ├──────────────┤        run 1 + run 2
    step 3      ├──────────────────────────┤        run 1 + run 2 + run 3

    answers        the partials of all (rear, front] with one front, by key
    aggregates     sums and counts of any kind and extremes in the walk; all others are combined step by step from
                   the nodes of the tree
    update         none
    lookup         O((n + m) k) for n slices, m steps and k keys, or O(m k log n) where steps are far apart
    space          m k
    order          none
    from           seed 000 sections 2.3 and 4 (Fig. 8)

A run becomes a row of a table with a column for each key; accumulating down the table gives all steps at once, for
exact sums by adding, for extremes by comparing. Row 0 of the table is the step that holds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, limbs
from stairwise.aggregates.extremes import Extreme
from stairwise.aggregates.ranks import rank
from stairwise.aggregation.found_partials import Found
from stairwise.aggregation.partials import Kept
from stairwise.aggregation.slice_store import SliceStore
from stairwise.aggregation.slices import Slices, joined, merged, no_slices
from stairwise.aggregation.walk_tables import CLOSE, exact_words, walked_tables
from stairwise.expressions.views import Bools, Ints, decimal_words, from_numpy, from_words, int64_view

FEW_ROWS = 20_000
"""So few rows of partials are walked slice by slice in any case."""

LARGEST_TABLE = 4_000_000
"""Cells of a table, runs × keys."""


def walked(store: SliceStore, first: Ints, last: int) -> Found:
    """The partials of steps that begin with slices ``first``, which descend, and all end with slice ``last``."""
    keys = len(store.keys)
    some = first <= last
    if len(first) == 1:
        begins, run = first[some], some.astype(np.int64)
    else:
        begins = np.unique(first[some])
        run = np.where(some, len(begins) - np.searchsorted(begins, first), 0)
    if run.all():
        spans = _tables(store, int(begins[0]), last)
        if spans is not None:
            columns = walked_tables([span.columns for span in spans], store.partials.kept, keys, begins - begins[0])
            key = np.arange(keys) if len(begins) == 1 else np.tile(np.arange(keys), len(begins))
            return Found((run - 1) * keys, run * keys, key, columns, is_shared=True)
    table = _Table(len(begins) + 1, keys, _parts(store, begins, last))
    present = np.ones((table.rows, keys), bool) if store.is_global else table.present()
    found = np.flatnonzero(present)
    bounds = np.searchsorted(found, np.arange(table.rows + 1) * keys)
    columns = []
    for kept in store.partials.kept:
        whole = table.accumulated(kept)
        if len(found) == present.size:
            columns += whole
        elif len(found) == present.size - keys > 0 and found[0] == keys:  # all but row 0, which holds nothing
            columns += [column.slice(keys) for column in whole]
        else:
            index = pa.array(found)
            columns += [column.take(index) for column in whole]
    return Found(bounds[run], bounds[run + 1], found % keys, columns, is_shared=True)


def combined(store: SliceStore, first: Ints, last: Ints) -> Found:
    """The partials of any steps, each combined from its own nodes of the tree."""
    parts = [no_slices(store.partials.schema)]
    for node in store.nodes(first, last):
        for slices, run in store.layer(node.level).of_runs(node.first, node.last):
            parts.append(slices.renumbered(node.cell[run]))
    found = joined(parts)
    if store.is_global:
        columns = store.partials.combine(found.columns, found.number, len(first))
        place = np.arange(len(first))
        return Found(place, place + 1, np.zeros(len(first), np.int64), columns, is_shared=False)
    found = merged(found, store.partials, len(store.keys))
    bounds = np.searchsorted(found.number, np.arange(len(first) + 1))
    return Found(bounds[:-1], bounds[1:], found.key, found.columns, is_shared=False)


def _tables(store: SliceStore, oldest: int, last: int) -> list[Slices] | None:
    """The slices of a walk, where every key has rows in every one of them: they are tables themselves."""
    cells = (last - oldest + 1) * len(store.keys)
    if cells > LARGEST_TABLE:
        return None
    spans = store.layer(0).span(oldest, last)
    return spans if sum(len(span) for span in spans) == cells else None


def _parts(store: SliceStore, begins: Ints, last: int) -> list[_Part]:
    """The slices from the oldest of ``begins`` up to ``last``, in runs that each begin with one of them."""
    if not len(begins):
        return []
    keys = len(store.keys)
    oldest = int(begins[0])
    slices = last - oldest + 1
    if slices * keys <= LARGEST_TABLE:
        spans = store.layer(0).span(oldest, last)
        if slices <= CLOSE * len(begins) or sum(len(span) for span in spans) <= FEW_ROWS:
            run_of = len(begins) - np.searchsorted(begins, np.arange(oldest, last + 1), side="right") + 1
            return [_Part(run_of[span.number - oldest] * keys + span.key, span.columns) for span in spans]
    ends = np.append(begins[1:] - 1, last)
    parts: list[_Part] = []
    for node in store.nodes(begins, ends):
        for nodes, at in store.layer(node.level).of_runs(node.first, node.last):
            parts.append(_Part((len(begins) - node.cell[at]) * keys + nodes.key, nodes.columns))
    return parts


@dataclass(frozen=True)
class _Part:
    """Partials of slices or nodes, with the cell of the table that each row goes to."""

    cell: Ints
    columns: list[pa.Array]


@dataclass(frozen=True)
class _Table:
    """Runs by keys. Row 0 holds nothing, row 1 the newest run, the last row the oldest one."""

    rows: int
    keys: int
    parts: list[_Part]

    def present(self) -> Bools:
        """Which keys have rows in a run or in a newer one."""
        present = np.zeros((self.rows, self.keys), bool)
        for part in self.parts:
            present.reshape(-1)[part.cell] = True
        return np.logical_or.accumulate(present, axis=0)

    def accumulated(self, kept: Kept) -> list[pa.Array]:
        """One partial, each run with all newer ones, row by row."""
        if isinstance(kept.algebra, Extreme):
            return [self._extremes(kept.start, kept.algebra)]
        return [self._sums(place, field.type) for place, field in enumerate(kept.algebra.state, kept.start)]

    def _sums(self, place: int, dtype: pa.DataType) -> pa.Array:
        if pa.types.is_int64(dtype):
            return from_numpy(self._total([int64_view(part.columns[place]) for part in self.parts]))
        if pa.types.is_decimal(dtype):
            return from_words(exact_words([decimal_words(part.columns[place]) for part in self.parts], self._total))
        total = limbs.Accumulator(self.rows * self.keys)
        for part in self.parts:
            total.add_lists(part.columns[place], part.cell)
        return total.mapped(self.rows * self.keys, self._accumulated).to_lists()

    def _total(self, parts: Sequence[Ints]) -> Ints:
        """Sums of what fits in 64 bits."""
        table = np.zeros(self.rows * self.keys, np.int64)
        for part, values in zip(self.parts, parts, strict=True):
            np.add.at(table, part.cell, values)
        return self._accumulated(table)

    def _accumulated(self, sums: Ints) -> Ints:
        return np.cumsum(sums.reshape(self.rows, self.keys), axis=0).reshape(-1)

    def _extremes(self, place: int, algebra: Extreme) -> pa.Array:
        nothing = grouped.INT64_MIN if algebra.largest else grouped.INT64_MAX
        better = np.maximum if algebra.largest else np.minimum
        table = np.full((self.rows, self.keys), nothing)
        columns = [part.columns[place] for part in self.parts]
        if not columns:
            return pa.nulls(table.size, algebra.dtype)
        ranks = rank(columns[0] if len(columns) == 1 else pa.concat_arrays(columns))
        seen = np.zeros((self.rows, self.keys), bool)
        cell = np.concatenate([part.cell for part in self.parts])
        keys = ranks.keys if ranks.valid is None else np.where(ranks.valid, ranks.keys, nothing)
        better.at(table.reshape(-1), cell, keys)
        seen.reshape(-1)[cell if ranks.valid is None else cell[ranks.valid]] = True
        best = better.accumulate(table, axis=0).reshape(-1)
        return ranks.values(best, np.logical_or.accumulate(seen, axis=0).reshape(-1))
