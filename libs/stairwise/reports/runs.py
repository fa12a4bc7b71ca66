"""Stretches of time in which no answer changes: from where the last row has left every window until the next row comes.

    rows       ●●● ●●                                             ●  ●●
    islands    ├────┤                                             ├───┤
    answers    1 3 5 4 2 0  0  0  0  0  0  0  0  0  0  0  0  0  0  1 3 ...
                         └──────────────── quiet ───────────────┘

    answers        which report times of an operator say the same as the one before them
    update         O(1) a batch, O(r log r) for the r rows of a batch that spans longer than the operator's reach
    space          two instants for each stretch without rows that reports have not passed
    order          any, as long as no row comes at or below the watermark

A driver reports such a stretch as one *run*: the report at its first time, which holds until its last. However long
event time stands still or leaps, that costs what one report costs. A run is expanded by whoever reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from stairwise.algebra.query import Query, inputs, levels_of, selects
from stairwise.expressions.views import Ints, int64_view
from stairwise.reports.contract import Batch, Block, Report
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.windows.schedule import report_grids
from stairwise.windows.spec import (
    LandmarkWindow,
    MultiWindow,
    PartitionedWindow,
    RelationWindow,
    RowsWindow,
    TimeWindow,
    Window,
)

LEAST = 64
"""Of how many report times of the finest window a run is made at the least."""

_MOVING = frozenset({"REGR_SLOPE", "REGR_INTERCEPT", "WINDOW_START", "WINDOW_END"})
"""Aggregates that depend on the report time, and not on the rows alone."""


class Reach(NamedTuple):
    """When the rows of an operator's windows show."""

    enters: Duration
    """No report shows a row sooner after its time than this."""
    leaves: Duration
    """From so long after a row's time on, nothing changes on account of it."""
    pace: Duration
    """The shortest slide."""

    @property
    def gap(self) -> Duration:
        """A stretch without rows that is no longer than this holds no run."""
        return self.leaves + LEAST * self.pace


class Quieting(Protocol):
    """An operator whose reports can be passed over where nothing changes."""

    def reach(self, *, settled: bool) -> Reach | None:
        """None where reports follow rows alone. ``settled``: every window has reported since its rows left it."""

    def next_due(self, instant: Instant) -> Instant:
        """The first report time above an instant; DUSK where there is none."""

    def skip(self, until: Instant) -> None:
        """The report times up to this one are behind, though ``advance`` has not made them: they were in a run."""


class Leg(NamedTuple):
    """A driver advances to ``upto``; where ``until`` is set, nothing changes from there until then."""

    upto: Instant
    until: Instant | None = None


@dataclass(frozen=True)
class Run:
    """What stands at ``after``, and in ``block`` last, stands at every report time up to ``until``."""

    after: Instant
    until: Instant
    block: Any


class Islands(msgspec.Struct):
    """The times of rows, as spans that lie further apart than an operator reaches."""

    spans: list[tuple[Instant, Instant]] = []
    last_row: Instant = DAWN

    def add(self, batch: Batch, time_column: str, reach: Reach | None) -> None:
        """The rows of a batch. Where its bounds are close together they are all that is looked at.

        With the stream's first row reports begin, whether or not this shard has it.
        """
        if reach is None or batch.highest == DAWN:
            return
        if not batch.rows.num_rows:
            if not self.spans or batch.lowest < self.spans[0][0]:
                self.extend(np.array([batch.lowest]), reach.gap)
            return
        if batch.time is None and batch.highest - batch.lowest <= reach.gap:
            times = np.array([batch.lowest, batch.highest])
        else:
            times = int64_view(batch.rows.column(time_column)) if batch.time is None else batch.time
        self.last_row = max(self.last_row, int(times.max()))
        if batch.lowest < times.min():
            times = np.append(times, batch.lowest)
        self.extend(times, reach.gap)

    def extend(self, times: Ints, gap: Duration) -> None:
        """Instants at which answers may change."""
        first, last = int(times.min()), int(times.max())
        found = [(first, last)]
        if last - first > gap:
            times = np.sort(times)
            edges = np.flatnonzero(np.diff(times) > gap)
            found = list(zip([first, *times[edges + 1].tolist()], [*times[edges].tolist(), last], strict=True))
        if len(found) == 1 and self.spans and first >= self.spans[-1][0]:
            low, high = self.spans[-1]
            if first - high <= gap:
                self.spans[-1] = (low, max(high, last))
            else:
                self.spans.append((first, last))
            return
        merged: list[tuple[Instant, Instant]] = []
        for low, high in sorted(self.spans + found):
            if merged and low - merged[-1][1] <= gap:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        self.spans = merged

    def legs(self, operator: Quieting, reach: Reach | None, after: Instant, watermark: Instant) -> Iterator[Leg]:
        """From ``after`` to the watermark by way of every stretch in which nothing changes."""
        if reach is not None:
            self._forget(after - reach.leaves)
            for number, (_, high) in enumerate(self.spans):
                begin = max(high + reach.leaves, after + 1)
                end = min(watermark, self.last_row) if watermark >= DUSK else watermark
                if number + 1 < len(self.spans):
                    end = min(end, self.spans[number + 1][0] + reach.enters - 1)
                if end - begin >= LEAST * reach.pace:
                    first = operator.next_due(begin - 1)
                    if end - first >= LEAST * reach.pace:
                        yield Leg(first, end)
        yield Leg(watermark)

    def _forget(self, passed: Instant) -> None:
        """Let go of spans that no report looks at any more; the last of them stays: the stretch behind it goes on."""
        passed_spans = sum(high < passed for _, high in self.spans)
        self.spans = self.spans[max(0, passed_spans - 1) :]


Found = TypeVar("Found", bound=Block)


def blocks_and_runs(
    operator: Quieting, advance: Callable[[Instant], Iterator[Found]], legs: Iterable[Leg]
) -> Iterator[Found | Run]:
    """The blocks of an operator along its way, and a run behind a block that holds for long."""
    for upto, until in legs:
        last: Found | None = None
        for block in advance(upto):
            yield block
            last = block
        if until is not None and last is not None and int(last.times[-1]) == upto:
            operator.skip(until)
            yield Run(upto, until, last)


def reports_and_runs(operator: Quieting, advance: Callable[[Instant], Iterator[Report]], leg: Leg) -> Iterator[Report]:
    """The reports of an operator on one leg of its way; the last one says until when it holds."""
    held: Report | None = None
    for report in advance(leg.upto):
        if held is not None:
            yield held
        held = report
    if held is not None:
        if leg.until is not None and held.time == leg.upto:
            operator.skip(leg.until)
            held = replace(held, until=leg.until)
        yield held


def reach_of(query: Query) -> Reach | None:
    """The reach of a query that is evaluated by itself."""
    windows = [source.window for source in inputs(query.relation)]
    slides = [slide for window in windows if (slide := _slide(window)) is not None]
    if not slides or any(window is None for window in windows) or levels_of(query) is not None:
        return None
    drains = all(isinstance(window, TimeWindow | MultiWindow) for window in windows)
    asked = {aggregate.function for select in selects(query.relation) for aggregate in select.aggregates}
    if asked & _MOVING and not drains:
        return None
    enters = min(window.lag if isinstance(window, TimeWindow) else 0 for window in windows)
    pace = min(grid.slide for window in windows for grid in report_grids(window))
    return Reach(enters, max(_stay(window) + (_slide(window) or 0) for window in windows), pace)


def bounds_of(query: Query) -> Ints:
    """Where the landmarks of a query begin and end: instants at which its answer may change without a row."""
    windows = [source.window for source in inputs(query.relation)]
    landmarks = [window for window in windows if isinstance(window, LandmarkWindow)]
    bounds = [at for landmark in landmarks for at in (landmark.start, landmark.end) if at is not None]
    return np.array(bounds, np.int64)


def _slide(window: Window | None) -> Duration | None:
    """The longest time between two reports of a window; None where it reports at rows, or never."""
    match window:
        case TimeWindow() | LandmarkWindow() | PartitionedWindow():
            return window.slide
        case RowsWindow():
            return window.time_slide
        case MultiWindow():
            return window.granule if window.horizon is not None else max(level.slide for level in window.levels)
        case None | RelationWindow():
            return None


def _stay(window: Window | None) -> Duration:
    """How long after its time a row may leave a window by itself; 0 where only other rows make it leave."""
    match window:
        case TimeWindow():
            return window.lag + window.range
        case MultiWindow():
            return max([level.range for level in window.levels] + [window.horizon or 0])
        case _:
            return 0
