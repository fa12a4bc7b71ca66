"""The parts of the service put together, and how they start and end.

    bind ─▶ read the plans ─▶ join the group ─▶ replay ─▶ SERVING ─▶ ... ─▶ SIGTERM ─▶ leave the group

Health can be asked from the first moment. Whatever fails for good ends the process: a supervisor starts it again,
and it replays.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time

from confluent_kafka import KafkaException

from services.lookups import metrics
from services.lookups.filter_runner import FilterRunner
from services.lookups.holdings import Holdings, Key
from services.lookups.mark_skipping import next_rows, stretches
from services.lookups.peers import Peers
from services.lookups.plan_follower import PlanFollower
from services.lookups.servicer import SERVICE, LookupsServicer
from services.lookups.targets import find_targets
from services.lookups.worker import Worker
from stairwise.lookups.partition_history import Retain
from stairwise.platform import process, telemetry
from stairwise.platform.channels import Credentials
from stairwise.platform.config import Settings
from stairwise.platform.server import Server
from stairwise.schema import Stream
from stairwise.v1 import lookups_pb2_grpc
from stairwise.wire import topics
from stairwise.wire.plans import PlanCatalogue

log = logging.getLogger(__name__)

JOIN_EVERY = 10.0
"""How often, in seconds, the subscription may change: each change makes every worker pause for a rebalance."""
RETRY = 1.0
PASS_EVERY = 0.1
"""Seconds between two looks whether marks can be passed over."""
LOOK_EVERY = 0.5
STALLED = 3.0
"""Seconds without a batch after which partitions that have one to read are read anew."""
MOST_REWINDS = 5
ANY_ADDRESS = frozenset({"0.0.0.0", "::"})


class Lookups:
    """The service; made inside the loop that it runs in."""

    def __init__(self, settings: Settings) -> None:
        self._brokers = settings.brokers
        self._piece_bytes = settings.piece_bytes
        self._server = Server(settings.listen, security=settings.security)
        self._plans = PlanFollower(settings.brokers)
        self._holdings = Holdings(Retain(settings.lookups_retain_ms, settings.lookups_retain_bytes))
        self._peers = Peers(Credentials.from_environment(os.environ))
        address = advertised(self._server.host, self._server.port, settings.lookups)
        directory = settings.directory / "lookups"
        self._worker = Worker(settings.brokers, directory, address, self._holdings)

    async def run(self, stopping: threading.Event) -> None:
        """Serve until SIGTERM or SIGINT; raises what keeps it from serving."""
        told = process.stop_on_signals(stopping)
        api = LookupsServicer(self._plans, self._worker, self._holdings, self._peers)
        await self._server.start(lambda s: lookups_pb2_grpc.add_LookupsServicer_to_server(api, s), [SERVICE])
        metrics.observe(self._holdings)
        working = asyncio.create_task(self._work())
        try:
            await asyncio.wait({working, told}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            log.info("stopping")
            told.cancel()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await self._worker.stop()
            await self._plans.stop()
            await self._server.stop(grace=1)
            api.close()
            await self._peers.close()

    async def _work(self) -> None:
        catalogue = await self._plans.start()
        self._plans.changed.clear()
        await self._worker.start(sequenced(catalogue))
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._plans.failure())
                tasks.create_task(self._worker.failure())
                tasks.create_task(self._keep_subscribed())
                tasks.create_task(self._set_targets())
                tasks.create_task(self._keep_reading())
                tasks.create_task(self._pass_over_marks())
                tasks.create_task(self._say_ready())
                tasks.create_task(self._run_filters())
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _keep_subscribed(self) -> None:
        """Join new streams and leave dropped ones: at once when all was quiet, else together."""
        while True:
            await self._plans.changed.wait()
            self._plans.changed.clear()
            wanted = sequenced(self._plans.catalogue)
            self._holdings.redeclare(wanted)
            self._worker.redeclare(wanted)
            if wanted != self._worker.streams:
                await self._worker.subscribe(wanted)
                await asyncio.sleep(JOIN_EVERY)

    async def _set_targets(self) -> None:
        """Find out what was there, for each partition that is new to this worker."""
        while True:
            await self._worker.assigned.wait()
            self._worker.assigned.clear()
            missing = self._holdings.without_target()
            if not missing:
                continue
            try:
                found = await asyncio.to_thread(find_targets, self._brokers, list(missing))
            except KafkaException as error:
                log.warning("the ends of %d partitions are not known yet: %s", len(missing), error.args[0])
                await asyncio.sleep(RETRY)
                self._worker.assigned.set()
                continue
            for key, target in found.items():
                missing[key].target, missing[key].target_sequence = target.offset, target.sequence
            if len(found) < len(missing):
                await asyncio.sleep(RETRY)
                self._worker.assigned.set()

    async def _keep_reading(self) -> None:
        """See to it that partitions which have batches to read are read; who cannot is started anew."""
        stood: dict[Key, tuple[int, float]] = {}
        rewound = 0
        while True:
            await asyncio.sleep(LOOK_EVERY)
            now = time.monotonic()
            behind = {key: p.next_offset for key, p in self._holdings if p.target is not None and not p.is_ready}
            stood = {
                key: stood[key] if key in stood and stood[key][0] == offset else (offset, now)
                for key, offset in behind.items()
            }
            if not stood:
                rewound = 0
            if self._worker.is_rebalancing or not any(now - since > STALLED for _, since in stood.values()):
                continue
            if rewound == MOST_REWINDS:
                raise RuntimeError(f"nothing comes from {sorted(stood)}")
            log.warning("read again", extra=telemetry.fields(partitions=[f"{t}/{p}" for t, p in sorted(stood)]))
            await self._worker.rewind()
            rewound += 1
            stood.clear()

    async def _pass_over_marks(self) -> None:
        """Where a partition was idle for long, read on at its next rows: a day of marks must not hold up a start."""
        while True:
            await asyncio.sleep(PASS_EVERY)
            asked = stretches(self._holdings)
            if not asked or self._worker.is_rebalancing:
                continue
            try:
                found = await asyncio.to_thread(next_rows, self._brokers, asked)
            except KafkaException as error:
                log.warning("marks cannot be passed over: %s", error.args[0])
                await asyncio.sleep(RETRY)
                continue
            for key, offset in found.items():
                partition = self._holdings.get(key)
                if partition is not None and (partition.next_sequence or 0) == asked[key].sequence:
                    fields = telemetry.fields(topic=key[0], partition=key[1], marks=offset - asked[key].start)
                    log.info("marks passed over", extra=fields)
                    partition.marks, partition.next_offset = 0, max(partition.next_offset, offset)
            if not self._worker.is_rebalancing:
                await self._worker.rewind()

    async def _run_filters(self) -> None:
        """Run the standing filters while the group has this worker do it."""
        while True:
            await self._worker.leading.wait()
            runner = FilterRunner(self._brokers, self._piece_bytes)
            runner.start()
            try:
                ends = {asyncio.create_task(self._worker.following.wait()), asyncio.create_task(runner.failure())}
                done, others = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                for task in others:
                    task.cancel()
                for task in done:
                    task.result()
            finally:
                await runner.stop()

    async def _say_ready(self) -> None:
        while not self._holdings.are_ready:
            await asyncio.sleep(0.05)
        await self._server.ready()


def sequenced(catalogue: PlanCatalogue) -> dict[str, Stream]:
    """The streams by the topic that their batches are on. Tables are not looked up."""
    return {topics.sequenced(stream): stream for stream in catalogue.streams.values() if not stream.is_table}


def advertised(host: str, port: int, lookups: str) -> str:
    """Where others reach this worker: where it listens, or what STAIRWISE_LOOKUPS says if that is everywhere."""
    if host in ANY_ADDRESS:
        return lookups
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
