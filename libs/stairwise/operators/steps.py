"""Aggregates that look at the steps of a multi-granular window: WEIGHTED BY and RECURRING.

    answers        COUNT, SUM and AVG with a weight per step; the items that occur in every step of a level
    aggregates     exact sums; item counts
    update         none of its own
    lookup         O(rows in scope) per report and level (``sharing.stepped`` answers the same from shared slices)
    space          that of the rows in scope
    order          none
    from           seed 003 section IV.A (aging aggregates) and IV.C (recurring items)

A level is made of steps, one for each level up to it: what that level adds beyond the finer one. Every row of a
group lies in one step, so partials are lifted for each group and step, and put together by what is asked:

                            (τ−r2        τ−r1     τ−r0         τ]
    steps                    ├─── 2 ──────┤── 1 ───┤──── 0 ────┤
    SUM weighted by c         c2·Σ    +    c1·Σ  +   c0·Σ              exact, rounded once
    RECURRING                 in 2    and  in 1  and in 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from stairwise.aggregates import limbs, rationals
from stairwise.aggregates.catalogue import as_written
from stairwise.aggregates.contract import Algebra, Rows
from stairwise.aggregates.counts import Count
from stairwise.aggregates.doubles import DoubleSum
from stairwise.aggregates.items import ItemCounts
from stairwise.aggregates.rationals import Exact
from stairwise.aggregates.sums import IntegerSum
from stairwise.cql.query import Select
from stairwise.expressions.views import Bools, Floats, Ints, from_numpy, int64_view
from stairwise.operators.cells import Cells
from stairwise.operators.grouping import Grouping
from stairwise.operators.moments import Moments
from stairwise.windows.spec import MultiWindow


def asks_for_steps(select: Select) -> bool:
    """Is it weighted by levels, or does it look for items that recur over them?"""
    window = select.inputs[0].window
    if not isinstance(window, MultiWindow) or not select.aggregates:
        return False
    return window.weights is not None or select.aggregates[0].function == "RECURRING"


class Steps:
    """The groups of a SELECT over a multi-granular window whose aggregates look at its steps."""

    def __init__(self, select: Select) -> None:
        window = select.inputs[0].window
        assert isinstance(window, MultiWindow)
        self._grouping = Grouping(select)
        self._keys = len(select.keys)
        self._ranges = np.array([level.range for level in window.levels])
        self._weights = [as_written(weight) for weight in window.weights or (1.0,) * len(window.levels)]
        self._horizon = window.horizon

    def groups(self, moments: Moments, of: Ints, rows: pa.RecordBatch, places: Rows) -> Cells:
        """The group rows of many cells, each of which is a level at a report."""
        cell, keys, codes = self._grouping.coded(len(moments), of, rows)
        count = len(self._ranges)
        step = np.searchsorted(self._ranges, moments.times[of] - places.time, side="right")
        partials = self._grouping.partials.lift(rows, places, codes * count + step, len(cell) * count)
        by_aggregate = self._grouping.partials.by_aggregate(partials)
        algebra, own = by_aggregate[0]
        if isinstance(algebra, ItemCounts):
            return self._recurring(moments, cell, keys, algebra, own)
        every = [pa.array(np.arange(first, len(cell) * count, count)) for first in range(count)]
        values = [weighted(algebra, [own.take(at) for at in every], self._weights) for algebra, own in by_aggregate]
        return self._grouping.group_rows(cell, keys, values)

    def _recurring(
        self, moments: Moments, cell: Ints, keys: list[pa.Array], algebra: ItemCounts, partials: pa.RecordBatch
    ) -> Cells:
        """For each level the items that occur in all of its steps.

        The steps of a CONTINUOUS HORIZON are those of the first level that reaches back to it.
        """
        count = len(self._ranges)
        found: list[tuple[Ints, pa.Array, pa.Array]] = []
        for level in np.unique(moments.levels[cell]).tolist():
            group = np.flatnonzero(moments.levels[cell] == level)
            last = level if self._horizon is None else int(np.searchsorted(self._ranges, self._horizon))
            parts = [partials.take(pa.array(group * count + step)) for step in range(last + 1)]
            items = algebra.items(algebra.recurring(parts), 0)
            found.append((group[items.group], items.item, items.count))
        if not found:
            nothing = algebra.items(algebra.recurring([partials]), 0)
            found.append((nothing.group, nothing.item, nothing.count))
        group = np.concatenate([g for g, _, _ in found])
        order = np.argsort(cell[group], kind="stable")
        index = pa.array(order)
        item, times = (pa.concat_arrays([f[i] for f in found]).take(index) for i in (1, 2))
        at = pa.array(group[order])
        return self._grouping.group_rows(cell[group[order]], [key.take(at) for key in keys], [item, times])


def weighted(algebra: Algebra, parts: Sequence[pa.RecordBatch], weights: Sequence[Fraction]) -> pa.Array:
    """COUNT, SUM or AVG of each group from partials that count with a weight each, over the same groups."""
    scale = math.lcm(*(weight.denominator for weight in weights))
    whole = [int(weight * scale) for weight in weights]
    counts = [int64_view(part.column(0)) for part in parts]
    weight = _total(whole, [rationals.integers(count) for count in counts])
    unit = Exact(np.full(len(counts[0]), scale, object))
    some = np.sum(counts, axis=0) > 0
    if isinstance(algebra, Count):
        return pa.array((weight / unit).to_doubles())
    total = _total(whole, [_sums(algebra, part) for part in parts])
    if isinstance(algebra, DoubleSum | IntegerSum) and algebra.average:
        unit = weight
        some &= ~weight.is_zero()
    answer = np.full(len(some), np.nan)
    wanted = np.flatnonzero(some)
    answer[wanted] = (total / unit).take(wanted).to_doubles()
    return from_numpy(_with_specials(algebra, parts, answer), some)


def _total(weights: list[int], parts: list[Exact]) -> Exact:
    total = parts[0] * weights[0]
    for weight, part in zip(weights[1:], parts[1:], strict=True):
        total = total + part * weight
    return total


def _sums(algebra: Algebra, partials: pa.RecordBatch) -> Exact:
    if isinstance(algebra, DoubleSum):
        return rationals.sums(partials.column(1))
    integers = np.array([int(value) for value in partials.column(1).to_pylist()], object)
    return Exact(integers)


def _with_specials(algebra: Algebra, parts: Sequence[pa.RecordBatch], answer: Floats) -> Floats:
    """NaN and infinities among the values make of the answer what they make of any sum, whatever their weight."""
    if not isinstance(algebra, DoubleSum):
        return answer
    plus, minus, nan = (np.zeros(len(answer), bool) for _ in range(3))
    for part in parts:
        special: tuple[Floats, Bools] | None = limbs.specials(part.column(1))
        if special is not None:
            value, there = special
            plus |= there & (value == np.inf)
            minus |= there & (value == -np.inf)
            nan |= there & np.isnan(value)
    answer = np.where(plus, np.inf, np.where(minus, -np.inf, answer))
    return np.where(nan | (plus & minus), np.nan, answer)
