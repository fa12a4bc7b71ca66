"""What one partition contributes to an answer at T: partial aggregates by group, from an index or from the rows.

    at T     partition 0   keys │ partials ─┐
             partition 1   keys │ partials ─┼─▶ ``answer``: combined, lowered, HAVING, projected, in order
             partition 2   keys │ partials ─┘

A filter (HAVING with a bound) takes two steps where there are several partitions: each names the keys that may meet
it; then all give the partials of all keys that any has named, so that HAVING is decided by exact totals at T.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.errors import StairwiseError
from stairwise.expressions.evaluate import selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.lookups.partition_history import PartitionHistory
from stairwise.lookups.signature_index import SignatureIndex
from stairwise.lookups.statement import Lookup
from stairwise.lookups.tally import Tally, Total, added
from stairwise.operators.preparation import computed
from stairwise.reports.cells import canonical_batch
from stairwise.schema import DAWN, DUSK, Instant
from stairwise.state.word_table import short_words
from stairwise.windows.spec import RowsWindow

Span = tuple[Instant, Instant]
"""The rear and the front of a window."""


class OutOfReachError(StairwiseError):
    """A window reaches back to rows that are no longer kept."""

    def __init__(self, stream: str, rear: Instant, horizon: Instant) -> None:
        super().__init__(
            f"the window reaches back to {rear}, and rows of {stream} are kept from {horizon + 1} on",
            hint=f"ask for a shorter window, or keep more from now on: ALTER STREAM {stream} SET RETAIN ...",
        )


def candidates(history: PartitionHistory, lookup: Lookup, at: Instant) -> pa.RecordBatch | None:
    """The keys that may meet the lookup's bound over all partitions; None where only a scan could tell."""
    rear, front = reachable(history, lookup, at)
    if lookup.bound is None or lookup.must_look_through:
        return None
    index = history.index(lookup, rear, front)
    if index is None:
        return None
    number = index.candidates(lookup.bound, rear, front, lookup.stream.partitions)
    return pa.RecordBatch.from_arrays(index.key_columns(number), names=_key_names(lookup))


def part(
    history: PartitionHistory, lookup: Lookup, at: Instant, keys: pa.RecordBatch | None = None, last: int | None = None
) -> pa.RecordBatch:
    """What the partition contributes; of these keys alone if they are given. ``last``: rows of a ROWS window."""
    if isinstance(lookup.window, RowsWindow):
        return _by_rows(history, lookup, at, last if last is not None else lookup.window.rows)
    rear, front = reachable(history, lookup, at)
    index = history.index(lookup, rear, front)
    if index is None:
        return _looked_through(lookup, *history.span(rear, front))
    number = _numbers(index, lookup, rear, front, keys)
    if lookup.must_look_through:
        numbers = index.rows(index.spans(number, np.full(len(number), rear), front))
        return _looked_through(lookup, *history.rows_at(numbers))
    tally = _tally_of(index, lookup, number, rear, front)
    columns = tally.partials(lookup.needs)
    if lookup.select.keys:
        columns = _with_rows([*index.key_columns(number), *columns], tally)
    return pa.RecordBatch.from_arrays(columns, schema=lookup.part_schema)


def asked_part(histories: Sequence[PartitionHistory], lookup: Lookup, at: Instant) -> pa.RecordBatch | None:
    """What several partitions contribute together where a statement names its keys; None if one has no index."""
    if lookup.asked is None or lookup.must_look_through or isinstance(lookup.window, RowsWindow):
        return None
    span = lookup.span(at)
    indexes = _indexes(histories, lookup, span)
    if indexes is None:
        return None
    if len(lookup.asked) == 1 and lookup.needs_sums_alone:
        tally = _total(indexes, lookup, span).tally()
    else:
        tally = added([_tally_of(index, lookup, index.numbers_of(lookup), *span) for index in indexes], lookup.needs)
    columns = tally.partials(lookup.needs)
    if lookup.select.keys:
        columns = _with_rows([*lookup.asked_columns, *columns], tally)
    return pa.RecordBatch.from_arrays(columns, schema=lookup.part_schema)


def asked_total(histories: Sequence[PartitionHistory], lookup: Lookup, at: Instant) -> Total | None:
    """What several partitions contribute to a lookup that is plain; None if one has no index."""
    span = lookup.span(at)
    indexes = _indexes(histories, lookup, span)
    return None if indexes is None else _total(indexes, lookup, span)


def _indexes(histories: Sequence[PartitionHistory], lookup: Lookup, span: Span) -> list[SignatureIndex] | None:
    """The indexes of all partitions. Each is asked for one, so that all come to be made."""
    for history in histories:
        _check_reach(history, lookup, span[0])
    indexes = [history.index(lookup, *span) for history in histories]
    found = [index for index in indexes if index is not None]
    return found if len(found) == len(histories) else None


def _total(indexes: Sequence[SignatureIndex], lookup: Lookup, span: Span) -> Total:
    total = Total(len(lookup.needs))
    for index in indexes:
        index.count(total, lookup.needs, int(index.numbers_of(lookup)[0]), *span)
    return total


def _tally_of(index: SignatureIndex, lookup: Lookup, number: Ints, rear: Instant, front: Instant) -> Tally:
    return index.tally(lookup.needs, index.spans(number, np.full(len(number), rear), front))


def _with_rows(columns: list[pa.Array], tally: Tally) -> list[pa.Array]:
    """A group without rows vanishes."""
    if tally.rows.all():
        return columns
    some = pa.array(np.flatnonzero(tally.rows))
    return [column.take(some) for column in columns]


def aligned(
    histories: Sequence[PartitionHistory], lookup: Lookup, at: Instant, keys: pa.RecordBatch, ranges: Ints | None
) -> Tally:
    """For keys that are asked one by one, in their order; each over a range of its own if there are any."""
    if lookup.must_look_through:
        raise StairwiseError(
            "keys can be asked one by one for COUNT, SUM, AVG, VARIANCE, STDDEV, and for MIN and MAX of numbers",
            hint="ask for other aggregates in a lookup of their own",
        )
    rear, front = lookup.span(at)
    rears = np.full(keys.num_rows, rear) if ranges is None else front - ranges
    earliest = int(rears.min(initial=front))
    columns = canonical_batch(keys).columns
    words = short_words(columns)
    tallies = []
    for history in histories:
        _check_reach(history, lookup, earliest)
        index = history.index(lookup, DAWN, DUSK, at_once=True)
        assert index is not None, "it has all rows to be made of, and needs that can be kept"
        number = index.numbers(columns, keys.num_rows, words)
        tallies.append(index.tally(lookup.needs, index.spans(number, rears, front)))
    return added(tallies, lookup.needs)


def reachable(history: PartitionHistory, lookup: Lookup, at: Instant) -> Span:
    """The window at T, if all its rows are kept."""
    span = lookup.span(at)
    _check_reach(history, lookup, span[0])
    return span


def _check_reach(history: PartitionHistory, lookup: Lookup, rear: Instant) -> None:
    if rear < history.horizon and history.horizon > DAWN:
        raise OutOfReachError(lookup.stream.name, rear, history.horizon)


def _numbers(index: SignatureIndex, lookup: Lookup, rear: Instant, front: Instant, keys: pa.RecordBatch | None) -> Ints:
    """The keys whose partials are wanted, by number."""
    if keys is not None:
        return index.numbers(canonical_batch(keys).columns, keys.num_rows)
    if lookup.asked is not None:
        return index.numbers_of(lookup)
    if lookup.bound is not None and lookup.stream.partitions == 1:
        return index.candidates(lookup.bound, rear, front, 1)
    if not lookup.signature.keys:
        return np.zeros(min(1, index.keys), np.int64)
    return index.active(rear)


def _by_rows(history: PartitionHistory, lookup: Lookup, at: Instant, count: int) -> pa.RecordBatch:
    rows, places = history.last_rows(at, count)
    if rows.num_rows < count and history.horizon > DAWN:
        raise OutOfReachError(lookup.stream.name, DAWN, history.horizon)
    return _looked_through(lookup, rows, places)


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


def _key_names(lookup: Lookup) -> Sequence[str]:
    return [f"k{i}" for i in range(len(lookup.signature.keys))]
