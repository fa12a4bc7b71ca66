"""Many reports evaluated at once: rows that carry the number of the cell they belong to.

A cell is one evaluation of a relation: a report, or a level of a report. The relational operators take and give
rows of many cells together, with the cell's number as one more key in front, so that a block of a thousand
reports costs a few calls of vectorised kernels rather than a thousand.

    of      0   0   0   1   1   2
    rows    a   b   c   b   c   c         the window slides over a b c ...
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.expressions.codes import encode
from stairwise.expressions.views import Bools, Ints, canonical, float64_view, from_numpy, validity
from stairwise.state.pages import concat


@dataclass(frozen=True)
class Cells:
    """Rows of many cells; ``of`` is each row's cell."""

    of: Ints
    rows: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.of)

    def take(self, at: Ints) -> Cells:
        return Cells(self.of[at], self.rows.take(pa.array(at)))

    def keep(self, mask: Bools) -> Cells:
        return self if mask.all() else Cells(self.of[mask], self.rows.filter(pa.array(mask)))


def codes_of(cells: Cells) -> tuple[Ints, Ints]:
    """A number for each row that only equal rows of the same cell share, and the first row of each number."""
    return encode([pa.array(cells.of), *cells.rows.columns])


def union_all(left: Cells, right: Cells) -> Cells:
    """Both, as bags; names are those of ``left``."""
    renamed = pa.RecordBatch.from_arrays(right.rows.columns, schema=left.rows.schema)
    return Cells(np.concatenate([left.of, right.of]), concat([left.rows, renamed]))


def distinct(cells: Cells) -> Cells:
    """Each row once in its cell, in its canonical spelling."""
    _, first = codes_of(cells)
    return canonical_rows(cells.take(first))


def canonical_rows(cells: Cells) -> Cells:
    """The same rows with one spelling for values that count as equal: 0.0 for −0.0, one NaN."""
    return Cells(cells.of, canonical_batch(cells.rows))


def canonical_batch(rows: pa.RecordBatch) -> pa.RecordBatch:
    if not any(pa.types.is_floating(field.type) for field in rows.schema):
        return rows
    return pa.RecordBatch.from_arrays([canonical_column(column) for column in rows.columns], schema=rows.schema)


def canonical_column(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return from_numpy(canonical(float64_view(column)), validity(column))
