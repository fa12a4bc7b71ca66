"""Faust's Kafka transport with two differences: it reads what is committed, and it resumes where memory ends.

Faust resumes at the offsets that its group has committed. A worker that keeps its state in memory and recovers by
replay must not commit what it has processed: a new owner would start there, with nothing before it. So nothing is
ever committed; a partition that is new to the worker is read from its start, and one that it has kept through a
rebalance is read on from the batch after the last it took.

Private names of Faust and aiokafka are used in this module and in ``worker``: their versions are pinned.
"""

from __future__ import annotations

import logging
from typing import Any

from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport

from services.lookups.holdings import Holdings

logging.getLogger(__name__).setLevel(logging.WARNING)  # Faust tells of its services under the module of their class


class _ReadCommittedThread(AIOKafkaConsumerThread):  # type: ignore[misc]
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._isolation_level = "read_committed"  # taken over by its fetcher when it starts
        return consumer

    def highwater(self, tp: Any) -> int:
        """For Faust's monitor alone; a buffered message may come out after its partition has been given away."""
        is_assigned = self._ensure_consumer()._subscription.is_assigned(tp)
        return super().highwater(tp) if is_assigned else 0


class _ReadOffsets(dict[Any, int | None]):
    """From which offset on Faust passes a partition's messages on: what is below was taken, or is passed over.

    Faust would note it itself, also for a partition that has just been given away, so that it would pass over the
    replay if the partition comes back; and would pass on all that it has fetched before a seek.
    """

    def __init__(self, holdings: Holdings) -> None:
        super().__init__()
        self._holdings = holdings

    def __getitem__(self, assigned: Any) -> int | None:
        partition = self._holdings.get((assigned.topic, assigned.partition))
        return None if partition is None else partition.next_offset


class _ReplayingConsumer(Consumer):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._read_offset = _ReadOffsets(self.transport.holdings)

    def _new_consumer_thread(self) -> Any:
        return _ReadCommittedThread(self, loop=self.loop, beacon=self.beacon)

    async def perform_seek(self) -> None:
        """Called after each rebalance, before anything flows."""
        positions = {}
        for assigned in self.assignment():
            partition = self.transport.holdings.get((assigned.topic, assigned.partition))
            if partition is not None:
                positions[assigned] = partition.next_offset
        if positions:
            await self.seek_wait(positions)

    def verify_event_path(self, now: float, tp: Any) -> None:
        """Faust's watchdog takes a quiet partition for a stuck one."""


class ReplayingTransport(Transport):  # type: ignore[misc]
    Consumer = _ReplayingConsumer

    def __init__(self, url: Any, app: Any, holdings: Holdings) -> None:
        super().__init__(url, app)
        self.holdings = holdings
