"""A scan: the rows of a window looked through slice by slice, apart from the partition that goes on meanwhile.

    pages at T    ├──────────┼──────────┼──────────┤      they do not change, so any thread may read them
    slices        ├────┼────┼────┼────┼────┼────┼──┤      between two of them others have their turn
    parts         keys │ partials, combined as they grow

Work that comes in slices is a generator: it yields between two slices and returns what was asked for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.expressions.codes import encode
from stairwise.expressions.evaluate import selects
from stairwise.expressions.faults import Faults
from stairwise.lookups.statement import Lookup
from stairwise.operators.preparation import computed
from stairwise.state.pages import concat

SLICE = 1 << 15
"""Rows of a slice: some milliseconds."""

T = TypeVar("T")
Work: TypeAlias = Generator[None, None, T]


def finished(work: Work[T]) -> T:
    """What work comes to, done here and now."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found


@dataclass(frozen=True)
class Scan:
    """Rows that have to be looked through for a lookup, about ``rows`` of them."""

    lookup: Lookup
    rows: int
    pieces: Iterable[tuple[pa.RecordBatch, Rows]]
    """Rows and their places, no more than a slice in each; at least one, which may have no rows."""

    def work(self) -> Work[pa.RecordBatch]:
        """What the rows contribute: partials by group."""
        parts: list[pa.RecordBatch] = []
        room = SLICE
        for rows, places in self.pieces:
            parts.append(_looked_through(self.lookup, rows, places))
            if sum(part.num_rows for part in parts) > room:
                before = sum(part.nbytes for part in parts)
                parts = [folded_parts(self.lookup, parts)]
                # Sorted values, say, are no fewer afterwards: then it is not worth doing again soon.
                room = (2 if 2 * parts[0].nbytes < before else 8) * parts[0].num_rows + SLICE
            yield
        return folded_parts(self.lookup, parts)


def folded_parts(lookup: Lookup, parts: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Parts as one, with each group once."""
    rows = concat(parts)
    count = len(lookup.select.keys)
    if len(parts) == 1 and (count or rows.num_rows == 1):
        return rows
    keys, partials = rows.columns[:count], rows.columns[count:]
    combine = lookup.grouping.partials.combine
    if not keys:
        partials = combine(partials, np.zeros(rows.num_rows, np.int64), 1)
    elif rows.num_rows:
        codes, first = encode(keys)
        keys = [key.take(pa.array(first)) for key in keys]
        partials = combine(partials, codes, len(first))
    return pa.RecordBatch.from_arrays([*keys, *partials], schema=lookup.part_schema)


def _looked_through(lookup: Lookup, rows: pa.RecordBatch, places: Rows) -> pa.RecordBatch:
    """Partials straight from the rows, of all groups: HAVING leaves out what candidates would have."""
    select, faults = lookup.select, Faults()
    if select.where is not None:
        keep = selects(select.where, rows.columns, rows.num_rows, faults)
        rows = rows.filter(pa.array(keep))
        places = Rows(places.time[keep], places.partition[keep], places.sequence[keep])
    columns = computed(select, rows.columns, rows.num_rows, faults)
    kept = pa.RecordBatch.from_arrays([c for _, c in columns], names=[name for name, _ in columns]) if columns else rows
    grouping = lookup.grouping
    groups, group_keys, codes = grouping.coded(1, np.zeros(rows.num_rows, np.int64), kept)
    partials = grouping.lift(kept, places, codes, len(groups))
    return pa.RecordBatch.from_arrays([*group_keys, *partials], schema=lookup.part_schema)
