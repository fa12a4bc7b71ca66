"""The results service as a process, and what writes plans and reports for it as the other services do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import grpc
import pyarrow as pa
from confluent_kafka import Producer

from stairwise.client import Client, Update
from stairwise.client import Subscription as Updates
from stairwise.platform import kafka
from stairwise.platform.config import Settings
from stairwise.reports.contract import Position, Report
from stairwise.reports.expansion import report_schema
from stairwise.reports.standing_answer import UNTIL
from stairwise.schema import DUSK, Column, Stream, Type
from stairwise.system.health import Check, probe
from stairwise.system.ports import free_ports
from stairwise.v1 import plans_pb2, results_pb2_grpc
from stairwise.wire import message_pieces, topics
from stairwise.wire.plans import PlanReader, Registered
from stairwise.wire.reports import Mark, ReportHeaders, encode_report
from stairwise.wire.schemas import stream_to_proto

Rows = Sequence[tuple[object, ...]]


class Writer:
    """Writes plans and reports. Versions go on from what the topic holds: the session's broker is shared."""

    def __init__(self, brokers: str) -> None:
        admin = kafka.admin(brokers)
        topics.ensure(admin, {topics.PLANS: 1}, topics.FOREVER)
        topics.ensure(admin, {topics.RESULTS: topics.RESULTS_PARTITIONS}, topics.FOREVER)
        self._producer: Producer = kafka.producer(brokers)
        self._plans = PlanReader(brokers)
        self._keyframes: dict[str, Position] = {}

    def change(self, *changes: plans_pb2.Change) -> int:
        number = self._plans.read_to_end().version + 1
        plan = plans_pb2.PlanVersion(number=number, changes=changes)
        self._producer.produce(topics.PLANS, plan.SerializeToString(), partition=0)
        self.flush()
        return number

    def stream(self) -> str:
        name = f"t{uuid.uuid4().hex[:8]}"
        columns = (Column("ts", Type.TIMESTAMP), Column("k", Type.STRING), Column("v", Type.BIGINT))
        created = plans_pb2.Change.CreateStream(stream=stream_to_proto(Stream(name, columns, timestamp_by="ts")))
        self.change(plans_pb2.Change(create_stream=created))
        return name

    def query(self, text: str, name: str | None = None) -> Registered:
        name = name or f"q{uuid.uuid4().hex[:8]}"
        created = plans_pb2.Change.CreateQuery(name=name, text=text)
        self.change(plans_pb2.Change(create_query=created))
        return self._plans.read_to_end().queries[name]

    def registered(self) -> Mapping[str, Registered]:
        """Every query, by name."""
        return self._plans.read_to_end().queries

    def drop(self, registered: Registered) -> None:
        dropped = plans_pb2.Change.DropQuery(name=registered.query.name)
        self.change(plans_pb2.Change(drop_query=dropped))

    def report(
        self,
        registered: Registered,
        time: int,
        rows: Rows,
        shard: int = 0,
        shards: int = 1,
        traceparent: str = "",
        messages: int | None = None,
    ) -> None:
        """With ``messages``, the writer is killed after so many pieces of the report."""
        schema = report_schema(registered.query)
        arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
        report = Report(registered.signature, time, pa.RecordBatch.from_arrays(arrays, schema=schema))
        self._write(
            ReportHeaders(registered.signature, shard, shards, time), encode_report(report), traceparent, messages
        )

    def moves(self, registered: Registered, time: int, rows: Rows) -> None:
        """A report that says what moved: rows with their ends. The first one is a keyframe."""
        keyframe = self._keyframes.setdefault(registered.signature, (time, 0))
        schema = report_schema(registered.query).append(UNTIL)
        arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        before = batch.slice(0, 0) if keyframe == (time, 0) else None
        report = Report(registered.signature, time, batch, keyframe=keyframe, before=before)
        self._write(ReportHeaders(registered.signature, 0, 1, time).of(report), encode_report(report))

    def end(self, registered: Registered, mark: Mark = Mark.SEALED, shard: int = 0, shards: int = 1) -> None:
        self._write(ReportHeaders(registered.signature, shard, shards, DUSK, mark=mark), b"")

    def litter(self, registered: Registered) -> None:
        """Write what nobody should."""
        partition = topics.results_partition(registered.signature)
        self._producer.produce(topics.RESULTS, b"what is this", partition=partition)
        self._producer.produce(
            topics.RESULTS, b"", partition=partition, headers=[("signature", b"x@1"), ("shard", None)]
        )

    def close(self) -> None:
        self._plans.close()
        self._producer.close()

    def flush(self) -> None:
        assert self._producer.flush(30) == 0

    def _write(self, headers: ReportHeaders, value: bytes, traceparent: str = "", messages: int | None = None) -> None:
        partition = topics.results_partition(headers.signature)
        trace = [("traceparent", traceparent.encode())] if traceparent else []
        for piece, part in islice(message_pieces.cut(value, Settings.piece_bytes), messages):
            said = [*headers.encode(), (message_pieces.HEADER, piece), *trace]
            self._producer.produce(topics.RESULTS, part, headers.key(), partition=partition, headers=said)


@dataclass
class Service:
    """The service on a port of its own."""

    brokers: str
    address: str
    log: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def environment(self) -> dict[str, str]:
        told = {"STAIRWISE_BROKERS": self.brokers, "STAIRWISE_LISTEN": self.address}
        return {**os.environ, **told, **self.settings}

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "services.results"], env=self.environment(), stderr=log
            )

    def await_healthy(self) -> None:
        until(lambda: probe(Check("grpc", self.address), 2).healthy, self.log.read_text)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def client(self) -> Client:
        return Client.connect(results=self.address, brokers=self.brokers)

    @contextmanager
    def stub(self) -> Iterator[results_pb2_grpc.ResultsStub]:
        with grpc.insecure_channel(self.address) as channel:
            yield results_pb2_grpc.ResultsStub(channel)


def until(condition: Callable[[], bool], explain: Callable[[], str] = str, deadline: float = 60) -> None:
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, explain()
        time.sleep(0.02)


@contextmanager
def running(brokers: str, log: Path, **settings: str) -> Iterator[Service]:
    service = Service(brokers, f"127.0.0.1:{free_ports(1)[0]}", log, settings)
    service.start()
    try:
        service.await_healthy()
        yield service
    finally:
        assert service.stop() == 0, log.read_text()


def counts(writer: Writer, emit: str = "RSTREAM") -> Registered:
    stream = writer.stream()
    return writer.query(
        f"SELECT k, COUNT(*) AS n, SUM(v) AS s FROM {stream} [ROWS 1000 SLIDE 10 ms] GROUP BY k EMIT {emit}"
    )


def seen(updates: Updates | Sequence[Update]) -> list[tuple[int, list[tuple[int, object]]]]:
    """Each update as its time, and the diff and the key of its changes."""
    return [(u.time, [(c.diff, c.row["k"]) for c in u.changes]) for u in updates]
