"""Published answers in as few bytes as they need: a report passes through Spark, Kafka and results, but few read it.

SUM      decimal128   16 bytes  ──▶  int32, say        Counts, sums and most other integers are small. All of a
COUNT    int64         8 bytes  ──▶  int8              column take the width of the largest, and are as they were
key      dictionary    4 bytes  ──▶  int16             again when they are read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.expressions.views import Ints, decimal_words, from_numpy, from_words, int64_view, validity

FEW = 256
"""So few rows go as they are."""
_WIDTHS = [(pa.int8(), 2**7), (pa.int16(), 2**15), (pa.int32(), 2**31), (pa.int64(), 2**63)]
_IS_DECIMAL = {b"packed": b"decimal"}
_HUGEINT = pa.decimal128(38, 0)


def packed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with narrower integers."""
    if len(rows) <= FEW:
        return rows
    pairs = [_packed(column, field) for column, field in zip(rows.columns, rows.schema, strict=True)]
    schema = pa.schema([field for _, field in pairs], metadata=rows.schema.metadata)
    return pa.RecordBatch.from_arrays([column for column, _ in pairs], schema=schema)


def unpacked(rows: pa.RecordBatch, name: str) -> pa.Array:
    """A column of rows, or of some of them, as it was before they were packed; keys may keep narrower codes."""
    number = rows.schema.get_field_index(name)
    column, field = rows.column(number), rows.schema.field(number)
    if field.metadata == _IS_DECIMAL:
        low = int64_view(column.cast(pa.int64()))
        return from_words(np.stack([low, low >> 63], axis=1).view(np.uint64), validity(column))
    return column.cast(pa.int64()) if pa.types.is_integer(field.type) else column


def _packed(column: pa.Array, field: pa.Field) -> tuple[pa.Array, pa.Field]:
    if pa.types.is_dictionary(field.type):
        codes = column.indices.cast(_width(0, len(column.dictionary)), safe=False)
        coded = pa.DictionaryArray.from_arrays(codes, column.dictionary, safe=False)
        return coded, field.with_type(coded.type)
    if field.type == _HUGEINT:
        low = _low(column)
        if low is None:
            return column, field
        narrow = _narrowed(from_numpy(low, validity(column)))
        return narrow, field.with_type(narrow.type).with_metadata(_IS_DECIMAL)
    if field.type == pa.int64():
        narrow = _narrowed(column)
        return narrow, field.with_type(narrow.type)
    return column, field


def _low(column: pa.Array) -> Ints | None:
    """128-bit integers as 64-bit ones; None where some are larger."""
    words = decimal_words(column).view(np.int64)
    low = words[:, 0]
    return low if np.array_equal(words[:, 1], low >> 63) else None


def _narrowed(column: pa.Array) -> pa.Array:
    """64-bit integers in the fewest bytes that hold them all."""
    bounds = pc.min_max(column)
    lowest, highest = bounds["min"].as_py(), bounds["max"].as_py()
    return column.cast(_width(lowest or 0, highest or 0), safe=False)


def _width(lowest: int, highest: int) -> pa.DataType:
    """The narrowest type that holds integers from ``lowest`` to ``highest``."""
    return next(kind for kind, bound in _WIDTHS if -bound <= lowest and highest < bound)
