"""Joined rows by the slices of their rows' times: those of one group and one pair of slices come and go together.

    a [RANGE 4s SLIDE 2s]   ├──1──┼──2──┼──3──┤        every edge of any window over a is a multiple of 2 s
    b [RANGE 9s SLIDE 3s]   ├───1───┼───2───┤          over b of 3 s

    pairs of k at (1.2 s, 2.9 s), (0.4 s, 0.1 s)       one partial of k in the slices (1, 1)
             k at (3.0 s, 2.9 s)                       another one in (2, 1)

    answers        the partials of joined rows by group and slices, once for all queries that group and aggregate alike
    update         O(1) a joined row, vectorised; each query then takes partials instead of joined rows
    space          nothing: it is held as long as its block
    order          joined rows as they come about
    from           seed 001 section 5.2.2 (results of one key together); seed 000 section 4 (the times of a result say
                   which windows hold it)

A row shows in a window from its first report at or after the row's time until the first that is a range later. Both are
the same for all times of a slice, so a slice stands for them by its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.aggregation.group_rows import Grouping
from stairwise.algebra.query import Select
from stairwise.expressions.codes import encode
from stairwise.expressions.tree import Field
from stairwise.expressions.views import Ints
from stairwise.join.probe import JoinedInputs, latest_of
from stairwise.operators.preparation import row_expressions
from stairwise.reports.cells import canonical_column
from stairwise.schema import Duration
from stairwise.windows.expiry import bounded
from stairwise.windows.spec import TimeWindow

Granules = tuple[Duration, ...]
"""For each input the length of a slice."""


def is_sliced(select: Select) -> bool:
    """Are joined rows put together before a query takes them? Where it groups by columns and aggregates columns:
    nothing is calculated that could go wrong for rows which the query does not show."""
    return select.is_grouped and all(isinstance(expr, Field) for _, expr in row_expressions(select))


def granules_of(windows: Iterable[Sequence[TimeWindow]]) -> Granules:
    """For each input the longest slices at whose ends all edges lie of some queries' windows."""
    return tuple(gcd(*(edge for window in over for edge in _edges(window))) for over in zip(*windows, strict=True))


def _edges(window: TimeWindow) -> tuple[int, int, int]:
    window = bounded(window)
    front = window.lag - window.offset
    return window.slide, front, front + window.range


@dataclass(frozen=True)
class PairSlices:
    """The partials of some joined rows, by group and slices."""

    times: list[Ints]
    """For each input, the ends of the slices."""
    columns: list[pa.Array]
    """Keys, then partials."""


def sliced(select: Select, found: Sequence[JoinedInputs], granules: Granules) -> PairSlices:
    """Joined rows, at least one, in the order in which they came about."""
    times = [np.concatenate(column) for column in zip(*(joined.times for joined in found), strict=True)]
    ends = [-(-time // granule) * granule for time, granule in zip(times, granules, strict=True)]
    names = [name for name, _ in row_expressions(select)]
    taken = {name: _column(found, expr) for name, expr in row_expressions(select) if isinstance(expr, Field)}
    keys = [canonical_column(taken[name]) for name in names[: len(select.keys)]]
    codes, first = encode([*map(pa.array, ends), *keys])
    count = len(codes)
    rows = pa.RecordBatch.from_arrays([*(taken[n] for n in names), pa.nulls(count)], names=[*names, ""])
    places = Rows(latest_of(times), np.zeros(count, np.int32), np.arange(count))
    partials = Grouping(select).lift(rows, places, codes, len(first))
    at = pa.array(first)
    return PairSlices([end[first] for end in ends], [*(key.take(at) for key in keys), *partials])


def _column(found: Sequence[JoinedInputs], field: Field) -> pa.Array:
    parts = [column for joined in found if (column := joined.columns[field.index]) is not None]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
