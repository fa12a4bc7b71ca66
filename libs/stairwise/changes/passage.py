"""The way of rows through a window: at which reports they enter it, and at which they leave.

    τ                    10        20        30        40
    [RANGE 20 SLIDE 10]  +a +b     +c        −a −b     −c          known as soon as a row is there
    [ROWS 2 SLIDE 10]    +a +b     +c −a     +d −b                 known when the n-th row after it comes
    a table              +k1       +k2 −k1                         known when the next update of its key comes
    NON RETROACTIVE      +k1       +k2                             never: a row that came before k2 keeps k1

    answers        the rows that enter and leave between reports, by numbers that stand for them
    update         O(1) amortised a row
    lookup         O(rows that move), whatever the window holds
    space          two numbers for each row on its way
    order          rows in stream order, report times ascend
    from           seed 002 sections 3 and 4 (positive and negative tuples); seed 001 section 3.5.2 (calendar queue)

What is above a window (copies of values, groups) takes moves, and never asks why a row leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Ints
from stairwise.reports.moments import Moments
from stairwise.schema import DUSK, Duration, Instant
from stairwise.state.calendar_queue import CalendarQueue
from stairwise.state.key_table import KeyTable
from stairwise.state.last_rows import LastRows
from stairwise.windows.expiry import lifetimes
from stairwise.windows.spec import PartitionedWindow, RelationWindow, RowsWindow, TimeWindow

HIDDEN = -1
"""The number of a row that takes its place in a window and is not shown."""


class Moves(NamedTuple):
    """Rows that enter (+1) and leave (−1): their numbers, the numbers of the reports, diffs."""

    number: Ints
    report: Ints
    diff: Ints

    def by_report(self) -> Moves:
        order = np.argsort(self.report, kind="stable")
        return Moves(*(column[order] for column in self))

    def between(self, start: int, stop: int) -> Moves:
        """Those at reports start ≤ i < stop, of moves that stand by report."""
        low, high = np.searchsorted(self.report, [start, stop])
        return Moves(*(column[low:high] for column in self))


def together(parts: Sequence[Moves]) -> Moves:
    """One after the other; there must be at least one."""
    return parts[0] if len(parts) == 1 else Moves(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class Way(Protocol):
    """Rows that move, whether as they came or joined with others."""

    def moves(self, moments: Moments) -> Moves:
        """What moves up to the last of some moments, at least one, all behind those that were asked for before."""

    def numbers(self) -> Ints:
        """Of all rows that have not left and will move under the same number, some of them perhaps more than once."""

    def renumber(self, numbers: Ints) -> None:
        """Give every row the new number of its old one."""


class WindowPassage(Way, Protocol):
    """Rows through one window."""

    def take(self, first: int, times: Ints, numbers: Ints, keys: Sequence[pa.Array]) -> None:
        """Rows in stream order, from a position on; ``keys`` are the columns by which the window counts them."""


class Passage:
    """Rows of which it is known from when on and until when they show."""

    def __init__(self, day: Duration) -> None:
        """``day``: about how far apart reports are."""
        self._coming, self._going = CalendarQueue(day), CalendarQueue(day)

    def add(self, begins: Ints, ends: Ints, numbers: Ints) -> None:
        shows = begins < ends
        self._coming.push(begins[shows], numbers[shows])
        self._going.push(ends[shows], numbers[shows])

    def moves(self, moments: Moments) -> Moves:
        """What begins or ends at an instant does so with the first report there."""
        times = moments.times
        entered, came = self._coming.pop(int(times[-1]))
        left, went = self._going.pop(int(times[-1]))
        report = np.searchsorted(times, np.concatenate([entered, left]), side="left")
        diff = np.repeat([1, -1], [len(came), len(went)])
        return Moves(np.concatenate([came, went]), report, diff)

    def numbers(self) -> Ints:
        return self._going.numbers()

    def renumber(self, numbers: Ints) -> None:
        self._coming.renumber(numbers)
        self._going.renumber(numbers)


class TimePassage(Passage):
    """Through a time window."""

    def __init__(self, window: TimeWindow) -> None:
        super().__init__(window.slide)
        self._window = window

    def take(self, first: int, times: Ints, numbers: Ints, keys: Sequence[pa.Array]) -> None:
        self.add(*lifetimes([self._window], [times]), numbers)


class CountedPassage(Passage):
    """Through a window of the last rows, of the stream or of each partition, that reports by time."""

    def __init__(self, window: RowsWindow | PartitionedWindow, types: Sequence[pa.DataType]) -> None:
        """``types`` are those of the columns that partition it."""
        slide = window.slide if isinstance(window, PartitionedWindow) else window.time_slide
        assert slide is not None
        super().__init__(slide)
        self._slide = slide
        self._partitions = KeyTable(types)
        self._last = LastRows(window.rows)

    def take(self, first: int, times: Ints, numbers: Ints, keys: Sequence[pa.Array]) -> None:
        """Rows in stream order, each with its partition. One that goes does so at the first report that shows why."""
        begins = times + -times % self._slide
        goes, for_whom = self._last.push(self._partitions.numbers(keys, len(times)), numbers)
        for queue, at, who in ((self._coming, begins, numbers), (self._going, begins[for_whom], goes)):
            shown = who != HIDDEN
            queue.push(at[shown], who[shown])

    def numbers(self) -> Ints:
        held = self._last.numbers()
        return np.concatenate([self._going.numbers(), held[held != HIDDEN]])

    def renumber(self, numbers: Ints) -> None:
        super().renumber(numbers)
        self._last.renumber(numbers)


class VersionPassage:
    """Of a table that is not retroactive: an update is known from when it comes, and a later one of its key leaves it
    to those rows that came in between."""

    def __init__(self, window: RelationWindow, types: Sequence[pa.DataType]) -> None:
        """``types`` are those of its keys."""
        self._keys = KeyTable(types)
        self._last = LastRows(window.latest.rows)
        self._new: list[Ints] = []
        self._until = np.zeros(0, np.int64)
        """By number, when it was replaced; DUSK while it is not, and in the places of numbers to come."""
        self._kept = np.zeros(0, np.int64)

    def take(self, first: int, times: Ints, numbers: Ints, keys: Sequence[pa.Array]) -> None:
        """Updates in stream order, each with its key."""
        shown = numbers[numbers != HIDDEN]
        more = int(shown.max(initial=-1)) + 1 - len(self._until)
        if more > 0:
            self._until = np.concatenate([self._until, np.full(2 * more, DUSK, np.int64)])
        goes, for_whom = self._last.push(self._keys.numbers(keys, len(times)), numbers)
        self._until[goes[goes != HIDDEN]] = times[for_whom[goes != HIDDEN]]
        self._new.append(shown)

    def moves(self, moments: Moments) -> Moves:
        """What has come since; nothing leaves."""
        new = np.concatenate([np.zeros(0, np.int64), *self._new])
        self._kept, self._new = np.concatenate([self._kept, new]), []
        return Moves(new, np.zeros(len(new), np.int64), np.ones(len(new), np.int64))

    def until(self, numbers: Ints) -> Ints:
        """When some updates were replaced."""
        until: Ints = self._until[numbers]
        return until

    def forget_replaced(self, upto: Instant) -> None:
        """No row that comes together at or before an instant will ask again."""
        self._kept = self._kept[self._until[self._kept] > upto]

    def numbers(self) -> Ints:
        return np.concatenate([self._kept, *self._new])

    def renumber(self, numbers: Ints) -> None:
        """Give every update the new number of its old one."""
        known = np.flatnonzero(numbers[: len(self._until)] >= 0)
        until = np.full(len(numbers), DUSK, np.int64)
        until[numbers[known]] = self._until[known]
        self._until = until
        self._kept, self._new = numbers[self._kept], [numbers[new] for new in self._new]
        self._last.renumber(numbers)
