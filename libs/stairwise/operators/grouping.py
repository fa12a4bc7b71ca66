"""GROUP BY over many cells at once: rows to partial aggregates, partials to partials, partials to group rows.

    rows  ──lift──▶  partials, one row per group  ──combine──▶  partials  ──lower──▶  group rows: keys, aggregates

Aggregates over the same arguments that need the same partial share it: SUM(x), AVG(x) and COUNT(x) keep one.
The partials of a group lie side by side in one batch, so that one ``take`` moves them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from stairwise.aggregates.catalogue import algebra_for
from stairwise.aggregates.contract import Algebra, ItemAlgebra, Items, Kind, Rows, SubtractableAlgebra
from stairwise.aggregates.regression import Regression
from stairwise.cql.query import Select
from stairwise.expressions.codes import encode
from stairwise.expressions.views import Ints
from stairwise.operators.cells import Cells
from stairwise.operators.expansion import group_fields


@dataclass(frozen=True)
class _Kept:
    """A partial that one or more aggregates share: where its arguments and its columns stand."""

    algebra: Algebra
    args: tuple[str, ...]
    start: int
    stop: int


class Partials:
    """The aggregates of a SELECT as one batch of partials per group."""

    def __init__(self, select: Select) -> None:
        self._algebras = [algebra_for(aggregate) for aggregate in select.aggregates]
        self._kept: list[_Kept] = []
        self._of: list[_Kept] = []
        fields: list[pa.Field] = []
        shared: dict[tuple[object, str], _Kept] = {}
        names = _argument_names(select)
        for aggregate, algebra, args in zip(select.aggregates, self._algebras, names, strict=True):
            key = (aggregate.args, algebra.family)
            if key not in shared:
                start = len(fields)
                fields += [field.with_name(f"{len(shared)}.{field.name}") for field in algebra.state]
                shared[key] = _Kept(algebra, args, start, len(fields))
            self._of.append(shared[key])
        self._kept = list(shared.values())
        self.schema = pa.schema(fields)

    @property
    def is_holistic(self) -> bool:
        """Does a partial grow with the rows, so that combining ahead of need gains nothing?"""
        return any(algebra.kind is Kind.HOLISTIC for algebra in self._algebras)

    def lift(self, rows: pa.RecordBatch, places: Rows, codes: Ints, groups: int) -> list[pa.Array]:
        """The partials of rows whose arguments are in columns a0, a1, ..."""
        columns: list[pa.Array] = []
        for kept in self._kept:
            args = [rows.column(name) for name in kept.args]
            columns += kept.algebra.lift(args, places, codes, groups).columns
        return columns

    def combine(self, partials: list[pa.Array], codes: Ints, groups: int) -> list[pa.Array]:
        columns: list[pa.Array] = []
        for kept in self._kept:
            columns += kept.algebra.combine(self._own(kept, partials), codes, groups).columns
        return columns

    @property
    def is_subtractable(self) -> bool:
        """Can what rows contributed be taken out again?"""
        return all(isinstance(kept.algebra, SubtractableAlgebra) for kept in self._kept)

    def subtract(self, minuend: list[pa.Array], subtrahend: list[pa.Array]) -> list[pa.Array]:
        """What is left of partials of which parts are taken out, group by group."""
        columns: list[pa.Array] = []
        for kept in self._kept:
            assert isinstance(kept.algebra, SubtractableAlgebra)
            columns += kept.algebra.subtract(self._own(kept, minuend), self._own(kept, subtrahend)).columns
        return columns

    def lower(self, partials: list[pa.Array], at: Ints) -> list[pa.Array]:
        """The aggregates' values; ``at`` is the report time of each group."""
        return [_lowered(algebra, own, at) for algebra, own in self.by_aggregate(partials)]

    def items(self, partials: list[pa.Array]) -> Items | None:
        """The rows of TOP and its like; None where the aggregates have one value per group."""
        if not self._algebras or not isinstance(self._algebras[0], ItemAlgebra):
            return None
        return self._algebras[0].items(self._own(self._of[0], partials), 0)

    def by_aggregate(self, partials: list[pa.Array]) -> list[tuple[Algebra, pa.RecordBatch]]:
        """Each aggregate with its own partials."""
        return [(a, self._own(kept, partials)) for a, kept in zip(self._algebras, self._of, strict=True)]

    def _own(self, kept: _Kept, partials: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(partials[kept.start : kept.stop], schema=kept.algebra.state)


def _argument_names(select: Select) -> list[tuple[str, ...]]:
    """Under which names the preparation keeps the arguments of each aggregate."""
    names: list[tuple[str, ...]] = []
    count = 0
    for aggregate in select.aggregates:
        names.append(tuple(f"a{count + i}" for i in range(len(aggregate.args))))
        count += len(aggregate.args)
    return names


def _lowered(algebra: Algebra, partials: pa.RecordBatch, at: Ints) -> pa.Array:
    """The answers of groups that report at different times: in one go where the time does not matter."""
    if not len(at):
        return algebra.lower(partials, 0)
    if not isinstance(algebra, Regression) or not algebra.intercept:
        return algebra.lower(partials, int(at[0]))
    edges = [0, *(np.flatnonzero(np.diff(at)) + 1).tolist(), len(at)]
    runs = [algebra.lower(partials.slice(i, j - i), int(at[i])) for i, j in pairwise(edges)]
    return pa.concat_arrays(runs)


class Grouping:
    """Groups the rows of a SELECT and aggregates them."""

    def __init__(self, select: Select) -> None:
        self._keys = [f"k{i}" for i in range(len(select.keys))]
        self._schema = pa.schema(group_fields(select))
        self.partials = Partials(select)

    def groups(self, times: Ints, of: Ints, rows: pa.RecordBatch, places: Rows) -> Cells:
        """The group rows of many cells: ``of`` is the cell of each row, ``times`` the report time of each cell."""
        cell, keys, codes = self.coded(len(times), of, rows)
        return self.lowered(cell, keys, self.partials.lift(rows, places, codes, len(cell)), times)

    def coded(self, cells: int, of: Ints, rows: pa.RecordBatch) -> tuple[Ints, list[pa.Array], Ints]:
        """The cell and the keys of each group, and the group of each row.

        Without keys every cell is one group, also one that has no rows.
        """
        if not self._keys:
            return np.arange(cells), [], of
        keys = [rows.column(name) for name in self._keys]
        codes, first = encode([pa.array(of), *keys])
        return of[first], [key.take(pa.array(first)) for key in keys], codes

    def lowered(self, cell: Ints, keys: list[pa.Array], partials: list[pa.Array], times: Ints) -> Cells:
        """Group rows from the partials of groups: ``cell`` and ``keys`` say whose they are."""
        items = self.partials.items(partials)
        if items is None:
            return self.group_rows(cell, keys, self.partials.lower(partials, times[cell]))
        return self.group_rows(cell[items.group], _taken(keys, items.group), [items.item, items.count])

    def group_rows(self, cell: Ints, keys: list[pa.Array], values: list[pa.Array]) -> Cells:
        return Cells(cell, pa.RecordBatch.from_arrays([*keys, *values], schema=self._schema))


def _taken(columns: list[pa.Array], at: Ints) -> list[pa.Array]:
    index = pa.array(at)
    return [column.take(index) for column in columns]
