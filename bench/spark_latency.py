"""From a row's append to ``s.*`` until the report that it completes is appended to ``results``, at a steady rate.

A report can be made when the watermarks of all partitions have passed its time: it is due with the message that lets
the last of them pass. From when that is produced the delay is counted, to the timestamp of the report's own message.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from confluent_kafka import TopicPartition

from bench import spark_backlog as backlog
from stairwise.platform import kafka
from stairwise.schema import DAWN, Stream
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, pack_rows
from stairwise.wire.reports import Mark, ReportHeaders

RATE = 20_000
"""Rows a second."""
EVERY = 0.05
"""Seconds between two messages of a partition: ingest's linger."""


@dataclass
class Feed:
    """Rows that happen now, as ingest would write them."""

    brokers: str
    stream: Stream
    version: int
    due: dict[int, float] = field(default_factory=dict)
    """By the second of a report, when the message was produced that lets the last partition pass it."""

    def run(self, stopping: threading.Event) -> None:
        producer = kafka.producer(self.brokers, linger_ms=0, compression_type="none")
        chance = np.random.default_rng(2)
        names = pa.array([f"key{i:04d}" for i in range(backlog.KEYS)])
        count = int(RATE * EVERY) // backlog.PARTITIONS
        watermarks, sequence, passed = [DAWN] * backlog.PARTITIONS, 0, 0
        begun, number = time.monotonic(), 0
        while not stopping.is_set():
            now = int(time.time() * 1000)
            times = np.linspace(now - int(EVERY * 1000) + 1, now, count).astype(np.int64)
            for partition in range(backlog.PARTITIONS):
                keys = names.take(pa.array(chance.integers(0, backlog.KEYS, count)))
                columns = [pa.array(times), keys, pa.array(chance.integers(-999, 999, count))]
                rows = pa.RecordBatch.from_arrays(columns, names=["ts", "k", "x"])
                previous, watermarks[partition] = watermarks[partition], now - 1
                bounds = (int(times[0]), int(times[-1]))
                headers = BatchHeaders(self.version, sequence, count, now - 1, previous, *bounds)
                topic = topics.sequenced(self.stream)
                producer.produce(topic, pack_rows(rows), partition=partition, headers=headers.encode())
            second = (now - 1) // 1000
            if second > passed:
                passed = second
                self.due[second * 1000] = time.time() * 1000
            producer.poll(0)
            sequence, number = sequence + count, number + 1
            time.sleep(max(0.0, begun + number * EVERY - time.monotonic()))
        producer.flush(30)


def appended(brokers: str, signature: str, shards: int) -> dict[int, float]:
    """When the last shard's report of each time was appended."""
    partition = topics.results_partition(signature)
    consumer = kafka.consumer(brokers, "bench-latency", enable_partition_eof=True)
    consumer.assign([TopicPartition(topics.RESULTS, partition, 0)])
    seen: dict[int, list[int]] = {}
    while True:
        messages = consumer.consume(1000, timeout=1.0)
        for message in messages:
            if message.error() is None:
                headers = ReportHeaders.decode(dict(message.headers()))
                if headers.signature == signature and headers.mark is Mark.REPORT:
                    seen.setdefault(headers.time, []).append(message.timestamp()[1])
        if not messages or any(message.error() is not None for message in messages):
            break
    consumer.close()
    return {at: max(times) for at, times in seen.items() if len(times) >= shards}
