"""The stair: what all windows that end together hold, published once, one step for each rear.

                                                        front
    step 0                                   ├────────────┤         rows[start[0] : stop[0]]
    step 1                        ├───────────────────────┤         rows[start[1] : stop[1]]
    step 2          ├─────────────────────────────────────┤         rows[start[2] : stop[2]]
                    rear 2        rear 1     rear 0

A row is a group: its keys, then the answers of all aggregates of the signature. Each step is the whole answer of
every window with that front and rear, so a query takes its rows out by a slice (``stair_expansion``). Steps that
hold the same slices share their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from stairwise.expressions.tree import Aggregate
from stairwise.expressions.views import Ints
from stairwise.operators.due import Steps
from stairwise.reports.contract import Report
from stairwise.reports.packing import packed
from stairwise.schema import Instant

_STEPS = b"stair"


class _Header(msgspec.Struct):
    """What a published stair says beside its rows."""

    front: bytes
    rear: bytes
    start: bytes
    stop: bytes
    first_row: Instant
    sealed_at: Instant | None


@dataclass(frozen=True)
class Stair:
    """The stairs of one or more report times of a signature, in one piece."""

    signature: str
    steps: Steps
    start: Ints
    stop: Ints
    rows: pa.RecordBatch
    """Packed, where the stair was published."""
    first_row: Instant
    """Of the stream: queries that wait for it do not report before."""
    sealed_at: Instant | None
    """The time of the last row, once the stream has ended: reports end at or after it."""

    @cached_property
    def times(self) -> Ints:
        """Its report times, each once."""
        times = self.steps.time
        return times[np.concatenate(([True], times[1:] != times[:-1]))] if len(times) else times

    @cached_property
    def largest(self) -> float:
        """How large a part of its rows the step has that has most."""
        return float((self.stop - self.start).max() / max(1, len(self.rows))) if len(self.steps) else 0.0

    @cached_property
    def _places(self) -> _Places:
        steps = self.steps
        times, fronts, rears = self.times, np.unique(steps.front), np.unique(steps.rear)
        return _Places(times, fronts, rears, _spelled(steps, times, fronts, rears))

    def find(self, asked: Steps) -> Ints:
        """Which steps have these times, fronts and rears; every one of them must be there."""
        places = self._places
        return np.searchsorted(places.spelled, _spelled(asked, places.times, places.fronts, places.rears))

    def held(self, steps: Steps) -> Stair:
        """The same at other times, of a run: where its last step shows, whatever window asks."""
        start, stop = (np.full(len(steps), bound[-1]) for bound in (self.start, self.stop))
        return replace(self, steps=steps, start=start, stop=stop, sealed_at=None)

    def reports(self) -> Iterator[Report]:
        """One by one, as the contract has them: the steps are in the schema's metadata."""
        times = self.steps.time
        edges = np.flatnonzero(np.concatenate(([True], times[1:] != times[:-1], [True])))
        for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            mine = slice(first, last)
            low, high = int(self.start[mine].min()), int(self.stop[mine].max())
            header = _Header(
                self.steps.front[mine].tobytes(),
                self.steps.rear[mine].tobytes(),
                (self.start[mine] - low).tobytes(),
                (self.stop[mine] - low).tobytes(),
                self.first_row,
                self.sealed_at,
            )
            rows = packed(self.rows.slice(low, high - low))
            rows = rows.replace_schema_metadata({_STEPS: msgspec.msgpack.encode(header)})
            yield Report(self.signature, int(times[first]), rows)


class _Places(NamedTuple):
    """The distinct times, fronts and rears of a stair, and its steps by their places among these: as one number each,
    which ascends since a stair's steps are in order."""

    times: Ints
    fronts: Ints
    rears: Ints
    spelled: Ints


def _spelled(steps: Steps, times: Ints, fronts: Ints, rears: Ints) -> Ints:
    time, front = np.searchsorted(times, steps.time), np.searchsorted(fronts, steps.front)
    rear = len(rears) - np.searchsorted(rears, steps.rear)
    spelled: Ints = (time * len(fronts) + front) * (len(rears) + 1) + rear
    return spelled


def stair_of(report: Report) -> Stair:
    """A report as it was published."""
    header = msgspec.msgpack.decode(report.rows.schema.metadata[_STEPS], type=_Header)
    front, rear, start, stop = (
        np.frombuffer(part, np.int64) for part in (header.front, header.rear, header.start, header.stop)
    )
    steps = Steps(np.full(len(front), report.time, np.int64), front, rear)
    return Stair(report.signature, steps, start, stop, report.rows, header.first_row, header.sealed_at)


@lru_cache(maxsize=4096)
def answer_name(aggregate: Aggregate) -> str:
    """The name of an aggregate's column in a stair: the same in every process, whatever else is kept."""
    return f"{aggregate.function}:{sha256(repr(aggregate).encode()).hexdigest()[:12]}"


def key_name(number: int) -> str:
    return f"key{number}"
