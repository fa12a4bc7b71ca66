"""Items that recur: those that come back in every step of a multi-granular window, by bitmaps and by counts.

answers     of nested windows, finest first, the items that each of them has more often than the one before, with
            their counts over the widest
class       holistic
cost        O(n log n) for n entries of items in all windows
space       a bitmap and a count for each item
order       none
source      seed 003 section IV.C: a bitmap for each item with a bit for each level, and counts instead of bits for
            statistics

    windows         (τ−4, τ]   (τ−8, τ]   (τ−16, τ]        bits    recurs
    a   counted         2          3           5           1 1 1   yes, 5 times
    b   counted         1          1           4           1 0 1   no: nothing in (τ−8, τ−4]
    c   counted                    2           2           0 1 0   no

The windows are nested, so a count that grows says that the item occurs in the step between them: counts give the
bits, and no step has to be kept by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, ragged
from stairwise.aggregates.items import ItemCounts
from stairwise.aggregates.ranks import rank
from stairwise.expressions.views import Ints, from_numpy, int64_view


def recurring(algebra: ItemCounts, nested: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The partial of the recurring items. ``nested`` are partials over the same groups, up to 63 of them."""
    groups = nested[0].num_rows
    owner, item, count, window = _entries(nested)
    ranks = rank(item)
    order = np.lexsort((window, ranks.keys, owner))
    keys, owner, count, window = ranks.keys[order], owner[order], count[order], window[order]
    starts = grouped.run_starts(owner, keys)
    if len(starts):
        before = np.concatenate(([0], count[:-1]))
        before[starts] = 0
        bits = np.bitwise_or.reduceat(np.where(count > before, np.int64(1) << window, 0), starts)
        last = np.append(starts[1:], len(keys)) - 1
        last = last[bits == (1 << len(nested)) - 1]
    else:
        last = starts
    children = [ranks.values(keys[last], None), from_numpy(count[last])]
    kind = algebra.state.field(0).type
    entries = pa.StructArray.from_arrays(children, fields=list(kind.value_type))
    return pa.RecordBatch.from_arrays([ragged.build_by_owner(owner[last], groups, entries, kind)], schema=algebra.state)


def _entries(nested: Sequence[pa.RecordBatch]) -> tuple[Ints, pa.Array, Ints, Ints]:
    """The group, item and count of each entry, and the window that it is of, window by window."""
    read = [ragged.read(partials.column(0)) for partials in nested]
    owner = np.concatenate([ragged.owners(offsets) for offsets, _ in read])
    item = pa.concat_arrays([entries.field(0) for _, entries in read])
    count = np.concatenate([int64_view(entries.field(1)) for _, entries in read])
    return owner, item, count, np.repeat(np.arange(len(nested)), [len(entries) for _, entries in read])
