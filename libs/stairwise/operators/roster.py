"""The queries of a shared operator: when each takes effect and ends, how far back it sees, and which times are due.

    q1   ├──────────────────────────────▶        life: reports at τ in (after, until], sees rows above the horizon
    q2               ├────────────┤
    due  │   │   │   │ │ │ │ │ │ │ │   │        the union of their report times, each once

A roster knows queries and time, nothing of what they compute. Every shared operator keeps one, and is ``Rostered``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from stairwise.algebra.query import Query, Select, inputs
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.operators.due import Course, Due, DueWindows, Frame
from stairwise.operators.levels import asked_window, asks_for_steps
from stairwise.reports.contract import Joined, Left, Life, PlanChange
from stairwise.reports.runs import Reach
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.state.store import Store
from stairwise.windows.schedule import Grid, at_or_before, report_grids
from stairwise.windows.spec import MultiWindow, PartitionedWindow, RowsWindow, TimeWindow, Window

_LIVES, _REACHED = b"q", b"t"


class _Lives(msgspec.Struct):
    """The queries, and the faults that their expressions had counted when they came; written when one comes or goes."""

    lives: dict[str, Life] = {}
    faults_before: dict[str, tuple[int, int]] = {}


class _Reached(msgspec.Struct):
    """How far the streams have come."""

    passed: Instant = DAWN
    first_row: Instant = DUSK
    last_row: Instant = DAWN
    retained: Instant = DAWN


class Roster:
    """The queries of a signature by name. Goes on from what is in the store."""

    def __init__(self, queries: Sequence[Query], store: Store) -> None:
        self._store = store
        self._due = Due()
        self.queries: dict[str, Query] = {}
        self.lives: dict[str, Life] = {}
        self._leaving: set[str] = set()
        """Queries that end some time."""
        page = store.get(_LIVES)
        known = _Lives() if page is None else msgspec.msgpack.decode(page, type=_Lives)
        self.faults_before = known.faults_before
        """What the expressions of each query had counted when it came."""
        for query in queries:
            self._enter(query, known.lives.get(query.name, Life()))
        self._is_written = self.lives == known.lives
        """Are the lives in the store as they are here?"""
        page = store.get(_REACHED)
        reached = _Reached() if page is None else msgspec.msgpack.decode(page, type=_Reached)
        self.course = Course(reached.passed, reached.first_row, reached.last_row)
        self._retained = reached.retained
        """Everything above it is there, wherever a run may be."""
        self._retained_at: Instant | None = None
        """The watermark up to which that takes the queries into account."""

    def join(self, change: Joined, seen: Instant, kept_above: Callable[[Instant], Instant]) -> None:
        """A query joins. It sees nothing at or below ``seen``, and back as far as the others that stay need at the
        highest watermark that a partition has then: what they do not is ``kept_above``.

        A run may have come less far, but no further, so it still has all of that: how far a query sees back follows
        from the plan and from the watermark, not from what a run happens to have kept.
        """
        horizon, above = max(change.horizon, seen), DAWN
        if change.after > DAWN:
            lateness = max(stream.lateness for stream in change.query.streams if not stream.is_table)
            above = change.seen_before(lateness)
            retained = self.retained(change.after, lambda at: kept_above(at) if self.staying() else above)
            horizon = max(horizon, min(retained, above))
        self.begin(change, horizon, above)

    def begin(self, change: Joined, horizon: Instant, above: Instant) -> None:
        """A query joins and sees down to its horizon. No row ``above`` an instant has come, and the last lies there."""
        if change.after > DAWN:
            passed, first, last = self.course
            self.course = Course(passed, first if first <= last else change.after, max(last, above))
        self._enter(change.query, Life(change.after, DUSK, horizon))

    def retained(self, after: Instant, kept_above: Callable[[Instant], Instant]) -> Instant:
        """Down to where everything is there for a query that takes effect after an instant."""
        if after != self._retained_at:
            self._retained, self._retained_at = max(self._retained, kept_above(after)), after
        return self._retained

    def staying(self) -> list[Query]:
        """The queries that do not end."""
        return [query for name, query in self.queries.items() if self.lives[name].until == DUSK]

    def kept_above(self, watermark: Instant) -> Instant:
        """No report above the watermark, of a query that stays, asks for anything at or below this instant."""
        return self._due.layout.kept_above(watermark)

    def _enter(self, query: Query, life: Life) -> None:
        self.queries[query.name], self.lives[query.name] = query, life
        if life.until < DUSK:
            self._leaving.add(query.name)
        self._is_written = False
        windows = _asked_windows(query)
        for window in windows:
            self._due.add(window, life, _beside(windows))

    def leave(self, name: str, after: Instant) -> Query | None:
        """A query's last report is the last one at or before ``after``; None where it has left already."""
        if name not in self.queries or name in self._leaving:
            return None
        life, query = self.lives[name], self._remove(name)
        self._retained_at = None
        self._enter(query, life._replace(until=after))
        return query

    def drop_ended(self, watermark: Instant) -> list[Query]:
        """Forget the queries that have ended, and give them."""
        ended = [name for name in self._leaving if self.lives[name].until <= watermark]
        for name in ended:
            self.faults_before.pop(name, None)
        self._leaving.difference_update(ended)
        return [self._remove(name) for name in ended]

    def _remove(self, name: str) -> Query:
        query, life = self.queries.pop(name), self.lives.pop(name)
        self._is_written = False
        windows = _asked_windows(query)
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
    def layout(self) -> DueWindows:
        """The windows of all queries as arrays."""
        return self._due.layout

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

    def last_report(self, name: str) -> Ints:
        """The last time behind at which a query's windows report: it has done so if that is in its life."""
        grids = [grid for window in windows_of(self.queries[name]) for grid in report_grids(window)]
        passed = np.array([self.course.passed])
        last: Ints = np.max([at_or_before(grid, passed) for grid in grids], axis=0)
        return last

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
        if not self._is_written:
            self._store.put(_LIVES, msgspec.msgpack.encode(_Lives(self.lives, self.faults_before)))
            self._is_written = True
        self._store.put(_REACHED, msgspec.msgpack.encode(_Reached(*self.course, self._retained)))


class Rostered:
    """A shared operator, whose queries stand in a roster."""

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
                self._roster.faults_before[change.query.name] = self._counted(change.query)
                self._roster.join(change, seen, self._kept_above)
            case Left():
                self._roster.leave(change.query, change.after)
                self._roster.drop_ended(self._roster.course.passed)
        self._next_due = DAWN

    def _counted(self, query: Query) -> tuple[int, int]:
        """The overflows and divisions by zero in what a query asks for, since the operator is here."""
        return self._faults.overflow, self._faults.division

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
        """How often the expressions that a query asks for had no number to give, since it is here."""
        now, before = self._counted(query), self._roster.faults_before.get(query.name, (0, 0))
        return Faults(now[0] - before[0], now[1] - before[1])

    @property
    def all_faults(self) -> Faults:
        """How often the signature's expressions had no number to give."""
        return self._faults


def windows_of(query: Query) -> list[TimeWindow | MultiWindow]:
    """The windows of a query that report by time. One that counts rows reports when one does that tumbles; one that
    slides by rows, and a table, never do."""
    windows = [source.window for source in inputs(query.relation)]
    return [_paced(window) for window in windows if report_grids(window)]


def _asked_windows(query: Query) -> list[TimeWindow | MultiWindow]:
    """The same as its operator sees them: one whose steps are asked for stands for these, too."""
    if isinstance(query.relation, Select) and asks_for_steps(query.relation):
        return [asked_window(query.relation)]
    return windows_of(query)


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
        times = times[times <= min((t for grid in grids if (t := grid.at_or_after(row)) is not None), default=row)]
    return times


def due_at(frame: Frame, times: Ints) -> Ints:
    """Of some times, those at which a window reports."""
    due: Ints = times[(times - frame.offset) % frame.slide == 0]
    return due
