"""From group rows to answers: HAVING, projection, DISTINCT, and each row's place among the others.

    group rows     keys │ aggregates        ──having──▶ ──outputs──▶        outputs, placed by
    output rows    outputs                  ────────────────────▶           keys, or by the outputs themselves

Inside a report rows stand by group key, then by their output columns; the rows of TOP and its like by group key,
count (descending) and item; all others by their output columns. ORDER BY goes before all of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.algebra.query import Relation, Select
from stairwise.expressions.codes import encode
from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.order import sort_indices
from stairwise.expressions.tree import ITEM_FUNCTIONS, Output
from stairwise.expressions.views import Ints, from_numpy
from stairwise.reports.cells import Cells, canonical_column, distinct


@dataclass(frozen=True)
class Placed:
    """Output rows of many cells with the columns that place them in their cell."""

    cells: Cells
    place: list[pa.Array]

    def take(self, at: Ints) -> Placed:
        index = pa.array(at)
        return Placed(self.cells.take(at), [column.take(index) for column in self.place])

    def in_order(self) -> Placed:
        """Sorted by cell, then by place."""
        rank = ranked(self.place, len(self.cells))
        order = np.lexsort([rank, self.cells.of])
        return self if np.all(np.diff(order) == 1) else self.take(order)


def yields_items(select: Select) -> bool:
    return bool(select.aggregates) and select.aggregates[0].function in ITEM_FUNCTIONS


def answer(relation: Relation, cells: Cells, faults: Faults) -> Placed:
    """What a relation's report says, as output rows. Only the rows of a grouped SELECT need work."""
    if isinstance(relation, Select) and relation.is_grouped:
        return grouped_answer(relation, cells, faults)
    rows = output_batch(relation.outputs, cells.rows.columns)
    return Placed(Cells(cells.of, rows), rows.columns)


def grouped_answer(select: Select, groups: Cells, faults: Faults) -> Placed:
    """HAVING and projection over group rows."""
    if select.having is not None:
        groups = groups.keep(selects(select.having, groups.rows.columns, len(groups), faults))
    columns = groups.rows.columns
    outputs = [evaluate(output.expr, columns, len(groups), faults) for output in select.outputs]
    answers = Cells(groups.of, output_batch(select.outputs, outputs))
    if select.distinct:
        answers = distinct(answers)
        return Placed(answers, answers.rows.columns)
    place = columns[: len(select.keys)]
    if yields_items(select):
        item, count = columns[len(select.keys) :]
        place = [*place, pc.negate(count), item]
    placed = Placed(answers, place)
    return _first_of_each_cell(select, groups, placed, faults) if select.is_ordered else placed


def _first_of_each_cell(select: Select, groups: Cells, placed: Placed, faults: Faults) -> Placed:
    """ORDER BY and LIMIT: the rows of each cell placed by other columns first, and of these the first ones."""
    by: list[pa.Array] = []
    for expr, descending in select.order:
        column = canonical_column(evaluate(expr, groups.rows.columns, len(groups), faults))
        rank = ranked([column], len(groups))
        by.append(from_numpy(-rank if descending else rank))
    placed = Placed(placed.cells, [*by, *placed.place])
    if select.limit is None:
        return placed
    placed = placed.in_order()
    of = placed.cells.of
    return placed.take(np.flatnonzero(np.arange(len(of)) - np.searchsorted(of, of) < select.limit))


def output_batch(outputs: Sequence[Output], columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Columns under the names of the outputs, in the one spelling of each value."""
    fields = [pa.field(output.name, output.type.arrow) for output in outputs]
    return pa.RecordBatch.from_arrays([canonical_column(c) for c in columns], schema=pa.schema(fields))


def ranked(columns: Sequence[pa.Array], length: int) -> Ints:
    """Numbers that order the rows as the columns do. Equal rows have equal numbers.

    Rows repeat from report to report, so only the distinct ones are compared.
    """
    if not columns or length <= 1:
        return np.zeros(length, np.int64)
    codes, first = encode(columns)
    index = pa.array(first)
    order = sort_indices([column.take(index) for column in columns])
    rank = np.empty(len(first), np.int64)
    rank[order] = np.arange(len(first))
    return rank[codes]
