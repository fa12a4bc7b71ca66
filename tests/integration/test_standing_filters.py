"""Standing filters of a running service: what subscribers see is the oracle's, whoever runs them and is killed."""

from __future__ import annotations

import json
import time
import uuid

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition

from services.results.assembly import Assembly, Released
from services.results.results_topic import decode
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import resolve_query
from stairwise.platform import kafka
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import Column, Stream, Type
from stairwise.wire import topics
from stairwise.wire.reports import Mark
from tests.integration.lookup_system import WITHIN, Worker, Writer
from tests.oracle import OracleRow, evaluate
from tests.plans import as_script

pytestmark = pytest.mark.jvm

COLUMNS = (Column("ts", Type.TIMESTAMP, nullable=False), Column("k", Type.STRING), Column("v", Type.BIGINT))
PARTITIONS = 2


class Subscriber:
    """Reads the reports of one signature as results does: repeats are dropped, nothing is skipped."""

    def __init__(self, brokers: str, signature: str) -> None:
        self.released: list[Released] = []
        self.assembly = Assembly()
        self._signature = signature
        self._consumer = kafka.consumer(brokers, "test-standing-filters")
        self._consumer.assign([TopicPartition(topics.RESULTS, topics.results_partition(signature), 0)])

    def read_until(self, instant: int | None) -> None:
        """Up to a report at or after an instant; None: up to the mark that ends them."""
        deadline = time.monotonic() + WITHIN
        while not self.released or self.released[-1].mark is Mark.REPORT:
            if instant is not None and self.released and self.released[-1].position[0] >= instant:
                return
            assert time.monotonic() < deadline, f"no report at {instant} within {WITHIN} s"
            for message in self._consumer.consume(100, timeout=0.1):
                said = decode(kafka.checked(message))
                if said is not None and said.headers.signature == self._signature:
                    self.released += list(self.assembly.take(said))


class Flow:
    """Rows in both partitions, a millisecond apart, and what the oracle needs to know of them."""

    def __init__(self, writer: Writer, stream: Stream) -> None:
        self.rows: list[OracleRow] = []
        self.end = 0
        self._writer, self._stream = writer, stream
        self._chance = np.random.default_rng(11)

    def write(self, count: int) -> None:
        for partition in range(PARTITIONS):
            keys = [f"k{n}" for n in (20 * self._chance.random(count) ** 2).astype(int)]
            values = self._chance.integers(0, 100, count).tolist()
            columns = [pa.array(range(self.end, self.end + count)), pa.array(keys), pa.array(values)]
            rows = pa.RecordBatch.from_arrays(columns, schema=self._stream.arrow_schema)
            self._writer.write_rows(self._stream, partition, rows)
            self.rows += [
                OracleRow(row["ts"], partition, row["ts"], tuple(row.values()))  # each millisecond has one row
                for row in rows.to_pylist()
            ]
        self.end += count

    def seal(self) -> None:
        for partition in range(PARTITIONS):
            nothing = pa.RecordBatch.from_pylist([], schema=self._stream.arrow_schema)
            self._writer.write_rows(self._stream, partition, nothing, sealed=True)


def began(worker: Worker, stream: Stream) -> str:
    """When a worker last began to run the filters of a stream; before all time if it never did."""
    said = [line for line in worker.log.read_text().splitlines() if "standing filters" in line and stream.name in line]
    return str(json.loads(said[-1])["time"]) if said else ""


def test_a_filter_goes_on_without_a_gap_when_the_worker_that_runs_it_is_killed(broker) -> None:
    writer = Writer(broker.bootstrap)
    stream = Stream(f"filtered_{uuid.uuid4().hex[:6]}", COLUMNS, timestamp_by="ts", partitions=PARTITIONS)
    writer.create(stream)
    text = (
        f"SELECT k, SUM(v) AS total FROM {stream.name} [RANGE 200 ms SLIDE 20 ms] GROUP BY k"
        " HAVING SUM(v) > 1500 EMIT CHANGES USING LOOKUPS"
    )
    name = f"hot_{uuid.uuid4().hex[:6]}"
    version = writer.register(name, text)
    subscriber = Subscriber(broker.bootstrap, f"{name}@{version}")
    flow = Flow(writer, stream)
    workers = [Worker(broker.bootstrap, broker.directory) for _ in range(2)]
    try:
        for worker in workers:
            worker.await_healthy()
        flow.write(500)
        subscriber.read_until(flow.end - 21)
        max(workers, key=lambda worker: began(worker, stream)).kill()
        flow.write(500)
        subscriber.read_until(flow.end - 21)
        flow.write(500)
        flow.seal()
        subscriber.read_until(None)
    finally:
        for worker in workers:
            worker.close()

    (select,) = parse_script(text)
    query = resolve_query(name, select, {stream.name: stream})
    expansion = Expansion(query)
    reports = [released.report() for released in subscriber.released if released.mark is Mark.REPORT]
    lines = [line for report in reports for line in line_dicts(name, expansion.expand(report))]
    assert subscriber.released[-1].mark is Mark.SEALED
    declared = f"CREATE STREAM {stream.name} (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts"
    assert lines == evaluate(as_script(declared, query), {stream.name: flow.rows})
    assert len(reports) == flow.end // 20 + 1
