"""Result lines of shards over messages, as a subscriber sees them: all of the way but Kafka and Spark.

messages ──▶ partitions of s.* ──▶ parcels ──▶ shards ──▶ reports ──▶ each query's lines
                                               ↺ made again from their stores at random steps
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from services.operators.parcel import Parcel
from services.operators.shard import Shard, ShardReport
from services.operators.stage1 import SequencedMessage, parcels_of, runs
from stairwise.algebra.query import Emit, inputs
from stairwise.expressions.views import int64_view
from stairwise.plan.published import block_of, taking_of
from stairwise.reports.blocks import block_of as alone
from stairwise.reports.contract import Life, Report
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.reports.standing_answer import KeptAnswer, standing_of, tells_ends, without_last
from stairwise.schema import DAWN, DUSK, Stream
from stairwise.state.pages import empty
from stairwise.state.store import MemoryStore, Store
from stairwise.streams.partition import partition_of, split
from stairwise.streams.rows import RowDecoder
from stairwise.streams.sequence import Position, sequence
from stairwise.windows.schedule import grid_blocks, report_grids
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, encode_rows
from stairwise.wire.plans import PlanLog, Registered
from stairwise.wire.reports import LifeRecord, decode_report, encode_report
from tests.plans import plan_log

Line = dict[str, Any]
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def shard_lines(
    script: str, messages: Rows, *, chance: random.Random, partitions: int = 1, shards: int = 1, restarts: float = 0.5
) -> list[Line]:
    """The lines of a script, with partitions and batches interleaved by chance; shards often start again."""
    plans = plan_log(script, partitions=partitions)
    queues = [queue for stream in plans.newest.streams.values() for queue in _written(stream, messages, chance, plans)]
    said, lives = run(_interleaved(queues, chance), plans, shards, chance, restarts)
    queries = [registered for registered in plans.newest.queries.values() if not registered.query.by_lookups]
    lines = [(line["time"], i, line) for i, query in enumerate(queries) for line in query_lines(query, said, lives)]
    return [line for _, _, line in sorted(lines, key=lambda entry: entry[:2])]


def place_in(partitions: int) -> Any:
    """Which partition the oracle has to put a row into."""

    def place(stream: Stream, number: int, message: Mapping[str, Any]) -> int:
        if stream.partition_by is None:
            return number % partitions
        key = message.get(stream.partition_by)
        return partition_of(None if key is None else str(key), partitions)

    return place


def written(plans: PlanLog, messages: Rows, chance: random.Random, store: Store) -> Iterator[list[ShardReport]]:
    """What one shard writes in each of its micro-batches, each begun from its store."""
    queues = [queue for stream in plans.newest.streams.values() for queue in _written(stream, messages, chance, plans)]
    left = list(_interleaved(queues, chance))
    while left:
        count = chance.randint(1, 5)
        taken, left = left[:count], left[count:]
        shard = Shard(0, 1, store)
        for together in runs(taken):
            for _, parcel in parcels_of(together, plans, 1):
                shard.take(Parcel.decode(parcel.encode()), plans)
        made = list(shard.advance(plans))
        shard.flush()
        yield made


# ── what ingest writes ──────────────────────────────────────────────────────────────────────────────────────────


def _written(stream: Stream, messages: Rows, chance: random.Random, plans: PlanLog) -> Iterator[list[SequencedMessage]]:
    """The messages of each partition: its rows in batches, and its end."""
    decoded = RowDecoder(stream).decode([json.dumps(message).encode() for message in messages.get(stream.name, ())])
    assert not decoded.bad
    places = split(decoded.rows, stream.partition_by, stream.partitions, 0)
    for partition in range(stream.partitions):
        rows = decoded.rows.filter(pa.array(places == partition))
        cuts = sorted(chance.randint(0, rows.num_rows) for _ in range(chance.randint(0, 6)))
        edges = [0, *cuts, rows.num_rows]
        batches = [rows.slice(start, stop - start) for start, stop in pairwise(edges)]
        yield list(_sequenced(stream, partition, [*batches, empty(rows.schema)], plans))


def _sequenced(
    stream: Stream, partition: int, batches: list[pa.RecordBatch], plans: PlanLog
) -> Iterator[SequencedMessage]:
    position = Position()
    follows = {topics.sequenced(s): DUSK for s in plans.newest.streams.values()} if stream.is_table else {}
    for offset, batch in enumerate(batches):
        is_last = offset == len(batches) - 1
        previous = position.watermark(stream.lateness)
        done = sequence(batch, int64_view(batch.column(stream.time_column)), position, stream.lateness)
        times = int64_view(done.on_time.column(stream.time_column))
        headers = BatchHeaders(
            version=1,
            sequence=position.sequence,
            rows=len(times),
            watermark=done.position.watermark(stream.lateness),
            previous=previous,
            lowest=int(times.min(initial=DUSK)) if len(times) else DAWN,
            highest=int(times.max(initial=DAWN)),
            sealed=is_last,
            follows=follows if is_last else {},
            seen=position.highest,
        )
        yield SequencedMessage(topics.sequenced(stream), partition, offset, encode_rows(done.on_time), headers)
        position = done.position


def _interleaved(queues: list[list[SequencedMessage]], chance: random.Random) -> Iterator[SequencedMessage]:
    waiting = [list(queue) for queue in queues]
    while any(waiting):
        yield chance.choice([queue for queue in waiting if queue]).pop(0)


# ── what shards say, and what a query shows of it ───────────────────────────────────────────────────────────────

Said = dict[tuple[str, int], list[Report]]
"""By signature and shard, its reports in order."""


def run(
    messages: Iterable[SequencedMessage], plans: PlanLog, shards: int, chance: random.Random, restarts: float
) -> tuple[Said, dict[str, LifeRecord]]:
    said: Said = {}
    lives: dict[str, LifeRecord] = {}
    stores = [MemoryStore() for _ in range(shards)]
    running = [Shard(number, shards, store) for number, store in enumerate(stores)]
    left = list(messages)
    while left:
        count = chance.randint(1, 5)
        taken, left = left[:count], left[count:]
        parcels = [found for together in runs(taken) for found in parcels_of(together, plans, shards)]
        for number, parcel in parcels:
            running[number].take(Parcel.decode(parcel.encode()), plans)
        for number, shard in enumerate(running):
            for out in shard.advance(plans):
                lives |= out.lives
                _note(said, number, out)
            shard.flush()
        if chance.random() < restarts:
            running = [Shard(number, shards, store) for number, store in enumerate(stores)]
    return said, lives


def _note(said: Said, shard: int, out: ShardReport) -> None:
    if out.report is None:
        return
    report = out.report
    reports = said.setdefault((out.headers.signature, shard), [])
    last = (reports[-1].time, reports[-1].ordinal) if reports else (DAWN, -1)
    assert last < (report.time, report.ordinal), "a report is made once"
    reports.append(replace(decode_report(out.headers, encode_report(report)), until=out.headers.until))


def whole_reports(registered: Registered, reports: Iterable[Report]) -> Iterator[Report]:
    """Whole answers, where a shard has said what moved; a keyframe says what has come about."""
    standing: KeptAnswer | None = None
    for report in reports:
        if report.keyframe is None:
            yield report
            continue
        if standing is None:
            standing = standing_of(registered.query, ends_are_known=tells_ends(report.rows))
        if report.before is not None:
            assert sorted_rows(standing.rows()) == sorted_rows(report.before), "a keyframe is what stood"
        standing.take(report.time, report.rows)
        rows = standing.rows()
        assert rows.num_rows == len(standing)
        yield Report(report.signature, report.time, without_last(rows), report.ordinal, report.until)


def sorted_rows(rows: pa.RecordBatch) -> list[str]:
    return sorted(map(repr, zip(*(column.to_pylist() for column in rows.columns), strict=True)))


def query_lines(registered: Registered, said: Said, lives: Mapping[str, LifeRecord]) -> Iterator[Line]:
    """What a subscriber of a query sees."""
    told = [reports for (signature, _), reports in said.items() if signature == registered.signature]
    own = [list(whole_reports(registered, reports)) for reports in told]
    moments = {(report.time, report.ordinal) for reports in own for report in reports}
    if registered.query.emit is Emit.RSTREAM:
        moments |= {(time, 0) for reports in own for report in reports for time in _held(registered, report)}
    expansion = Expansion(registered.query)
    for time, ordinal in sorted(moments):
        found = [rows for reports in own if (rows := _rows(registered, reports, time, ordinal, lives)) is not None]
        if found:
            report = Report(registered.signature, time, pa.concat_batches(found), ordinal)
            yield from line_dicts(registered.query.name, expansion.expand(report))


def _held(registered: Registered, report: Report) -> Iterator[int]:
    """The report times of a query in a run behind its first one."""
    if report.until is not None:
        grids = [grid for source in inputs(registered.query.relation) for grid in report_grids(source.window)]
        for block in grid_blocks(grids, report.time, report.until):
            yield from block.tolist()


def _rows(
    registered: Registered, reports: list[Report], time: int, ordinal: int, lives: Mapping[str, LifeRecord]
) -> pa.RecordBatch | None:
    """What a shard says to a query at a moment: in a report, or in a run that covers it."""
    upto = [report for report in reports if (report.time, report.ordinal) <= (time, ordinal)]
    if not upto:
        return None
    report = upto[-1]
    is_there = (report.time, report.ordinal) == (time, ordinal)
    if not is_there and (report.until is None or report.until < time):
        return None
    times = np.array([time])
    if registered.shared is None:
        return report.rows if is_there else alone(report).held(times).rows
    life = lives[registered.identity]
    taking = taking_of(registered.shared, registered.query, Life(life.after, DUSK, life.horizon))
    block: Any = block_of(report)
    taken = taking.reports(block if is_there else taking.held(block, times))
    return None if taken is None else taken.rows
