"""Rows as clients ask for them, protobuf values or Arrow, cut into messages of bearable size."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from services.results import protobuf_rows
from stairwise.algebra.query import Query, levels_of
from stairwise.errors import LimitError, StairwiseError
from stairwise.plan.published import rows_tell_ends
from stairwise.platform.kafka import MAX_MESSAGE
from stairwise.reports.emission import Emission
from stairwise.reports.expansion import LEVEL
from stairwise.schema import Column, Type
from stairwise.state.pages import to_page
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.schemas import column_to_proto

CHUNK = 256 << 10
"""About how many bytes of changes one update carries."""
BLOCK = 8 << 20
"""About how many bytes of rows are written to protobuf's format at a time."""
FEW = 64
"""Up to so many rows protobuf's own objects are quicker than columns."""
_CHANGES_IN_UPDATE = b"\x12"

_WRITERS: dict[Type, Callable[[Any], pb.Value]] = {
    Type.BIGINT: lambda v: pb.Value(integer=v),
    Type.TIMESTAMP: lambda v: pb.Value(integer=v),
    Type.DOUBLE: lambda v: pb.Value(double=v),
    Type.STRING: lambda v: pb.Value(string=v),
    Type.BOOLEAN: lambda v: pb.Value(boolean=v),
    Type.HUGEINT: lambda v: pb.Value(hugeint=str(int(v))),
}


class Encoding(enum.Enum):
    VALUES = pb.ENCODING_VALUES
    ARROW = pb.ENCODING_ARROW


def encoding_of(said: int) -> Encoding:
    """The encoding that a request asks for."""
    if said in (pb.ENCODING_UNSPECIFIED, pb.ENCODING_VALUES):
        return Encoding.VALUES
    if said == pb.ENCODING_ARROW:
        return Encoding.ARROW
    raise StairwiseError(f"there is no encoding {said}", hint="ENCODING_VALUES is 1, ENCODING_ARROW is 2")


@dataclass(frozen=True)
class EncodedChunk:
    """The fields of an ``Update`` that carry rows, serialised, and how many rows they are."""

    body: bytes
    rows: int


def header(query: Query) -> pb.Header:
    """What the rows of a query look like, and how they are to be read."""
    described = [column_to_proto(column) for column in columns(query)]
    emit = pb.Emit.Value(f"EMIT_{query.emit.value}")
    return pb.Header(query=query.name, columns=described, emit=emit, ends=rows_tell_ends(query))


def columns(query: Query) -> list[Column]:
    """The columns of a query's rows."""
    level = [Column(LEVEL, Type.BIGINT)] if levels_of(query) is not None else []
    return [*level, *(Column(output.name, output.type) for output in query.relation.outputs)]


def rows(query: Query, batch: pa.RecordBatch) -> list[pb.Row]:
    """Every row of a batch that has the query's columns."""
    null = pb.Value()
    values = []
    for column, array in zip(columns(query), batch.columns, strict=True):
        write = _WRITERS[column.type]
        values.append([null if v is None else write(v) for v in array.to_pylist()])
    return [pb.Row(values=row) for row in zip(*values, strict=True)]


def pieces(query: Query, encoding: Encoding, emission: Emission, skip: int) -> Iterator[EncodedChunk]:
    """The changes of an emission after the first ``skip``, in pieces of about ``CHUNK`` bytes."""
    batch, diff = emission.rows.slice(min(skip, emission.rows.num_rows)), emission.diff[skip:]
    until = None if emission.until is None else emission.until[skip:]
    if batch.num_rows == 0:
        return
    if encoding is Encoding.ARROW:
        start = 0
        for part in sliced(batch, CHUNK):
            own = slice(start, start + part.num_rows)
            yield EncodedChunk(_arrow_body(part, diff[own], None if until is None else until[own]), part.num_rows)
            start += part.num_rows
    elif batch.num_rows <= FEW:
        for some in _few(query, batch, diff, until):
            yield EncodedChunk(pb.Update(changes=some).SerializeToString(), len(some))
    else:
        types = [column.type for column in columns(query)]
        first = 0
        for block in sliced(batch, BLOCK):
            own = slice(first, first + block.num_rows)
            ends = None if until is None else until[own]
            of_block = protobuf_rows.changes(diff[own], protobuf_rows.rows(types, block), ends)
            changes = protobuf_rows.fields(_CHANGES_IN_UPDATE, of_block)
            for start, stop in _cuts(protobuf_rows.lengths(changes)):
                yield EncodedChunk(protobuf_rows.content(changes.slice(start, stop - start)), stop - start)
            first += block.num_rows


def sliced(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    """A batch in pieces of about so many bytes, at least a row each, and of no more than twice as many."""
    each = max(1, size * batch.num_rows // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, each):
        yield from _halved(batch.slice(start, each), 2 * size)


def _halved(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """Rows that are longer than most of their batch are not sent together."""
    if batch.num_rows == 1 or batch.nbytes <= most:
        yield batch
        return
    half = batch.num_rows // 2
    for part in (batch.slice(0, half), batch.slice(half)):
        yield from _halved(part, most)


def sendable(query: Query, message: bytes) -> bytes:
    """The message, if it is not larger than one may be: a row is not parted."""
    if len(message) > MAX_MESSAGE:
        raise LimitError(
            f"a row of query {query.name!r} takes {len(message)} bytes, and a message {MAX_MESSAGE} at the most",
            hint="let the query select fewer or shorter columns",
        )
    return message


def _arrow_body(batch: pa.RecordBatch, diff: np.ndarray, until: np.ndarray | None) -> bytes:
    diffs = [] if (diff == 1).all() else diff.tolist()
    untils = b"" if until is None else until.astype("<i8").tobytes()
    return pb.Update(arrow=to_page(batch), diffs=diffs, untils=untils).SerializeToString()


def _few(
    query: Query, batch: pa.RecordBatch, diffs: np.ndarray, until: np.ndarray | None
) -> Iterator[list[pb.Update.Change]]:
    piece: list[pb.Update.Change] = []
    size = 0
    ends = [None] * len(diffs) if until is None else until.tolist()
    for diff, row, end in zip(diffs.tolist(), rows(query, batch), ends, strict=True):
        change = pb.Update.Change(diff=diff, row=row, until_ms=end)
        piece.append(change)
        size += change.ByteSize() + 4
        if size >= CHUNK:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _cuts(lengths: np.ndarray) -> Iterator[tuple[int, int]]:
    """Where to cut so that each piece but the last reaches the size of a chunk."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(ends):
        sent = ends[start - 1] if start else 0
        stop = min(len(ends), int(np.searchsorted(ends, sent + CHUNK)) + 1)
        yield start, stop
        start = stop
