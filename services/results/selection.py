"""The filter of a subscription: only rows whose columns have one of the given values.

A row passes by its values alone, so filtering what changed is the same as the changes of what was filtered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from services.results.encoding import columns
from stairwise.algebra.query import Emit, Query
from stairwise.errors import StairwiseError, nearest
from stairwise.plan.published import rows_tell_ends
from stairwise.reports.emission import Emission
from stairwise.schema import Column, Type
from stairwise.v1 import results_pb2 as pb

MOST_VALUES = 10_000
"""How many values a filter may name."""
_KINDS = {
    Type.BIGINT: "integer",
    Type.TIMESTAMP: "integer",
    Type.DOUBLE: "double",
    Type.STRING: "string",
    Type.BOOLEAN: "boolean",
    Type.HUGEINT: "hugeint",
}


class FilterError(StairwiseError):
    """A filter that does not fit the query."""


@dataclass(frozen=True)
class Selection:
    """``digest`` tells two filters apart; a subscription without one has an empty digest."""

    matches: tuple[tuple[int, pa.Array], ...] = ()
    """The number of a column and the values that pass."""
    digest: bytes = b""
    lifetimes: bool = False
    """Does the subscriber let rows go by their ends, and want no change that says so?"""

    def apply(self, emission: Emission) -> Emission:
        if not self.matches or emission.rows.num_rows == 0:
            return emission
        passes = np.ones(emission.rows.num_rows, np.bool_)
        for number, values in self.matches:
            found = pc.is_in(emission.rows.column(number), value_set=values)
            passes &= found.to_numpy(zero_copy_only=False)
        until = None if emission.until is None else emission.until[passes]
        rows = emission.rows.filter(pa.array(passes))
        return replace(emission, diff=emission.diff[passes], rows=rows, until=until)


def selection_of(query: Query, said: Sequence[pb.Match], *, lifetimes: bool = False) -> Selection:
    """The filter that a request asks for, and whether it asks for lifetimes: that counts where there are some."""
    lifetimes = lifetimes and query.emit is Emit.CHANGES and rows_tell_ends(query)
    if sum(len(match.values) for match in said) > MOST_VALUES:
        raise FilterError(f"the filter names more than {MOST_VALUES} values", hint="subscribe without, or in parts")
    known = columns(query)
    names = [column.name for column in known]
    matches = []
    for match in said:
        if match.column not in names:
            raise FilterError(
                f"query {query.name!r} has no column {match.column!r} to filter by",
                hint=nearest(match.column, names, "column"),
            )
        number = names.index(match.column)
        values = [_value(known[number], value) for value in match.values]
        matches.append((number, pa.array(values, known[number].type.arrow)))
    return Selection(tuple(matches), _digest(matches) + (b"L" if lifetimes else b""), lifetimes)


def _digest(matches: Sequence[tuple[int, pa.Array]]) -> bytes:
    """The same for the same filter, in whatever order it is said."""
    if not matches:
        return b""
    said = sorted((number, sorted(map(repr, values.to_pylist()))) for number, values in matches)
    return hashlib.sha256(repr(said).encode()).digest()[:12]


def _value(column: Column, value: pb.Value) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    said = getattr(value, kind)
    if column.type is Type.HUGEINT and kind in ("integer", "hugeint"):
        return _huge(column, said)
    if column.type is Type.DOUBLE and kind in ("double", "integer"):
        return float(said) + 0.0  # −0.0 is 0.0 in every answer
    if kind != _KINDS[column.type]:
        raise FilterError(
            f"column {column.name!r} is {column.type.value}, but the filter has a value of kind {kind!r}",
            hint=f"set {_KINDS[column.type]!r}",
        )
    return said


def _huge(column: Column, said: int | str) -> Decimal:
    try:
        number = Decimal(said)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number != number.to_integral_value() or abs(number) >= 10**38:
        raise FilterError(f"column {column.name!r} is HUGEINT, but the filter has {str(said)[:50]!r}")
    return number
