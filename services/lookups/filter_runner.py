"""Runs the standing filters: reads their streams, makes their reports, publishes them. On one worker at a time.

    plans ──▶ filters ─▶ s.<stream> from its start ─▶ ``FilterDriver`` ─▶ results

Who runs them is settled by the group: the worker that holds the topic of plans. It reads the streams of filters with a
consumer of its own, all partitions of them, and begins behind what was published last. If another worker takes over,
or two believe to be the one for a moment, the same reports are written again, which results drops by identity.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time

from confluent_kafka import KafkaException, Message, TopicPartition

from services.lookups import metrics
from services.lookups.filter_driver import FilterDriver, FilterReport
from services.lookups.last_published import last_published
from stairwise.platform import kafka, telemetry
from stairwise.schema import Stream
from stairwise.wire import message_pieces, topics
from stairwise.wire.batches import BatchHeaders, decode_rows
from stairwise.wire.plans import PlanReader, Registered
from stairwise.wire.reports import ReportHeaders, encode_report

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Batches that are taken in before reports are made."""
LOOK_EVERY = 0.2
"""Seconds between two looks at the plans."""
SKEW = 3_600_000
"""By how many milliseconds clocks may differ."""
MEMORY = 86_400_000
"""A filter that was dropped longer ago, in milliseconds, has made its last report."""


class FilterRunner(threading.Thread):
    """A thread beside the loop: a filter's report must not hold up a lookup for longer than Python's own switching."""

    def __init__(self, brokers: str, piece_bytes: int) -> None:
        super().__init__(name="filters", daemon=True)
        self._loop = asyncio.get_running_loop()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        self._stopping = threading.Event()
        self._brokers = brokers
        self._piece_bytes = piece_bytes
        self._plans = PlanReader(brokers)
        self._consumer = kafka.consumer(brokers, "stairwise-lookups-filters")
        # No report may be given up while a later one gets through: there is no time after which one is.
        self._producer = kafka.producer(brokers, message_timeout_ms=0)
        self._drivers: dict[str, FilterDriver] = {}
        self._known = 0
        self._looked = 0.0

    async def failure(self) -> None:
        """Raises when filters cannot be run any further."""
        await self._failed

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self.join)

    def run(self) -> None:
        try:
            self._run()
        except Exception as error:  # of whatever kind: the loop must hear of it
            if not self._stopping.is_set():
                self._loop.call_soon_threadsafe(self._failed.set_exception, error)
        finally:
            self._consumer.close()
            self._plans.close()

    def _run(self) -> None:
        self._plans.read_to_end()
        self._follow_plans()
        while not self._stopping.is_set():
            if time.monotonic() - self._looked > LOOK_EVERY:
                self._plans.poll()
                self._follow_plans()
            if self._drivers:
                self._step()
            else:
                self._stopping.wait(LOOK_EVERY)
        self._producer.flush(2)

    def _follow_plans(self) -> None:
        """Read the streams of filters that are new."""
        self._looked = time.monotonic()
        plans = self._plans.log
        if plans.newest.version == self._known:
            return
        streams = {
            stream
            for name in plans.stream_names()
            for registered in plans.registered(name, self._known, plans.newest.version)
            if registered.query.by_lookups and not self._is_long_gone(registered)
            for stream in registered.query.streams
        }
        for stream in streams:
            if topics.sequenced(stream) not in self._drivers:
                self._begin(stream)
        self._known = plans.newest.version

    def _begin(self, stream: Stream) -> None:
        topics.ensure(kafka.admin(self._brokers), {topics.RESULTS: topics.RESULTS_PARTITIONS}, topics.FOREVER)
        plans, topic = self._plans.log, topics.sequenced(stream)
        over = [registered for registered in self._filters(stream) if self._is_long_gone(registered)]
        filters = [registered for registered in self._filters(stream) if registered not in over]
        since = {registered.signature: max(0, plans.written(registered.version) - SKEW) for registered in filters}
        self._drivers[topic] = FilterDriver(stream, filters, last_published(self._brokers, since), over)
        if not self._end(topic):
            self._consumer.incremental_assign([TopicPartition(topic, p, 0) for p in range(stream.partitions)])
            said = [registered.identity for registered in filters]
            log.info("standing filters", extra=telemetry.fields(stream=stream.name, filters=said))

    def _end(self, topic: str) -> bool:
        """Is there nothing more to report over a stream? Then it is let go."""
        driver = self._drivers[topic]
        is_over = all(map(driver.has_ended, self._filters(driver.stream)))
        if is_over:
            del self._drivers[topic]
        return is_over

    def _filters(self, stream: Stream) -> list[Registered]:
        """All filters that this incarnation of a stream has ever had."""
        plans = self._plans.log
        found = plans.registered(stream.name, 0, plans.newest.version)
        return [r for r in found if r.query.by_lookups and stream in r.query.streams]

    def _is_long_gone(self, registered: Registered) -> bool:
        left = self._plans.log.left_at(registered)
        return left is not None and self._plans.log.written(left) < time.time() * 1000 - MEMORY

    def _step(self) -> None:
        taken: set[str] = set()
        for message in self._consumer.consume(AT_ONCE, timeout=kafka.STEP):
            if kafka.checked(message).topic() in self._drivers:  # else it was let go since the message was fetched
                taken.add(self._take(message))
        for topic in taken:
            driver = self._drivers[topic]
            reports = list(driver.advance())
            for outgoing in reports:
                self._publish(outgoing)
            if any(outgoing.report is None for outgoing in reports) and self._end(topic):
                self._consumer.incremental_unassign([TopicPartition(topic, p) for p in range(driver.stream.partitions)])
        self._producer.poll(0)

    def _take(self, message: Message) -> str:
        topic: str = message.topic()
        driver = self._drivers[topic]
        headers = BatchHeaders.decode(kafka.headers_of(message))
        plans = self._plans.read_upto(headers.version)
        driver.take(message.partition(), headers, decode_rows(message.value() or b"", driver.stream), plans)
        return topic

    def _publish(self, outgoing: FilterReport) -> None:
        headers = outgoing.headers
        value = encode_report(outgoing.report) if outgoing.report is not None else b""
        for piece, part in message_pieces.cut(value, self._piece_bytes):
            self._produce(headers, part, [(message_pieces.HEADER, piece)] if piece else [])
        metrics.reports.add(1, {"query": headers.signature.rpartition("@")[0]})

    def _produce(self, headers: ReportHeaders, value: bytes, piece: list[tuple[str, bytes]]) -> None:
        place, said = topics.results_partition(headers.signature), headers.encode() + piece
        while True:
            try:
                self._producer.produce(
                    topics.RESULTS, value, headers.key(), place, headers=said, on_delivery=_delivered
                )
                return
            except BufferError:
                self._producer.poll(kafka.STEP)


def _delivered(error: object, _: object) -> None:
    if error is not None:
        raise KafkaException(error)
