"""Lookups from a program: one window, or many that see the same instant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import numpy as np
import pyarrow as pa

from stairwise.client.update import Row
from stairwise.errors import NotReadyError, StairwiseError
from stairwise.platform.error_status import from_rpc_error
from stairwise.reports.emission import Emission
from stairwise.schema import Instant
from stairwise.state.pages import from_page, to_page
from stairwise.v1 import lookups_pb2, lookups_pb2_grpc

TIMEOUT = 30.0
"""How long a lookup may take, in seconds, with all that it has to wait for."""


@dataclass(frozen=True)
class Answer:
    """What a lookup found: rows that are true at ``time``, the watermark of the stream or the time that was asked."""

    time: Instant
    table: pa.RecordBatch = field(repr=False)
    explanation: str = ""
    """Of EXPLAIN: how the answer was found."""

    @property
    def rows(self) -> list[Row]:
        """The rows as Python values; sums of BIGINT are plain integers."""
        columns = [_values(column) for column in self.table.columns]
        names = self.table.schema.names
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return self.table.to_pandas()

    def emission(self) -> Emission:
        """The same as the lines of a report."""
        return Emission(self.time, 0, np.ones(self.table.num_rows, np.int8), self.table)


@dataclass(frozen=True)
class Many:
    """A SELECT to be looked up; with ``keys``, once for each of them, in their order.

    ``keys`` are the values of GROUP BY: a record batch with its columns, a list or array where it has one, or a list of
    tuples where it has several.
    ``ranges`` are milliseconds, one for each key, in place of the window's range.
    """

    select: str
    keys: pa.RecordBatch | pa.Array | Sequence[Any] | None = None
    ranges: Sequence[int] | None = None

    def to_proto(self) -> lookups_pb2.ManyItem:
        keys = self.keys
        if keys is not None and not isinstance(keys, pa.RecordBatch):
            are_tuples = not isinstance(keys, pa.Array) and len(keys) > 0 and isinstance(keys[0], tuple)
            columns = [pa.array(column) for column in (zip(*keys, strict=True) if are_tuples else [keys])]
            keys = pa.RecordBatch.from_arrays(columns, names=[f"k{place}" for place in range(len(columns))])
        page = b"" if keys is None else to_page(keys)
        return lookups_pb2.ManyItem(select=self.select, keys=page, ranges_ms=self.ranges or [])


class LookupsClient:
    """Asks the lookups service. While partitions move between workers it asks again, until the time is up."""

    def __init__(self, channel: grpc.Channel, address: str) -> None:
        self._stub: Any = lookups_pb2_grpc.LookupsStub(channel)
        self._address = address

    def lookup(self, select: str, at_least: Instant | None, timeout: float, at: Instant | None = None) -> Answer:
        return _answer(self._patiently(self._stub.Lookup, _request(select, at_least, at), timeout))

    def lookup_many(
        self, lookups: Sequence[Many | str], at_least: Instant | None, timeout: float, at: Instant | None = None
    ) -> list[Answer]:
        return _answers(self._patiently(self._stub.LookupMany, _many_request(lookups, at_least, at), timeout))

    def _patiently(self, method: Callable[..., Any], request: Any, timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        while True:
            try:
                return method(request, timeout=deadline - time.monotonic())
            except grpc.RpcError as failed:
                time.sleep(_pause(failed, self._address, deadline))


class AsyncLookupsClient:
    """The same for asyncio."""

    def __init__(self, channel: grpc.aio.Channel, address: str) -> None:
        self._stub: Any = lookups_pb2_grpc.LookupsStub(channel)
        self._address = address

    async def lookup(self, select: str, at_least: Instant | None, timeout: float, at: Instant | None = None) -> Answer:
        return _answer(await self._patiently(self._stub.Lookup, _request(select, at_least, at), timeout))

    async def lookup_many(
        self, lookups: Sequence[Many | str], at_least: Instant | None, timeout: float, at: Instant | None = None
    ) -> list[Answer]:
        return _answers(await self._patiently(self._stub.LookupMany, _many_request(lookups, at_least, at), timeout))

    async def _patiently(self, method: Callable[..., Awaitable[Any]], request: Any, timeout: float) -> Any:
        deadline = time.monotonic() + timeout
        while True:
            try:
                return await method(request, timeout=deadline - time.monotonic())
            except grpc.RpcError as failed:
                await asyncio.sleep(_pause(failed, self._address, deadline))


def _request(select: str, at_least: Instant | None, at: Instant | None) -> lookups_pb2.LookupRequest:
    return lookups_pb2.LookupRequest(select=select, at_least_ms=at_least, at_ms=at)


def _many_request(
    lookups: Sequence[Many | str], at_least: Instant | None, at: Instant | None
) -> lookups_pb2.LookupManyRequest:
    many = [Many(one) if isinstance(one, str) else one for one in lookups]
    return lookups_pb2.LookupManyRequest(lookups=[one.to_proto() for one in many], at_least_ms=at_least, at_ms=at)


def _answer(response: lookups_pb2.LookupResponse) -> Answer:
    table = from_page(response.rows) if response.rows else pa.RecordBatch.from_arrays([], names=[])
    return Answer(response.watermark_ms, table, response.explanation)


def _answers(response: lookups_pb2.LookupManyResponse) -> list[Answer]:
    return [Answer(response.watermark_ms, from_page(rows)) for rows in response.rows]


def _pause(failed: grpc.RpcError, address: str, deadline: float) -> float:
    """For how long to wait before asking again; raises what went wrong where that is of no use."""
    error: StairwiseError = from_rpc_error(failed, address)
    if not isinstance(error, NotReadyError) or time.monotonic() + error.retry_after >= deadline:
        raise error from failed
    return error.retry_after


def _values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return [None if v is None else int(v) for v in values] if pa.types.is_decimal(column.type) else values
