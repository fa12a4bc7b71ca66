"""What a lane puts into ``late.*`` and ``dlq.*``: the bytes as they came, with where from and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Message

from stairwise.platform import telemetry
from stairwise.schema import Stream
from stairwise.streams.decoded_rows import Bad
from stairwise.streams.messages import CONTENT_TYPE, Format
from stairwise.streams.reason_codes import Code
from stairwise.wire import topics
from stairwise.wire.batches import Headers
from stairwise.wire.topics import WHOLE

LATE = "LATE"
_UNSAID = (None, Format.REJECTED.value.encode())
"""Of a row that its publisher rejected, the row itself is kept, not the message about it."""
SAMPLED = 256
"""Among how many messages of a batch traces are looked for."""


@dataclass(frozen=True)
class Outgoing:
    """A message to produce, to the lane's partition of a topic."""

    topic: str
    value: bytes
    headers: Headers
    rows: int
    contexts: Sequence[str] = ()
    """The traces of the events in it."""
    key: bytes | None = None


def late(stream: Stream, message: Message, rows: int, excerpt: bytes | None, reason: str) -> Outgoing:
    return _reject(topics.late(stream.name), message, LATE, stream.timestamp_by or "", reason, rows, excerpt)


def dead(stream: Stream, message: Message, bad: Bad) -> Outgoing:
    reason = bad.reason
    topic = topics.dead(stream.name)
    return _reject(topic, message, reason.code.name, reason.field or "", reason.message, bad.rows, bad.excerpt)


def _reject(
    topic: str, message: Message, code: str, name: str, reason: str, rows: int, excerpt: bytes | None
) -> Outgoing:
    value: bytes = message.value() or b""
    headers = [
        ("topic", message.topic().encode()),
        ("partition", b"%d" % message.partition()),
        ("offset", b"%d" % message.offset()),
        ("code", code.encode()),
        ("field", name.encode()),
        ("reason", reason.encode()),
        ("rows", b"%d" % rows),
        ("size", b"%d" % len(value)),
    ]
    if excerpt is None or code == Code.TOO_LARGE.name:
        headers.append((WHOLE, b"1"))
    headers += [(name, text) for name, text in message.headers() or () if name == CONTENT_TYPE and text not in _UNSAID]
    return Outgoing(topic, value if excerpt is None else excerpt, headers, rows, key=message.key())


def format_of(message: Message) -> Format | None:
    """What a message's content-type says that it is; None if it says nothing that is known."""
    for name, value in message.headers() or ():
        if name == CONTENT_TYPE and value is not None:
            said = value.decode("ascii", "replace").partition(";")[0].strip().lower()
            return next((f for f in Format if f.value == said), None)
    return None


def contexts(messages: Sequence[Message]) -> list[str]:
    """The first traces among the messages' headers."""
    found: list[str] = []
    for message in messages[:SAMPLED]:
        for name, value in message.headers() or ():
            if name == telemetry.TRACEPARENT and value is not None:
                found.append(value.decode("ascii", "replace"))
        if len(found) >= telemetry.MAX_LINKS:
            break
    return found
