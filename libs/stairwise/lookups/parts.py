"""What one partition contributes to an answer at T: partial aggregates by group, from a shelf or from the rows.

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
from stairwise.lookups.past import Past
from stairwise.lookups.shelf import Shelf
from stairwise.lookups.statement import Lookup
from stairwise.lookups.tally import Tally, Total, added
from stairwise.operators.cells import canonical_batch
from stairwise.operators.preparation import computed
from stairwise.operators.words import short_words
from stairwise.schema import DAWN, DUSK, Instant
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


def candidates(past: Past, lookup: Lookup, at: Instant) -> pa.RecordBatch | None:
    """The keys that may meet the lookup's bound over all partitions; None where only a scan could tell."""
    rear, front = reachable(past, lookup, at)
    if lookup.bound is None or lookup.must_look_through:
        return None
    shelf = past.shelf(lookup, rear, front)
    if shelf is None:
        return None
    number = shelf.candidates(lookup.bound, rear, front, lookup.stream.partitions)
    return pa.RecordBatch.from_arrays(shelf.key_columns(number), names=_key_names(lookup))


def part(
    past: Past, lookup: Lookup, at: Instant, keys: pa.RecordBatch | None = None, last: int | None = None
) -> pa.RecordBatch:
    """What the partition contributes; of these keys alone if they are given. ``last``: rows of a ROWS window."""
    if isinstance(lookup.window, RowsWindow):
        return _by_rows(past, lookup, at, last if last is not None else lookup.window.rows)
    rear, front = reachable(past, lookup, at)
    shelf = past.shelf(lookup, rear, front)
    if shelf is None:
        return _looked_through(lookup, *past.span(rear, front))
    number = _numbers(shelf, lookup, rear, front, keys)
    if lookup.must_look_through:
        numbers = shelf.rows(shelf.spans(number, np.full(len(number), rear), front))
        return _looked_through(lookup, *past.rows_at(numbers))
    tally = _tally_of(shelf, lookup, number, rear, front)
    columns = tally.partials(lookup.needs)
    if lookup.select.keys:
        columns = _with_rows([*shelf.key_columns(number), *columns], tally)
    return pa.RecordBatch.from_arrays(columns, schema=lookup.part_schema)


def asked_part(pasts: Sequence[Past], lookup: Lookup, at: Instant) -> pa.RecordBatch | None:
    """What several partitions contribute together where a statement names its keys; None if one has no shelf."""
    if lookup.asked is None or lookup.must_look_through or isinstance(lookup.window, RowsWindow):
        return None
    span = lookup.span(at)
    shelves = _shelves(pasts, lookup, span)
    if shelves is None:
        return None
    if len(lookup.asked) == 1 and lookup.needs_sums_alone:
        tally = _total(shelves, lookup, span).tally()
    else:
        tally = added([_tally_of(shelf, lookup, shelf.numbers_of(lookup), *span) for shelf in shelves], lookup.needs)
    columns = tally.partials(lookup.needs)
    if lookup.select.keys:
        columns = _with_rows([*lookup.asked_columns, *columns], tally)
    return pa.RecordBatch.from_arrays(columns, schema=lookup.part_schema)


def asked_total(pasts: Sequence[Past], lookup: Lookup, at: Instant) -> Total | None:
    """What several partitions contribute to a lookup that is plain; None if one has no shelf."""
    span = lookup.span(at)
    shelves = _shelves(pasts, lookup, span)
    return None if shelves is None else _total(shelves, lookup, span)


def _shelves(pasts: Sequence[Past], lookup: Lookup, span: Span) -> list[Shelf] | None:
    """The shelves of all partitions. Each is asked for one, so that all come to be made."""
    for past in pasts:
        _check_reach(past, lookup, span[0])
    shelves = [past.shelf(lookup, *span) for past in pasts]
    found = [shelf for shelf in shelves if shelf is not None]
    return found if len(found) == len(pasts) else None


def _total(shelves: Sequence[Shelf], lookup: Lookup, span: Span) -> Total:
    total = Total(len(lookup.needs))
    for shelf in shelves:
        shelf.count(total, lookup.needs, int(shelf.numbers_of(lookup)[0]), *span)
    return total


def _tally_of(shelf: Shelf, lookup: Lookup, number: Ints, rear: Instant, front: Instant) -> Tally:
    return shelf.tally(lookup.needs, shelf.spans(number, np.full(len(number), rear), front))


def _with_rows(columns: list[pa.Array], tally: Tally) -> list[pa.Array]:
    """A group without rows vanishes."""
    if tally.rows.all():
        return columns
    some = pa.array(np.flatnonzero(tally.rows))
    return [column.take(some) for column in columns]


def aligned(pasts: Sequence[Past], lookup: Lookup, at: Instant, keys: pa.RecordBatch, ranges: Ints | None) -> Tally:
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
    for past in pasts:
        _check_reach(past, lookup, earliest)
        shelf = past.shelf(lookup, DAWN, DUSK, at_once=True)
        assert shelf is not None, "it has all rows to be made of, and needs that can be kept"
        number = shelf.numbers(columns, keys.num_rows, words)
        tallies.append(shelf.tally(lookup.needs, shelf.spans(number, rears, front)))
    return added(tallies, lookup.needs)


def reachable(past: Past, lookup: Lookup, at: Instant) -> Span:
    """The window at T, if all its rows are kept."""
    span = lookup.span(at)
    _check_reach(past, lookup, span[0])
    return span


def _check_reach(past: Past, lookup: Lookup, rear: Instant) -> None:
    if rear < past.horizon and past.horizon > DAWN:
        raise OutOfReachError(lookup.stream.name, rear, past.horizon)


def _numbers(shelf: Shelf, lookup: Lookup, rear: Instant, front: Instant, keys: pa.RecordBatch | None) -> Ints:
    """The keys whose partials are wanted, by number."""
    if keys is not None:
        return shelf.numbers(canonical_batch(keys).columns, keys.num_rows)
    if lookup.asked is not None:
        return shelf.numbers_of(lookup)
    if lookup.bound is not None and lookup.stream.partitions == 1:
        return shelf.candidates(lookup.bound, rear, front, 1)
    if not lookup.signature.keys:
        return np.zeros(min(1, shelf.keys), np.int64)
    return shelf.active(rear)


def _by_rows(past: Past, lookup: Lookup, at: Instant, count: int) -> pa.RecordBatch:
    rows, places = past.last_rows(at, count)
    if rows.num_rows < count and past.horizon > DAWN:
        raise OutOfReachError(lookup.stream.name, DAWN, past.horizon)
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
    partials = grouping.partials.lift(kept, places, codes, len(groups))
    return pa.RecordBatch.from_arrays([*group_keys, *partials], schema=lookup.part_schema)


def _key_names(lookup: Lookup) -> Sequence[str]:
    return [f"k{i}" for i in range(len(lookup.signature.keys))]
