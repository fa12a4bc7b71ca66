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

import pyarrow as pa

from stairwise.expressions.codes import encode
from stairwise.expressions.views import Ints
from stairwise.lookups.answer import put_each, put_plainly, put_together
from stairwise.lookups.homes import partitions_of_a_key
from stairwise.lookups.last_rows import extents
from stairwise.lookups.partition_history import PartitionHistory
from stairwise.lookups.partition_parts import (
    Held,
    aligned,
    asked_part,
    asked_total,
    candidates,
    check_together,
    part,
    unmade,
)
from stairwise.lookups.scan import Scan, finished
from stairwise.lookups.statement import Lookup
from stairwise.schema import Instant
from stairwise.state.pages import concat


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
    """The answer at T where all partitions of the stream are held here, and nobody else waits."""
    plainly = look_up_plainly(lookup, at, histories)
    return put_together(lookup, at, parts_at(lookup, at, histories)) if plainly is None else plainly


def look_up_plainly(lookup: Lookup, at: Instant, histories: Mapping[int, PartitionHistory]) -> pa.RecordBatch | None:
    """The same for what is asked most, sums of one key; None where it is not that, or there is no index yet."""
    total = asked_total(held_at(lookup, at, histories), lookup) if lookup.is_plain else None
    if total is None or (lookup.select.keys and not total.rows):  # a group without rows vanishes
        return None
    return put_plainly(lookup, total)


def look_up_each(
    lookup: Lookup, at: Instant, histories: Mapping[int, PartitionHistory], keys: pa.RecordBatch, ranges: Ints | None
) -> pa.RecordBatch:
    """The answers at T for keys that are asked one by one, where all partitions of the stream are held here."""
    held = held_at(lookup, at, histories)
    make(held, lookup)
    return put_each(lookup, at, keys, aligned(held, lookup, keys, ranges))


def make(held: Sequence[Held], lookup: Lookup) -> None:
    """Make the indexes that a lookup cannot do without."""
    for history, making in unmade(held, lookup):
        while not history.adopt(making):
            finished(history.make(making))


def parts_at(lookup: Lookup, at: Instant, histories: Mapping[int, PartitionHistory]) -> list[pa.RecordBatch]:
    """What all partitions contribute at T."""
    if lookup.needs_index:
        make(held_at(lookup, at, histories), lookup)
    parts = parts_or_scans(lookup, at, histories)
    found = [finished(one.work()) if isinstance(one, Scan) else one for one in parts]
    found = apart(lookup, spread_of(lookup, histories), found)
    for history in histories.values():
        for making in history.makings[:1]:  # so that no lookup waits for all of it
            finished(history.make(making))
            history.adopt(making)
    return found


def parts_or_scans(
    lookup: Lookup, at: Instant, histories: Mapping[int, PartitionHistory]
) -> list[pa.RecordBatch | Scan]:
    """The same with the scans still to be done; what they look through is settled."""
    held = held_at(lookup, at, histories)
    together = asked_part(held, lookup)
    if together is not None:
        return [together]
    keys: pa.RecordBatch | None = None
    spread = spread_of(lookup, histories)
    check_together(lookup, spread)
    if lookup.bound is not None and spread > 1:
        keys = named_keys([candidates(history, lookup, extent, spread) for history, extent in held])
    return [part(history, lookup, extent, spread, keys) for history, extent in held]


def spread_of(lookup: Lookup, histories: Mapping[int, PartitionHistory]) -> int:
    """Over how many partitions the rows of a key may be spread, where all are held here."""
    return partitions_of_a_key(lookup, are_tidy=all(history.is_tidy for history in histories.values()))


def apart(lookup: Lookup, spread: int, parts: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Parts that have no group in common are one part."""
    is_apart = spread == 1 and lookup.select.keys and lookup.select.keys == lookup.signature.keys
    return [concat(parts)] if is_apart and len(parts) > 1 else parts


def held_at(lookup: Lookup, at: Instant, histories: Mapping[int, PartitionHistory]) -> list[Held]:
    """The partitions, each with what the window holds of it at T."""
    return list(zip(histories.values(), extents(lookup, at, histories), strict=True))
