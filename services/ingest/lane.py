"""One partition of one stream or table on its way through ingest: messages in, batches and rejects out.

    in.trades/2 ──▶ pending ──▶ decode ──▶ sequence ──▶ s.trades.1/2
                                  │            └──────▶ late.trades/2
                                  └───────────────────▶ dlq.trades/2

A lane goes from one incarnation of its stream to the next. It does no I/O: the loop feeds it and carries out what it
says, inside one transaction.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from services.ingest import rejects
from services.ingest.partition_state import NEXT, PartitionState
from services.ingest.rejects import Outgoing
from stairwise.schema import EARLIEST, LATEST, Duration, Instant, Stream
from stairwise.streams.decoded_rows import Bad, DecodedRows
from stairwise.streams.messages import MessageDecoder
from stairwise.streams.reason_codes import Code
from stairwise.streams.rows import BadRow
from stairwise.streams.sequence import sequence
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, pack_rows
from stairwise.wire.incarnations import Incarnation

BATCH_ROWS = 16_384
"""How many rows a batch has at the most."""
BATCH_BYTES = 4 << 20
"""How large a batch is at the most before it is packed, unless a single row is larger."""
MAX_BYTES = 4 << 20
"""The largest message that is read, unless the settings say otherwise."""
STEADY = 3_600_000
"""By how much the broker's clock goes back at the most between two messages of a batch, in milliseconds."""


@dataclass(frozen=True)
class Outcome:
    """What came of rows."""

    rows: int = 0
    late: int = 0
    dead: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(self.rows + other.rows, self.late + other.late, self.dead + other.dead)


class Lane:
    def __init__(
        self, partition: int, incarnation: Incarnation, state: PartitionState, next_offset: int, max_bytes: int
    ) -> None:
        self.partition = partition
        self.next_offset = next_offset
        """The offset of the next message to take."""
        self.end_seen = -1
        """The offset at which the end of the partition was last met."""
        self.end_told = -1
        """Where the partition ended, as a fetch told it."""
        self.outcome = Outcome()
        """What came of the rows since ``settle``."""
        self._pending: list[Message] = []
        self._max_bytes = max_bytes
        self.enter(incarnation, state)

    def enter(self, incarnation: Incarnation, state: PartitionState) -> None:
        """Begin, or go on with, an incarnation."""
        self.incarnation = incarnation
        self.state = state
        self.follows: dict[str, Instant] = {}
        """Of a table, how far the streams had come that it is joined with, as its last batch says it."""
        self.__dict__.pop("_decoder", None)

    @cached_property
    def _decoder(self) -> MessageDecoder:
        """Made when the first message comes: of a stream that cannot be read, the end can still be written."""
        return MessageDecoder(self.stream)

    @property
    def stream(self) -> Stream:
        return self.incarnation.stream

    @property
    def watermark(self) -> Instant:
        """That of the last batch."""
        return self.state.watermark(self.incarnation)

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def written_upto(self) -> int:
        """The offset up to which everything was written: the one to commit."""
        return int(self._pending[0].offset()) if self._pending else self.next_offset

    def take(self, messages: Sequence[Message]) -> None:
        """Messages in the order of their offsets. One that was taken before a seek is passed over."""
        if messages[0].offset() < self.next_offset:
            messages = [m for m in messages if m.offset() >= self.next_offset]
            if not messages:
                return
        self._pending += messages
        self.next_offset = messages[-1].offset() + 1

    def has_read(self, end: int) -> bool:
        """Has everything below the end offset been taken? (Control records take offsets but never come.)"""
        return max(self.next_offset, self.end_seen) >= end

    def settle(self) -> Outcome:
        """What came of the rows since the last time."""
        outcome, self.outcome = self.outcome, Outcome()
        return outcome

    def write(self, version: int, clock: Instant, end: int | None = None) -> Iterator[Outgoing]:
        """Batches and rejects of what is pending below the offset ``end``, under a plan version."""
        start = self.incarnation.start(self.partition)
        if self._pending and self._pending[0].offset() < start:
            yield from self._closed(self._below(start))
        messages = self._pending if end is None else self._below(end)
        if end is None:
            self._pending = []
        if messages:
            self.state = replace(self.state, active=clock)
        for first in range(0, len(messages), BATCH_ROWS):
            last = first + BATCH_ROWS
            upto = messages[last].offset() if last < len(messages) else self.written_upto
            yield from self._write(messages[first:last], version, upto)

    def reject_closed(self) -> Iterator[Outgoing]:
        """Everything pending as dead letters: the stream's input has ended."""
        messages, self._pending = self._pending, []
        yield from self._closed(messages)

    def follow(self, version: int, follows: dict[str, Instant]) -> Outgoing:
        """An empty batch of a table: the streams that it is joined with have come so far."""
        self.follows = follows
        return self.mark(version)

    def mark(self, version: int, watermark: Instant | None = None, *, sealed: bool = False) -> Outgoing:
        """An empty batch: the partition moves to a plan version, is given a watermark, or ends."""
        lateness = self._lateness(version)
        position = self.state.position
        after = position if watermark is None else position.raised(watermark)
        headers = BatchHeaders(
            version=version,
            sequence=position.sequence,
            rows=0,
            watermark=after.watermark(lateness),
            previous=self.watermark,
            sealed=sealed,
            follows=self.follows,
            seen=position.highest,
        )
        is_progress = not sealed and version == self.state.version
        self.state = replace(self.state, position=after, version=version, sealed=sealed)
        return self._outgoing(b"", headers, self.written_upto, is_progress=is_progress)

    def _lateness(self, version: int) -> Duration:
        """LATENESS for what is written under a version. Where that alters it, the watermark stays where it is."""
        lateness = self.incarnation.at(version).lateness
        if lateness != self.incarnation.at(self.state.version).lateness:
            self.state = replace(self.state, position=self.state.position.raised(self.watermark))
        return lateness

    def _below(self, end: int) -> list[Message]:
        """Take what is pending below an offset out of the queue."""
        below = list(itertools.takewhile(lambda m: m.offset() < end, self._pending))
        self._pending = self._pending[len(below) :]
        return below

    def _closed(self, messages: Sequence[Message]) -> Iterator[Outgoing]:
        reason = f"it came while stream {self.stream.name!r} was sealed or dropped"
        for number, message in enumerate(messages):
            yield self._dead(message, Bad(number, 1, BadRow(number, Code.SEALED, None, reason), None))

    def _dead(self, message: Message, bad: Bad) -> Outgoing:
        self.outcome += Outcome(dead=bad.rows)
        return rejects.dead(self.stream, message, bad)

    def _write(self, messages: list[Message], version: int, upto: int) -> Iterator[Outgoing]:
        values = list(map(Message.value, messages))
        try:
            largest = max(map(len, values))
        except TypeError:  # a tombstone holds nothing
            if self.stream.is_table:
                yield from self._tombstones(messages)
                messages = [message for message in messages if message.value() is not None]
                values = list(map(Message.value, messages))
                if not messages:
                    return
            values = [value or b"" for value in values]
            largest = max(map(len, values))
        if largest > self._max_bytes:
            yield from self._too_large(messages, values)
            small = [number for number, value in enumerate(values) if len(value) <= self._max_bytes]
            if not small:
                return
            messages, values = [messages[i] for i in small], [values[i] for i in small]
        gathered: list[DecodedRows] = []
        rows = 0
        for block in self._decoder.decode(
            values, self._append_times(messages), lambda i: rejects.format_of(messages[i])
        ):
            for bad in block.bad:
                yield self._dead(messages[bad.message], bad)
            if rows and rows + block.rows.num_rows > BATCH_ROWS:
                yield from self._sequence(gathered, messages, version, upto)
                gathered, rows = [], 0
            gathered.append(block)
            rows += block.rows.num_rows
        yield from self._sequence(gathered, messages, version, upto)

    def _tombstones(self, messages: Sequence[Message]) -> Iterator[Outgoing]:
        text = "a message without a value: a row of a table can be replaced, not deleted"
        for number, message in enumerate(messages):
            if message.value() is None:
                yield self._dead(message, Bad(number, 1, BadRow(number, Code.TOMBSTONE, None, text), None))

    def _too_large(self, messages: Sequence[Message], values: Sequence[bytes]) -> Iterator[Outgoing]:
        """Dead letters with nothing but what their headers say, since Kafka might not take the bytes again."""
        for number, value in enumerate(values):
            if len(value) > self._max_bytes:
                text = f"a message of {len(value):,} bytes; at most {self._max_bytes:,} are read"
                yield self._dead(messages[number], Bad(number, 1, BadRow(number, Code.TOO_LARGE, None, text), b""))

    def _sequence(
        self, blocks: list[DecodedRows], messages: list[Message], version: int, upto: int
    ) -> Iterator[Outgoing]:
        """Judge rows, number them, and put them into batches."""
        batches = [block.rows for block in blocks]
        rows = batches[0] if len(batches) == 1 else pa.concat_batches(batches) if batches else None
        if rows is None or not rows.num_rows:
            return
        time: np.ndarray = rows.column(self.stream.time_column).to_numpy(zero_copy_only=False)
        kept: np.ndarray | None = None
        if self._may_be_ahead(messages, int(time.max())):
            kept = time <= self._latest(blocks, messages)
            if not kept.all():
                yield from self._future(blocks, messages, np.flatnonzero(~kept), time)
                rows, time = rows.filter(pa.array(kept)), time[kept]
        lateness = self._lateness(version)
        judged = sequence(rows, time, self.state.position, lateness)
        if judged.late.num_rows:
            late = np.flatnonzero(judged.is_late)
            came = late if kept is None else np.flatnonzero(kept)[late]
            yield from self._late(blocks, messages, came, time[late], judged.watermark_before)
            time = time[~judged.is_late]
        if len(time):
            traces = rejects.contexts([messages[i] for i in _sample(blocks)])
            yield from self._batches(judged.on_time, time, version, upto, traces)
        self.state = replace(self.state, position=judged.position)

    def _batches(
        self, rows: pa.RecordBatch, time: np.ndarray, version: int, upto: int, traces: Sequence[str]
    ) -> Iterator[Outgoing]:
        """A batch, or several where one would be too large."""
        count = rows.num_rows
        if count > 1 and (count > BATCH_ROWS or rows.nbytes > BATCH_BYTES):
            half = count // 2
            yield from self._batches(rows.slice(0, half), time[:half], version, upto, traces)
            yield from self._batches(rows.slice(half), time[half:], version, upto, traces)
            return
        position = self.state.position
        highest = int(time.max())
        after = replace(position, sequence=position.sequence + count, highest=max(position.highest, highest))
        headers = BatchHeaders(
            version=version,
            sequence=position.sequence,
            rows=count,
            watermark=after.watermark(self._lateness(version)),
            previous=self.watermark,
            lowest=int(time.min()),
            highest=highest,
            follows=self.follows,
            seen=position.highest,
        )
        self.state = replace(self.state, position=after, version=version)
        self.outcome += Outcome(rows=count)
        yield self._outgoing(pack_rows(rows), headers, upto, traces)

    def _outgoing(
        self,
        value: bytes,
        headers: BatchHeaders,
        upto: int,
        traces: Sequence[str] = (),
        *,
        is_progress: bool = False,
    ) -> Outgoing:
        """A table's topic is compacted: what must stay has a key of its own, of mere progress the last will do."""
        encoded = [*headers.encode(), (NEXT, b"%d" % upto)]
        key = None
        if self.stream.is_table:
            own = b"sealed" if headers.sealed else b"%d/%d" % (headers.sequence + headers.rows, headers.version)
            key = b"progress" if is_progress else own
        return Outgoing(topics.sequenced(self.stream), value, encoded, headers.rows, traces, key)

    def _append_times(self, messages: Sequence[Message]) -> np.ndarray | None:
        """When Kafka took the messages in: the event time of a stream that declares no field for it.

        What a table says without a time has always been so.
        """
        if self.stream.timestamp_by is not None:
            return None
        if self.stream.is_table:
            return np.full(len(messages), EARLIEST)
        return np.fromiter((m.timestamp()[1] for m in messages), np.int64, len(messages))

    def _may_be_ahead(self, messages: Sequence[Message], highest: Instant) -> bool:
        """May a row be too far ahead? To ask all messages when they were appended would cost a tenth of all."""
        if self.stream.future is None or self.stream.timestamp_by is None:
            return False
        ends = [messages[0].timestamp(), messages[-1].timestamp()]
        is_by_broker = all(kind == TIMESTAMP_LOG_APPEND_TIME for kind, _ in ends)
        return not is_by_broker or highest > min(at for _, at in ends) + self.stream.future - STEADY

    def _latest(self, blocks: Sequence[DecodedRows], messages: Sequence[Message]) -> np.ndarray:
        """For each row, the latest time that it may have: so far ahead of when its message was appended."""
        assert self.stream.future is not None
        appended = np.fromiter((m.timestamp()[1] for m in messages), np.int64, len(messages))
        appended[appended < 0] = LATEST  # the producer left it open
        latest: np.ndarray = appended[np.concatenate([block.message for block in blocks])] + self.stream.future
        return latest

    def _future(
        self, blocks: list[DecodedRows], messages: list[Message], rows: np.ndarray, time: np.ndarray
    ) -> Iterator[Outgoing]:
        for message, some, excerpt in _parts(blocks, rows):
            ahead = f"is more than the stream's FUTURE ahead of {messages[message].timestamp()[1]}, when Kafka took it"
            times = time[some]
            reason = f"its time {times[0]} {ahead}" if len(times) == 1 else f"the earliest, {times.min()}, {ahead}"
            row = BadRow(message, Code.FUTURE, self.stream.timestamp_by, reason)
            yield self._dead(messages[message], Bad(message, len(some), row, excerpt))

    def _late(
        self, blocks: list[DecodedRows], messages: list[Message], rows: np.ndarray, time: np.ndarray, marks: np.ndarray
    ) -> Iterator[Outgoing]:
        """Rows that are late, with their times and the watermarks that they were judged by."""
        done = 0
        for message, some, excerpt in _parts(blocks, rows):
            what = "its time" if len(some) == 1 else f"of {len(some)} rows the first's time,"
            reason = f"{what} {time[done]} is at or below the partition's watermark {marks[done]}"
            done += len(some)
            self.outcome += Outcome(late=len(some))
            yield rejects.late(self.stream, messages[message], len(some), excerpt, reason)


def _parts(blocks: Sequence[DecodedRows], rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, bytes | None]]:
    """Some rows of the blocks as they came: the message, which rows these are, their bytes if not all of it."""
    start = 0
    for block in blocks:
        end = start + block.rows.num_rows
        some = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)]
        at = 0
        for message, count, excerpt in block.parts(some - start):
            yield message, some[at : at + count], excerpt
            at += count
        start = end


def _sample(blocks: Sequence[DecodedRows]) -> list[int]:
    """The first messages of the blocks, each once."""
    firsts = itertools.chain.from_iterable(block.message[: rejects.SAMPLED].tolist() for block in blocks)
    return list(dict.fromkeys(itertools.islice(firsts, rejects.SAMPLED)))
