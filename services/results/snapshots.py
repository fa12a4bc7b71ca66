"""A final report as a whole, a page at a time.

    report     ─── rows 0 … 8,191 ───┬─── rows 8,192 … 16,383 ───┬─ …
    page       rows, next ───────────▶ rows, next ───────────────▶ rows

A page's ``next`` says which report it is of and how many rows came before: any replica gives the next one. The last few
reports that someone pages through are kept expanded.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import replace

import pyarrow as pa

from services.results import encoding, protobuf_rows
from services.results.alone_feed import AloneFeed
from services.results.assembly import END, Released, just_after
from services.results.cursor import Cursor
from services.results.encoding import Encoding
from services.results.moved_report import whole_report
from services.results.query_feed import QueryFeed
from services.results.selection import Selection
from services.results.update_stream import oversized
from stairwise.algebra.query import Emit
from stairwise.errors import ConflictError, GoneError
from stairwise.reports.contract import Position, Report
from stairwise.reports.expansion import Expansion
from stairwise.schema import Instant
from stairwise.state.pages import to_page
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.plans import Registered
from stairwise.wire.reports import Mark

PAGE = 1 << 20
"""About how many bytes of rows a page has."""
KEPT = 4
"""How many expanded reports are kept."""
_ROWS_IN_SNAPSHOT = b"\x1a"


class Snapshots:
    """Pages are made in threads, any number at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, Position, bytes], pa.RecordBatch] = OrderedDict()

    async def page(
        self, registered: Registered, released: Released, how: Encoding, selection: Selection, sent: int = 0
    ) -> bytes:
        """A ``SnapshotResponse``, serialised: the rows of a report after the first ``sent``."""
        key = registered.identity, released.position, selection.digest
        whole = self._kept.get(key)
        if whole is None:
            report = await whole_report(released, registered.query)
            whole = await asyncio.to_thread(_rows, registered, report, selection)
            self._kept[key] = whole
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return await asyncio.to_thread(_page, registered, released, whole, how, selection, sent)


def _rows(registered: Registered, report: Report, selection: Selection) -> pa.RecordBatch:
    return selection.apply(Expansion(replace(registered.query, emit=Emit.RSTREAM)).expand(report)).rows


def _page(
    registered: Registered, released: Released, whole: pa.RecordBatch, how: Encoding, selection: Selection, sent: int
) -> bytes:
    query, position = registered.query, released.position
    rows = whole.slice(min(sent, whole.num_rows))
    rows = next(encoding.sliced(rows, PAGE), rows)
    here = Cursor(position, complete=True, offset=released.offset, filter=selection.digest)
    following = replace(here, complete=False, sent=sent + rows.num_rows, snapshot=True)
    answer = pb.SnapshotResponse(
        header=encoding.header(query),
        time_ms=position[0],
        token=here.token(registered),
        next=following.token(registered) if following.sent < whole.num_rows else b"",
        arrow=to_page(rows) if how is Encoding.ARROW else b"",
    )
    if how is Encoding.ARROW:
        return encoding.sendable(query, answer.SerializeToString())
    types = [column.type for column in encoding.columns(query)]
    written = protobuf_rows.content(protobuf_rows.fields(_ROWS_IN_SNAPSHOT, protobuf_rows.rows(types, rows)))
    return encoding.sendable(query, answer.SerializeToString() + written)


async def last_report(registered: Registered, feed: AloneFeed | QueryFeed, time: Instant | None) -> Released:
    """The last report at or before a time, or of all."""
    released = await feed.last_before(END if time is None else min((time + 1, 0), END))
    if released is None:
        raise ConflictError(
            f"query {registered.query.name!r} has no final report"
            + ("" if time is None else " at or before that time"),
            hint="reports follow the watermark: publish rows beyond the window's end",
        )
    if released.mark is Mark.OVERSIZED:
        raise oversized(registered.query, released)
    return released


async def same_report(registered: Registered, feed: AloneFeed | QueryFeed, position: Position) -> Released:
    """The report that the pages before were of."""
    released = await feed.last_before(just_after(position))
    if released is None or released.position != position or released.mark is not Mark.REPORT:
        raise GoneError(
            f"the report of query {registered.query.name!r} at time {position[0]} is no longer retained",
            hint="ask for a snapshot anew, without the page",
        )
    return released
