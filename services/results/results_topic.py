"""Reading the results topic: what a message of it says."""

from __future__ import annotations

import logging

import confluent_kafka
from confluent_kafka import KafkaError

from services.results.report_message import ReportMessage
from stairwise.platform import kafka
from stairwise.platform.telemetry import TRACEPARENT, fields
from stairwise.wire.message_pieces import MessagePiece
from stairwise.wire.reports import ReportHeaders

log = logging.getLogger(__name__)

AT_ONCE = 500
"""How many messages are taken from the client at a time."""
PATIENCE = 0.2
"""For how long a reader waits for a message before it looks whether it is still wanted, in seconds."""


def consume(consumer: confluent_kafka.Consumer) -> list[confluent_kafka.Message]:
    """What there is now; waits only where there is nothing. May hold the ends of partitions, but no error."""
    first = consumer.poll(PATIENCE)
    if first is None:
        return []
    messages = [first, *consumer.consume(AT_ONCE, timeout=0)]
    return [m if is_end(m) else kafka.checked(m) for m in messages]


def is_end(message: confluent_kafka.Message) -> bool:
    """Is it the note that the end of a partition was reached?"""
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF


def decode(message: confluent_kafka.Message) -> ReportMessage | None:
    """What a message says. One that is no report is passed over: it must not keep the others from being read."""
    headers = kafka.headers_of(message)
    try:
        said, piece = ReportHeaders.decode(headers), MessagePiece.decode(headers)
    except (KeyError, ValueError, AttributeError, TypeError):
        told = fields(partition=message.partition(), offset=message.offset())
        log.exception("a message of the results topic is no report", extra=told)
        return None
    trace = headers.get(TRACEPARENT) or b""
    return ReportMessage(said, message.value() or b"", message.offset(), trace.decode("ascii", "replace"), piece)


def is_of(message: confluent_kafka.Message, signature: bytes) -> bool:
    """Is it a message of this signature? Told by a look at its headers, without decoding the rest."""
    return ("signature", signature) in (message.headers() or ())
