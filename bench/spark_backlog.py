"""A backlog on ``s.*`` as ingest would have left it, for the benchmark of operators."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from services.windows.registry import Registry
from stairwise.platform import kafka
from stairwise.schema import DAWN, Stream
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, pack_rows

ROWS_PER_MESSAGE = 16_384
RATE = 100_000
"""Rows per second of event time."""
START = 1_700_000_040_000
"""A whole minute."""
PARTITIONS = 4
KEYS = 1_000
COLUMNS = "ts TIMESTAMP, k STRING, x BIGINT"


def abrupt(count: int) -> list[str]:
    """Windows as seed 000's experiment draws them: ranges up to 60 s, slides up to 30."""
    return _drawn(count, 60, 30)


def different(count: int) -> list[str]:
    """Ranges up to an hour, slides up to a minute, no window twice."""
    chance, drawn = random.Random(count), {(3600, 1)}
    while len(drawn) < count:
        slide = chance.randint(1, 60)
        drawn.add((chance.randint(slide + 1, 3600), slide))
    return [f"RANGE {w} SECONDS SLIDE {b} SECONDS" for w, b in sorted(drawn)]


def usual(count: int) -> list[tuple[int, int]]:
    """Ranges up to 60 s and slides up to 10, as users write them: a range is a multiple of its slide."""
    chance, drawn = random.Random(count), [(60, 1)]
    while len(drawn) < count:
        slide = chance.randint(1, 10)
        drawn.append((slide * chance.randint(1, 60 // slide), slide))
    return drawn


def _drawn(count: int, widest: int, coarsest: int) -> list[str]:
    chance, drawn = random.Random(count), [f"RANGE {widest} SECONDS SLIDE 1 SECOND"]
    for _ in range(count - 1):
        slide = chance.randint(1, coarsest)
        drawn.append(f"RANGE {chance.randint(slide + 1, widest)} SECONDS SLIDE {slide} SECONDS")
    return drawn


def declare(registry: Registry, stream: str, windows: Sequence[str]) -> Stream:
    """A stream with a SUM by key for each window."""
    queries = (
        f"CREATE QUERY {stream}_{i} AS SELECT k, SUM(x) AS total FROM {stream} [{window}] GROUP BY k;"
        for i, window in enumerate(windows)
    )
    registry.execute(f"CREATE STREAM {stream} ({COLUMNS}) TIMESTAMP BY ts PARTITIONS {PARTITIONS}; " + "".join(queries))
    return registry.catalogue.streams[stream]


def batches(messages: int) -> Iterator[tuple[int, BatchHeaders, bytes]]:
    """Partition, headers (of plan version 0) and rows of each message, in order of time."""
    chance = np.random.default_rng(1)
    names = pa.array([f"key{i:04d}" for i in range(KEYS)])
    columns = [
        (names.take(pa.array(chance.integers(0, KEYS, ROWS_PER_MESSAGE))), chance.integers(-999, 999, ROWS_PER_MESSAGE))
        for _ in range(32)
    ]
    watermarks, sequences = [DAWN] * PARTITIONS, [0] * PARTITIONS
    for number in range(messages):
        partition = number % PARTITIONS
        place = np.arange(number * ROWS_PER_MESSAGE, (number + 1) * ROWS_PER_MESSAGE)
        times = START + place * 1000 // RATE
        keys, values = columns[number % len(columns)]
        rows = pa.RecordBatch.from_arrays([pa.array(times), keys, pa.array(values)], names=["ts", "k", "x"])
        highest = int(times[-1])
        headers = BatchHeaders(
            version=0,
            sequence=sequences[partition],
            rows=ROWS_PER_MESSAGE,
            watermark=highest - 1,
            previous=watermarks[partition],
            lowest=int(times[0]),
            highest=highest,
            sealed=False,
        )
        watermarks[partition] = highest - 1
        sequences[partition] += ROWS_PER_MESSAGE
        yield partition, headers, pack_rows(rows)


def write(brokers: str, stream: Stream, version: int, messages: int) -> None:
    producer = kafka.producer(brokers, linger_ms=5, compression_type="none")
    for partition, headers, value in batches(messages):
        encoded = replace(headers, version=version).encode()
        while True:
            try:
                producer.produce(topics.sequenced(stream), value, partition=partition, headers=encoded)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
