"""A stream whose queries all have one signature, and what operators would publish of it, in two shards."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import pyarrow as pa

from services.operators.parcel import Parcel
from services.operators.shard import Shard
from services.operators.stage1 import SequencedMessage, parcels_of
from stairwise.platform import kafka
from stairwise.schema import DAWN, Column, Instant, Stream, Type
from stairwise.state.store import MemoryStore
from stairwise.v1 import plans_pb2
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, encode_rows
from stairwise.wire.plans import PlanReader
from stairwise.wire.reports import encode_report
from stairwise.wire.schemas import stream_to_proto

SHARDS = 2
SECOND = 1_000


class Source:
    """Every second of its time has a row for each of some keys, whose value is the clock in microseconds."""

    def __init__(self, brokers: str, windows: int) -> None:
        """With so many queries, which have windows of different ranges and report every second."""
        topics.ensure(
            kafka.admin(brokers), {topics.RESULTS: topics.RESULTS_PARTITIONS, topics.PLANS: 1}, topics.FOREVER
        )
        topics.ensure(kafka.admin(brokers), {topics.LIVES: 1}, topics.COMPACTED)
        self._producer = kafka.producer(brokers)
        self._plans = PlanReader(brokers)
        columns = (Column("ts", Type.TIMESTAMP), Column("k", Type.STRING), Column("v", Type.BIGINT))
        self._stream = Stream(f"t{uuid.uuid4().hex[:8]}", columns, timestamp_by="ts", partitions=1)
        self.queries = self._register(windows)
        self._shards = [Shard(number, SHARDS, MemoryStore()) for number in range(SHARDS)]
        self._sequence = 0
        self._watermark: Instant = DAWN
        self.time: Instant = 0
        """Up to when it has reported."""
        for moment in (0, 1):  # the queries begin, and report that before anybody subscribes
            self._take([moment])

    def report(self, rows: int) -> None:
        """The next report of every query, with so many rows each."""
        self._take([self.time + 1] * rows + [self.time + SECOND + 1])  # the last one makes the report due
        self.time += SECOND

    def close(self) -> None:
        self._plans.close()
        self._producer.close()

    def _register(self, windows: int) -> list[str]:
        name, create = self._stream.name, plans_pb2.Change.CreateQuery
        select = f"SELECT k, COUNT(*) AS n, MAX(v) AS s FROM {name} [RANGE %d SECONDS SLIDE 1 SECOND] GROUP BY k"
        texts = {f"{name}_{i}": select % (i + 1) for i in range(windows)}
        changes = [plans_pb2.Change(create_query=create(name=n, text=text)) for n, text in texts.items()]
        stream = plans_pb2.Change.CreateStream(stream=stream_to_proto(self._stream))
        self._version = self._plans.read_to_end().version + 1
        plan = plans_pb2.PlanVersion(number=self._version, changes=[plans_pb2.Change(create_stream=stream), *changes])
        self._producer.produce(topics.PLANS, plan.SerializeToString(), partition=0)
        self._flush()
        self._plans.read_upto(self._version)
        return list(texts)

    def _take(self, times: Sequence[Instant]) -> None:
        now = time.time_ns() // 1_000
        keys = [*(f"key{i:05}" for i in range(len(times) - 1)), "key00000"]
        columns = [pa.array(times), pa.array(keys), pa.array([now] * len(times))]
        rows = pa.RecordBatch.from_arrays(columns, schema=self._stream.arrow_schema)
        watermark = times[-1] - 1
        headers = BatchHeaders(
            self._version, self._sequence, len(times), watermark, self._watermark, times[0], times[-1]
        )
        self._sequence, self._watermark = self._sequence + len(times), watermark
        message = SequencedMessage(topics.sequenced(self._stream), 0, headers.sequence, encode_rows(rows), headers)
        for number, parcel in parcels_of([message], self._plans.log, SHARDS):
            self._shards[number].take(Parcel.decode(parcel.encode()), self._plans.log)
            self._publish(self._shards[number])
        self._flush()

    def _publish(self, shard: Shard) -> None:
        for out in shard.advance(self._plans.log):
            for identity, life in out.lives.items():
                self._producer.produce(topics.LIVES, life.encode(), identity.encode(), partition=0)
            value = b"" if out.report is None else encode_report(out.report)
            partition = topics.results_partition(out.headers.signature)
            self._producer.produce(
                topics.RESULTS, value, out.headers.key(), partition=partition, headers=out.headers.encode()
            )

    def _flush(self) -> None:
        assert self._producer.flush(30) == 0
