"""The queries of a shared operator: when each takes effect and ends, how far back it sees, and which times are due.

    q1   ├──────────────────────────────▶        life: reports at τ in (after, until], sees rows above the horizon
    q2               ├────────────┤
    due  │   │   │   │ │ │ │ │ │ │ │   │        the union of their report times, each once

A roster knows queries and time, nothing of what they compute: duplicate elimination, the join and the flow of rows keep
one each, and are ``Rostered`` operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from stairwise.cql.query import Query, inputs
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.operators.contract import Joined, Left, PlanChange
from stairwise.operators.quiet import Reach
from stairwise.operators.store import Store
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.sharing.due import Course, Due, Frame, Life
from stairwise.windows.schedule import Grid, report_grids
from stairwise.windows.spec import MultiWindow, PartitionedWindow, RowsWindow, TimeWindow, Window

_KEY = b"q"


class _State(msgspec.Struct):
    lives: dict[str, Life]
    passed: Instant
    first_row: Instant
    last_row: Instant
    faults_before: dict[str, tuple[int, int]]
    retained: Instant = DAWN


class Roster:
    """The queries of a signature by name. Goes on from what is in the store."""

    def __init__(self, queries: Sequence[Query], store: Store) -> None:
        self._store = store
        self._due = Due()
        self.queries: dict[str, Query] = {}
        self.lives: dict[str, Life] = {}
        self._first_end: Instant = DUSK
        """No query ends before."""
        self.course = Course(DAWN, DUSK, DAWN)
        self.faults_before: dict[str, tuple[int, int]] = {}
        """What the expressions of each query had counted when it came."""
        self._retained: Instant = DAWN
        """Everything above it is there, wherever a run may be."""
        self._retained_at: Instant | None = None
        """The watermark up to which that takes the queries into account."""
        page = store.get(_KEY)
        state = None if page is None else msgspec.msgpack.decode(page, type=_State)
        for query in queries:
            self.enter(query, Life() if state is None else state.lives.get(query.name, Life()))
        if state is not None:
            self.course = Course(state.passed, state.first_row, state.last_row)
            self.faults_before = state.faults_before
            self._retained = state.retained

    def join(self, change: Joined, seen: Instant, kept_above: Callable[[Instant], Instant]) -> None:
        """A query joins. It sees nothing at or below ``seen``, and back as far as the others that stay need at the
        highest watermark that a partition has then: what they do not is ``kept_above``.

        A run may have come less far, but no further, so it still has all of that: how far a query sees back follows
        from the plan and from the watermark, not from what a run happens to have kept.
        """
        horizon = max(change.horizon, seen)
        if change.after > DAWN:
            lateness = max(stream.lateness for stream in change.query.streams if not stream.is_table)
            above = change.seen_before(lateness)  # no row above it has come, and the last one lies there
            if change.after != self._retained_at:
                kept = kept_above(change.after) if self.staying() else above
                self._retained, self._retained_at = max(self._retained, kept), change.after
            horizon = max(horizon, min(self._retained, above))
            passed, first, last = self.course
            self.course = Course(passed, first if first <= last else change.after, max(last, above))
        self.enter(change.query, Life(change.after, DUSK, horizon))

    def staying(self) -> list[Query]:
        """The queries that do not end."""
        return [query for name, query in self.queries.items() if self.lives[name].until == DUSK]

    def kept_above(self, watermark: Instant) -> Instant:
        """No report above the watermark, of a query that stays, asks for anything at or below this instant."""
        return self._due.layout.kept_above(watermark)

    def enter(self, query: Query, life: Life) -> None:
        self.queries[query.name], self.lives[query.name] = query, life
        self._first_end = min(self._first_end, life.until)
        windows = windows_of(query)
        for window in windows:
            self._due.add(window, life, _beside(windows))

    def leave(self, name: str, after: Instant) -> None:
        """A query's last report is the last one at or before ``after``; one that is not here has left already."""
        if name not in self.queries:
            return
        life = self.lives[name]
        query = self._remove(name)
        self._retained_at = None
        if after > self.course.passed:
            self.enter(query, life._replace(until=min(life.until, after)))
        else:
            self.faults_before.pop(name, None)

    def drop_ended(self, watermark: Instant) -> bool:
        """Forget the queries that have ended; were there any?"""
        if watermark < self._first_end:
            return False
        ended = [name for name, life in self.lives.items() if life.until <= watermark]
        for name in ended:
            self._remove(name)
            self.faults_before.pop(name, None)
        self._first_end = min((life.until for life in self.lives.values()), default=DUSK)
        return bool(ended)

    def _remove(self, name: str) -> Query:
        query, life = self.queries.pop(name), self.lives.pop(name)
        windows = windows_of(query)
        for window in windows:
            self._due.remove(window, life, _beside(windows))
        return query

    def observe(self, lowest: Instant, highest: Instant) -> None:
        """Rows came in; these are the extremes of their times."""
        passed, first, last = self.course
        self.course = Course(passed, min(first, lowest), max(last, highest))

    def passed(self, watermark: Instant) -> None:
        """All report times up to the watermark are behind."""
        self.course = self.course._replace(passed=max(self.course.passed, watermark))

    @property
    def has_begun(self) -> bool:
        return self.course.first_row <= self.course.last_row

    def due(self, watermark: Instant) -> Iterator[Ints]:
        """The times at which any query is now due, in sorted arrays, each time once."""
        for times, _ in self.due_with_rears(watermark):
            yield times

    def due_with_rears(self, watermark: Instant) -> Iterator[tuple[Ints, Ints]]:
        """The same with the lowest rear of the windows that are due at each time, where they have one front."""
        for steps in self._due.layout.blocks(self.course, watermark):
            last = np.append(np.flatnonzero(steps.time[1:] != steps.time[:-1]), len(steps) - 1)
            yield steps.time[last], steps.rear[last]

    def next_after(self, instant: Instant) -> Instant:
        """The first time above an instant at which any query may be due."""
        return self._due.layout.next_after(instant)

    def reach(self, *, settled: bool) -> Reach | None:
        return self._due.layout.reach(settled=settled)

    def frames(self) -> list[Frame]:
        """The windows of all queries, and their levels."""
        return [entry.frame for entry in self._due.layout.entries]

    def last_fronts(self, watermark: Instant, lag: Duration = 0) -> tuple[Ints, Ints]:
        """The fronts of all windows' last reports at or before the watermark, and the highest rear of each.

        Fronts ascend, each once.
        """
        layout = self._due.layout
        front = watermark - (watermark - layout.offset) % layout.slide - lag
        fronts, place = np.unique(front, return_inverse=True)
        rears = np.full(len(fronts), DAWN, np.int64)
        np.maximum.at(rears, place, np.maximum(front - layout.range, layout.horizon))
        return fronts, rears

    def oldest_rear(self, watermark: Instant) -> Instant:
        """No last report at or before the watermark, and none above it, asks for anything at or below this."""
        layout = self._due.layout
        if not layout.entries:
            return watermark
        last = watermark - (watermark - layout.pace_offset) % layout.pace_slide
        return int((last - layout.pace_reach).min())

    def flush(self) -> None:
        state = _State(dict(self.lives), *self.course, self.faults_before, self._retained)
        self._store.put(_KEY, msgspec.msgpack.encode(state))


class Rostered:
    """A shared operator whose queries stand in a roster, and whose expressions are the same for all of them."""

    def __init__(self, roster: Roster, faults: Faults) -> None:
        self._roster = roster
        self._faults = faults
        """How often the signature's expressions had no number to give."""
        self._next_due = DAWN
        """Nothing is due below it."""

    def _change(self, change: PlanChange, seen: Instant) -> None:
        """A query joins or leaves; one that joins sees nothing at or below an instant."""
        match change:
            case Joined():
                self._roster.join(change, seen, self._kept_above)
                self._roster.faults_before[change.query.name] = (self._faults.overflow, self._faults.division)
            case Left():
                self._roster.leave(change.query, change.after)
        self._next_due = DAWN

    def _kept_above(self, watermark: Instant) -> Instant:
        """Everything above it is there, however far a run has come up to the watermark."""
        return self._roster.kept_above(watermark)

    def reach(self, *, settled: bool) -> Reach | None:
        return self._roster.reach(settled=settled)

    def next_due(self, instant: Instant) -> Instant:
        return self._roster.next_after(instant)

    def skip(self, until: Instant) -> None:
        self._roster.passed(until)

    @property
    def queries(self) -> list[Query]:
        return list(self._roster.queries.values())

    def life(self, query: str) -> Life:
        """From when to when a query reports, and its horizon."""
        return self._roster.lives[query]

    def faults(self, query: Query) -> Faults:
        """How often the signature's expressions had no number to give, since the query is here."""
        overflow, division = self._roster.faults_before.get(query.name, (0, 0))
        return Faults(self._faults.overflow - overflow, self._faults.division - division)

    @property
    def all_faults(self) -> Faults:
        """How often the signature's expressions had no number to give."""
        return self._faults


def windows_of(query: Query) -> list[TimeWindow | MultiWindow]:
    """The windows of a query that reports by time. One that counts rows reports when one does that tumbles."""
    return [_paced(source.window) for source in inputs(query.relation)]


def _paced(window: Window | None) -> TimeWindow | MultiWindow:
    match window:
        case TimeWindow() | MultiWindow():
            return window
        case PartitionedWindow():
            return TimeWindow(window.slide, window.slide)
        case RowsWindow(time_slide=int(slide)):
            return TimeWindow(slide, slide)
        case _:
            raise TypeError(f"{window} does not report by time")


def _beside(windows: Sequence[TimeWindow | MultiWindow]) -> tuple[Grid, ...]:
    """Where the windows of a query report, if there are several."""
    if len(windows) == 1:
        return ()
    return tuple(dict.fromkeys(grid for window in windows for grid in report_grids(window)))


def own_times(times: Ints, life: Life, grids: Sequence[Grid], first_row: Instant, sealed_at: Instant | None) -> Ints:
    """Of the times at which any query is due, those inside a query's life.

    A query that begins with the stream waits for its first row, and one whose stream has ended reports for the last
    time at or after its last row.
    """
    times = times[(times > life.after) & (times <= life.until)]
    if life.after == DAWN:
        times = times[times >= first_row]
    if sealed_at is not None:
        row = max(sealed_at, life.after)
        times = times[times <= min(t for grid in grids if (t := grid.at_or_after(row)) is not None)]
    return times


def due_at(frame: Frame, times: Ints) -> Ints:
    """Of some times, those at which a window reports."""
    due: Ints = times[(times - frame.offset) % frame.slide == 0]
    return due
