"""Which windows of a signature report at τ, and what they ask of its stair: fronts and rears, each once.

    RANGE 4 SLIDE 2     at 2, 4, 6, 8, ...               τ = 8       rear 4        ├───────┤
    RANGE 8 SLIDE 2     at 2, 4, 6, 8, ...                           rear 0  ├─────────────┤
    RANGE 8 SLIDE 4     at    4,    8, ...                           rear 0  the same: asked for once
    RANGE 9 SLIDE 5     at      5,     10, ...           not due

    answers        for many report times at once, the distinct (front, rear) of all windows that are due
    cost           per report time one vectorised pass over the paces (distinct slides and offsets), then over the
                   windows that are due. The report times themselves are those of the groups' seeds (``timetable``)
    from           seed 000 section 3; half-filled windows (horizons): seed 002 section 3

Windows that report together lie together, sorted by pace, so that a pace which is not due costs nothing more. What
tells windows apart beside their bounds is when their queries take effect and end, and how far back they can see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Bools, Ints
from stairwise.operators.levels import asked_levels
from stairwise.reports.contract import Life
from stairwise.reports.runs import Reach
from stairwise.schema import DAWN, DUSK, Duration, Instant
from stairwise.subsumption.timetable import Timetable
from stairwise.windows.schedule import Grid, grid_blocks, report_grids
from stairwise.windows.spec import MultiWindow, TimeWindow

CELLS = 1_000_000
"""About how many pairs of a report time and a pace are looked at in one go."""


MOST_PATTERNS = 1024
"""How many sets of paces that are due together are remembered."""


class Frame(NamedTuple):
    """A window, or one level of it, as the stair sees it: (τ−lag−range, τ−lag] at τ ≡ offset (mod slide)."""

    slide: Duration
    offset: Duration
    lag: Duration
    range: Duration

    @property
    def window(self) -> TimeWindow:
        return TimeWindow(self.range, self.slide, self.lag, self.offset)


def frames_of(window: TimeWindow | MultiWindow) -> tuple[Frame, ...]:
    """The frames of a window: one, or one for all that its levels ask for."""
    if isinstance(window, TimeWindow):
        reach = min(window.range, DUSK)  # keeps τ−w inside 64 bits
        return (Frame(window.slide, window.offset % window.slide, window.lag, reach),)
    return tuple(Frame(level.slide, 0, 0, level.range) for level in asked_levels(window))


class _Entry(NamedTuple):
    frame: Frame
    life: Life
    sealing: tuple[Grid, ...]
    """Where all windows and levels of its query report: when the streams end, the first of these times is its last."""


@dataclass(frozen=True)
class Steps:
    """Parts of history that are asked for, in order of (time, front ascending, rear descending), each once."""

    time: Ints
    front: Ints
    rear: Ints

    def __len__(self) -> int:
        return len(self.time)

    @property
    def has_one_front(self) -> bool:
        """Do all steps end together?"""
        return bool(self.time[0] == self.time[-1] and self.front[0] == self.front[-1])

    def __getitem__(self, part: slice) -> Steps:
        return Steps(self.time[part], self.front[part], self.rear[part])


class Course(NamedTuple):
    """How far a signature's stream has come."""

    passed: Instant
    first_row: Instant
    last_row: Instant


class Due:
    """The windows of a signature's queries. They come and go; the arrays are laid out when next asked for."""

    def __init__(self) -> None:
        self._entries: Counter[_Entry] = Counter()
        self._timetable = Timetable()
        self._layout: DueWindows | None = None

    def add(self, window: TimeWindow | MultiWindow, life: Life, beside: tuple[Grid, ...] = ()) -> None:
        """``beside`` are the report times of its query's other windows."""
        for entry in _entries(window, life, beside):
            if entry not in self._entries:
                self._timetable.add(entry.frame.window)
                self._layout = None
            self._entries[entry] += 1

    def remove(self, window: TimeWindow | MultiWindow, life: Life, beside: tuple[Grid, ...] = ()) -> None:
        for entry in _entries(window, life, beside):
            self._entries[entry] -= 1
            if not self._entries[entry]:
                del self._entries[entry]
                self._timetable.remove(entry.frame.window)
                self._layout = None

    @property
    def layout(self) -> DueWindows:
        if self._layout is None:
            self._layout = DueWindows(list(self._entries), self._timetable.grids())
        return self._layout


def _entries(window: TimeWindow | MultiWindow, life: Life, beside: tuple[Grid, ...]) -> Iterator[_Entry]:
    grids = report_grids(window) + beside
    for frame in frames_of(window):
        yield _Entry(frame, life, grids)


class DueWindows:
    """Distinct windows with their lives as arrays, those of one pace side by side."""

    def __init__(self, entries: Iterable[_Entry], grids: tuple[Grid, ...]) -> None:
        """``grids`` are the times at which any of them reports."""
        self.entries = sorted(entries, key=lambda entry: (entry.frame, entry.life))
        table = np.array([(*e.frame, *e.life) for e in self.entries], np.int64).reshape(-1, 7)
        self.slide, self.offset, self.lag, self.range, self.after, self.until, self.horizon = table.T.copy()
        self.pace_start = np.flatnonzero(_differs(self.slide, self.offset))
        self.pace_count = np.diff(np.append(self.pace_start, len(table)))
        self.pace_slide, self.pace_offset = self.slide[self.pace_start], self.offset[self.pace_start]
        self.grids = grids
        reach = self.lag + self.range
        self.pace_reach = np.maximum.reduceat(reach, self.pace_start) if len(table) else reach
        self.is_plain = bool((self.after == DAWN).all() and (self.until == DUSK).all())
        self.has_horizon = bool((self.horizon > DAWN).any())
        front = -self.lag
        rear = front - self.range
        order = np.lexsort([-rear, front])
        new = _differs(front[order], rear[order])
        self._front, self._rear = front[order][new], rear[order][new]
        """The distinct bounds of all windows at time 0, in the order of steps."""
        self._bound = np.empty(len(table), np.int64)
        self._bound[order] = np.cumsum(new) - 1
        """Which of them are those of each window."""
        self._relative: dict[bytes, Steps] = {}
        """By which paces are due, what they ask for at time 0."""

    def blocks(self, course: Course, watermark: Instant) -> Iterator[Steps]:
        """Everything that is now final, in order, in blocks that never part what is due at one time."""
        if not self.entries:
            return
        bounds: tuple[Ints, Ints] | None = None
        after, upto = course.first_row - 1, watermark
        if not self.is_plain or watermark >= DUSK:
            bounds = self._bounds(course, watermark)
            after, upto = int(bounds[0].min()), int(bounds[1].max())
        for times in grid_blocks(self.grids, max(course.passed, after), upto):
            rows = max(1, CELLS // len(self.pace_start))
            for start in range(0, len(times), rows):
                found = self._steps(times[start : start + rows], bounds)
                if len(found):
                    yield found

    def _bounds(self, course: Course, watermark: Instant) -> tuple[Ints, Ints]:
        """After when and until when each window reports."""
        begin = self.after.copy()  # a query that takes effect at the first row waits for it, another one does not
        begin[self.after == DAWN] = course.first_row - 1
        until = watermark if watermark < DUSK else self._last_reports(course.last_row)
        return begin, np.minimum(self.until, until)

    def _last_reports(self, last_row: Instant) -> Ints:
        """Where each window's query ends when its stream does."""
        last = np.empty(len(self.entries), np.int64)
        for i, entry in enumerate(self.entries):
            row = max(last_row, entry.life.after)
            found = (grid.at_or_after(row) for grid in entry.sealing)
            last[i] = min(at for at in found if at is not None) if row > DAWN else DAWN
        return last

    def _steps(self, times: Ints, bounds: tuple[Ints, Ints] | None) -> Steps:
        is_due = (times[:, None] - self.pace_offset) % self.pace_slide == 0
        if len(times) == 1 and bounds is None and not self.has_horizon:
            return self._steps_at(int(times[0]), is_due[0])
        of, pace = np.nonzero(is_due)
        count = self.pace_count[pace]
        entry = expand_ranges(self.pace_start[pace], count)
        of = np.repeat(of, count)
        if bounds is not None:
            begin, until = bounds
            lives = (times[of] > begin[entry]) & (times[of] <= until[entry])
            entry, of = entry[lives], of[lives]
        front = times[of] - self.lag[entry]
        rear = front - self.range[entry]
        if self.has_horizon:
            rear = np.minimum(np.maximum(rear, self.horizon[entry]), front)
        return self._distinct(times, of, front, rear)

    def _steps_at(self, time: Instant, is_due: Bools) -> Steps:
        """What some paces ask for is the same at every report time, but for the time."""
        spelled = is_due.tobytes()
        relative = self._relative.get(spelled)
        if relative is None:
            entry = expand_ranges(self.pace_start[is_due], self.pace_count[is_due])
            asked = np.zeros(len(self._front), bool)
            asked[self._bound[entry]] = True
            relative = Steps(np.zeros(np.count_nonzero(asked), np.int64), self._front[asked], self._rear[asked])
            if len(self._relative) < MOST_PATTERNS:
                self._relative[spelled] = relative
        return Steps(relative.time + time, relative.front + time, relative.rear + time)

    def _distinct(self, times: Ints, of: Ints, front: Ints, rear: Ints) -> Steps:
        order = np.lexsort([-rear, front, of])
        of, front, rear = of[order], front[order], rear[order]
        new = _differs(of, front, rear)
        return Steps(times[of[new]], front[new], rear[new])

    def next_after(self, instant: Instant) -> Instant:
        """The first time above an instant at which any window may report."""
        return min((t for grid in self.grids if (t := grid.at_or_after(instant + 1)) is not None), default=DUSK)

    def reach(self, *, settled: bool) -> Reach | None:
        """When rows show in the windows. ``settled``: every window has reported since its rows left it."""
        if not self.entries:
            return None
        stay = self.lag + self.range + (self.slide if settled else 0)
        return Reach(int(self.lag.min()), int(stay.max()), int(self.slide.min()))

    def oldest_rear(self, watermark: Instant) -> Instant:
        """No report above the watermark asks for anything at or below this instant."""
        if not self.entries:
            return watermark
        following = watermark + 1 + (self.pace_offset - watermark - 1) % self.pace_slide
        return int((following - self.pace_reach).min())

    def kept_above(self, watermark: Instant) -> Instant:
        """The same for the queries that do not end."""
        stay = self.until == DUSK
        if not stay.any():
            return watermark
        slide, reach = self.slide[stay], (self.lag + self.range)[stay]
        following = watermark + 1 + (self.offset[stay] - watermark - 1) % slide
        return int((following - reach).min())


def _differs(*columns: Ints) -> Bools:
    """Which rows differ from the one before them; the first one does."""
    differs = np.ones(len(columns[0]), bool)
    differs[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return differs
