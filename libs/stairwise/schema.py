"""What a stream is: its columns, its clock and how it is cut into partitions."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

Instant = int
"""Event time: milliseconds since the epoch, 64 bits, signed."""

Duration = int
"""A length of time in milliseconds."""

DAWN: Instant = -(2**62)
"""Before every instant that a row can have: the watermark of a partition that has seen nothing."""

DUSK: Instant = 2**62
"""After every instant that a row can have: the watermark of a partition that is sealed."""


EARLIEST: Instant = -62_135_596_800_000
"""The first millisecond of the year 1: no row and no column has an earlier instant."""

LATEST: Instant = 253_402_300_799_999
"""The last millisecond of the year 9999."""


class Type(enum.Enum):
    """The types of CQL. HUGEINT is only ever a result: the exact SUM of BIGINTs."""

    BIGINT = "BIGINT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    TIMESTAMP = "TIMESTAMP"
    HUGEINT = "HUGEINT"

    @property
    def arrow(self) -> pa.DataType:
        """How a column of this type lies in memory and on Kafka. TIMESTAMP is a plain count of milliseconds."""
        return _ARROW[self]

    @property
    def is_numeric(self) -> bool:
        return self in (Type.BIGINT, Type.DOUBLE, Type.HUGEINT)


_ARROW = {
    Type.BIGINT: pa.int64(),
    Type.DOUBLE: pa.float64(),
    Type.STRING: pa.string(),
    Type.BOOLEAN: pa.bool_(),
    Type.TIMESTAMP: pa.int64(),
    Type.HUGEINT: pa.decimal128(38, 0),
}


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    nullable: bool = True


class Unit(enum.Enum):
    """What the numbers of a time column count since the epoch, as TIMESTAMP BY ... IN says it."""

    SECONDS = "SECONDS"
    MILLISECONDS = "MILLISECONDS"
    MICROSECONDS = "MICROSECONDS"
    NANOSECONDS = "NANOSECONDS"

    @property
    def per_second(self) -> int:
        return _PER_SECOND[self]


_PER_SECOND = {Unit.SECONDS: 1, Unit.MILLISECONDS: 10**3, Unit.MICROSECONDS: 10**6, Unit.NANOSECONDS: 10**9}


FOREVER: Duration = 2**61
"""The lateness of a table's updates: none is late, and the table is complete when it is sealed."""

ALTERABLE = ("lateness", "idle_after", "retain_time", "retain_bytes")
"""What ALTER STREAM changes of a stream."""

TIME_COLUMN = "_time"
"""Where a row's event time stands when the stream declares no field for it (then it is Kafka's append time)."""

DIFF_COLUMN = "_diff"
"""Where a change's +1 or −1 stands in a batch or a frame of results, beside its time in ``_time``."""
UNTIL_COLUMN = "_until"
"""Behind these: until when its row stays, where that is known."""


@dataclass(frozen=True)
class Stream:
    """A declared stream. ``incarnation`` counts how often the name was created or reopened, from 1.

    What ALTER STREAM changes (``ALTERABLE``) does not count in a comparison: altered, it is the same stream.
    """

    name: str
    columns: tuple[Column, ...]
    timestamp_by: str | None = None
    lateness: Duration = field(default=0, compare=False)
    idle_after: Duration | None = field(default=None, compare=False)
    partition_by: str | None = None
    partitions: int = 4
    granule: Duration = 1000
    live: bool = False
    incarnation: int = 1
    future: Duration | None = None
    """How far ahead of its message's append time a row may be; None: as far as it likes."""
    reject_unknown: bool = False
    """Is a row bad that has a field which is not declared?"""
    retain_time: Duration | None = field(default=None, compare=False)
    """How far back lookups reach at most; None where the service decides."""
    retain_bytes: int | None = field(default=None, compare=False)
    """How many bytes lookups take for all partitions at most; None where the service decides."""
    keys: tuple[str, ...] = ()
    """Of a table, the columns by which a row replaces an earlier one: its rows are updates. Empty for a stream."""
    retroactive: bool = True
    """Do the updates of a table change what was joined with it before?"""
    unit: Unit | None = None
    """What numbers in the time column count. None: not said, so milliseconds, unless that is likely a mistake."""

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the stream's batches: the declared columns, and the time if none of them is it."""
        fields = [pa.field(c.name, c.type.arrow, c.nullable) for c in self.columns]
        if self.timestamp_by is None:
            fields.append(pa.field(TIME_COLUMN, pa.int64(), nullable=False))
        return pa.schema(fields)

    @property
    def is_table(self) -> bool:
        return bool(self.keys)

    @property
    def kind(self) -> str:
        return "table" if self.is_table else "stream"

    @property
    def time_column(self) -> str:
        return self.timestamp_by or TIME_COLUMN

    def is_declared_as(self, other: Stream) -> bool:
        """Is it the same stream, with the same options?"""
        return self == other and all(getattr(self, name) == getattr(other, name) for name in ALTERABLE)

    @property
    def time_clause(self) -> str:
        """The TIMESTAMP BY that declares its time; empty where it has none."""
        if self.timestamp_by is None:
            return ""
        return f"TIMESTAMP BY {quoted(self.timestamp_by)}{f' IN {self.unit.value}' if self.unit is not None else ''}"

    @cached_property
    def by_name(self) -> dict[str, Column]:
        return {c.name: c for c in self.columns}


def quoted(name: str) -> str:
    """A name as it can be written in a statement whatever it holds."""
    return '"' + name.replace('"', '""') + '"'
