"""A lookups process on a real broker, and a writer that writes what windows and ingest would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import grpc
import pyarrow as pa
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from stairwise.client.lookups import LookupsClient
from stairwise.expressions.views import int64_view
from stairwise.platform import kafka
from stairwise.schema import DAWN, Column, Stream, Type
from stairwise.system.health import Check, probe
from stairwise.system.ports import free_ports
from stairwise.v1 import lookups_pb2, lookups_pb2_grpc, plans_pb2
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, encode_rows
from stairwise.wire.plans import PlanReader
from stairwise.wire.schemas import stream_to_proto

COLUMNS = (Column("ts", Type.TIMESTAMP), Column("qty", Type.BIGINT))


WITHIN = 120.0
"""How long to wait for what comes in seconds on a machine that has nothing else to do."""


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait for a condition; while the service is away its calls fail, which counts as not yet."""
    deadline = time.monotonic() + WITHIN
    while time.monotonic() < deadline:
        try:
            if holds():
                return
        except grpc.RpcError:
            pass
        time.sleep(0.05)
    pytest.fail(f"not within {WITHIN} s: {what}")


class Writer:
    """Writes what windows and ingest write: plan versions and batches, in transactions."""

    def __init__(self, brokers: str) -> None:
        self._admin = kafka.admin(brokers)
        topics.ensure(self._admin, {topics.PLANS: 1}, topics.FOREVER)
        reader = PlanReader(brokers)
        catalogue = reader.read_to_end()  # other tests use the same broker
        reader.close()
        self._version = catalogue.version
        self.declared = set(catalogue.streams)
        self._producer = kafka.producer(brokers, transactional_id=f"test-lookups-{uuid.uuid4().hex}")
        self._producer.init_transactions(30)
        self._sequences: dict[tuple[str, int], int] = {}
        self._watermarks: dict[tuple[str, int], int] = {}

    def close(self) -> None:
        self._producer.close()
        del self._admin  # which looks for its broker as long as it is there

    def create(self, *streams: Stream) -> None:
        for stream in streams:
            topics.ensure(self._admin, topics.topics_of(stream))
        create = plans_pb2.Change.CreateStream
        self._change(*(plans_pb2.Change(create_stream=create(stream=stream_to_proto(s))) for s in streams))

    def resume(self, stream: Stream, rows: int) -> None:
        """Go on with a stream whose partitions have so many rows already."""
        for partition in range(stream.partitions):
            self._sequences[topics.sequenced(stream), partition] = rows

    def register(self, name: str, text: str) -> int:
        """A query joins; the version that registers it."""
        self._change(plans_pb2.Change(create_query=plans_pb2.Change.CreateQuery(name=name, text=text)))
        return self._version

    def drop(self, stream: Stream) -> None:
        drop = plans_pb2.Change.DropStream(name=stream.name, incarnation=stream.incarnation)
        self._change(plans_pb2.Change(drop_stream=drop))

    def write(self, stream: Stream, partition: int, times: range, *, abort: bool = False) -> None:
        """One batch with a row at each of the times, in one transaction."""
        columns = [pa.array(times, pa.int64()), pa.array(range(len(times)), pa.int64())]
        self.write_rows(stream, partition, pa.RecordBatch.from_arrays(columns, schema=stream.arrow_schema), abort=abort)

    def write_rows(
        self, stream: Stream, partition: int, rows: pa.RecordBatch, *, abort: bool = False, sealed: bool = False
    ) -> None:
        """One batch, with times that grow, in one transaction; an empty one only if it is the last."""
        with self._transaction(abort=abort):
            self._produce_rows(stream, partition, rows, abort=abort, sealed=sealed)

    def write_together(self, stream: Stream, batches: Mapping[int, pa.RecordBatch]) -> None:
        """Batches of several partitions in one transaction, as ingest writes them."""
        with self._transaction(abort=False):
            for partition, rows in batches.items():
                self._produce_rows(stream, partition, rows)

    def write_marks(self, stream: Stream, partition: int, watermarks: range) -> None:
        """Empty batches, as an idle partition gets them: each a watermark."""
        topic = topics.sequenced(stream)
        sequence = self._sequences.get((topic, partition), 0)
        previous = self._watermarks.get((topic, partition), DAWN)
        for start in range(0, len(watermarks), 20_000):
            with self._transaction(abort=False):
                for watermark in watermarks[start : start + 20_000]:
                    headers = BatchHeaders(self._version, sequence, 0, watermark, previous)
                    self._produce(topic, partition, headers)
                    previous = watermark
        self._watermarks[topic, partition] = previous

    def _produce(self, topic: str, partition: int, headers: BatchHeaders) -> None:
        while True:
            try:
                self._producer.produce(topic, b"", partition=partition, headers=headers.encode())
                return
            except BufferError:
                self._producer.poll(0.1)

    def _produce_rows(
        self, stream: Stream, partition: int, rows: pa.RecordBatch, *, abort: bool = False, sealed: bool = False
    ) -> None:
        topic = topics.sequenced(stream)
        times = int64_view(rows.column(stream.time_column))
        sequence = self._sequences.get((topic, partition), 0)
        previous = self._watermarks.get((topic, partition), DAWN)
        lowest, highest = (int(times[0]), int(times[-1])) if len(times) else (DAWN, DAWN)
        watermark = highest - stream.lateness - 1 if len(times) else previous
        headers = BatchHeaders(
            version=self._version,
            sequence=sequence,
            rows=len(times),
            watermark=watermark,
            previous=previous,
            lowest=lowest,
            highest=highest,
            sealed=sealed,
        )
        self._producer.produce(topic, encode_rows(rows), partition=partition, headers=headers.encode())
        if not abort:
            self._sequences[topic, partition] = sequence + len(times)
            self._watermarks[topic, partition] = watermark

    def _change(self, *changes: plans_pb2.Change) -> None:
        self._version += 1
        plan = plans_pb2.PlanVersion(number=self._version, changes=changes)
        with self._transaction(abort=False):
            self._producer.produce(topics.PLANS, plan.SerializeToString(), partition=0)

    @contextmanager
    def _transaction(self, *, abort: bool) -> Iterator[None]:
        self._producer.begin_transaction()
        yield
        if abort:
            self._producer.flush(30)  # so that it is in the topic before it is taken back
            self._producer.abort_transaction(30)
        else:
            self._producer.commit_transaction(30)


class Worker:
    """A lookups process and a client of it."""

    def __init__(self, brokers: str, directory: Path) -> None:
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self.log = directory / f"lookups-{self.address.rpartition(':')[2]}.log"
        self._environment = {
            **os.environ,
            "STAIRWISE_BROKERS": brokers,
            "STAIRWISE_DIR": str(directory),
            "STAIRWISE_LISTEN": self.address,
        }
        self._channel = grpc.insecure_channel(self.address)
        self.client = LookupsClient(self._channel, self.address)
        self.start()

    def start(self) -> None:
        with self.log.open("a") as log:
            command = [sys.executable, "-m", "services.lookups"]
            self.process = subprocess.Popen(command, env=self._environment, stderr=log)

    def await_healthy(self) -> None:
        eventually(lambda: self.is_healthy, f"{self.address} is healthy, see {self.log}")

    @property
    def is_healthy(self) -> bool:
        return probe(Check("grpc", self.address), timeout=2).healthy

    def owners(self, stream: Stream | str = "") -> list[lookups_pb2.Owner]:
        name = stream.name if isinstance(stream, Stream) else stream
        request = lookups_pb2.OwnersRequest(stream=name)
        return list(lookups_pb2_grpc.LookupsStub(self._channel).Owners(request, timeout=5).owners)

    def rows(self, stream: Stream) -> list[int]:
        return [owner.rows for owner in self.owners(stream)]

    def services(self) -> set[str]:
        stub = reflection_pb2_grpc.ServerReflectionStub(self._channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        answer = next(stub.ServerReflectionInfo(iter([request]), timeout=5))
        return {service.name for service in answer.list_services_response.service}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def close(self) -> int:
        """SIGTERM; the exit code. It must not take longer than a few seconds."""
        self._channel.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(10)
        finally:
            self.process.kill()
