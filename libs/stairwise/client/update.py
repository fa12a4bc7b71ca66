"""What a subscription yields: all changes of one report, as Python values, as an Arrow batch or as a data frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import pyarrow as pa

from stairwise.reports.emission import Emission
from stairwise.schema import DIFF_COLUMN, TIME_COLUMN, UNTIL_COLUMN, Column, Instant
from stairwise.state.pages import concat, empty, from_page
from stairwise.v1 import results_pb2 as pb

if TYPE_CHECKING:
    import pandas as pd

Cell = bool | int | float | str | None
Row = dict[str, Cell]


class Change(NamedTuple):
    """A row that is in the answer (+1) or has left it (−1)."""

    diff: int
    row: Row
    until: Instant | None = None
    """The report time from which the row is gone, unless an equal one takes its place then; None where nobody can tell
    (see ``Update.ends``)."""


class ArrowChanges(Sequence[Change]):
    """Changes that came in columns; they become Python values when someone looks at them one by one."""

    def __init__(self, diff: np.ndarray, rows: pa.RecordBatch, until: np.ndarray | None = None) -> None:
        self.diff = diff
        self.rows = rows
        self.until = until

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        return self._listed[index]

    def __iter__(self) -> Iterator[Change]:
        return iter(self._listed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._listed == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._listed)

    @cached_property
    def _listed(self) -> list[Change]:
        names = self.rows.schema.names
        values = zip(*map(_cells, self.rows.columns), strict=True)
        ends = [None] * len(self) if self.until is None else self.until.tolist()
        found = zip(self.diff.tolist(), values, ends, strict=True)
        return [Change(diff, dict(zip(names, row, strict=True)), until) for diff, row, until in found]


def _cells(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return [None if v is None else int(v) for v in values] if pa.types.is_decimal(column.type) else values


@dataclass(frozen=True)
class Update:
    """One report of a query, complete: everything up to and including ``time`` has been seen."""

    query: str
    time: Instant
    changes: Sequence[Change]
    token: bytes = field(repr=False)
    """Subscribing with it goes on right after this update."""
    columns: tuple[Column, ...] = field(repr=False)
    snapshot: bool = False
    """Is it the whole answer with which a subscription to changes begins?"""
    horizon: Instant | None = None
    """The query sees no row at or before this; None where it sees them all."""
    ends: bool = False
    """Is the end of a row known when it comes? Then changes say it."""

    def emission(self) -> Emission:
        """The same in Arrow's columns."""
        if isinstance(self.changes, ArrowChanges):
            return Emission(self.time, 0, self.changes.diff, self.changes.rows, self.changes.until)
        arrays = [pa.array([c.row[k.name] for c in self.changes], k.type.arrow) for k in self.columns]
        rows = pa.RecordBatch.from_arrays(arrays, names=[c.name for c in self.columns])
        ends = [change.until for change in self.changes]
        until = None if not ends or None in ends else np.array(ends, np.int64)
        return Emission(self.time, 0, np.array([c.diff for c in self.changes], np.int8), rows, until)

    def to_arrow(self) -> pa.RecordBatch:
        """The changes as a record batch: ``_time``, ``_diff``, ``_until`` if the ends of rows are known, and the
        query's columns."""
        emission = self.emission()
        first = {TIME_COLUMN: pa.array(emission.times), DIFF_COLUMN: pa.array(emission.diff, pa.int8())}
        if self.ends:
            unknown = pa.nulls(emission.rows.num_rows, pa.int64())
            first[UNTIL_COLUMN] = unknown if emission.until is None else pa.array(emission.until)
        names = [*first, *emission.rows.schema.names]
        return pa.RecordBatch.from_arrays([*first.values(), *emission.rows.columns], names=names)

    def to_pandas(self) -> pd.DataFrame:
        """The changes as a data frame; pandas has to be installed."""
        return self.to_arrow().to_pandas()


def read_changes(update: pb.Update, columns: Sequence[Column]) -> list[Change]:
    """The changes of a message, whose rows have these columns."""
    names = [column.name for column in columns]
    return [
        Change(
            change.diff,
            dict(zip(names, map(read_value, change.row.values), strict=True)),
            change.until_ms if change.HasField("until_ms") else None,
        )
        for change in update.changes
    ]


def read_arrow(
    pieces: Sequence[tuple[bytes, Sequence[int]]], columns: Sequence[Column], untils: bytes = b""
) -> ArrowChanges:
    """The changes of messages in Arrow: of each, the stream and the diffs, which may be left out; the ends of all."""
    batches = [from_page(arrow) for arrow, _ in pieces]
    diffs = [
        np.array(diff, np.int8) if len(diff) else np.ones(batch.num_rows, np.int8)
        for batch, (_, diff) in zip(batches, pieces, strict=True)
    ]
    if not batches:
        return ArrowChanges(np.zeros(0, np.int8), empty(pa.schema([pa.field(c.name, c.type.arrow) for c in columns])))
    until = np.frombuffer(untils, "<i8") if untils else None
    return ArrowChanges(np.concatenate(diffs), concat(batches), until)


def read_value(value: pb.Value) -> Cell:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    said: Any = getattr(value, kind)
    return int(said) if kind == "hugeint" else said
