"""The Faust worker: one agent over the topics of all streams, and a subscription that changes while it runs.

    plans ──▶ subscribe ──▶ Kafka's group assigns ──▶ holdings: what is new starts empty, what is gone is freed
                                  │
    s.trades.1/2 ──▶ agent ──▶ take ──▶ partition

The group spreads partitions over the workers; each member learns from Faust's assignor which address owns which.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import faust
from opentelemetry.trace import SpanKind

from services.lookups import metrics
from services.lookups.holdings import Holdings, Key
from services.lookups.transport import ReplayingTransport
from stairwise.platform import telemetry
from stairwise.platform.kafka_security import KafkaSecurity
from stairwise.schema import Stream
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders

log = logging.getLogger(__name__)

GROUP = "stairwise-lookups"


class Worker:
    """A member of the group of lookups workers, reached by clients and other workers at ``address``."""

    def __init__(self, brokers: str, directory: Path, address: str, holdings: Holdings) -> None:
        self.address = address
        self.streams: Mapping[str, Stream] = {}
        """The streams that are subscribed to, by topic."""
        self.assigned = asyncio.Event()
        """Set when partitions were assigned; whoever acts on it clears it."""
        self.leading, self.following = asyncio.Event(), asyncio.Event()
        """One of them is set from the first assignment on: does this worker run the standing filters?"""
        self.owners: Mapping[Key, str] = {}
        """The address of the worker that holds each partition, as the last assignment says."""
        self._holdings = holdings
        self._directory = directory
        self._app = self._build(brokers)

    async def start(self, streams: Mapping[str, Stream]) -> None:
        """Join the group; returns when the first assignment is there."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._set_topics(streams)
        await self._app.start()

    async def subscribe(self, streams: Mapping[str, Stream]) -> None:
        """Change the subscription, which makes the whole group rebalance. What is kept is not read again."""
        while self._app.rebalancing:
            await asyncio.sleep(0.05)
        self._set_topics(streams)
        # Faust's own way to here waits 45 s, and forgets a change that comes while it rebalances.
        await self._app.consumer.subscribe(await self._app.topics._update_indices())
        log.info("subscribed", extra=telemetry.fields(topics=sorted(streams)))

    def redeclare(self, streams: Mapping[str, Stream]) -> None:
        """The streams that are subscribed to, as they are declared now."""
        self.streams = {topic: streams.get(topic, stream) for topic, stream in self.streams.items()}

    @property
    def is_rebalancing(self) -> bool:
        return bool(self._app.rebalancing)

    async def rewind(self) -> None:
        """Read on from where each partition stands. After rebalances that follow each other closely Faust may not."""
        consumer = self._app.consumer
        await consumer.perform_seek()
        consumer.resume_partitions(consumer.assignment())
        self._app.flow_control.resume()
        consumer.resume_flow()
        await self._app._fetcher.maybe_start()

    async def failure(self) -> None:
        """Raises when Faust has given up."""
        await self._app.wait_until_stopped()
        raise self._app.crash_reason or RuntimeError("the Faust worker has ended")

    async def stop(self) -> None:
        await self._app.stop()

    def _read_owners(self) -> dict[Key, str]:
        """The address of the worker that holds each partition, as the last assignment says."""
        return {
            (topic, number): str(url).removeprefix("http://").rstrip("/")
            for url, held in self._app.router.external_topics_metadata().items()
            for topic, numbers in held.items()
            for number in numbers
        }

    def _build(self, brokers: str) -> Any:
        app = faust.App(
            GROUP,
            broker_credentials=_credentials(KafkaSecurity.from_environment()),
            broker=[f"kafka://{server}" for server in brokers.split(",")],
            datadir=self._directory / "faust",
            canonical_url=f"http://{self.address}",  # how the other members of the group know this one
            web_enabled=False,
            key_serializer="raw",
            value_serializer="raw",
            topic_allow_declare=False,
            topic_disable_leader=True,
            table_standby_replicas=1,  # with 0 Faust's own assignor is not used, and nobody knows the owners
            broker_session_timeout=6.0,
            broker_heartbeat_interval=0.5,
            broker_rebalance_timeout=10.0,
            broker_request_timeout=30.0,
            consumer_auto_offset_reset="earliest",
            consumer_max_fetch_size=1 << 20,
            consumer_metadata_max_age_ms=5_000,
            stream_buffer_maxsize=64,
            stream_wait_empty=False,
        )
        app.finalize()
        app.transport = ReplayingTransport(app.conf.broker_consumer, app, self._holdings)
        # The plans are subscribed to as well, and passed over: a subscription may not be empty, and who is given them
        # runs the standing filters.
        channel = app.topic(topics.PLANS, key_type=bytes, value_type=bytes, acks=False)

        async def intake(stream: Any) -> None:
            async for event in stream.events():
                try:
                    self._take(event.message)
                except Exception as error:  # Faust would pass over the batch and go on without it
                    log.exception("a batch cannot be taken", extra=telemetry.fields(**_place(event.message)))
                    await app.crash(error)

        async def on_assigned(_: object, assigned: Iterable[Any], **__: object) -> None:
            self._assign({(tp.topic, tp.partition) for tp in assigned})

        app.agent(channel, name="intake")(intake)
        app.on_partitions_assigned.connect(on_assigned)
        self._channel = channel
        return app

    def _set_topics(self, streams: Mapping[str, Stream]) -> None:
        self.streams = dict(streams)
        names = [topics.PLANS, *sorted(streams)]
        for channel in (self._channel, *self._app.topics):  # the agent reads from a copy of the channel
            channel.topics = list(names)

    def _assign(self, assigned: set[Key]) -> None:
        held = {key: self.streams[key[0]] for key in assigned if key[0] in self.streams}
        self._holdings.assign(held)
        is_leading = (topics.PLANS, 0) in assigned
        for event, holds in ((self.leading, is_leading), (self.following, not is_leading)):
            event.set() if holds else event.clear()
        self.owners = self._read_owners()
        self.assigned.set()
        metrics.rebalances.add(1)
        log.info("assigned", extra=telemetry.fields(partitions=[f"{t}/{p}" for t, p in sorted(held)]))

    def _take(self, message: Any) -> None:
        key = (message.topic, message.partition)
        partition = self._holdings.get(key)
        if partition is None:
            return
        headers = dict(message.headers or ())
        batch = BatchHeaders.decode(headers)
        labels = {"stream": partition.stream.name}
        if not partition.take(key, message.offset, batch, message.value or b""):
            metrics.batches.add(1, {**labels, "outcome": "repeated"})
            return
        metrics.batches.add(1, {**labels, "outcome": "taken"})
        metrics.rows.add(batch.rows, labels)
        if telemetry.TRACEPARENT in headers:
            attributes = {"stairwise.stream": partition.stream.name, "stairwise.partition": partition.number}
            context = headers[telemetry.TRACEPARENT].decode()
            telemetry.begin("lookups batch", [context], attributes, SpanKind.CONSUMER).end()


def _credentials(security: KafkaSecurity) -> Any:
    """How Faust logs in; None where nobody has to."""
    context = security.ssl_context()
    if security.user is not None:
        return faust.SASLCredentials(
            username=security.user, password=security.password, mechanism=security.mechanism, ssl_context=context
        )
    return faust.SSLCredentials(context) if context is not None else None


def _place(message: Any) -> dict[str, Any]:
    return {"topic": message.topic, "partition": message.partition, "offset": message.offset}
