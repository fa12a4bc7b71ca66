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

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa

from stairwise.aggregates.catalogue import algebra_for, as_written
from stairwise.aggregates.contract import Algebra
from stairwise.aggregates.items import ItemCounts
from stairwise.aggregates.recurrence import recurring
from stairwise.cql.query import Query, Select
from stairwise.expressions.views import Ints
from stairwise.operators.expansion import levels_of, report_schema
from stairwise.operators.join import expand_ranges
from stairwise.operators.reports import Reports
from stairwise.operators.steps import weighted
from stairwise.sharing.levels import SteppedWindow, asked_aggregates, asked_window
from stairwise.sharing.stair import Stair, answer_name, key_name

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
