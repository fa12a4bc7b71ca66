"""Stage 1, per topic partition: decode a message, split its rows by shard, pass on what every shard must know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from services.operators.distribution import Distribution, distribution_of
from services.operators.parcel import Cut, Parcel, cut_rows
from services.operators.worker import plans_upto
from stairwise.platform import telemetry, topics
from stairwise.platform.batches import BatchHeaders, decode_rows
from stairwise.platform.plans import PlanLog
from stairwise.schema import Stream
from stairwise.streams.partition import split

INPUT = ("topic", "partition", "offset", "value", "headers")
OUTPUT = pa.schema([("shard", pa.int32()), ("parcel", pa.binary())])
OUTPUT_DDL = "shard int, parcel binary"


def stage1(brokers: str, shards: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark maps over the messages of each topic partition."""

    def each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers: list[int] = []
            parcels: list[bytes] = []
            for row in batch.to_pylist():
                headers = {h["key"]: h["value"] for h in row["headers"]}
                version = int(headers["version"])
                for shard, parcel in parcels_of(row, headers, plans_upto(brokers, version), shards):
                    numbers.append(shard)
                    parcels.append(parcel.encode())
            yield pa.record_batch([pa.array(numbers, pa.int32()), pa.array(parcels, pa.binary())], schema=OUTPUT)

    return each


def parcels_of(
    row: dict[str, object], raw: dict[str, bytes], plans: PlanLog, shards: int
) -> Iterator[tuple[int, Parcel]]:
    """One message as a parcel for each shard."""
    headers = BatchHeaders.decode(raw)
    topic = str(row["topic"])
    name, incarnation = topics.parse_sequenced(topic)
    catalogue = plans.at(headers.version)
    stream = catalogue.streams.get(name)
    value = row["value"]
    cuts: list[list[Cut]] = [[] for _ in range(shards)]
    if headers.rows and stream is not None and stream.incarnation == incarnation:
        wanted = _wanted(plans, headers.version, name, shards)
        cuts = _cuts(value if isinstance(value, bytes) else b"", stream, headers, wanted, shards)
    context = raw.get(telemetry.TRACEPARENT, b"").decode()
    for shard in range(shards):
        yield (
            shard,
            Parcel(topic, int(str(row["partition"])), int(str(row["offset"])), headers, context, cuts[shard]),
        )


_found: dict[tuple[int, int, str, int], set[Distribution]] = {}


def _wanted(plans: PlanLog, version: int, stream: str, shards: int) -> set[Distribution]:
    """How the queries over a stream want its rows at a plan version: found out once, however many they are."""
    key = (id(plans), version, stream, shards)
    if key not in _found:
        catalogue = plans.at(version)
        readers = (r for r in catalogue.readers(catalogue.streams[stream]) if not r.query.by_lookups)
        _found[key] = {distribution_of(registered, shards) for registered in readers}
    return _found[key]


def _cuts(
    value: bytes, stream: Stream, headers: BatchHeaders, wanted: set[Distribution], shards: int
) -> list[list[Cut]]:
    """For each shard, its rows: whole messages as they came, split ones taken apart once per column."""
    cuts: list[list[Cut]] = [[] for _ in range(shards)]
    columns = sorted({d.column for d in wanted if d.column is not None})
    rows = decode_rows(value, stream) if columns else None
    for column in columns:
        shard_of_row = split(rows, column, shards, 0)
        for shard in range(shards):
            chosen = np.flatnonzero(shard_of_row == shard)
            cuts[shard].append(cut_rows(Distribution(column).name, rows, chosen, headers.sequence))
    for shard in sorted({d.shard for d in wanted if d.shard is not None}):
        cuts[shard].append(Cut(Distribution(None, shard).name, value, b""))
    return cuts
