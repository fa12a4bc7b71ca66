"""Putting events onto Kafka, in the partition that PARTITION BY says.

A row is a message by itself, which is what any producer can do; lines and columns go many rows to a message, which
costs ingest a third, or a tenth, of that. Updates of a table (CREATE TABLE) go one to a message, whatever they come as:
the message's key is the row's, and of each key Kafka keeps the last.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from stairwise.client.confirmation import PATIENCE, Aftermath, Confirmation, PublishError
from stairwise.client.deliveries import Deliveries
from stairwise.client.listing import StreamInfo
from stairwise.errors import ConflictError, NotFoundError
from stairwise.platform import kafka, telemetry
from stairwise.schema import Stream, Type
from stairwise.streams import rejected
from stairwise.streams.messages import CONTENT_TYPE, Format
from stairwise.streams.objects import ObjectField, object_reader
from stairwise.streams.partition import partition_of, split
from stairwise.streams.reason_codes import Code
from stairwise.streams.rows import RowDecoder
from stairwise.wire import topics

LINGER_MS = 5
"""Messages wait this long for company: many small ones share a request."""
BLOCK_BYTES = 1 << 20
"""About how large a message of many rows may be."""
TABLE_ROWS = 16_384
"""How many rows of a table go into a message."""
SPLIT_ROWS = 1 << 18
"""How many rows of a table are cut into partitions at a time."""
TIMEOUT_MS = 60_000
"""After how long a message that the broker does not take counts as lost."""


Written = Callable[[pa.RecordBatch], pa.RecordBatch]
"""Rows in the types in which they are sent."""

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # what librdkafka remarks is for those who configure logging, not for stderr


def publishable(stream: str, streams: Iterable[StreamInfo]) -> Stream:
    """The stream or table of this name, if it is there and its input has not ended."""
    known = {info.name: info for info in streams}
    if stream not in known:
        raise NotFoundError("stream or table", stream, known)
    found = known[stream]
    if found.sealed:
        kind = found.declaration.kind
        hint = f"CREATE {kind.upper()} {stream} (...) once more begins anew, or DROP it and its queries first"
        raise ConflictError(f"{kind} {stream!r} is sealed: its input has ended", hint=hint)
    return found.declaration


class Publisher:
    """Sends rows to one stream. ``flush`` waits until the broker has them and says if it has not; ``confirm`` waits
    until ingest has judged them as well, if the publisher is ``tracked``."""

    def __init__(self, brokers: str, stream: Stream, *, tracked: bool = False) -> None:
        self._topic = topics.incoming(stream.name)
        self.stream = stream
        self._aftermath = Aftermath(brokers, stream) if tracked else None
        self._deliveries = Deliveries()
        self._brokers = brokers
        self._producer = kafka.producer(brokers, linger_ms=LINGER_MS, message_timeout_ms=TIMEOUT_MS, logger=_log)
        self._partition = _partitioner(stream)
        self._decoder = RowDecoder(stream)
        self._key_of = _key_reader(stream)
        self._message_key = _message_key(stream)
        self._sent = 0
        """Rows of tables so far: without PARTITION BY they go round in turn."""
        self._last_partition = 0
        self._lost = 0
        self._reason: KafkaError | None = None
        self._is_traced = not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    def publish(self, rows: Iterable[Mapping[str, Any]] | pa.Table | pa.RecordBatch) -> int:
        """Rows one by one or as a table, and the broker has them; how many they were."""
        count = 0
        if isinstance(rows, pa.Table | pa.RecordBatch):
            self.send_table(rows)
            count = int(rows.num_rows)
        else:
            for row in rows:
                self.send(row)
                count += 1
        self.flush()
        return count

    def send(self, row: Mapping[str, Any]) -> None:
        """One row, by name of column."""
        key = row.get(self.stream.partition_by) if self.stream.partition_by is not None else None
        line = msgspec.json.encode(row)
        self._produce(line, self._partition(key), key=self._message_key(line))

    def send_lines(self, lines: Iterable[bytes]) -> None:
        """Rows that are JSON already. They go as they are, malformed ones too: ingest says what is wrong."""
        for line in lines:
            self._produce(line, self._partition(self._key_of(line)), key=self._message_key(line))

    def send_blocks(self, lines: Iterable[bytes], rows: int) -> None:
        """The same, up to so many lines of a partition in one message."""
        if self.stream.is_table:
            self.send_lines(lines)
            return
        blocks: dict[int, list[bytes]] = {}
        for line in lines:
            partition = self._partition(self._key_of(line))
            block = blocks.setdefault(partition, [])
            block.append(line)
            if len(block) == rows:
                self._send_block(blocks.pop(partition), partition)
        for partition, block in blocks.items():
            self._send_block(block, partition)

    def send_columns(self, lines: Sequence[bytes], rows: int) -> None:
        """The same as Arrow messages; lines that are no rows of the stream go as they are, after them."""
        if self.stream.is_table:
            self.send_lines(lines)
            return
        decoded = self._decoder.decode(lines, np.zeros(len(lines), np.int64))
        self.send_decoded(decoded.rows, rows)
        self.send_lines(lines[bad.index] for bad in decoded.bad)

    def send_decoded(self, batch: pa.RecordBatch, rows: int = TABLE_ROWS) -> None:
        """Rows with the stream's own schema, as its decoders give them: their times are instants already, and are sent
        as such, whatever unit the stream's numbers have."""
        self._send_batches([batch.select([column.name for column in self.stream.columns])], rows, self._with_instants)

    def send_rejected(self, code: Code, field: str | None, reason: str, raw: str) -> None:
        """A row that is none of the stream, with the reason: ingest puts it to the dead letters."""
        value = rejected.encode(code, field, reason, raw)
        # It goes behind the row before it: alone in a partition, it would be all that the partition ever has.
        self._produce(value, self._last_partition, Format.REJECTED, key=self._message_key(value))

    def send_table(self, table: pa.Table | pa.RecordBatch, rows: int = TABLE_ROWS) -> None:
        """Rows in columns, as Arrow messages; columns of the stream in any type that can hold its values."""
        batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches()
        self._send_batches(batches, rows, _as_given)

    def _send_batches(self, batches: Sequence[pa.RecordBatch], rows: int, written: Written) -> None:
        for batch in itertools.chain.from_iterable(_sliced(batch, SPLIT_ROWS) for batch in batches):
            of_row = split(_plain(batch), self._key_column(batch), self.stream.partitions, self._sent)
            self._sent += batch.num_rows
            for partition in np.unique(of_row).tolist():
                part = batch if self.stream.partitions == 1 else batch.filter(pa.array(of_row == partition))
                for piece in _sliced(_plain(part), 1 if self.stream.is_table else rows):
                    self._send_arrow(piece, partition, written)

    def _with_instants(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self.stream.timestamp_by is None:
            return rows
        at = rows.schema.get_field_index(self.stream.timestamp_by)
        times = rows.column(at).cast(pa.timestamp("ms", "UTC"))
        return rows.set_column(at, self.stream.timestamp_by, times)

    def _send_arrow(self, rows: pa.RecordBatch, partition: int, written: Written) -> None:
        """A message, or two where one would be too large."""
        if rows.nbytes > BLOCK_BYTES and rows.num_rows > 1:
            for half in _sliced(rows, (rows.num_rows + 1) // 2):
                self._send_arrow(half, partition, written)
            return
        sink = pa.BufferOutputStream()
        as_written = written(rows)
        with pa.ipc.new_stream(sink, as_written.schema) as writer:
            writer.write_batch(as_written)
        key = None
        if self.stream.is_table:
            held = {name: rows.column(name)[0].as_py() for name in self.stream.keys if name in rows.schema.names}
            key = self._message_key(msgspec.json.encode(held))
        self._produce(bytes(sink.getvalue()), partition, Format.ARROW, rows.num_rows, key)

    def _send_block(self, lines: list[bytes], partition: int) -> None:
        if len(lines) > 1 and sum(map(len, lines)) > BLOCK_BYTES:
            half = len(lines) // 2
            self._send_block(lines[:half], partition)
            self._send_block(lines[half:], partition)
        else:
            self._produce(b"\n".join(lines), partition, Format.NDJSON, len(lines))

    def _key_column(self, batch: pa.RecordBatch) -> str | None:
        return self.stream.partition_by if self.stream.partition_by in batch.schema.names else None

    def flush(self) -> None:
        """Wait for the broker. Raises ``PublishError`` if rows were lost since the last flush."""
        self._producer.flush()
        if self._lost:
            lost, reason, self._lost, self._reason = self._lost, self._reason, 0, None
            why = reason.str() if reason is not None else "no reason given"
            raise PublishError(
                f"{lost} rows did not reach stream {self.stream.name!r}: {why}",
                hint=f"is the broker at {self._brokers} up? `stairwise status` tells",
            )

    def confirm(self, patience: float = PATIENCE) -> Confirmation:
        """Flush, and say what became of the rows that were sent since the last confirmation that was complete.

        Waits until ingest has judged them all, or for so many seconds in which it does not go on.
        """
        if self._aftermath is None:
            raise PublishError(
                f"this publisher of {self.stream.name!r} does not keep track of its rows",
                hint="make it by client.publisher(stream, tracked=True)",
            )
        self.flush()
        confirmation = self._aftermath.confirm(self._deliveries, patience)
        if not confirmation.waiting:
            self._deliveries = Deliveries()
        return confirmation

    def _produce(
        self, value: bytes, partition: int, format_: Format = Format.JSON, rows: int = 1, key: bytes | None = None
    ) -> None:
        headers = [] if format_ is Format.JSON else [(CONTENT_TYPE, format_.value.encode())]
        if self._is_traced:
            span = telemetry.begin("publish", (), {"stairwise.stream": self.stream.name}, SpanKind.PRODUCER)
            headers += telemetry.header(span) if span.is_recording() else []
            span.end()
        self._last_partition = partition
        delivered = self._delivered if rows == 1 else partial(self._delivered, rows=rows)
        while True:
            try:
                self._producer.produce(
                    self._topic, value, key, partition=partition, headers=headers or None, on_delivery=delivered
                )
                break
            except BufferError:
                self._producer.poll(0.1)  # the queue is full: wait for deliveries to make room
            except KafkaException as error:
                delivered(error.args[0], None)
                break
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message | None, rows: int = 1) -> None:
        if error is not None:
            self._lost += rows
            self._reason = self._reason or error
        elif self._aftermath is not None and message is not None:
            self._deliveries.add(message.partition(), message.offset(), rows)


def _sliced(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _as_given(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionaries decoded: ingest takes plain columns."""
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _partitioner(stream: Stream) -> Callable[[Any], int]:
    """From the value of the PARTITION BY column to a partition; without one, rows go round in turn."""
    if stream.partition_by is None or stream.partition_by not in stream.by_name:
        turns = itertools.cycle(range(stream.partitions))
        return lambda _: next(turns)
    type_ = stream.by_name[stream.partition_by].type
    by_text = lru_cache(maxsize=100_000)(partition_of)
    return lambda value: by_text(_text(value, type_), stream.partitions)


def _text(value: Any, type_: Type) -> str | None:
    """A value as text, as a cast to STRING would write it; one that has another type as Python writes it."""
    if value is None or isinstance(value, str):
        return value
    if type_ in (Type.DOUBLE, Type.BOOLEAN) and isinstance(value, int | float):
        text: str = pa.scalar(value, type_.arrow).cast(pa.string()).as_py()
        return text
    return str(value)


def _message_key(stream: Stream) -> Callable[[bytes], bytes | None]:
    """From a JSON line to the key of its message: of a table's row the values of KEY, as a JSON array; else none."""
    if not stream.is_table:
        return lambda _: None
    decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    nothing = msgspec.Raw(b"null")

    def read(line: bytes) -> bytes:
        try:
            row = decode(line)
        except msgspec.DecodeError:
            return b"null"  # it is no row; a topic that keeps the last of each key takes nothing without one
        return b"[" + b",".join(bytes(row.get(name, nothing)) for name in stream.keys) + b"]"

    return read


def _key_reader(stream: Stream) -> Callable[[bytes], Any]:
    """Reads the PARTITION BY column out of a JSON line and passes over the rest."""
    if stream.partition_by is None:
        return lambda _: None
    # A shape of one field makes the decoder skip all others without building them.
    reader = object_reader([ObjectField(stream.partition_by, Any, is_required=False)], forbid_unknown=False)
    (keys,) = reader.values

    def read(line: bytes) -> Any:
        try:
            return keys([reader.read(line)])[0]
        except msgspec.DecodeError:
            return None

    return read
