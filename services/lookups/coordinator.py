"""Lookups over all partitions of a stream, wherever they are: T is fixed once, and every part is asked at T.

    client ──▶ any worker ──┬─▶ its own partitions
                            └─▶ the owners of the others, all at once, step by step (``lookups.gather``)

What structures answer is answered at once. Rows that have to be looked through are settled at once and looked through
beside the loop. Partitions may go on meanwhile, here and elsewhere: they are asked at T, which they have passed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from services.lookups.holdings import Holdings, Key
from services.lookups.lookup_steps import (
    ALIGNED,
    CANDIDATES,
    PARTS,
    TIMES,
    WATERMARK,
    KeyedLookup,
    StepAnswer,
    StepRequest,
    answer_step,
    made,
    scanned,
)
from services.lookups.peers import Peers
from services.lookups.remote_watermarks import RemoteWatermarks
from services.lookups.slice_runner import SliceRunner
from stairwise.errors import NotReadyError, StairwiseError
from stairwise.expressions.views import Ints, int64_view
from stairwise.lookups.answer import put_each, put_in_order, put_together
from stairwise.lookups.gather import apart, held_at, look_up_plainly, named_keys, parts_or_scans
from stairwise.lookups.homes import partitions_of_a_key
from stairwise.lookups.last_rows import among_the_last
from stairwise.lookups.partition_history import PartitionHistory
from stairwise.lookups.partition_parts import aligned, check_together, unmade
from stairwise.lookups.statement import Lookup
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.windows.spec import RowsWindow
from stairwise.wire import topics

POLL = 0.01
"""Seconds between two looks at a watermark that is waited for."""
FEW = 4096
"""Rows of groups that are put together at once."""
HERE = ""
"""Stands for this worker among the owners."""


@dataclass(frozen=True)
class When:
    """At which instant lookups are answered: where the watermark is, and not before a time; or exactly at one."""

    at_least: Instant | None = None
    exactly: Instant | None = None

    @property
    def earliest(self) -> Instant | None:
        """The time that the watermark must have reached."""
        return self.at_least if self.exactly is None else self.exactly


NOW = When()


class TooLateError(StairwiseError):
    """A lookup asked for a time that the watermark did not reach before the deadline."""

    def __init__(self, wanted: Instant, reached: Instant) -> None:
        said = "no row yet" if reached == DAWN else str(reached)
        super().__init__(
            f"the watermark has not reached {wanted} in time, it is at {said}",
            hint="give the call a later deadline; a partition that gets no more rows needs IDLE AFTER to let time pass",
        )


class Owners:
    """Who holds which partition: what is held here, and what the last assignment says of the others."""

    def __init__(self, holdings: Holdings, address: str) -> None:
        self._holdings = holdings
        self._address = address
        self.elsewhere: Mapping[Key, str] = {}

    def of(self, stream: Stream) -> dict[str, list[int]]:
        """The partitions of a stream by the address of their owner."""
        found: dict[str, list[int]] = {}
        topic = topics.sequenced(stream)
        for number in range(stream.partitions):
            owner = HERE
            if self._holdings.get((topic, number)) is None:
                owner = self.elsewhere.get((topic, number), self._address)
                if owner == self._address:
                    raise NotReadyError(f"no worker holds partition {number} of {stream.name} yet", retry_after=2)
            found.setdefault(owner, []).append(number)
        return found


class Coordinator:
    def __init__(self, holdings: Holdings, owners: Owners, peers: Peers, runner: SliceRunner) -> None:
        self._holdings = holdings
        self._runner = runner
        self._owners = owners
        self._peers = peers
        self._remote = RemoteWatermarks(holdings)

    async def answers(
        self, asked: Sequence[KeyedLookup], when: When, patience: float
    ) -> tuple[Instant, list[pa.RecordBatch]]:
        """The answers of lookups, all at one instant, and that instant.

        ``patience`` is how many seconds it may take for the watermark to get there.
        """
        at_once = self._at_once(asked) if when == NOW else None
        if at_once is not None:
            return at_once
        streams = {one.lookup.stream.name: one.lookup.stream for one in asked}
        try:
            at, tidy = await self._instant(streams.values(), when, time.monotonic() + patience)
            return at, [await self._answer(one, at, are_tidy=one.lookup.stream.name in tidy) for one in asked]
        except NotReadyError:
            alone = await self._alone(asked, when)
            if alone is None:
                raise
            return alone

    async def _alone(self, asked: Sequence[KeyedLookup], when: When) -> tuple[Instant, list[pa.RecordBatch]] | None:
        """The same without others, where none of what is asked can be with them; as late as they were heard of."""
        at = self._remote.instant(asked)
        if at is None or (when.earliest is not None and at < when.earliest):
            return None
        at = at if when.exactly is None else when.exactly
        answers: list[pa.RecordBatch] = []
        for one in asked:
            lookup, histories = one.lookup, self._remote.here(one.lookup.stream)
            held = held_at(lookup, at, histories)
            if one.keys is not None or lookup.needs_index:
                await made(held, lookup, self._runner)
            if one.keys is not None:
                answers.append(put_each(lookup, at, one.keys, aligned(held, lookup, one.keys, one.ranges)))
            else:
                parts = await scanned(parts_or_scans(lookup, at, histories), histories.values(), self._runner)
                answers.append(await self._put_together(lookup, at, parts))
        return at, answers

    def _at_once(self, asked: Sequence[KeyedLookup]) -> tuple[Instant, list[pa.RecordBatch]] | None:
        """What is asked most, where all is here: sums of one key, or keys one by one, now.

        The steps come to the same, at more cost.
        """
        asked_of: list[tuple[KeyedLookup, dict[int, PartitionHistory]]] = []
        for one in asked:
            held = self._holdings.whole(one.lookup.stream) if one.keys is not None or one.lookup.is_plain else None
            if held is None:
                return None
            asked_of.append((one, {partition.number: partition.history for partition in held}))
        at = min(history.watermark for _, histories in asked_of for history in histories.values())
        if at in (DAWN, DUSK):
            return None
        answers: list[pa.RecordBatch] = []
        for one, histories in asked_of:
            if one.keys is not None:
                asked_at = held_at(one.lookup, at, histories)
                if unmade(asked_at, one.lookup):
                    return None
                rows = put_each(one.lookup, at, one.keys, aligned(asked_at, one.lookup, one.keys, one.ranges))
            else:
                rows = look_up_plainly(one.lookup, at, histories)
            if rows is None:
                return None
            answers.append(rows)
        return at, answers

    async def _instant(
        self, streams: Collection[Stream], when: When, deadline: float
    ) -> tuple[Instant, frozenset[str]]:
        """T, and the streams whose rows up to T are all where PARTITION BY sends them."""
        while True:
            told = {stream.name: await self._watermarks(stream) for stream in streams}
            flat = list(chain.from_iterable(told.values()))
            watermark = min(one.watermark for one in flat)
            tidy = frozenset(name for name, each in told.items() if all(one.tidy for one in each))
            if when.exactly is not None and watermark >= when.exactly:
                return when.exactly, tidy
            if watermark == DUSK:  # all are sealed: time has ended with the last row
                watermark = max(one.newest for one in flat)
            if watermark == DAWN and when == NOW:
                raise NotReadyError(_without_time(streams))
            if when.earliest is None or watermark >= when.earliest:
                return watermark, tidy
            if time.monotonic() + POLL >= deadline:
                raise TooLateError(when.earliest, watermark)
            await asyncio.sleep(POLL)

    async def _watermarks(self, stream: Stream) -> list[StepAnswer]:
        owners = self._owners.of(stream)
        told = await self._ask(StepRequest(WATERMARK, stream), owners)
        for (owner, numbers), one in zip(owners.items(), told, strict=True):
            if owner != HERE:
                self._remote.hear(stream, numbers, one)
        return told

    async def _answer(self, asked: KeyedLookup, at: Instant, *, are_tidy: bool) -> pa.RecordBatch:
        lookup, window = asked.lookup, asked.lookup.window
        ask = StepRequest(PARTS, lookup.stream, lookup, at, spread=partitions_of_a_key(lookup, are_tidy=are_tidy))
        check_together(lookup, ask.spread)
        if isinstance(window, RowsWindow):
            times = await self._times(ask)
            counts = among_the_last(times, window.rows + lookup.lag)
            ask = replace(ask, counts=counts, skips=among_the_last(times, lookup.lag))
        if asked.keys is not None:
            each = replace(ask, step=ALIGNED, keys=asked.keys, ranges=asked.ranges)
            return put_in_order(lookup, at, asked.keys, [rows.columns for rows in _parts(await self._ask(each))])
        if lookup.bound is not None and ask.spread > 1:
            named = await self._ask(replace(ask, step=CANDIDATES))
            ask = replace(ask, keys=named_keys([rows for one in named for rows in one.rows]))
        parts = apart(lookup, ask.spread, _parts(await self._ask(ask)))
        return await self._put_together(lookup, at, parts)

    async def _put_together(self, lookup: Lookup, at: Instant, parts: list[pa.RecordBatch]) -> pa.RecordBatch:
        rows = sum(part.num_rows for part in parts)
        if rows <= FEW:
            return put_together(lookup, at, parts)
        return await self._runner.call(lambda: put_together(lookup, at, parts), rows)

    async def _times(self, ask: StepRequest) -> dict[int, Ints]:
        """Of each partition, the times of the last rows that a window by rows may hold."""
        owners = self._owners.of(ask.stream)
        told = await self._ask(replace(ask, step=TIMES), owners)
        numbers = chain.from_iterable(owners.values())
        return dict(zip(numbers, (int64_view(batch.column(0)) for batch in _parts(told)), strict=True))

    async def _ask(self, ask: StepRequest, owners: Mapping[str, Sequence[int]] | None = None) -> list[StepAnswer]:
        """One step, asked of all owners of the stream's partitions."""
        owners = self._owners.of(ask.stream) if owners is None else owners
        if len(owners) == 1 and HERE in owners:
            return [await answer_step(ask, owners[HERE], self._holdings, self._runner)]
        elsewhere = {address: numbers for address, numbers in owners.items() if address != HERE}
        calls = [asyncio.create_task(self._peers.ask(address, ask, numbers)) for address, numbers in elsewhere.items()]
        try:
            here = await answer_step(ask, owners[HERE], self._holdings, self._runner) if HERE in owners else None
            told = dict(zip(elsewhere, await asyncio.gather(*calls), strict=True))
        except BaseException:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            raise
        return [here if owner == HERE and here is not None else told[owner] for owner in owners]


def _parts(told: Sequence[StepAnswer]) -> list[pa.RecordBatch]:
    return [rows for one in told for rows in one.rows if rows is not None]


def _without_time(streams: Collection[Stream]) -> str:
    names = ", ".join(sorted(stream.name for stream in streams))
    return f"a partition of {names} has had no row and no watermark yet (it gets one 5 s after rows of others)"
