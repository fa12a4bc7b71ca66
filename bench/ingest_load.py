"""What the benchmark of ingest publishes: the same rows in every format, and rows that are wrong in every way."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from stairwise.platform import kafka
from stairwise.schema import Stream
from stairwise.wire import topics
from tests.integration.ingest_system import START, IngestSystem

COLUMNS = "ts TIMESTAMP, ticker STRING NOT NULL, price DOUBLE, qty BIGINT"
TICKERS = ("ACME", "GLOBEX", "INITECH", "UMBRELLA")


def row(number: int) -> bytes:
    ticker = TICKERS[number & 3].encode()
    return b'{"ts":%d,"ticker":"%s","price":%.2f,"qty":%d}' % (START + number, ticker, 10 + number % 977 / 7, number)


def objects(count: int) -> Iterator[bytes]:
    return map(row, range(count))


def lines(count: int, rows: int) -> Iterator[bytes]:
    return (b"\n".join(map(row, range(start, start + rows))) for start in range(0, count, rows))


def arrow(count: int, rows: int) -> Iterator[bytes]:
    ticker = pa.array([TICKERS[n & 3] for n in range(rows)])
    price = pa.array(10 + np.arange(rows) % 977 / 7)
    for start in range(0, count, rows):
        number = np.arange(start, start + rows)
        columns = {"ts": START + number, "ticker": ticker, "price": price, "qty": number}
        table = pa.table(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield bytes(sink.getvalue())


def batches(count: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Rows as ingest writes them, with values that are not all alike."""
    chance = np.random.default_rng(7)
    for number in range(count):
        yield pa.record_batch(
            {
                "ts": START + np.arange(number * rows, (number + 1) * rows),
                "ticker": pa.array(TICKERS).take(pa.array(chance.integers(0, len(TICKERS), rows))),
                "price": np.round(chance.normal(100, 10, rows), 2),
                "qty": chance.integers(1, 1_000, rows),
            }
        )


WRONG: dict[str, tuple[bytes, str]] = {
    "truncated": (b'{"ts":1700000000000,"ticker":"ACME","pri', "MALFORMED"),
    "wrong type": (b'{"ts":1700000000000,"ticker":"ACME","price":"x","qty":1}', "WRONG_TYPE"),
    "missing field": (b'{"ts":1700000000000,"price":1.5,"qty":1}', "MISSING_FIELD"),
    "extra field": (b'{"ts":1700000000000,"ticker":"ACME","price":1.5,"qty":1,"x":1}', "UNKNOWN_FIELD"),
    "null": (b'{"ts":1700000000000,"ticker":null,"price":1.5,"qty":1}', "NULL_FIELD"),
    "NaN": (b'{"ts":1700000000000,"ticker":"ACME","price":NaN,"qty":1}', "MALFORMED"),
    "Infinity": (b'{"ts":1700000000000,"ticker":"ACME","price":-Infinity,"qty":1}', "MALFORMED"),
    "beyond 64 bits": (b'{"ts":1700000000000,"ticker":"ACME","price":1.5,"qty":9223372036854775808}', "OUT_OF_RANGE"),
    "invalid UTF-8": (b'{"ts":1700000000000,"ticker":"\xff\xfe","price":1.5,"qty":1}', "MALFORMED"),
    "duplicate key": (b'{"ts":1700000000000,"ticker":"ACME","price":1.5,"qty":1,"qty":2}', "DUPLICATE_FIELD"),
    "empty": (b"", "MALFORMED"),
    "deep nesting": (b'{"ts":1700000000000,"ticker":' + b"[" * 5_000, "MALFORMED"),
}
HUGE = b'{"ts":1700000000000,"ticker":"' + b"x" * 10_000_000 + b'"}'


def one_in_a_hundred_wrong(count: int, huge: int) -> Iterator[bytes]:
    """Every hundredth row is wrong in one of all the ways; so many times with 10 MB of it."""
    ways = itertools.cycle([value for value, _ in WRONG.values()])
    every = count // huge
    for number in range(count):
        if number % 100 == 50:
            yield HUGE if number % every < 100 else next(ways)
        else:
            yield row(number)


def publish(system: IngestSystem, stream: Stream, values: Iterable[bytes]) -> int:
    """To all partitions in turn; how many messages it were."""
    producer = kafka.producer(system.brokers, linger_ms=20, message_max_bytes=16 << 20)
    count = 0
    for value in values:
        while True:
            try:
                producer.produce(topics.incoming(stream.name), value, partition=count % stream.partitions)
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
    assert producer.flush(120) == 0
    return count
