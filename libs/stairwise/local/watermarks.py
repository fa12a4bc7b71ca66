"""How far the streams have come: a watermark for each partition, and the minimum that reports wait for.

    trades/0   ────────────────────●            12:00:07
    trades/1   ──────────────●                  12:00:05   ← the minimum: every τ up to here is final
    quotes/0   ──────────────────────────●      12:00:09

A partition that has said nothing stands at DAWN and holds everything back; a sealed one stands at DUSK and
holds nothing back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stairwise.schema import DAWN, DUSK, Instant


class Watermarks:
    """Watermarks by stream and partition. They never go back."""

    def __init__(self, partitions: Mapping[str, int]) -> None:
        self._marks = {name: [DAWN] * count for name, count in partitions.items()}

    def reached(self, stream: str, partition: int, watermark: Instant) -> None:
        """No row at or below the watermark follows in this partition."""
        marks = self._marks[stream]
        marks[partition] = max(marks[partition], watermark)

    def seal(self, stream: str) -> None:
        """No row follows in the whole stream."""
        self._marks[stream] = [DUSK] * len(self._marks[stream])

    def watermark(self, streams: Iterable[str]) -> Instant:
        """The minimum over all partitions of these streams."""
        return min((min(self._marks[name]) for name in streams), default=DAWN)
