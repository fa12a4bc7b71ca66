"""Which structure answers a lookup, and why: what EXPLAIN of a lookup says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stairwise.lookups.partition_history import PartitionHistory
from stairwise.lookups.statement import Lookup, Need
from stairwise.schema import DAWN, Instant
from stairwise.windows.spec import PartitionedWindow, RowsWindow

_STRUCTURES = {
    "count": "R-INT, running intervals: it can be subtracted, so any window is the difference of two",
    "integer sum": "R-INT, running intervals: it can be subtracted, so any window is the difference of two",
    "double sum": "R-INT over exact limbs: it can be subtracted without an error",
    "moments": "R-INT over exact limbs of the values and their squares",
    "max": "B-INT, base intervals, or L-INT, landmark intervals, as it pays: it can be combined and not subtracted",
    "min": "B-INT, base intervals, or L-INT, landmark intervals, as it pays: it can be combined and not subtracted",
}
_FILTERS = {
    "COUNT": "CI-COUNT, then HAVING over exact counts",
    "SUM": "CI-SUM while no value is negative, else a scan of the keys; then HAVING over exact sums",
    "MAX": "base intervals of all keys by value; then HAVING",
    "MIN": "base intervals of all keys by value; then HAVING",
}


def explained(lookup: Lookup, at: Instant, held: Sequence[PartitionHistory]) -> str:
    """How a lookup was answered at T, as seen from the partitions that are held here."""
    return "\n".join(_lines(lookup, at, held))


def _lines(lookup: Lookup, at: Instant, held: Sequence[PartitionHistory]) -> Iterator[str]:
    if isinstance(lookup.window, RowsWindow):
        yield f"window      the last {lookup.window.rows} rows at {at}{_behind(lookup)}"
    elif isinstance(lookup.window, PartitionedWindow):
        by = ", ".join(lookup.window.keys)
        yield f"window      the last {lookup.window.rows} rows of each {by} at {at}{_behind(lookup)}"
    else:
        rear, front = lookup.span(at)
        yield f"window      ({'the beginning' if rear == DAWN else rear}, {front}] at {at}"
    yield f"keys        {_keys(lookup)}"
    for need in lookup.needs:
        yield f"aggregate   {need.family}: {_structure(lookup, need)}"
    if lookup.bound is not None:
        yield f"filter      {lookup.bound.function}: {_FILTERS[lookup.bound.function]}"
    for history in held:
        yield f"partition   {history.describe(lookup)}"


def _behind(lookup: Lookup) -> str:
    return f", behind the {lookup.lag} newest" if lookup.lag else ""


def _keys(lookup: Lookup) -> str:
    if lookup.asked is not None:
        return f"{len(lookup.asked)} asked for by WHERE"
    return "all" if lookup.signature.keys else "none: one group"


def _structure(lookup: Lookup, need: Need) -> str:
    if not lookup.must_look_through:
        return _STRUCTURES[need.family]
    if lookup.asked is not None:
        return "the rows of the keys that are asked for, found by an index"
    return "the rows themselves: one of the aggregates has no structure"
