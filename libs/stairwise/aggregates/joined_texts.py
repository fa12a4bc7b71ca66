"""STRING_AGG: the texts of a group behind each other, in the order of the stream.

answers     STRING_AGG(s, separator); NULL where no row has a text
class       holistic, not subtractable
cost        update O(log n) a row, lookup O(texts), space each text and its place a group
order       none on arrival: the partial keeps texts by (time, partition, sequence), which is the stream's order
source      seed 001 section 2.2.1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stairwise.aggregates import ragged
from stairwise.aggregates.contract import Kind, Rows
from stairwise.expressions.views import Ints, from_numpy, int32_view, int64_view, validity
from stairwise.schema import Instant

_ENTRY = pa.struct(
    [
        pa.field("time", pa.int64(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)
_TEXTS = pa.list_(pa.field("item", _ENTRY, nullable=False))


@dataclass(frozen=True)
class JoinedTexts:
    separator: str

    kind: ClassVar[Kind] = Kind.HOLISTIC
    subtractable: ClassVar[bool] = False
    family: ClassVar[str] = "texts in order"
    state: ClassVar[pa.Schema] = pa.schema([pa.field("texts", _TEXTS, nullable=False)])

    def lift(self, args: Sequence[pa.Array], rows: Rows, codes: Ints, groups: int) -> pa.RecordBatch:
        valid = validity(args[0])
        there = np.arange(len(codes)) if valid is None else np.flatnonzero(valid)
        places = Rows(rows.time[there], rows.partition[there], rows.sequence[there])
        return self._sorted(places, args[0].take(pa.array(there)), codes[there], groups)

    def combine(self, partials: pa.RecordBatch, codes: Ints, groups: int) -> pa.RecordBatch:
        offsets, entries = ragged.read(partials.column(0))
        time, partition, sequence, text = entries.flatten()
        places = Rows(int64_view(time), int32_view(partition), int64_view(sequence))
        return self._sorted(places, text, ragged.owners(offsets, codes), groups)

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        offsets, entries = ragged.read(partials.column(0))
        lengths = np.diff(offsets)
        texts = ragged.build(lengths, entries.flatten()[3], pa.list_(pa.string()))
        joined = pc.binary_join(texts, self.separator)
        return pc.if_else(from_numpy(lengths > 0), joined, pa.scalar(None, pa.string()))

    def _sorted(self, rows: Rows, texts: pa.Array, codes: Ints, groups: int) -> pa.RecordBatch:
        order = np.lexsort([rows.sequence, rows.partition.astype(np.int64), rows.time, codes])
        columns = [from_numpy(column[order]) for column in (rows.time, rows.partition, rows.sequence)]
        entries = pa.StructArray.from_arrays([*columns, texts.take(pa.array(order))], fields=list(_ENTRY))
        lists = ragged.build_by_owner(codes[order], groups, entries, _TEXTS)
        return pa.RecordBatch.from_arrays([lists], schema=self.state)
