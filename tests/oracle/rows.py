"""Rows as the oracle sees them: a time, a place in the stream's order and a value for each column."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from stairwise.cql.query import Value
from stairwise.schema import Column, Instant, Stream, Type


@dataclass(frozen=True)
class OracleRow:
    """A row with a value for each declared column of its stream."""

    ts: Instant
    partition: int
    sequence: int
    values: tuple[Value, ...]

    @property
    def order(self) -> tuple[Instant, int, int]:
        """The order of a stream's rows."""
        return self.ts, self.partition, self.sequence


def from_json(
    stream: Stream,
    message: Mapping[str, object],
    *,
    partition: int = 0,
    sequence: int,
    arrived: Instant | None = None,
) -> OracleRow:
    """A row from a JSON object; ``arrived`` is its time where the stream takes it from the transport."""
    values = tuple(_value(column, message.get(column.name)) for column in stream.columns)
    if stream.timestamp_by is None:
        if arrived is None:
            raise ValueError(f"stream {stream.name} needs the arrival time of its rows")
        return OracleRow(arrived, partition, sequence, values)
    ts = values[[column.name for column in stream.columns].index(stream.timestamp_by)]
    if not isinstance(ts, int):
        raise ValueError(f"a row of {stream.name} has no time: {message}")
    return OracleRow(ts, partition, sequence, values)


def _value(column: Column, given: object) -> Value:
    if given is None:
        return None
    if column.type is Type.DOUBLE:
        return float(given)  # type: ignore[arg-type]
    if column.type is Type.TIMESTAMP and isinstance(given, str):
        return milliseconds(given)
    if not isinstance(given, bool | int | float | str):
        raise TypeError(f"{given!r} is no value of column {column.name}")
    return given


def milliseconds(rfc3339: str) -> Instant:
    """Event time from its RFC 3339 spelling."""
    since_epoch = datetime.datetime.fromisoformat(rfc3339) - datetime.datetime.fromtimestamp(0, datetime.UTC)
    return since_epoch // datetime.timedelta(milliseconds=1)
