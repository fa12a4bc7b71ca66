"""The one contract between operators and the drivers that run them (local, Spark, Faust).

An operator evaluates one or more queries. Its driver calls

    insert      with the rows of one partition, in sequence order, whenever they are there;
    advance     when the minimum watermark over all partitions of all its streams has grown;
    plan        when a query joins or leaves, at that point of the stream;
    flush       at the end of each of its own batches, so that the state can be found again in the store.

A report is final when it leaves ``advance``: no later call changes what it said. The answer to every call is a
function of what was inserted at or below the watermark, never of how it was cut into batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from stairwise.algebra.query import Query
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.schema import DAWN, DUSK, Duration, Instant


@dataclass(frozen=True)
class Batch:
    """Rows of one partition of one stream, in sequence order and all on time.

    ``rows`` has the stream's Arrow schema. The order of a stream's rows is (time, partition, sequence). A driver
    that splits rows over shards hands each shard its own rows of a batch, perhaps none; ``lowest`` and ``highest``
    are the bounds of the times of the whole batch, so that every shard knows when the stream begins and ends.
    """

    stream: str
    partition: int
    rows: pa.RecordBatch
    sequence: np.ndarray
    """The sequence number of each row: int64, growing."""
    lowest: Instant
    highest: Instant
    time: np.ndarray | None = None
    """From when on each row counts, where that is not what its time column says: of updates of a table that came when
    their time had passed."""


Position = tuple[Instant, int]
"""The time and the ordinal of a report: its place among the reports of its signature."""


@dataclass(frozen=True)
class Report:
    """What a signature says at ``time``: the whole answer, before HAVING, projection and EMIT, or what moved in it.

    Queries of one signature share it; ``reports.expansion`` turns it into the lines of one query. ``rows``
    holds group rows (keys, then aggregates) where the signature groups, output rows where it does not, preceded
    by ``level`` where the window has levels. ``ordinal`` tells apart the reports of a row-sliding window at one
    time. (signature, shard, time, ordinal) is a report's identity: a repeat is recognised by it.
    """

    signature: str
    time: Instant
    rows: pa.RecordBatch
    ordinal: int = 0
    until: Instant | None = None
    """Of a run (``reports.runs``): every report time up to this one says the same."""
    keyframe: Position | None = None
    """Where the rows are what moved (``reports.standing_answer``): the last report, or this one, that says what stood
    before its moves. None of a whole answer."""
    before: pa.RecordBatch | None = None
    """Of a keyframe: what stood before, as moves."""


@dataclass(frozen=True)
class Joined:
    """A query takes effect: it reports from the first report time above ``after`` and sees rows above ``horizon``.

    ``before`` is how many rows of each stream came before the first one that is inserted, since a row-sliding
    window numbers rows from the stream's first.
    """

    query: Query
    after: Instant = DAWN
    horizon: Instant = DAWN
    before: Mapping[str, int] = field(default_factory=dict)
    seen: Instant | None = None
    """No row of before lies above it; None where that is ``after`` + LATENESS + 1."""

    def seen_before(self, lateness: Duration) -> Instant:
        return _seen(self.seen, self.after, lateness)


@dataclass(frozen=True)
class Left:
    """A query ends: its last report is the last one at or before ``after``.

    That is the lowest watermark that a partition of its streams had then; ``highest`` is the highest one, where there
    are several partitions.
    """

    query: str
    after: Instant
    highest: Instant | None = None
    seen: Instant | None = None
    """No row of before lies above it; None where that is ``highest`` + LATENESS + 1."""

    def seen_before(self, lateness: Duration) -> Instant:
        return _seen(self.seen, self.after if self.highest is None else self.highest, lateness)


def _seen(seen: Instant | None, watermark: Instant, lateness: Duration) -> Instant:
    if seen is not None:
        return seen
    return watermark + lateness + 1 if watermark > DAWN else DAWN


PlanChange = Joined | Left


class Life(NamedTuple):
    """When a query reports, and what it can see: τ in (after, until], rows above the horizon."""

    after: Instant = DAWN
    until: Instant = DUSK
    horizon: Instant = DAWN


class Block(Protocol):
    """What an operator says at some report times, to all queries that it evaluates: final, in one piece of columns."""

    @property
    def times(self) -> Ints:
        """Its report times, in order."""


class Operator(Protocol):
    @property
    def algorithm(self) -> str:
        """What it is called in EXPLAIN."""

    @property
    def queries(self) -> list[Query]:
        """Those that it evaluates now."""

    def insert(self, batch: Batch) -> None:
        """Take rows in, any number of times between two ``advance``; never a row at or below the watermark."""

    def advance(self, watermark: Instant) -> Iterator[Any]:
        """Everything that is now final, as blocks in order of time. The watermark never goes back; DUSK seals.

        A block is gone through before the next one is asked for: an operator may let go of what it no longer needs.
        """

    def plan(self, change: PlanChange) -> None:
        """A query joins or leaves, between two ``advance``."""

    def flush(self) -> None:
        """Write back to the store every page that changed: an operator made anew over it goes on from here."""

    def life(self, query: str) -> Life:
        """From when to when a query reports, and its horizon."""

    def faults(self, query: Query) -> Faults:
        """How often the expressions that a query asks for had no number to give, since it is here."""

    @property
    def all_faults(self) -> Faults:
        """The same for all of its queries together."""
