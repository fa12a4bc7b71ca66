"""What each signature has cost the shards of operators: the messages of the topic ``costs``, one for each shard.

A message replaces the one before of its shard. Counts begin when the shard's process took the signature up, so a
restart begins them again; they say what runs now, and no answer depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stairwise.schema import DUSK, Instant


class Cost(msgspec.Struct):
    """Of one signature, on one shard or on all of them."""

    rows: int = 0
    """Rows taken in."""
    reports: int = 0
    answer_rows: int = 0
    """Rows of all its reports."""
    cpu: float = 0.0
    """Seconds of CPU."""
    state: int = 0
    """Bytes of its pages."""
    watermark: Instant = DUSK
    """How far its streams have come here."""
    reported: Instant = DUSK
    """Up to where its reports are made: below the watermark, it is behind."""


class ShardCosts(msgspec.Struct):
    """The value of a message; its key is the shard's number."""

    seconds: float
    """Since when it counts."""
    costs: dict[str, Cost]

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @staticmethod
    def decode(value: bytes) -> ShardCosts:
        return msgspec.msgpack.decode(value, type=ShardCosts)


def total(costs: Iterable[Cost]) -> Cost:
    """One signature over all its shards."""
    found = Cost()
    for cost in costs:
        found.rows += cost.rows
        found.reports = max(found.reports, cost.reports)
        found.answer_rows += cost.answer_rows
        found.cpu += cost.cpu
        found.state += cost.state
        found.watermark = min(found.watermark, cost.watermark)
        found.reported = min(found.reported, cost.reported)
    return found
