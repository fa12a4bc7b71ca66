"""The parts of all partitions put together: one answer at T, with the same arithmetic and order as a query's report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.errors import StairwiseError
from stairwise.expressions.evaluate import evaluate
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints, of_one
from stairwise.lookups.scan import folded_parts
from stairwise.lookups.statement import Lookup
from stairwise.lookups.tally import Tally, Total
from stairwise.reports.answers import grouped_answer
from stairwise.reports.cells import Cells, canonical_column
from stairwise.schema import Instant


def put_together(lookup: Lookup, at: Instant, parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The answer of a lookup from what each partition contributes."""
    cells = groups_together(lookup, at, parts)
    answer = grouped_answer(lookup.select, cells, Faults())
    return (answer.in_order() if len(cells) > 1 else answer).cells.rows


def put_plainly(lookup: Lookup, total: Total) -> pa.RecordBatch:
    """The answer of a plain lookup whose key has rows, or that has no GROUP BY."""
    select = lookup.select
    columns = list(lookup.asked_columns) if select.keys else []
    for aggregate, need in zip(select.aggregates, lookup.need_of, strict=True):
        columns.append(of_one(total.value(aggregate.function, need), aggregate.type.arrow))
    return _projected(lookup, columns, 1)


def groups_together(lookup: Lookup, at: Instant, parts: Sequence[pa.RecordBatch]) -> Cells:
    """The group rows, before HAVING and projection, all in one cell."""
    rows = folded_parts(lookup, list(parts))
    count = len(lookup.select.keys)
    return _lowered(lookup, at, rows.num_rows, rows.columns[:count], rows.columns[count:])


def put_each(lookup: Lookup, at: Instant, keys: pa.RecordBatch, tally: Tally) -> pa.RecordBatch:
    """The answers for keys that were asked one by one, where all partitions are held together."""
    if not lookup.is_counted or lookup.select.having is not None:
        return put_in_order(lookup, at, keys, [tally.partials(lookup.needs)])
    counted = zip(lookup.select.aggregates, lookup.need_of, strict=True)
    columns = [*keys.columns, *(tally.column(aggregate.function, need) for aggregate, need in counted)]
    return _projected(lookup, columns, keys.num_rows)


def put_in_order(
    lookup: Lookup, at: Instant, keys: pa.RecordBatch, parts: Sequence[Sequence[pa.Array]]
) -> pa.RecordBatch:
    """The answers for keys that were asked one by one: a row for each, in their order, also where it has no rows."""
    select, grouping = lookup.select, lookup.grouping
    if select.having is not None:
        raise StairwiseError("keys that are asked one by one are all answered", hint="leave HAVING out")
    partials = list(parts[0])
    if len(parts) > 1:
        each: Ints = np.tile(np.arange(keys.num_rows), len(parts))
        columns = [pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)]
        partials = grouping.partials.combine(columns, each, keys.num_rows)
    cells = _lowered(lookup, at, keys.num_rows, keys.columns, partials)
    return _projected(lookup, cells.rows.columns, keys.num_rows)


def _projected(lookup: Lookup, columns: Sequence[pa.Array], length: int) -> pa.RecordBatch:
    """Group rows as the SELECT wants to see them."""
    outputs = [canonical_column(evaluate(o.expr, columns, length, Faults())) for o in lookup.select.outputs]
    return pa.RecordBatch.from_arrays(outputs, schema=lookup.answer_schema)


def _lowered(lookup: Lookup, at: Instant, groups: int, keys: list[pa.Array], partials: list[pa.Array]) -> Cells:
    """The group rows. Aggregates that yield several rows a group are no lookups."""
    values = lookup.grouping.partials.lower(partials, np.full(groups, at))
    return lookup.grouping.group_rows(np.zeros(groups, np.int64), keys, values)
