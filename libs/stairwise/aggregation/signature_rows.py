"""A batch as a signature sees it: the filter, the keys and the arguments, each computed once for all queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from stairwise.aggregates.contract import Rows
from stairwise.algebra.query import Select
from stairwise.expressions.evaluate import evaluate, selects
from stairwise.expressions.faults import Faults
from stairwise.expressions.tree import Expr
from stairwise.expressions.views import Ints, int64_view
from stairwise.operators.signature import Signature
from stairwise.reports.cells import canonical_column
from stairwise.reports.contract import Batch


@dataclass(frozen=True)
class Prepared:
    """The rows of a batch that pass the filter."""

    time: Ints
    keys: list[pa.Array]
    args: list[pa.Array]
    partition: int
    sequence: Ints

    def __len__(self) -> int:
        return len(self.time)

    def take(self, at: Ints) -> Prepared:
        """Some rows, without their keys, which are numbers by now."""
        index = pa.array(at)
        return Prepared(self.time[at], [], [a.take(index) for a in self.args], self.partition, self.sequence[at])

    def slice(self, start: int, stop: int) -> Prepared:
        args = [arg.slice(start, stop - start) for arg in self.args]
        return Prepared(self.time[start:stop], [], args, self.partition, self.sequence[start:stop])

    @cached_property
    def places(self) -> Rows:
        return Rows(self.time, np.full(len(self.time), self.partition, np.int32), self.sequence)


class SharedRows:
    """Prepares batches, and counts for each expression how often it had no number to give."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self.faults: dict[Expr, Faults] = {}

    def prepare(self, batch: Batch, args: Iterable[Expr]) -> Prepared:
        rows, sequence = batch.rows, np.asarray(batch.sequence, np.int64)
        where = self._signature.where
        if where is not None:
            holds = selects(where, rows.columns, rows.num_rows, self._faults(where))
            if not holds.all():
                rows, sequence = rows.filter(pa.array(holds)), sequence[holds]
        time = int64_view(rows.column(self._signature.stream.time_column))
        keys = [canonical_column(self._value(key, rows)) for key in self._signature.keys]
        return Prepared(time, keys, [self._value(arg, rows) for arg in args], batch.partition, sequence)

    def _value(self, expr: Expr, rows: pa.RecordBatch) -> pa.Array:
        return evaluate(expr, rows.columns, rows.num_rows, self._faults(expr))

    def _faults(self, expr: Expr) -> Faults:
        return self.faults.setdefault(expr, Faults())

    def counted(self, select: Select) -> Faults:
        """What a query's own expressions have counted so far."""
        total = Faults()
        args = (arg for aggregate in select.aggregates for arg in aggregate.args)
        where = () if self._signature.where is None else (self._signature.where,)
        for expr in (*where, *self._signature.keys, *args):
            total.add(self.faults.get(expr, Faults()))
        return total
