"""The standing filters over one stream, driven by its batches: who joins and leaves where, and what is reported.

    partition 0     v6  v6  v7  v7  v7         a filter of v7 joins when every partition has come to v7, above M,
    partition 1     v6  v6  v6  v6  v7         the highest watermark that one had before; one that v9 drops makes
                                ▲              reports up to m, the lowest watermark that a partition had before v9
                                └ M or m

The same rules hold for every query (docs/architecture.md), so what is reported is a function of the topics: whoever
drives the filters anew makes the same reports, with the same identities. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from stairwise.lookups.standing_filters import StandingFilters
from stairwise.reports.contract import Batch, Joined, Report
from stairwise.schema import DAWN, DUSK, Instant, Stream
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.plans import PlanLog, Registered
from stairwise.wire.reports import Mark, ReportHeaders

_NO_NUMBERS = np.zeros(0, np.int64)
"""The sequence of rows matters to windows that count rows."""


@dataclass(frozen=True)
class FilterReport:
    """A report, or the mark that ends a filter's reports."""

    headers: ReportHeaders
    report: Report | None = None


@dataclass
class _Course:
    """How far a filter has come."""

    registered: Registered
    has_joined: bool = False
    joins: dict[int, Instant] = field(default_factory=dict)
    """By partition, the watermark before its first batch with the version that registered the filter."""
    leaves: dict[int, Instant] = field(default_factory=dict)
    """The same for the version that dropped it."""
    seen: Instant = DAWN
    """No row of before it joined lies above."""


class FilterDriver:
    """Drives the filters of one stream: those that there are, and those that its batches lead to.

    ``last`` are the last reports or marks that were published of ``filters``; those that are ``over`` are passed over.
    """

    def __init__(
        self,
        stream: Stream,
        filters: Iterable[Registered] = (),
        last: Mapping[str, ReportHeaders] = MappingProxyType({}),
        over: Iterable[Registered] = (),
    ) -> None:
        self.stream = stream
        self._standing = StandingFilters(stream)
        self._versions = dict.fromkeys(range(stream.partitions), 0)
        self._watermarks = dict.fromkeys(range(stream.partitions), DAWN)
        self._seen = dict.fromkeys(range(stream.partitions), DAWN)
        """By partition, the highest time of a row."""
        self._sealed: set[int] = set()
        self._courses: dict[str, _Course] = {}
        self._ended = {registered.identity for registered in over}
        for registered in filters:
            published = last.get(registered.signature)
            if published is not None:
                self._resume(registered, published)

    def take(self, partition: int, headers: BatchHeaders, rows: pa.RecordBatch, plans: PlanLog) -> None:
        """The next batch of a partition; ``plans`` hold its version."""
        if headers.version > self._versions[partition]:
            self._meet(partition, headers, plans)
        batch = Batch(self.stream.name, partition, rows, _NO_NUMBERS, headers.lowest, headers.highest)
        for identity, course in self._courses.items():
            if headers.version >= course.registered.version and partition not in course.leaves:
                self._standing.observe(identity, batch)
        self._watermarks[partition] = headers.watermark
        self._seen[partition] = max(headers.seen_before(self.stream), headers.highest)
        if headers.sealed:
            self._sealed.add(partition)
        self._standing.take(partition, rows, DUSK if headers.sealed else headers.watermark)

    def advance(self) -> Iterator[FilterReport]:
        """Every report that is final now, in order of time for each filter."""
        for identity, course in list(self._courses.items()):
            if not course.has_joined and not self._join(identity, course):
                continue
            limit = min(self._reached(course, partition) for partition in self._watermarks)
            horizon = self._standing.horizon(identity)
            for report in self._standing.reports(identity, limit):
                yield FilterReport(replace(_headers(course, report.time, horizon), until=report.until), report)
            if self._all(course.leaves) or limit == DUSK:
                self._end(identity)
                yield FilterReport(_headers(course, DUSK, horizon, Mark.SEALED if limit == DUSK else Mark.LEFT))
        self._standing.release()

    def has_ended(self, registered: Registered) -> bool:
        """Has a filter made its last report?"""
        return registered.identity in self._ended

    def _meet(self, partition: int, headers: BatchHeaders, plans: PlanLog) -> None:
        """A partition comes to a newer plan version: filters may join and leave there."""
        for registered in plans.registered(self.stream.name, self._versions[partition], headers.version):
            is_ours = registered.query.by_lookups and self.stream in registered.query.streams
            if is_ours and registered.identity not in self._courses and registered.identity not in self._ended:
                self._add(registered)
        for course in self._courses.values():
            if headers.version >= course.registered.version and partition not in course.joins:
                course.joins[partition] = headers.previous
                course.seen = max(course.seen, headers.seen_before(self.stream))
            left = plans.left_at(course.registered)
            if left is not None and headers.version >= left:
                course.leaves.setdefault(partition, headers.previous)
        self._versions[partition] = headers.version

    def _add(self, registered: Registered) -> _Course:
        self._standing.add(registered.identity, registered.query)
        course = self._courses[registered.identity] = _Course(registered)
        return course

    def _resume(self, registered: Registered, published: ReportHeaders) -> None:
        """Go on behind what was published."""
        if published.mark is not Mark.REPORT:
            self._ended.add(registered.identity)
            return
        self._add(registered).has_joined = True
        self._standing.join(registered.identity, Joined(registered.query, published.end[0], published.horizon))

    def _join(self, identity: str, course: _Course) -> bool:
        """The filter takes effect, if every partition has come so far; one that is sealed comes no further."""
        if not self._all(course.joins):
            return False
        over = self._sealed - course.joins.keys()
        highest = max(*course.joins.values(), *(self._watermarks[partition] for partition in over), DAWN)
        seen = max(course.seen, *(self._seen[partition] for partition in over), highest + 1)
        horizon = seen if highest > DAWN else DAWN
        self._standing.join(identity, Joined(course.registered.query, highest, horizon))
        course.has_joined = True
        return True

    def _all(self, places: Mapping[int, Instant]) -> bool:
        return bool(places) and all(p in places or p in self._sealed for p in self._watermarks)

    def _reached(self, course: _Course, partition: int) -> Instant:
        """Up to where a partition lets a filter report."""
        if partition in course.leaves:
            return course.leaves[partition]
        return DUSK if partition in self._sealed else self._watermarks[partition]

    def _end(self, identity: str) -> None:
        self._standing.leave(identity)
        del self._courses[identity]
        self._ended.add(identity)


def _headers(course: _Course, time: Instant, horizon: Instant, mark: Mark = Mark.REPORT) -> ReportHeaders:
    """A filter is evaluated in one place: its reports have one shard."""
    registered = course.registered
    return ReportHeaders(registered.signature, 0, 1, time, 0, mark, horizon, registered.version)
