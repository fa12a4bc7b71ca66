"""Which queries operators has set aside, read off the topic ``failures``."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from confluent_kafka import KafkaException, TopicPartition

from stairwise.errors import ConfigError
from stairwise.platform import kafka
from stairwise.schema import DAWN
from stairwise.wire import topics
from stairwise.wire.failures import Failure
from stairwise.wire.plans import PlanCatalogue

GOOD_FOR = 1.0
"""For how long a look is given to others, in seconds."""
TIMEOUT = 3.0
"""How long Kafka may take, in seconds."""


class FailedQueries:
    """Follows the topic, whoever asks; a look reads what has come since the one before."""

    def __init__(self, brokers: str) -> None:
        self._consumer = kafka.consumer(
            brokers, "stairwise-windows-failures", enable_partition_eof=True, fetch_wait_max_ms=10
        )
        self._lock = threading.Lock()
        self._known: dict[str, Failure] = {}
        self._next = 0
        self._looked = float("-inf")

    def signatures(self, *, good_for: float = GOOD_FOR) -> Mapping[str, Failure]:
        """By signature, why it was set aside: of several shards, the one that had come least far."""
        with self._lock:
            if time.monotonic() - self._looked > good_for:
                self._look()
            return self._known

    def among(self, catalogue: PlanCatalogue, *, good_for: float = GOOD_FOR) -> dict[str, Failure]:
        """By name, the queries of a catalogue that were set aside, in order of their names."""
        failed = self.signatures(good_for=good_for)
        queries = sorted(catalogue.queries.items()) if failed else []
        return {name: failed[r.signature] for name, r in queries if r.signature in failed}

    def close(self) -> None:
        self._consumer.close()

    def _look(self) -> None:
        try:
            for message in kafka.read_to_end(self._consumer, [TopicPartition(topics.FAILURES, 0, self._next)], TIMEOUT):
                failure = Failure.decode(message.value())
                before = self._known.get(failure.signature)
                if before is None or failure.reported < before.reported:
                    self._known = {**self._known, failure.signature: failure}  # whoever was given it may still read it
                self._next = message.offset() + 1
        except KafkaException as error:
            raise ConfigError(f"the failures cannot be read: {error}", hint="is the broker up?") from error
        self._looked = time.monotonic()


def sentence(query: str, failure: Failure) -> str:
    """What is said of a query that was set aside."""
    had = "before its first report" if failure.reported == DAWN else "its reports up to then stand"
    return f"{query} has FAILED: {failure.reason} ({had}; RESTART QUERY {query} tries again)"
