"""Queries over generated rows on either driver in this process, timed in CPU seconds.

    rows ──▶ local engine ──▶ lines
         └─▶ messages ──▶ parcels ──▶ a shard ──▶ reports as they are published

Making rows and messages is not timed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from services.operators.parcel import Parcel
from services.operators.shard import Shard
from services.operators.stage1 import SequencedMessage, parcels_of, runs
from services.windows.draft import draft, drafting, records_of
from stairwise.cql.parser import parse_script
from stairwise.cql.script import Catalogue
from stairwise.expressions.views import int64_view
from stairwise.local.engine import Engine
from stairwise.schema import DAWN, DUSK, Stream
from stairwise.state.pages import to_page
from stairwise.state.store import MemoryStore
from stairwise.streams.sequence import Position, sequence
from stairwise.v1 import plans_pb2
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, encode_rows
from stairwise.wire.plans import PlanLog

BATCH = 1_000
"""Rows of each stream between two advances."""

Rows = Mapping[str, pa.RecordBatch]
"""By stream or table, all of its rows in order of time."""


@dataclass(frozen=True)
class Spent:
    cpu: float
    rows: int
    """Lines of the local engine, or rows of the reports that a shard publishes."""


def on_the_local_engine(script: str, rows: Rows) -> Spent:
    catalogue = Catalogue()
    catalogue.execute(script)
    streams = {name: catalogue.streams[name] for name in rows}
    engine = Engine(list(streams.values()), list(catalogue.queries.values()))
    lines, begin = 0, time.process_time()
    for stream, part in _events(streams, rows):
        if part is None:
            engine.seal(stream.name)
        else:
            engine.feed(stream.name, part)
        lines += sum(len(piece.lines.times) for pieces in engine.advance() for piece in pieces)
    return Spent(time.process_time() - begin, lines)


def on_a_shard(script: str, rows: Rows) -> Spent:
    plans = _plans(script)
    messages = list(_messages({name: plans.newest.streams[name] for name in rows}, rows))
    running, made, begin = Shard(0, 1, MemoryStore()), 0, time.process_time()
    for message in messages:
        for together in runs([message]):
            for _, parcel in parcels_of(together, plans, 1):
                running.take(Parcel.decode(parcel.encode()), plans)
        for out in running.advance(plans):
            if out.report is not None:
                to_page(out.report.rows)
                made += out.report.rows.num_rows
        running.flush()
    return Spent(time.process_time() - begin, made)


def _plans(script: str) -> PlanLog:
    """What the registry writes for a script, with one partition for each stream."""
    log = PlanLog()
    catalogue = drafting(log.newest)
    records = records_of([draft(catalogue, statement) for statement in parse_script(script)])
    for record in records:
        if record.HasField("create_stream"):
            record.create_stream.stream.partitions = 1
    log.add(plans_pb2.PlanVersion(number=1, changes=records))
    return log


def _events(streams: Mapping[str, Stream], rows: Rows) -> Iterator[tuple[Stream, pa.RecordBatch | None]]:
    """Tables first, then a part of each stream in turn; None where one has ended."""
    for is_table in (True, False):
        some = [stream for stream in streams.values() if stream.is_table == is_table]
        for start in range(0, max((rows[stream.name].num_rows for stream in some), default=0), BATCH):
            for stream in some:
                if start < rows[stream.name].num_rows:
                    yield stream, rows[stream.name].slice(start, BATCH)
        for stream in some:
            yield stream, None


def _messages(streams: Mapping[str, Stream], rows: Rows) -> Iterator[SequencedMessage]:
    """What ingest writes."""
    follows = {topics.sequenced(stream): DUSK for stream in streams.values()}
    positions = dict.fromkeys(streams, Position())
    for offset, (stream, part) in enumerate(_events(streams, rows)):
        position, batch = positions[stream.name], rows[stream.name].slice(0, 0) if part is None else part
        times = int64_view(batch.column(stream.time_column))
        after = positions[stream.name] = sequence(batch, times, position, stream.lateness).position
        headers = BatchHeaders(
            version=1,
            sequence=position.sequence,
            rows=len(times),
            watermark=after.watermark(stream.lateness),
            previous=position.watermark(stream.lateness),
            lowest=int(times.min()) if len(times) else DAWN,
            highest=int(times.max()) if len(times) else DAWN,
            sealed=part is None,
            follows=follows if stream.is_table and part is None else {},
            seen=position.highest,
        )
        yield SequencedMessage(topics.sequenced(stream), 0, offset, encode_rows(batch), headers)
