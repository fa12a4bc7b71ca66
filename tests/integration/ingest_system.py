"""A broker, a registry and real ingest processes, for the tests of ingest; and what they wrote, read back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, Message, TopicPartition

from services.windows.registry import Registry
from stairwise.platform import kafka
from stairwise.schema import Stream
from stairwise.system.broker import Broker
from stairwise.system.installation import find_installation
from stairwise.system.launch import RunningPart, await_healthy, launch, stop
from stairwise.system.ports import free_ports
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, decode_rows

START = 1_700_000_000_000
GROUP = "stairwise-ingest"


def wait_for(condition: Callable[[], Any], what: str, within: float = 120, every: float = 0.05) -> Any:
    deadline = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {within} s: {what}"
        time.sleep(every)
    return answer


@dataclass
class Instance:
    """A process of ingest."""

    process: subprocess.Popen[bytes]
    log: Path

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        return '"message": "ready"' in self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


@dataclass
class Sequenced:
    """A batch of a partition, as a reader of what is committed sees it."""

    headers: BatchHeaders
    rows: list[dict[str, Any]]


@dataclass
class IngestSystem:
    brokers: str
    directory: Path
    registry: Registry
    broker: Broker
    broker_process: RunningPart
    onlooker: Consumer
    """Sees what the group has committed without being one of it; asked so often that a new one each time would cost
    what it watches half a core."""
    instances: list[Instance] = field(default_factory=list)

    def restart_broker(self) -> None:
        """kill -9, and the same again."""
        self.broker_process.kill_session()
        self.broker_process.collect()
        self.broker_process = launch(self.broker.part(), self.directory)
        await_healthy(self.broker_process)

    def name(self) -> str:
        return f"t{uuid.uuid4().hex[:8]}"

    def declare(self, options: str = "PARTITIONS 2", columns: str = "ts TIMESTAMP, n BIGINT", by: str = "ts") -> Stream:
        name = self.name()
        by_clause = f"TIMESTAMP BY {by}" if by else ""
        self.registry.execute(f"CREATE STREAM {name} ({columns}) {by_clause} {options}")
        return self.registry.catalogue.streams[name]

    def sql(self, script: str) -> None:
        self.registry.execute(script)

    def start(self, instance: str = "0", *, await_ready: bool = True, **environment: str) -> Instance:
        log = self.directory / f"ingest-{instance}-{uuid.uuid4().hex[:6]}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "services.ingest"],
                env={
                    **os.environ,
                    "STAIRWISE_BROKERS": self.brokers,
                    "STAIRWISE_DIR": str(self.directory),
                    "STAIRWISE_LISTEN": "127.0.0.1:0",
                    "STAIRWISE_INSTANCE": instance,
                    **environment,
                },
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        made = Instance(process, log)
        self.instances.append(made)
        if await_ready:
            wait_for(made.is_ready, "ingest is ready")
        return made

    @contextmanager
    def running(self, instance: str = "0", **environment: str) -> Iterator[Instance]:
        made = self.start(instance, **environment)
        try:
            yield made
        finally:
            if made.process.poll() is None:
                made.stop()

    def publish(
        self, stream: Stream | str, values: Sequence[Any], partition: int = 0, compression: str = "lz4", **headers: str
    ) -> None:
        producer = kafka.producer(self.brokers, linger_ms=5, message_max_bytes=32 << 20, compression_type=compression)
        topic = topics.incoming(stream if isinstance(stream, str) else stream.name)
        for value in values:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            while True:
                try:
                    producer.produce(topic, data, partition=partition, headers=list(headers.items()))
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(60) == 0

    def consumer(self, group: str = "") -> Consumer:
        return kafka.consumer(self.brokers, group or uuid.uuid4().hex, enable_partition_eof=True)

    def read(self, topic: str, partition: int) -> list[Message]:
        reader = self.consumer()
        try:
            return list(kafka.read_to_end(reader, [TopicPartition(topic, partition, 0)]))
        finally:
            reader.close()

    def sequenced(self, stream: Stream, partition: int = 0) -> list[Sequenced]:
        """The batches of a partition; each goes on where the one before it ended."""
        batches, sequence, watermark, version = [], 0, None, 0
        for message in self.read(topics.sequenced(stream), partition):
            headers = BatchHeaders.decode(kafka.headers_of(message))
            rows = decode_rows(pa.py_buffer(message.value() or b""), stream).to_pylist()
            assert headers.sequence == sequence, "sequence without gaps"
            assert watermark is None or headers.previous == watermark, "watermarks follow each other"
            assert headers.watermark >= headers.previous
            assert headers.version >= version, "a plan version never goes back"
            assert headers.rows == len(rows)
            assert not (batches and batches[-1].headers.sealed), "nothing after the seal"
            sequence, watermark, version = sequence + len(rows), headers.watermark, headers.version
            batches.append(Sequenced(headers, rows))
        return batches

    def rows(self, stream: Stream, partition: int = 0) -> list[dict[str, Any]]:
        return [row for batch in self.sequenced(stream, partition) for row in batch.rows]

    def rejects(self, topic: str, partition: int = 0) -> list[tuple[bytes, dict[str, str]]]:
        return [
            (m.value() or b"", {k: v.decode() for k, v in kafka.headers_of(m).items()})
            for m in self.read(topic, partition)
        ]

    def dead(self, stream: Stream, partition: int = 0) -> list[tuple[bytes, dict[str, str]]]:
        return self.rejects(topics.dead(stream.name), partition)

    def late(self, stream: Stream, partition: int = 0) -> list[tuple[bytes, dict[str, str]]]:
        return self.rejects(topics.late(stream.name), partition)

    def lag(self, stream: Stream | str) -> int:
        """How many messages of a stream nobody has committed yet."""
        name = stream if isinstance(stream, str) else stream.name
        partitions = self.registry.catalogue.streams[name].partitions
        places = self.onlooker.committed(
            [TopicPartition(topics.incoming(name), p) for p in range(partitions)], timeout=30
        )
        return sum(
            self.onlooker.get_watermark_offsets(TopicPartition(p.topic, p.partition), timeout=30)[1] - max(p.offset, 0)
            for p in places
        )

    def await_read(self, stream: Stream | str, within: float = 120, every: float = 0.05) -> None:
        def is_read() -> bool:
            last = self.instances[-1]
            assert any(i.process.poll() is None for i in self.instances), last.log.read_text()[-3000:]
            return self.lag(stream) == 0

        wait_for(is_read, "ingest has read everything", within, every)


@contextmanager
def ingest_system(directory: Path) -> Iterator[IngestSystem]:
    broker = Broker(find_installation(os.environ), directory / "broker", *free_ports(2))
    broker.prepare()
    running = launch(broker.part(), directory)
    try:
        await_healthy(running)
        registry = Registry(broker.address)
        onlooker = kafka.consumer(broker.address, GROUP)
        system = IngestSystem(broker.address, directory, registry, broker, running, onlooker)
        try:
            yield system
        finally:
            registry.close()
            onlooker.close()
            for instance in system.instances:
                if instance.process.poll() is None:
                    instance.kill()
            running = system.broker_process
    finally:
        stop(running)
