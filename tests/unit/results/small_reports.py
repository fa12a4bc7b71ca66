"""A query, its reports as messages of the results topic, and a history that is a list instead of Kafka."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import TypeVar

import pyarrow as pa

from services.results.assembly import Assembly, Released
from services.results.feed import Feed
from services.results.history import Page
from services.results.journal import FIRST, Journal
from services.results.report_message import ReportMessage
from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import resolve_query
from stairwise.reports.contract import Position, Report
from stairwise.reports.expansion import report_schema
from stairwise.schema import Column, Stream, Type
from stairwise.wire.failures import Failure
from stairwise.wire.plans import Registered
from stairwise.wire.reports import Mark, ReportHeaders, encode_report

T = TypeVar("T")

STREAM = Stream(
    "t",
    (Column("ts", Type.TIMESTAMP), Column("k", Type.STRING), Column("v", Type.BIGINT)),
    timestamp_by="ts",
)


def query_of(text: str, name: str = "q", version: int = 1) -> Registered:
    (select,) = parse_script(text)
    assert isinstance(select, ast.SelectStatement)
    return Registered(resolve_query(name, select, {STREAM.name: STREAM}), version)


def counts(emit: str = "RSTREAM") -> Registered:
    """Counts by key: its report rows are (k, n)."""
    return query_of(f"SELECT k, COUNT(*) AS n FROM t [TUMBLE 10 ms] GROUP BY k EMIT {emit}")


class Topic:
    """One partition of the results topic. Offsets count from 0."""

    def __init__(self, registered: Registered, shards: int = 1) -> None:
        self.registered = registered
        self.shards = shards
        self.messages: list[ReportMessage] = []
        self._offsets = count()

    def report(
        self, time: int, rows: Sequence[tuple[object, ...]] = (), *, shard: int = 0, ordinal: int = 0
    ) -> ReportMessage:
        """Write what one shard reports."""
        schema = report_schema(self.registered.query)
        arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        value = encode_report(Report(self.registered.signature, time, batch, ordinal))
        return self._write(shard, time, value, ordinal=ordinal)

    def end(self, mark: Mark = Mark.SEALED, *, shard: int = 0) -> ReportMessage:
        return self._write(shard, 2**62, b"", mark=mark)

    def oversized(self, time: int, *, shard: int = 0) -> ReportMessage:
        """Write the mark in place of a report that is too large."""
        return self._write(shard, time, b"", mark=Mark.OVERSIZED)

    def failed(self, time: int, reason: str = "too large", *, shard: int = 0) -> ReportMessage:
        """Write that the signature was set aside."""
        value = Failure(self.registered.signature, reason, time).encode()
        return self._write(shard, time, value, mark=Mark.FAILED)

    def again(self, message: ReportMessage) -> ReportMessage:
        """Write a message once more, as a replayed micro-batch does."""
        repeat = ReportMessage(message.headers, message.value, next(self._offsets))
        self.messages.append(repeat)
        return repeat

    def _write(self, shard: int, time: int, value: bytes, ordinal: int = 0, mark: Mark = Mark.REPORT) -> ReportMessage:
        headers = ReportHeaders(self.registered.signature, shard, self.shards, time, ordinal, mark)
        message = ReportMessage(headers, value, next(self._offsets))
        self.messages.append(message)
        return message


def released(messages: Sequence[ReportMessage]) -> list[Released]:
    assembly = Assembly()
    return [report for message in messages for report in assembly.take(message)]


class ListedHistory:
    """Reads a topic's list as ``History`` reads Kafka; ``retained_from`` is the first offset that is left."""

    def __init__(self, topic: Topic, retained_from: int = 0, reports: int = 1000) -> None:
        self._topic = topic
        self._reports = reports
        """After how many reports a page ends."""
        self.retained_from = retained_from
        self.reads: list[int] = []

    async def page(self, signature: str, offset: int, until: int | None = None, at: Position = FIRST) -> Page:
        self.reads.append(offset)
        assembly = Assembly()
        reports: list[Released] = []
        following = max(offset, self.retained_from)
        for message in self._topic.messages:
            if message.offset < following or (until is not None and message.offset >= until):
                continue
            pending = assembly.first_pending(signature)
            if len(reports) >= self._reports and pending != offset:
                return Page(tuple(reports), following if pending is None else pending, False, pending is not None)
            following = message.offset + 1
            is_report = message.headers.mark is Mark.REPORT
            if not is_report or message.headers.position >= at:
                reports += assembly.take(message)
        pending = assembly.first_pending(signature)
        return Page(tuple(reports), following if pending is None else pending, True, pending is not None)

    async def bounds(self, signature: str, since: int | None = None) -> tuple[int, int]:
        return self.retained_from, len(self._topic.messages)


def feed_over(journal: Journal, history: ListedHistory, signature: str) -> Feed:
    return Feed(journal, history, signature)


async def taken(items: AsyncIterator[T], count: int | None = None) -> list[T]:
    """The first so many items, or all."""
    found: list[T] = []
    while count is None or len(found) < count:
        try:
            found.append(await anext(items))
        except StopAsyncIteration:
            break
    return found
