"""What one partition contributes to an answer at T: partial aggregates by group, from an index or from the rows.

    at T     partition 0   keys │ partials ─┐
             partition 1   keys │ partials ─┼─▶ ``answer``: combined, lowered, HAVING, projected, in order
             partition 2   keys │ partials ─┘

A filter (HAVING with a bound) takes two steps where the rows of a key may be in several partitions: each names the keys
that may meet it; then all give the partials of all keys that any has named, so that HAVING is decided by exact totals
at T. Where PARTITION BY has put all rows of a key into one partition, that one knows the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from stairwise.errors import StairwiseError
from stairwise.expressions.views import Ints
from stairwise.lookups.extent import WindowExtent
from stairwise.lookups.index_making import IndexMaking
from stairwise.lookups.partition_history import PartitionHistory
from stairwise.lookups.scan import Scan
from stairwise.lookups.signature_index import SignatureIndex
from stairwise.lookups.statement import Lookup
from stairwise.lookups.tally import Tally, Total, added
from stairwise.reports.cells import canonical_batch
from stairwise.schema import DAWN, Instant
from stairwise.state.word_table import short_words
from stairwise.windows.spec import PartitionedWindow

Held = tuple[PartitionHistory, WindowExtent]
"""A partition, and what a window holds of it."""


class OutOfReachError(StairwiseError):
    """A window reaches back to rows that are no longer kept."""

    def __init__(self, stream: str, extent: WindowExtent, horizon: Instant) -> None:
        reach = extent.rear if extent.first is None else f"row {extent.first} of a partition"
        if extent.each is not None:
            reach = f"the last {extent.each + extent.lag} rows of a key"
        super().__init__(
            f"the window reaches back to {reach}, and rows of {stream} are kept from {horizon + 1} on",
            hint=f"ask for a shorter window, or keep more from now on: ALTER STREAM {stream} SET RETAIN ...",
        )


class TooLargeError(StairwiseError):
    """Only an index could answer, and there is no room for it."""

    def __init__(self, stream: str) -> None:
        super().__init__(
            f"the structures that answer this do not fit into what {stream} may keep",
            hint=f"allow more: ALTER STREAM {stream} SET RETAIN ... AT MOST ...",
        )


def candidates(history: PartitionHistory, lookup: Lookup, extent: WindowExtent, spread: int) -> pa.RecordBatch | None:
    """The keys that may meet the lookup's bound over all partitions; None where only a scan could tell.

    The rows of a key are in no more than ``spread`` partitions.
    """
    _check_reach(history, lookup, extent)
    if lookup.bound is None or lookup.must_look_through:
        return None
    index = history.index(lookup, extent)
    if index is None:
        return None
    number = index.candidates(lookup.bound, extent, spread)
    return pa.RecordBatch.from_arrays(index.key_columns(number), names=_key_names(lookup))


def part(
    history: PartitionHistory, lookup: Lookup, extent: WindowExtent, spread: int, keys: pa.RecordBatch | None = None
) -> pa.RecordBatch | Scan:
    """What the partition contributes, or the scan that finds it; of these keys alone if they are given.

    Where the rows of a key are all in one partition (``spread`` is 1), that one decides alone which keys meet a bound.
    """
    _check_reach(history, lookup, extent)
    index = history.index(lookup, extent)
    if index is None and lookup.needs_index:
        raise TooLargeError(lookup.stream.name)
    if index is None:
        return history.scan(lookup, extent)
    number = _numbers(index, lookup, extent, spread, keys)
    number = number[number >= 0]
    intervals = index.spans(number, extent)
    if extent.each is not None and history.horizon > DAWN and (intervals.right - intervals.left < extent.each).any():
        raise OutOfReachError(lookup.stream.name, extent, history.horizon)  # a key had more rows, for all one knows
    if lookup.must_look_through:
        return history.scan_at(lookup, index.rows(intervals))
    if spread == 1 and lookup.bound is not None and lookup.bound.function == "COUNT":
        enough = np.flatnonzero(intervals.right - intervals.left >= lookup.bound.value)
        number, intervals = number[enough], intervals.at(enough)
    tally = index.tally(lookup.needs, intervals)
    columns = tally.partials(lookup.needs)
    if lookup.select.keys:
        columns = _with_rows([*index.key_columns(number), *columns], tally)
    return pa.RecordBatch.from_arrays(columns, schema=lookup.part_schema)


def asked_part(held: Sequence[Held], lookup: Lookup) -> pa.RecordBatch | None:
    """What several partitions contribute together where a statement names its keys; None if one has no index."""
    if lookup.asked is None or lookup.must_look_through or lookup.needs_index:
        return None
    indexes = _indexes(held, lookup)
    if indexes is None:
        return None
    if len(lookup.asked) == 1 and lookup.needs_sums_alone:
        tally = _total(indexes, lookup).tally()
    else:
        each = [index.tally_of(lookup.needs, index.numbers_of(lookup), extent) for index, extent in indexes]
        tally = added(each, lookup.needs)
    columns = tally.partials(lookup.needs)
    if lookup.select.keys:
        columns = _with_rows([*lookup.asked_columns, *columns], tally)
    return pa.RecordBatch.from_arrays(columns, schema=lookup.part_schema)


def asked_total(held: Sequence[Held], lookup: Lookup) -> Total | None:
    """What several partitions contribute to a lookup that is plain; None if one has no index."""
    indexes = _indexes(held, lookup)
    return None if indexes is None else _total(indexes, lookup)


def _indexes(held: Sequence[Held], lookup: Lookup) -> list[tuple[SignatureIndex, WindowExtent]] | None:
    """The indexes of all partitions. Each is asked for one, so that all come to be made."""
    for history, extent in held:
        _check_reach(history, lookup, extent)
    indexes = [(history.index(lookup, extent), extent) for history, extent in held]
    found = [(index, extent) for index, extent in indexes if index is not None]
    return found if len(found) == len(held) else None


def _total(indexes: Sequence[tuple[SignatureIndex, WindowExtent]], lookup: Lookup) -> Total:
    total = Total(len(lookup.needs))
    for index, extent in indexes:
        index.count(total, lookup.needs, int(index.numbers_of(lookup)[0]), extent)
    return total


def _with_rows(columns: list[pa.Array], tally: Tally) -> list[pa.Array]:
    """A group without rows vanishes."""
    if tally.rows.all():
        return columns
    some = pa.array(np.flatnonzero(tally.rows))
    return [column.take(some) for column in columns]


def unmade(held: Sequence[Held], lookup: Lookup) -> list[tuple[PartitionHistory, IndexMaking]]:
    """The indexes that must be made before keys can be asked one by one, or the last rows of each."""
    if lookup.must_look_through and not lookup.needs_index:
        raise StairwiseError(
            "keys can be asked one by one for COUNT, SUM, AVG, VARIANCE, STDDEV, and for MIN and MAX of numbers",
            hint="ask for other aggregates in a lookup of their own",
        )
    demanded = [(history, history.demand(lookup)) for history, _ in held]
    return [(history, making) for history, making in demanded if making is not None]


def check_together(lookup: Lookup, spread: int) -> None:
    """The last rows of a key can be told where all of its rows are in one partition."""
    if lookup.needs_index and spread > 1:
        columns = ", ".join(lookup.window.keys) if isinstance(lookup.window, PartitionedWindow) else ""
        raise StairwiseError(
            f"rows with the same {columns} are in several partitions of {lookup.stream.name}: none knows the last",
            hint=f"publish by key to a stream that is declared with PARTITION BY {columns}, or PARTITIONS 1",
        )


def aligned(held: Sequence[Held], lookup: Lookup, keys: pa.RecordBatch, ranges: Ints | None) -> Tally:
    """For keys that are asked one by one, in their order; each over a range of its own if there are any."""
    if lookup.needs_index:
        raise StairwiseError(
            "keys cannot be asked one by one for their last rows", hint="name them in WHERE: key IN (...)"
        )
    columns = canonical_batch(keys).columns
    words = short_words(columns)
    tallies = []
    for history, extent in held:
        rears = None if ranges is None else extent.front - ranges
        widest = extent if rears is None else replace(extent, rear=int(rears.min(initial=extent.front)))
        _check_reach(history, lookup, widest)
        index = history.index(lookup, widest)
        if index is None:
            raise TooLargeError(lookup.stream.name)
        number = index.numbers(columns, keys.num_rows, words)
        tallies.append(index.tally_of(lookup.needs, number, extent, rears))
    return added(tallies, lookup.needs)


def _check_reach(history: PartitionHistory, lookup: Lookup, extent: WindowExtent) -> None:
    if not history.reaches(extent):
        raise OutOfReachError(lookup.stream.name, extent, history.horizon)


def _numbers(
    index: SignatureIndex, lookup: Lookup, extent: WindowExtent, spread: int, keys: pa.RecordBatch | None
) -> Ints:
    """The keys whose partials are wanted, by number."""
    if keys is not None:
        return index.numbers(canonical_batch(keys).columns, keys.num_rows)
    if lookup.asked is not None:
        return index.numbers_of(lookup)
    if lookup.bound is not None and spread == 1:
        return index.candidates(lookup.bound, extent, 1)
    if not lookup.signature.keys:
        return np.zeros(min(1, index.keys), np.int64)
    return index.active(extent.rear)


def _key_names(lookup: Lookup) -> Sequence[str]:
    return [f"k{i}" for i in range(len(lookup.signature.keys))]
