"""A LIVE stream goes by the clock when no rows come, whether or not it declares IDLE AFTER."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stairwise.schema import DAWN, Column, Instant, Stream, Type
from stairwise.streams.idleness import GRACE, IdleWatch, Seen

EVENTS = Stream("s", (Column("ts", Type.TIMESTAMP),), timestamp_by="ts", partitions=2, lateness=100, live=True)
BY_KAFKA = replace(EVENTS, timestamp_by=None)


def marks(stream: Stream, partitions: dict[int, Seen], seconds: float, *, moving: frozenset[int] = frozenset()) -> dict:
    """The watermarks that partitions get while somebody looks five times a second; some take messages all along."""
    watch, given = IdleWatch(stream), {}
    for step in range(int(seconds * 5) + 1):
        for number in moving:
            partitions[number] = replace(partitions[number], taken=partitions[number].taken + 1)
        watch.tick(step / 5, partitions)
        for number, offer in watch.look(1_000_000 + 200 * step, partitions).items():
            given[number] = offer.watermark
            partitions[number] = replace(partitions[number], watermark=offer.watermark)
    return given


def seen(rows: int, watermark: Instant = 500_000) -> Seen:
    return Seen(rows, rows, watermark if rows else DAWN, owner="lane")


@pytest.mark.parametrize(
    "stream", [EVENTS, BY_KAFKA, replace(EVENTS, idle_after=2_000)], ids=["event", "kafka", "idle"]
)
def test_time_goes_on_by_the_clock_when_rows_have_stopped(stream: Stream) -> None:
    given = marks(stream, {0: seen(5), 1: seen(3)}, 10)
    assert given == dict.fromkeys((0, 1), 1_010_000 - 100 - 1)


def test_partitions_without_a_row_go_along() -> None:
    assert marks(EVENTS, {0: seen(5), 1: seen(0)}, 10) == dict.fromkeys((0, 1), 1_010_000 - 100 - 1)


def test_time_does_not_go_by_the_clock_before_the_grace_nor_while_rows_come() -> None:
    assert marks(EVENTS, {0: seen(5), 1: seen(3)}, GRACE / 1000 - 0.2) == {}
    assert marks(EVENTS, {0: seen(5), 1: seen(3)}, 20, moving=frozenset({0})) == {}


def test_a_stream_that_is_not_live_or_never_had_a_row_stands_still() -> None:
    assert marks(replace(EVENTS, live=False), {0: seen(5), 1: seen(3)}, 20) == {}
    assert marks(EVENTS, {0: seen(0), 1: seen(0)}, 20) == {}
