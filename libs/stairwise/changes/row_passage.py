"""The way of rows through a window that slides by rows: at which rows' reports they enter it, and at which they leave.

    [ROWS 3 SLIDE 2]     row    1    2    3    4    5    6
                         report      ●         ●         ●        each at its row's time, the ordinal-th of its instant
                         enter       +1 +2     +3 +4     +5 +6
                         leave                 −1        −2 −3    row i leaves at the first report from i + n on

    answers        the rows that enter and leave between moments, by numbers that stand for them
    update         O(1) a row
    lookup         O(rows that move), whatever the window holds
    space          a number for each row that the window holds or will hold, a moment for each report to come
    order          rows in stream order, with all rows of an instant together; moments ascend
    from           seed 002 section 3 (proposition 5: row i is expelled by row i + n) and section 4 (negative tuples)

Which row ends which is known by their numbers alone. So beside another window, which goes by time or by the rows of
another stream, both are in order of expiration, each by its own count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.changes.passage import HIDDEN, Moves
from stairwise.expressions.ranges import expand_ranges
from stairwise.expressions.views import Ints
from stairwise.reports.moments import Moments
from stairwise.state.chains import GrowingInts
from stairwise.windows.schedule import ordinals, row_reports
from stairwise.windows.spec import RowsWindow


class RowPassage:
    """Through a window of the last rows that reports at rows."""

    def __init__(self, window: RowsWindow) -> None:
        assert window.row_slide is not None
        self._window = window
        self._numbers: GrowingInts | None = None
        """By position in the stream, the numbers of rows that the window holds or will hold."""
        self._reported = 0
        """The position behind the last row that was reported."""
        self._reports = np.zeros((3, 0), np.int64)
        """Of each report to come the time, the ordinal, and the position behind its row."""

    def take(self, first: int, times: Ints, numbers: Ints, keys: Sequence[pa.Array]) -> None:
        """Rows in stream order from a position on."""
        if self._numbers is None:
            self._numbers, self._reported = GrowingInts(first), first
        self._numbers.extend(numbers)
        at = row_reports(self._window, first, len(times))
        new = np.stack([times[at], ordinals(times)[at], first + at + 1]).astype(np.int64)
        self._reports = np.concatenate([self._reports, new], axis=1)

    def moves(self, moments: Moments) -> Moves:
        none = np.zeros(0, np.int64)
        place = moments.place_of(self._reports[0], self._reports[1])
        due = int(np.searchsorted(place, len(moments)))
        upto, report = self._reports[2, :due], place[:due]
        self._reports = self._reports[:, due:]
        if self._numbers is None or not due:
            return Moves(none, none, none)
        before = np.concatenate(([self._reported], upto[:-1]))
        rows, lowest = self._window.rows, self._numbers.first
        came, at = self._between(np.maximum(before, upto - rows), upto, report)
        went, when = self._between(np.maximum(before - rows, lowest), np.minimum(before, upto - rows), report)
        self._reported = int(upto[-1])
        self._numbers.drop(self._reported - rows)
        diff = np.repeat([1, -1], [len(came), len(went)])
        return Moves(np.concatenate([came, went]), np.concatenate([at, when]), diff)

    def _between(self, start: Ints, stop: Ints, report: Ints) -> tuple[Ints, Ints]:
        """The numbers of the rows that are shown of some stretches of positions, and the report of each."""
        assert self._numbers is not None
        count = np.maximum(stop - start, 0)
        numbers, report = self._numbers.at(expand_ranges(start, count)), np.repeat(report, count)
        return numbers[numbers != HIDDEN], report[numbers != HIDDEN]

    def numbers(self) -> Ints:
        held = np.zeros(0, np.int64) if self._numbers is None else self._numbers.kept
        found: Ints = held[held != HIDDEN]
        return found

    def renumber(self, numbers: Ints) -> None:
        if self._numbers is not None:
            kept = self._numbers.kept
            kept[kept != HIDDEN] = numbers[kept[kept != HIDDEN]]
