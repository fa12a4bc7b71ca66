"""Rows as the oracle sees them: a time, a place in the stream's order and a value for each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stairwise.schema import DAWN, Instant, Type
from tests.oracle.literals import rfc_3339
from tests.oracle.streams import Stream
from tests.oracle.values import Value


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


def from_json(stream: Stream, message: Mapping[str, object], *, partition: int = 0, sequence: int) -> OracleRow:
    """A row from a JSON object. One of a table without a time has held for ever."""
    values = tuple(_value(stream, name, type_, message.get(name)) for name, type_ in stream.columns)
    if stream.timestamp_by is None and stream.is_table:
        return OracleRow(DAWN, partition, sequence, values)
    (ts,) = (values[place] for place in stream.places([stream.timestamp_by or ""]))
    if not isinstance(ts, int):
        raise ValueError(f"a row of {stream.name} has no time: {message}")
    return OracleRow(ts, partition, sequence, values)


def _value(stream: Stream, name: str, type_: Type, given: object) -> Value:
    if given is None:
        return None
    if type_ is Type.DOUBLE:
        return float(given)  # type: ignore[arg-type]
    if type_ is Type.TIMESTAMP and isinstance(given, str):
        return rfc_3339(given)
    if name == stream.timestamp_by and isinstance(given, int):
        return given * 1000 // stream.per_second
    if not isinstance(given, bool | int | float | str):
        raise TypeError(f"{given!r} is no value of column {name}")
    return given
