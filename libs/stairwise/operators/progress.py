"""How far the streams have come: a watermark for each partition, and the minimum that reports wait for.

    trades/0   ────────────────────●            12:00:07
    trades/1   ──────────────●                  12:00:05   ← the minimum: every τ up to here is final
    quotes/0   ──────────────────────────●      12:00:09

A partition that has said nothing stands at DAWN and holds everything back; a sealed one stands at DUSK and
holds nothing back. The first and last row of each stream are kept beside the watermarks, since a query's
reports begin with the one and, when all is sealed, end with the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from stairwise.schema import DAWN, DUSK, Instant


class _Course(msgspec.Struct):
    """One stream's part of it."""

    watermarks: list[Instant]
    first_row: Instant = DUSK
    last_row: Instant = DAWN


class Progress:
    """Watermarks by stream and partition. They never go back."""

    def __init__(self, partitions: Mapping[str, int]) -> None:
        self._courses = {name: _Course([DAWN] * count) for name, count in partitions.items()}

    def saw_rows(self, stream: str, first: Instant, last: Instant) -> None:
        """Rows came in, on time; these are the extremes of their times."""
        course = self._courses[stream]
        course.first_row = min(course.first_row, first)
        course.last_row = max(course.last_row, last)

    def reached(self, stream: str, partition: int, watermark: Instant) -> None:
        """No row at or below the watermark follows in this partition."""
        marks = self._courses[stream].watermarks
        marks[partition] = max(marks[partition], watermark)

    def seal(self, stream: str, partition: int | None = None) -> None:
        """No row follows at all: in this partition, or in the whole stream."""
        marks = self._courses[stream].watermarks
        for sealed in range(len(marks)) if partition is None else (partition,):
            marks[sealed] = DUSK

    def watermark(self, streams: Iterable[str] | None = None) -> Instant:
        """The minimum over all partitions of these streams (of all, where none are named)."""
        names = self._courses if streams is None else streams
        return min((min(self._courses[name].watermarks) for name in names), default=DAWN)

    def rows_between(self, streams: Iterable[str]) -> tuple[Instant, Instant]:
        """The times of the first and the last row of these streams; (DUSK, DAWN) where there is none."""
        courses = [self._courses[name] for name in streams]
        return min(c.first_row for c in courses), max(c.last_row for c in courses)

    def is_sealed(self, streams: Iterable[str]) -> bool:
        return self.watermark(streams) == DUSK

    def to_bytes(self) -> bytes:
        return msgspec.msgpack.encode(self._courses)

    @classmethod
    def from_bytes(cls, page: bytes) -> Progress:
        progress = cls({})
        progress._courses = msgspec.msgpack.decode(page, type=dict[str, _Course])
        return progress
