"""Rows that flow while lookups are measured: batches of both partitions, at a steady rate, until it is ended.

Run as a process of its own: ``python -m bench.lookups_load BROKERS STREAM-NAME ROWS-A-SECOND START``.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa

from stairwise.schema import Column, Stream, Type
from tests.integration.lookup_system import Writer

BATCH = 4096
PARTITIONS = 2
KEYS = 1000
ROWS_A_MILLISECOND = 100
"""Of each partition, in event time."""
RETAIN = 10_000
"""Milliseconds: as much is forgotten as comes, as it is in a service that has been running for a while."""
COLUMNS = (
    Column("ts", Type.TIMESTAMP, nullable=False),
    Column("ticker", Type.STRING),
    Column("qty", Type.BIGINT),
    Column("price", Type.DOUBLE),
)
TICKERS = pa.array([f"t{number}" for number in range(KEYS)])


def stream_of(name: str) -> Stream:
    return Stream(name, COLUMNS, timestamp_by="ts", partitions=PARTITIONS, retain_time=RETAIN)


def batch(start: int, chance: np.random.Generator) -> pa.RecordBatch:
    """Rows whose times are as far apart as 200,000 rows a second in two partitions are: a hundred a millisecond."""
    times = start + np.arange(BATCH) // ROWS_A_MILLISECOND
    tickers = TICKERS.take(pa.array(chance.integers(0, KEYS, BATCH)))
    columns = [pa.array(times), tickers, pa.array(chance.integers(0, 100, BATCH)), pa.array(chance.normal(size=BATCH))]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema([pa.field(c.name, c.type.arrow) for c in COLUMNS]))


def write(writer: Writer, stream: Stream, start: int, count: int, rate: float | None = None) -> None:
    """``count`` batches in each partition, all partitions in one transaction, as ingest does it."""
    chance = np.random.default_rng(start)
    begin = time.monotonic()
    for number in range(count):
        begins = start + number * BATCH // ROWS_A_MILLISECOND
        rows = [batch(begins, chance).cast(stream.arrow_schema) for _ in range(PARTITIONS)]
        writer.write_together(stream, dict(enumerate(rows)))
        if rate is not None:
            due = begin + (number + 1) * PARTITIONS * BATCH / rate
            time.sleep(max(0.0, due - time.monotonic()))


def main(brokers: str, name: str, rate: str, start: str, already: str) -> None:
    writer = Writer(brokers)
    stream = stream_of(name)
    writer.resume(stream, int(already))
    write(writer, stream, int(start), 1_000_000, float(rate))


if __name__ == "__main__":
    main(*sys.argv[1:])
