"""GROUP BY over many cells at once: rows to partial aggregates, and partials to group rows.

    rows  ──lift──▶  partials, one row per group  ──combine──▶  partials  ──lower──▶  group rows: keys, aggregates

Rows are those that ``operators.preparation`` makes: keys in columns k0, k1, ..., arguments in a0, a1, ...
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.aggregation.partials import Partials
from stairwise.algebra.query import Select
from stairwise.expressions.codes import encode
from stairwise.expressions.views import Ints
from stairwise.reports.cells import Cells
from stairwise.reports.expansion import group_fields


class Grouping:
    """Groups the rows of a SELECT and aggregates them."""

    def __init__(self, select: Select) -> None:
        self._keys = [f"k{i}" for i in range(len(select.keys))]
        self._schema = pa.schema(group_fields(select))
        self.partials = Partials(select.aggregates)
        names = {arg: f"a{i}" for i, arg in enumerate(arg for a in select.aggregates for arg in a.args)}
        self._args = [names[arg] for arg in self.partials.args]

    def groups(self, times: Ints, of: Ints, rows: pa.RecordBatch, places: Rows) -> Cells:
        """The group rows of many cells: ``of`` is the cell of each row, ``times`` the report time of each cell."""
        cell, keys, codes = self.coded(len(times), of, rows)
        return self.lowered(cell, keys, self.lift(rows, places, codes, len(cell)), times)

    def lift(self, rows: pa.RecordBatch, places: Rows, codes: Ints, groups: int) -> list[pa.Array]:
        """The partials of rows, each of which says its group."""
        return self.partials.lift([rows.column(name) for name in self._args], places, codes, groups)

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
