"""Streams that ingest cannot go on with, each with the reason: their partitions rest, and the others go on.

    in.a  ──●──●──✗            a message, or the declaration itself, makes ingest fail for a: its partitions are
    in.b  ──●──●──●──●──▶      paused where they were committed, so nothing of it is lost, and b goes on

A stream is tried again when its plans change (DROP STREAM heals it, whatever was wrong) and after a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from stairwise.platform import kafka, telemetry
from stairwise.wire.plans import PlanLog

log = logging.getLogger(__name__)

OF_A_TOPIC = kafka.ABSENT | {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError._BAD_MSG,
    KafkaError._BAD_COMPRESSION,
}
"""What Kafka says of one topic or its messages, and not of itself."""


class StreamError(Exception):
    """Something that concerns one stream alone."""

    def __init__(self, stream: str, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.stream = stream
        self.error = error


@contextmanager
def blaming(stream: str) -> Iterator[None]:
    """What goes wrong inside is this stream's fault, unless it is Kafka's, or memory is short."""
    try:
        yield
    except (StreamError, KafkaException, MemoryError):
        raise
    except Exception as error:
        raise StreamError(stream, error) from error


class Failures:
    def __init__(self, tell: Callable[[str, bool], None] = lambda stream, is_well: None) -> None:
        """``tell`` is told of each stream that fails, and of each that is tried again."""
        self._tell = tell
        self._reasons: dict[str, str] = {}
        self._seen: dict[str, int] = {}
        """By stream, the newest plan version that concerned it when it failed."""

    @property
    def reasons(self) -> Mapping[str, str]:
        """The streams that rest, and why."""
        return self._reasons

    def __contains__(self, stream: str) -> bool:
        return stream in self._reasons

    def add(self, fault: StreamError, plans: PlanLog) -> None:
        fields = telemetry.fields(stream=fault.stream, reason=str(fault))
        log.error("stream failed, its partitions rest", exc_info=fault.error, extra=fields)
        self._reasons = {**self._reasons, fault.stream: str(fault)}
        self._seen[fault.stream] = plans.touched(fault.stream)
        self._tell(fault.stream, False)

    def take_changed(self, plans: PlanLog) -> set[str]:
        """The streams whose plans have changed since they failed: they are to be tried again, and count no more."""
        changed = {stream for stream in self._reasons if plans.touched(stream) > self._seen[stream]}
        self._reasons = {stream: reason for stream, reason in self._reasons.items() if stream not in changed}
        for stream in changed:
            log.info("stream tried again", extra=telemetry.fields(stream=stream))
            self._tell(stream, True)
        return changed
