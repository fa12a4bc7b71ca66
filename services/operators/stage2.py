"""Stage 2, keyed by shard: the processor that drives a shard over Spark's state.

A worker keeps the shards that it drove. Spark's state has a stamp of the last batch that was committed; a kept
shard with the same stamp is that very state and goes on, any other is thrown away and read from Spark's state.
So a batch that is tried again, or a shard that comes to another worker, starts from what was committed.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from opentelemetry.trace import SpanKind
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from services.operators.checkpoint import foreign, reach
from services.operators.parcel import Parcel
from services.operators.shard import Shard, ShardReport
from services.operators.spark_pages import KEY_DDL, PAGE_DDL, SparkPages
from services.operators.spark_worker import begin, plans_upto, settle
from services.operators.stage1 import SequencedMessage, parcels_of, runs
from services.operators.work_mark import WorkMark
from stairwise.platform import telemetry
from stairwise.platform.config import Settings
from stairwise.reports.contract import Report
from stairwise.wire import message_pieces, topics
from stairwise.wire.reports import Mark, ReportHeaders, encode_report

log = logging.getLogger(__name__)

HEADER_NAMES = [
    *(name for name, _ in ReportHeaders("", 0, 1, 0).encode()),
    message_pieces.HEADER,
    telemetry.TRACEPARENT,
]
OUTPUT_DDL = "topic string, partition int, key binary, value binary, " + ", ".join(
    f"`{name}` string" for name in HEADER_NAMES
)
SECONDS = 1.0
"""How long the reports of a micro-batch may take before what is left waits for the next one."""
FRAME_BYTES = 16 << 20
"""About how much goes to Spark in one piece: it is copied, and copied again."""

_faults = telemetry.meter.create_counter(
    "stairwise.operators.faults", "{fault}", "NULLs by overflow or division by zero"
)
_counted: dict[tuple[int, str], tuple[int, int]] = {}
_kept: dict[tuple[str, int], tuple[str, Shard, SparkPages]] = {}


@dataclass(frozen=True)
class Bounds:
    """How large things may be that are published, in bytes."""

    report: int
    piece: int

    def within(self, item: ShardReport) -> ShardReport:
        """What goes out, or a mark in its place: one report that is too large must not end all queries.

        Of a keyframe that is too large only what moved is published: who reads on from before can do without the rest.
        """
        size = _size(item.report)
        if size <= self.report:
            return item
        if item.report is not None and item.report.rows.nbytes <= self.report:
            return replace(item, report=replace(item.report, before=None))
        told = telemetry.fields(signature=item.headers.signature, time=item.headers.time, bytes=size)
        log.warning("a report is larger than STAIRWISE_REPORT_BYTES: a mark is published in its place", extra=told)
        return replace(item, headers=replace(item.headers, mark=Mark.OVERSIZED), report=None)


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    def __init__(self, settings: Settings, checkpoint: Path, identity: str) -> None:
        self._brokers = settings.brokers
        self._shards = settings.shards
        self._query_bytes = settings.query_bytes
        self._bounds = Bounds(settings.report_bytes, settings.piece_bytes)
        self._checkpoint, self._identity = checkpoint, identity
        self._run = _unlike_any()

    def init(self, handle: Any) -> None:
        begin()
        reach(self._checkpoint, self._identity)
        self._stamp = handle.getValueState("stamp", "stamp string, ledger binary")
        self._pages = handle.getMapState("pages", KEY_DDL, PAGE_DDL)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        number = int(key[0])
        parcels = self._parcels(rows)
        shard, store = self._shard(number)
        committed = self._stamp.get()
        shard.note_work(WorkMark(self._checkpoint, number, "" if committed is None else committed[0]))
        version = max(p.headers.version for p in parcels)
        plans = plans_upto(self._brokers, version)
        for parcel in parcels:
            shard.take(parcel, plans)
        for reports in shard.rounds(plans, SECONDS):
            yield from _frames(reports, self._bounds)
        if shard.is_behind:  # what is left over wakes the next micro-batch, whether or not more rows come
            yield pd.DataFrame([_record(topics.CARRIED, 0, b"", b"") | {"version": str(version)}])
        shard.flush()
        if (costs := shard.costs()) is not None:
            yield pd.DataFrame([_record(topics.COSTS, 0, str(number).encode(), costs.encode())])
        stamp = _unlike_any()
        self._stamp.update((stamp, store.save(self._pages, stamp)))
        _kept[self._run, number] = (stamp, shard, store)
        _count_faults(number, shard)

    def close(self) -> None:
        """The end of the task."""
        settle()

    def _parcels(self, frames: Iterable[pd.DataFrame]) -> list[Parcel]:
        """What came, in order of offsets: of a shard that is the only one, as messages that nobody has split."""
        if self._shards > 1:
            return sorted((Parcel.decode(blob) for frame in frames for blob in frame["parcel"]), key=_place)
        messages = sorted(
            (SequencedMessage.of(row) for frame in frames for row in frame.to_dict("records")), key=_place
        )
        return [
            parcel
            for run in runs(messages)
            for _, parcel in parcels_of(run, plans_upto(self._brokers, run[0].headers.version), 1)
        ]

    def _shard(self, number: int) -> tuple[Shard, SparkPages]:
        committed = self._stamp.get()
        kept = _kept.pop((self._run, number), None)
        if committed is not None and kept is not None and kept[0] == committed[0]:
            kept[2].collect()
            return kept[1], kept[2]
        store = SparkPages(self._checkpoint, number, self._run)
        if committed is not None:
            store.load(self._pages, bytes(committed[1]))
        store.collect()
        try:
            return Shard(number, self._shards, store, self._query_bytes), store
        except msgspec.DecodeError as error:
            raise foreign(self._checkpoint, str(error)) from error


def _place(came: Parcel | SequencedMessage) -> tuple[str, int, int]:
    return came.topic, came.partition, came.offset


def _unlike_any() -> str:
    return uuid.uuid4().hex[:16]


def _count_faults(number: int, shard: Shard) -> None:
    """Tell what expressions came to NULL by overflow or division by zero since the last time."""
    for signature, faults in shard.faults().items():
        before = _counted.get((number, signature), (0, 0))
        told = {"stairwise.signature": signature}
        _faults.add(faults.overflow - before[0], {**told, "fault": "overflow"})
        _faults.add(faults.division - before[1], {**told, "fault": "division"})
        _counted[number, signature] = (faults.overflow, faults.division)


def _frames(outgoing: Iterable[ShardReport], bounds: Bounds) -> Iterator[pd.DataFrame]:
    """What goes out, by the frame: many small reports together, a large one as a part of it at a time."""
    records: list[dict[str, Any]] = []
    size = 0
    for record in _records(outgoing, bounds):
        records.append(record)
        size += len(record["value"])
        if size >= FRAME_BYTES:
            yield pd.DataFrame(records)
            records, size = [], 0
    if records:
        yield pd.DataFrame(records)


def _records(outgoing: Iterable[ShardReport], bounds: Bounds) -> Iterator[dict[str, Any]]:
    for item in map(bounds.within, outgoing):
        size = _size(item.report)
        headers = {name: value.decode() for name, value in replace(item.headers, size=size).encode()}
        headers[telemetry.TRACEPARENT] = _span(item)
        value = encode_report(item.report) if item.report is not None else b""
        if item.failure is not None:
            value = item.failure.encode()
            yield _record(topics.FAILURES, 0, item.headers.key(), value)
        partition = topics.results_partition(item.headers.signature)
        key = item.headers.key()
        for identity, life in item.lives.items():
            yield _record(topics.LIVES, 0, identity.encode(), life.encode())
        for piece, part in message_pieces.cut(value, bounds.piece):
            yield _record(topics.RESULTS, partition, key, part) | headers | {message_pieces.HEADER: piece.decode()}


def _size(report: Report | None) -> int:
    """How many bytes the rows of a report take, with what stood before."""
    if report is None:
        return 0
    return int(report.rows.nbytes + (0 if report.before is None else report.before.nbytes))


def _record(topic: str, partition: int, key: bytes, value: bytes) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "key": key, "value": value, **dict.fromkeys(HEADER_NAMES, "")}


def _span(item: ShardReport) -> str:
    """The span of a report that shows traced rows, as the context that travels on."""
    if not item.contexts:
        return ""
    attributes = {"stairwise.signature": item.headers.signature, "stairwise.time": item.headers.time}
    span = telemetry.begin("operators report", item.contexts, attributes, SpanKind.INTERNAL)
    context = telemetry.traceparent(span)
    span.end()
    return context
