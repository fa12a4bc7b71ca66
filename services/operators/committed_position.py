"""How far operators have taken ``s.*``, said on Kafka as the committed offsets of a group, after each micro-batch.

Spark keeps its position in the checkpoint alone. Said here as well, whoever can read Kafka (the registry, Kafka's own
tools) sees how far operators are behind, also while a micro-batch takes long or nobody answers. Nothing resumes from
it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from stairwise.platform import kafka
from stairwise.wire.stream_standing import OPERATORS_GROUP

log = logging.getLogger(__name__)


class CommittedPosition:
    """Says what has changed since it was said last; what Kafka did not take is said again."""

    def __init__(self, brokers: str) -> None:
        self._consumer = kafka.consumer(brokers, OPERATORS_GROUP, on_commit=self._committed)
        self._said: dict[tuple[str, int], int] = {}
        self._is_refused = False

    def say(self, taken: Mapping[str, Mapping[str, int]]) -> None:
        """The offsets behind the last micro-batch, by topic and partition. Does not wait for Kafka."""
        self._consumer.poll(0)  # answers to what was said before
        offsets = {(topic, int(number)): at for topic, numbers in taken.items() for number, at in numbers.items()}
        news = [TopicPartition(*key, at) for key, at in offsets.items() if self._said.get(key) != at]
        if news:
            self._said = offsets
            try:
                self._consumer.commit(offsets=news, asynchronous=True)
            except KafkaException as error:
                self._committed(error.args[0], news)

    def close(self) -> None:
        self._consumer.close()

    def _committed(self, error: Any, _: object) -> None:
        if error is not None:
            self._said = {}
            if not self._is_refused:
                log.warning("the position of operators cannot be said, and is tried again: %s", error)
        self._is_refused = error is not None
