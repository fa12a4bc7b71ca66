"""Numbered events through ingest, and an account of where each of them ended up."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.platform import kafka
from stairwise.schema import Stream
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, decode_rows
from tests.integration.ingest_system import START, IngestSystem

LINES = 50
"""Rows of a message of lines."""


def event(number: int) -> bytes:
    """A row; now and then one that is late, malformed or of the wrong type."""
    time_ = START + number
    if number % 997 == 500:
        return b'{"ts":1,"n":%d}' % number
    if number % 1009 == 500:
        return b'{"ts":%d,"n":%d' % (time_, number)
    if number % 1013 == 500:
        return b'{"ts":%d,"n":%d,"v":"x"}' % (time_, number)
    return b'{"ts":%d,"n":%d,"v":0.5}' % (time_, number)


class Feeder(threading.Thread):
    """Publishes events 0 to ``count`` − 1 at about a rate, as objects and as lines, each partition in order."""

    def __init__(self, system: IngestSystem, stream: Stream, count: int, rate: float) -> None:
        super().__init__(daemon=True)
        self._system, self._stream, self._count, self._rate = system, stream, count, rate
        self.failure: Exception | None = None

    def run(self) -> None:
        producer = kafka.producer(self._system.brokers, linger_ms=20)
        topic = topics.incoming(self._stream.name)
        begun, number, turn = time.monotonic(), 0, 0
        while number < self._count:
            rows = LINES if turn % 3 == 0 else 1
            last = min(self._count, number + rows)
            value = b"\n".join(map(event, range(number, last)))
            headers = [("content-type", b"application/x-ndjson")] if rows > 1 else None
            try:
                producer.produce(topic, value, partition=turn % self._stream.partitions, headers=headers)
            except BufferError:
                producer.poll(0.1)
                continue
            number, turn = last, turn + 1
            if turn % 500 == 0:
                producer.poll(0)
                time.sleep(max(0.0, begun + number / self._rate - time.monotonic()))
        if producer.flush(120):
            self.failure = RuntimeError("events did not reach the broker")


@dataclass(frozen=True)
class Account:
    lost: int
    repeated: int
    wrong: int


def account(system: IngestSystem, stream: Stream, count: int) -> Account:
    """Count every event in what is committed in ``s.*``, ``late.*`` and ``dlq.*``."""
    seen = np.zeros(count, np.int64)
    wrong = 0
    for partition in range(stream.partitions):
        sequence, version, last = 0, 0, -1
        for message in system.read(topics.sequenced(stream), partition):
            headers = BatchHeaders.decode(kafka.headers_of(message))
            rows = decode_rows(pa.py_buffer(message.value() or b""), stream)
            numbers = rows.column("n").to_numpy(zero_copy_only=False)
            wrong += headers.sequence != sequence or headers.rows != len(numbers) or headers.version < version
            sequence, version = sequence + len(numbers), headers.version
            if len(numbers):
                wrong += int((np.diff(np.concatenate(([last], numbers))) <= 0).sum())
                last = int(numbers[-1])
                np.add.at(seen, numbers, 1)
        for value, headers in [*system.late(stream, partition), *system.dead(stream, partition)]:
            number = int(value.split(b'"n":')[1].split(b",")[0].rstrip(b"}"))
            seen[number] += 1
            expected = {"LATE": 997, "MALFORMED": 1009, "WRONG_TYPE": 1013}[headers["code"]]
            wrong += number % expected != 500
    return Account(int((seen == 0).sum()), int((seen > 1).sum()), wrong)


def random_kills(system: IngestSystem, feeder: Feeder, kills: int, seed: int) -> int:
    """kill -9 at random moments of one or the other of two instances, restarted at once."""
    chance = random.Random(seed)
    running = {name: system.start(name) for name in ("0", "1")}
    feeder.start()
    done = 0
    while done < kills:
        time.sleep(chance.uniform(0.05, 1.5))
        name = chance.choice(list(running))
        running[name].kill()
        done += 1
        running[name] = system.start(name, await_ready=chance.random() < 0.7)
    feeder.join(600)
    assert feeder.failure is None
    assert not feeder.is_alive()
    return done


def describe(kills: int, result: Account) -> str:
    return f"kills {kills}, lost {result.lost}, repeated {result.repeated}, wrong {result.wrong}"
