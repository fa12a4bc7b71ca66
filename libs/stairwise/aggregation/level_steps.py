"""WEIGHTED BY and RECURRING out of a shared stair: levels are taken apart into their steps.

    answers        COUNT, SUM and AVG with a weight for each step; the items that occur in every step of a level
    requirement    sums: subtractable and exact, which limbs are; items: their counts
    lookup         O(n k) for the n levels of a window and k groups, whatever the number of rows or slices
    space          that of the answer
    order          none
    from           seed 003 section IV.A (aging aggregates) and IV.C (recurring items)

The stair has the nested windows of a level, finest first. Weights of steps are weights of nested windows:

                            (τ−r2        τ−r1     τ−r0         τ]
    nested                                         ├─── S0 ────┤        c0·S0 + c1·(S1 − S0) + c2·(S2 − S1)
                                          ├──────── S1 ────────┤     =  (c0 − c1)·S0 + (c1 − c2)·S1 + c2·S2
                             ├─────────────── S2 ──────────────┤

and an item is in every step if its count grows from each nested window to the next (``aggregates.recurrence``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa

from stairwise.aggregates import limbs, rationals
from stairwise.aggregates.catalogue import algebra_for, as_written
from stairwise.aggregates.contract import Algebra
from stairwise.aggregates.counts import Count
from stairwise.aggregates.doubles import DoubleSum
from stairwise.aggregates.items import ItemCounts
from stairwise.aggregates.rationals import Exact
from stairwise.aggregates.recurrence import recurring
from stairwise.aggregates.sums import IntegerSum
from stairwise.aggregation.stair import Stair, answer_name, key_name
from stairwise.algebra.query import Query, Select, levels_of
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Bools, Floats, Ints, from_numpy, int64_view
from stairwise.operators.levels import SteppedWindow, asked_aggregates, asked_window
from stairwise.reports.blocks import Reports
from stairwise.reports.expansion import report_schema

Found = tuple[Ints, Ints]
"""When one of the nested windows is due, and which steps of the stair it is then."""


@dataclass(frozen=True)
class _Level:
    """The reports of one level: when it is due, and its rows with the time of each."""

    due: Ints
    time: Ints
    columns: list[pa.Array]


class Stepped:
    """The reports of a query whose aggregates look at steps."""

    def __init__(self, query: Query) -> None:
        select = query.relation
        assert isinstance(select, Select)
        window = asked_window(select)
        assert isinstance(window, SteppedWindow)
        self._name, self._schema = query.name, report_schema(query)
        self._has_levels = levels_of(query) is not None
        self._keys = [key_name(i) for i in range(len(select.keys))]
        self._columns = [answer_name(aggregate) for aggregate in asked_aggregates(select)]
        self._algebras = [algebra_for(aggregate) for aggregate in select.aggregates]
        self._depths = [len(steps) for steps in window.steps()]
        self._weights = [as_written(weight) for weight in window.weights or (1.0,) * len(window.levels)]

    def reports(self, stair: Stair, found: Sequence[Found]) -> Reports | None:
        """Its own reports; ``found`` follows ``asked_levels``. None where it is not due."""
        ends = np.cumsum(self._depths).tolist()
        nested = [found[end - depth : end] for end, depth in zip(ends, self._depths, strict=True)]
        numbers = [number for number, windows in enumerate(nested) if len(windows[0][0])]
        if not numbers:
            return None
        levels = [self._level(stair, nested[number]) for number in numbers]
        times = np.unique(np.concatenate([level.due for level in levels]))
        time = np.concatenate([level.time for level in levels])
        columns = [pa.concat_arrays(parts) for parts in zip(*(level.columns for level in levels), strict=True)]
        if self._has_levels:
            number = np.repeat(numbers, [len(level.time) for level in levels])
            columns = [pa.array(number, pa.int64()), *columns]
        order = np.argsort(time, kind="stable")
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema).take(pa.array(order))
        offsets = np.append(np.searchsorted(time[order], times), len(time))
        return Reports(self._name, times, np.zeros(len(times), np.int64), offsets, rows)

    def _level(self, stair: Stair, nested: Sequence[Found]) -> _Level:
        """All reports of one level, from the windows nested in it."""
        due, widest = nested[-1]
        index, moment = _rows_of(stair, widest)
        code = self._coded(stair, index, moment)
        keys = [_plain(stair.rows.column(name).take(pa.array(index))) for name in self._keys]
        parts: list[list[pa.RecordBatch]] = [[] for _ in self._algebras]
        for _, steps in nested:
            rows, at = _rows_of(stair, steps)
            group = np.searchsorted(code, self._coded(stair, rows, at))
            for own, algebra, name in zip(parts, self._algebras, self._columns, strict=True):
                own.append(algebra.combine(_partials(stair, name, algebra, rows), group, len(code)))
        algebra = self._algebras[0]
        if isinstance(algebra, ItemCounts):
            items = algebra.items(recurring(algebra, parts[0]), 0)
            keys = [key.take(pa.array(items.group)) for key in keys]
            return _Level(due, due[moment[items.group]], [*keys, items.item, items.count])
        weights = nested_weights(self._weights[: len(nested)])
        values = [weighted(algebra, own, weights) for algebra, own in zip(self._algebras, parts, strict=True)]
        return _Level(due, due[moment], [*keys, *values])

    def _coded(self, stair: Stair, rows: Ints, moment: Ints) -> Ints:
        """A number for the group of each row, which ascends within a step: the moment, then the key."""
        if not self._keys:
            return moment
        column = stair.rows.column(self._keys[0])
        coded: Ints = moment * len(column.dictionary) + column.indices.to_numpy(zero_copy_only=False)[rows]
        return coded


def nested_weights(weights: Sequence[Fraction]) -> list[Fraction]:
    """Weights for nested windows that come to these weights for what each adds to the one before."""
    return [*(finer - coarser for finer, coarser in pairwise(weights)), weights[-1]]


def _rows_of(stair: Stair, steps: Ints) -> tuple[Ints, Ints]:
    """The rows of some steps, and for each the place of its step among them."""
    start, count = stair.start[steps], stair.stop[steps] - stair.start[steps]
    return expand_ranges(start, count), np.repeat(np.arange(len(steps)), count)


def _partials(stair: Stair, name: str, algebra: Algebra, rows: Ints) -> pa.RecordBatch:
    states = stair.rows.column(name).take(pa.array(rows))
    return pa.RecordBatch.from_arrays(states.flatten(), schema=algebra.state)


def _plain(column: pa.Array) -> pa.Array:
    """A key column of a stair as its values."""
    return column.dictionary.take(column.indices)


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
