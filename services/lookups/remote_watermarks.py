"""Watermarks of partitions on other workers, and the lookups that they let this worker answer while the others do not.

    partition    0      1      2      3        key 'AB' is at home in 0
    held         here   here   elsewhere
    watermark    90     95     80     85       as they told last, and: tidy

A row at or below a watermark does not come any more, so what was told once stays true. If the partitions elsewhere
were tidy, they have no row of 'AB' up to 80: whatever is asked of it at T = 80 can be answered from here.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.lookups.holdings import Holdings, Key
from services.lookups.lookup_steps import KeyedLookup, StepAnswer
from stairwise.lookups.homes import homes_asked
from stairwise.lookups.partition_history import PartitionHistory
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.wire import topics


class RemoteWatermarks:
    def __init__(self, holdings: Holdings) -> None:
        self._holdings = holdings
        self._told: dict[Key, StepAnswer] = {}
        """Of partitions elsewhere that were tidy."""

    def hear(self, stream: Stream, numbers: Sequence[int], told: StepAnswer) -> None:
        """Another worker has told how far it has read partitions."""
        topic = topics.sequenced(stream)
        for number in numbers:
            if told.tidy:
                self._told[topic, number] = told
            else:
                self._told.pop((topic, number), None)

    def here(self, stream: Stream) -> dict[int, PartitionHistory]:
        """What is here of a stream, and ready, by the number of the partition."""
        topic = topics.sequenced(stream)
        held = {number: self._holdings.get((topic, number)) for number in range(stream.partitions)}
        return {number: one.history for number, one in held.items() if one is not None and one.is_ready}

    def instant(self, asked: Sequence[KeyedLookup]) -> Instant | None:
        """T, if everything that is asked can be answered from here at an instant."""
        watermarks: list[Instant] = []
        newest: list[Instant] = []
        for one in asked:
            stream, here = one.lookup.stream, self.here(one.lookup.stream)
            homes = homes_asked(one.lookup, one.keys)
            if homes is None or not homes <= here.keys():
                return None
            for number in range(stream.partitions):
                key = (topics.sequenced(stream), number)
                held = self._holdings.get(key)
                told = (
                    StepAnswer(held.history.watermark, held.newest) if number in here and held else self._told.get(key)
                )
                if told is None:
                    return None
                watermarks.append(told.watermark)
                newest.append(told.newest)
        at = min(watermarks)
        return None if at == DAWN else max(newest) if at == DUSK else at
