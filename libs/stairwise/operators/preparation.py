"""What an operator keeps of an input's rows: only the columns that it will need, computed once as rows come in.

    SELECT ticker, SUM(price * qty) FROM trades [RANGE 60s SLIDE 10s] WHERE price > 10 GROUP BY ticker

    trades        ts  ticker  price  qty  venue
    kept              k0=ticker  a0=price*qty        rows with price > 10 only

The planner has put conditions below the window where it may (``Input.where``): rows that they drop are not kept. A
condition that stands above the window of a single input leaves its rows where they are, since the window counts them:
``keep`` says whether a row counts. A row of a join is computed when its partners are known; of its inputs the columns
that are asked for are kept as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Select
from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Expr
from stairwise.reports.cells import canonical_column
from stairwise.reports.contract import Batch
from stairwise.schema import Instant
from stairwise.state.row_buffer import PLACE
from stairwise.windows.spec import PartitionedWindow, RelationWindow, RowsWindow

KEEP = "keep"


def row_expressions(select: Select) -> list[tuple[str, Expr]]:
    """What is computed over an input row: keys and arguments of aggregates, or the outputs."""
    if not select.is_grouped:
        return [(f"o{i}", output.expr) for i, output in enumerate(select.outputs)]
    arguments = [arg for aggregate in select.aggregates for arg in aggregate.args]
    keys = [(f"k{i}", key) for i, key in enumerate(select.keys)]
    return keys + [(f"a{i}", arg) for i, arg in enumerate(arguments)]


def computed(
    select: Select, columns: Sequence[pa.Array | None], length: int, faults: Faults
) -> list[tuple[str, pa.Array]]:
    """The row expressions over input rows; keys in their canonical spelling."""
    found = [(name, evaluate(expr, columns, length, faults)) for name, expr in row_expressions(select)]
    return [(name, canonical_column(c) if name.startswith("k") else c) for name, c in found]


class Preparation:
    """Turns the rows of one input of a SELECT into what is kept of them."""

    def __init__(self, select: Select, position: int) -> None:
        self._select = select
        self._position = position
        self._input = select.inputs[position]
        self._start = sum(len(i.stream.columns) for i in select.inputs[:position])
        self._alone = len(select.inputs) == 1
        columns = self._input.columns
        self._kept = range(len(self._input.stream.columns)) if columns is None else columns
        window = self._input.window
        self._partition_by = window.keys if isinstance(window, PartitionedWindow | RelationWindow) else ()
        kept = self._columns(self._empty_input(), Faults())
        self.schema = pa.schema([pa.field(name, column.type) for name, column in kept])

    def rows(self, batch: Batch, horizon: Instant, faults: Faults) -> pa.RecordBatch:
        """The rows of a batch as they are kept, each with its place in the stream's order."""
        time = batch.rows.column(self._input.stream.time_column) if batch.time is None else pa.array(batch.time)
        sequence = pa.array(np.asarray(batch.sequence, np.int64))
        rows = batch.rows
        is_visible = time.to_numpy() > horizon
        mask: np.ndarray | None = None
        if not isinstance(self._input.window, RowsWindow | RelationWindow) and not is_visible.all():
            mask = is_visible
        if self._input.where is not None:
            holds = selects(self._input.where, rows.columns, rows.num_rows, faults)
            mask = holds if mask is None else mask & holds
        if mask is not None and not mask.all():
            keep = pa.array(mask)
            rows, time, sequence = rows.filter(keep), time.filter(keep), sequence.filter(keep)
        partition = pa.array(np.full(rows.num_rows, batch.partition, np.int64))
        columns = [*self._columns(rows, faults), *zip(PLACE, (time, partition, sequence), strict=True)]
        return pa.RecordBatch.from_arrays([c for _, c in columns], names=[name for name, _ in columns])

    def _columns(self, rows: pa.RecordBatch, faults: Faults) -> list[tuple[str, pa.Array]]:
        if not self._alone:
            found = [(f"f{self._start + i}", rows.column(i)) for i in self._kept]
        else:
            found = self._marked(rows, faults)
        return found + [(f"w{i}", rows.column(name)) for i, name in enumerate(self._partition_by)]

    def _marked(self, rows: pa.RecordBatch, faults: Faults) -> list[tuple[str, pa.Array]]:
        """All rows, with NULLs in those that WHERE does not keep: what they would hold is never asked."""
        where = self._select.where
        if where is None:
            return computed(self._select, rows.columns, rows.num_rows, faults)
        keep = selects(where, rows.columns, rows.num_rows, faults)
        kept = rows.filter(pa.array(keep))
        spread = pa.array(np.cumsum(keep) - 1, mask=~keep)
        found = computed(self._select, kept.columns, kept.num_rows, faults)
        return [*((name, column.take(spread)) for name, column in found), (KEEP, pa.array(keep))]

    def _empty_input(self) -> pa.RecordBatch:
        schema = self._input.stream.arrow_schema
        return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
