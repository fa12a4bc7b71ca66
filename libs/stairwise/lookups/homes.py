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


def partitions_of_a_key(lookup: Lookup, *, are_tidy: bool) -> int:
    """Over how many partitions the rows of a key may be spread, where all partitions are tidy or not."""
    return 1 if are_tidy and _home_among(lookup) is not None else lookup.stream.partitions


def _home_among(lookup: Lookup) -> int | None:
    """Which of the keys tells a row's home."""
    if not have_homes(lookup.stream):
        return None
    home = lookup.stream.arrow_schema.get_field_index(lookup.stream.partition_by)
    keys = enumerate(lookup.signature.keys)
    return next((place for place, key in keys if isinstance(key, Field) and key.index == home), None)


def homes_asked(lookup: Lookup, keys: pa.RecordBatch | None) -> frozenset[int] | None:
    """Where the keys are at home that a lookup is about, or that it is asked for one by one; None: anywhere."""
    place = _home_among(lookup)
    if place is None or isinstance(lookup.window, RowsWindow) or (keys is None and lookup.asked is None):
        return None
    column = lookup.asked_columns[place] if keys is None else keys.column(place)
    return frozenset(np.unique(homes(column, lookup.stream.partitions)).tolist())
