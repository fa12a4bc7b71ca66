"""The partition that PARTITION BY sends a key to: its home.

Rows may lie in any partition, whatever PARTITION BY says. But as long as every row that a partition ever had is one
whose home it is, nothing in it can concern a key that is at home elsewhere.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from stairwise.expressions.tree import Field
from stairwise.expressions.views import Ints
from stairwise.lookups.statement import Lookup
from stairwise.schema import Stream, Type
from stairwise.structures.compiled_loops import spread
from stairwise.windows.spec import RowsWindow

_TELLING = frozenset({Type.STRING, Type.BIGINT, Type.BOOLEAN})
"""Types whose equal values have equal texts; 0.0 and -0.0 have not."""


def have_homes(stream: Stream) -> bool:
    """Does PARTITION BY name a column whose values have a home each?"""
    return stream.partition_by is not None and stream.by_name[stream.partition_by].type in _TELLING


def homes(keys: pa.Array, partitions: int) -> Ints:
    """The partition of each key; ``streams.partition`` comes to the same."""
    texts = keys.cast(pa.string()).fill_null("\0")
    found = np.empty(len(texts), np.int64)
    _, offsets, data = texts.buffers()
    if len(texts):
        bounds = np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset)
        spread(bounds, np.frombuffer(data or b"", np.uint8), partitions, found)
    return found


def are_at_home(rows: pa.RecordBatch, stream: Stream, partition: int) -> bool:
    return bool((homes(rows.column(stream.partition_by), stream.partitions) == partition).all())


def homes_asked(lookup: Lookup, keys: pa.RecordBatch | None) -> frozenset[int] | None:
    """Where the keys are at home that a lookup is about, or that it is asked for one by one; None: anywhere."""
    stream = lookup.stream
    if not have_homes(stream) or isinstance(lookup.window, RowsWindow):
        return None
    home = stream.arrow_schema.get_field_index(stream.partition_by)
    if keys is None and lookup.asked is None:
        return None
    for key, column in zip(lookup.signature.keys, lookup.asked_columns if keys is None else keys.columns, strict=True):
        if isinstance(key, Field) and key.index == home:
            return frozenset(np.unique(homes(column, stream.partitions)).tolist())
    return None
