"""An answer from several partitions, wherever they are held: what is asked of each holder, and in which order.

    1  T: the least watermark of all partitions
    2  ROWS n       ask for the times of the last n rows; how many of each partition are among the last n of all
       a filter     ask for the keys that may meet the bound
    3  ask for the parts at T, of those rows or keys
    4  put them together

Every step asks about the same T, so that it makes no difference how far each holder has read beyond it: the answer is
a true state of the window (window-serializable, seed 001 section 7.3.2), and the latest one where all is held here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from stairwise.expressions.codes import encode
from stairwise.expressions.views import Ints
from stairwise.lookups.answer import put_each, put_plainly, put_together
from stairwise.lookups.partition_history import PartitionHistory
from stairwise.lookups.partition_parts import aligned, asked_part, asked_total, candidates, part
from stairwise.lookups.statement import Lookup
from stairwise.schema import Instant
from stairwise.state.pages import concat
from stairwise.windows.spec import RowsWindow


def last_times(histories: Mapping[int, PartitionHistory], at: Instant, count: int) -> dict[int, Ints]:
    """Of each partition, the times of its last rows."""
    return {number: history.last_times(at, count) for number, history in histories.items()}


def among_the_last(times: Mapping[int, Ints], count: int) -> dict[int, int]:
    """How many rows of each partition are among the last ``count`` of all, in the order of the stream."""
    numbers = sorted(times)
    every = np.concatenate([times[number] for number in numbers])
    partition = np.repeat(numbers, [len(times[number]) for number in numbers])
    last = partition[np.lexsort([partition, every])[-count:]]
    return {number: int(np.count_nonzero(last == number)) for number in numbers}


def named_keys(named: Sequence[pa.RecordBatch | None]) -> pa.RecordBatch | None:
    """Each key that any partition has named, once; None where one of them could not tell."""
    found = [batch for batch in named if batch is not None]
    if len(found) < len(named):
        return None
    every = concat(found)
    if len(found) == 1 or not every.num_rows:
        return every
    _, first = encode(every.columns)
    return every.take(pa.array(first))


def look_up(lookup: Lookup, at: Instant, histories: Mapping[int, PartitionHistory]) -> pa.RecordBatch:
    """The answer at T where all partitions of the stream are held here."""
    plainly = look_up_plainly(lookup, at, list(histories.values()))
    return put_together(lookup, at, parts_at(lookup, at, histories)) if plainly is None else plainly


def look_up_plainly(lookup: Lookup, at: Instant, histories: Sequence[PartitionHistory]) -> pa.RecordBatch | None:
    """The same for what is asked most, sums of one key; None where it is not that, or there is no index yet."""
    total = asked_total(histories, lookup, at) if lookup.is_plain else None
    if total is None or (lookup.select.keys and not total.rows):  # a group without rows vanishes
        return None
    return put_plainly(lookup, total)


def look_up_each(
    lookup: Lookup, at: Instant, histories: Sequence[PartitionHistory], keys: pa.RecordBatch, ranges: Ints | None
) -> pa.RecordBatch:
    """The answers at T for keys that are asked one by one, where all partitions of the stream are held here."""
    return put_each(lookup, at, keys, aligned(histories, lookup, at, keys, ranges))


def parts_at(lookup: Lookup, at: Instant, histories: Mapping[int, PartitionHistory]) -> list[pa.RecordBatch]:
    """What all partitions contribute at T."""
    together = asked_part(list(histories.values()), lookup, at)
    if together is not None:
        return [together]
    counts: dict[int, int] = {}
    keys: pa.RecordBatch | None = None
    if isinstance(lookup.window, RowsWindow):
        counts = among_the_last(last_times(histories, at, lookup.window.rows), lookup.window.rows)
    elif lookup.bound is not None and lookup.stream.partitions > 1:
        keys = named_keys([candidates(history, lookup, at) for history in histories.values()])
    return [part(history, lookup, at, keys, counts.get(number)) for number, history in histories.items()]
