"""Stage 1, per topic partition: read messages, split their rows by shard, pass on what every shard must know.

Messages that follow each other in a partition travel on together, as one run: what a parcel costs does not depend on
how often ingest wrote, and small messages are what it writes to be quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from services.operators.distribution import Distribution, distribution_of
from services.operators.parcel import Parcel, Portion, TraceContext, portion_of
from services.operators.spark_worker import plans_upto, settle
from stairwise.platform import telemetry
from stairwise.platform.telemetry import MAX_LINKS
from stairwise.schema import DAWN, Stream
from stairwise.streams.partition import split
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, decode_rows, encode_rows
from stairwise.wire.plans import PlanLog

INPUT = ("topic", "partition", "offset", "value", "headers")
OUTPUT = pa.schema([("shard", pa.int32()), ("parcel", pa.binary())])
OUTPUT_DDL = "shard int, parcel binary"

RUN_ROWS = 1 << 16
RUN_BYTES = 4 << 20
"""How much travels together at the most: what costs little by the row, and passes through Spark in one piece."""


@dataclass(frozen=True)
class SequencedMessage:
    """A message of ``s.*``."""

    topic: str
    partition: int
    offset: int
    value: bytes
    headers: BatchHeaders
    traceparent: str = ""

    @staticmethod
    def of(row: dict[str, Any]) -> SequencedMessage:
        """As Spark's source tells it."""
        raw = {header["key"]: header["value"] for header in row["headers"]}
        context = raw.get(telemetry.TRACEPARENT, b"").decode()
        place, value = (row["topic"], row["partition"], row["offset"]), row["value"] or b""
        if row["topic"] == topics.CARRIED:
            return SequencedMessage(*place, b"", BatchHeaders(int(raw["version"]), 0, 0, DAWN, DAWN))
        return SequencedMessage(*place, value, BatchHeaders.decode(raw), context)


def stage1(brokers: str, shards: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark maps over the messages of each topic partition."""

    def each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: list[int] = []
            parcels: list[bytes] = []
            for run in runs(map(SequencedMessage.of, batch.to_pylist())):
                for shard, parcel in parcels_of(run, plans_upto(brokers, run[0].headers.version), shards):
                    numbers.append(shard)
                    parcels.append(parcel.encode())
            yield pa.record_batch([pa.array(numbers, pa.int32()), pa.array(parcels, pa.binary())], schema=OUTPUT)
        settle()

    return each


def runs(messages: Iterable[SequencedMessage]) -> Iterator[list[SequencedMessage]]:
    """Messages of one partition and one plan version that follow each other; of a table, while its streams stand."""
    run: list[SequencedMessage] = []
    rows = size = 0
    for message in messages:
        rows, size = rows + message.headers.rows, size + len(message.value)
        if run and (not _follows(run[-1], message) or rows > RUN_ROWS or size > RUN_BYTES):
            yield run
            run, rows, size = [], message.headers.rows, len(message.value)
        run.append(message)
    if run:
        yield run


def _follows(last: SequencedMessage, message: SequencedMessage) -> bool:
    one, other = (last.topic, last.partition), (message.topic, message.partition)
    is_equal = last.headers.version == message.headers.version and last.headers.follows == message.headers.follows
    return one == other and is_equal


def parcels_of(run: Sequence[SequencedMessage], plans: PlanLog, shards: int) -> Iterator[tuple[int, Parcel]]:
    """A run of messages as a parcel for each shard."""
    last, headers = run[-1], _together([message.headers for message in run])
    portions: list[list[Portion]] = [[] for _ in range(shards)]
    if headers.rows and (stream := _stream_of(last.topic, headers.version, plans)) is not None:
        wanted = _wanted(plans, headers.version, stream.name, shards)
        portions = _portions([message.value for message in run if message.value], stream, headers, wanted, shards)
    contexts = [TraceContext(message.headers.lowest, message.traceparent) for message in run if message.traceparent]
    for shard in range(shards):
        place = (last.topic, last.partition, last.offset)
        yield shard, Parcel(*place, headers, contexts[:MAX_LINKS], portions[shard])


def _stream_of(topic: str, version: int, plans: PlanLog) -> Stream | None:
    """The stream or table of a topic, where it is there at a plan version."""
    name, incarnation = topics.parse_sequenced(topic)
    stream = plans.at(version).streams.get(name)
    return stream if stream is not None and stream.incarnation == incarnation else None


def _together(run: Sequence[BatchHeaders]) -> BatchHeaders:
    """What the headers of messages that follow each other say of all of them."""
    filled = [headers for headers in run if headers.rows]
    return replace(
        run[-1],
        sequence=run[0].sequence,
        previous=run[0].previous,
        seen=run[0].seen,
        rows=sum(headers.rows for headers in filled),
        lowest=min((headers.lowest for headers in filled), default=DAWN),
        highest=max((headers.highest for headers in filled), default=DAWN),
    )


_found: WeakKeyDictionary[PlanLog, dict[tuple[int, str, int], set[Distribution]]] = WeakKeyDictionary()


def _wanted(plans: PlanLog, version: int, stream: str, shards: int) -> set[Distribution]:
    """How the queries over a stream want its rows at a plan version: found out once, however many they are."""
    found = _found.setdefault(plans, {})
    key = (version, stream, shards)
    if key not in found:
        catalogue = plans.at(version)
        if catalogue.streams[stream].is_table:  # every shard keeps tables, for whoever will join them there
            return found.setdefault(key, {Distribution(None, shard) for shard in range(shards)})
        readers = (r for r in catalogue.readers(catalogue.streams[stream]) if not r.query.by_lookups)
        found[key] = {distribution_of(registered, shards) for registered in readers}
    return found[key]


def _portions(
    values: Sequence[bytes], stream: Stream, headers: BatchHeaders, wanted: set[Distribution], shards: int
) -> list[list[Portion]]:
    """For each shard, its rows: whole runs as they came, split ones taken apart once per column."""
    portions: list[list[Portion]] = [[] for _ in range(shards)]
    columns = sorted({d.column for d in wanted if d.column is not None})
    alone = sorted({d.shard for d in wanted if d.shard is not None})
    if columns or (alone and len(values) > 1):
        rows = pa.concat_batches([decode_rows(value, stream) for value in values])
    for column in columns:
        shard_of_row = split(rows, column, shards, 0)
        for shard in range(shards):
            chosen = np.flatnonzero(shard_of_row == shard)
            portions[shard].append(portion_of(Distribution(column).name, rows, chosen, headers.sequence))
    if alone:
        whole = values[0] if len(values) == 1 else encode_rows(rows)
        for shard in alone:
            portions[shard].append(Portion(Distribution(None, shard).name, whole, b""))
    return portions
