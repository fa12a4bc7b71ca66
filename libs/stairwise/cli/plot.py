"""A value over time, drawn in a terminal: one line for each group, in braille dots.

    1,200 ⢀⡠⠔⠊⠉⠑⠢⡀
          ⠊      ⠈⠢⡀        a character is 2 dots wide and 4 high
      300            ⠉⠒     times go from left to right, the newest report at the right edge

Lines remember so many reports; then the oldest fall out at the left.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from stairwise.algebra.query import Emit
from stairwise.cli.live import cell_text, clock
from stairwise.client import Update
from stairwise.errors import NotFoundError, StairwiseError
from stairwise.schema import Column, Instant

KEPT = 2_000
"""How many reports a line remembers."""
MOST_LINES = 6
STYLES = ("cyan", "yellow", "green", "magenta", "red", "blue")
HEIGHT = 12

_BLANK = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot of a braille character, by row and column."""

Point = tuple[Instant, float]


@dataclass
class _Line:
    points: deque[Point] = field(default_factory=lambda: deque(maxlen=KEPT))


class Plot:
    """Takes reports in, and draws one column of them; ``column`` None: the first that is a number."""

    def __init__(self, query: str, column: str | None = None) -> None:
        self.reports = 0
        self._query = query
        self._wanted = column
        self._lines: dict[str, _Line] = {}
        self._time: Instant | None = None

    def apply(self, update: Update, emit: Emit) -> None:
        """Take the next report in: of changes, what has entered."""
        column = plotted(self._query, update.columns, self._wanted)
        self._wanted = column.name
        keys = [c.name for c in update.columns if not c.type.is_numeric]
        self.reports += 1
        self._time = update.time
        for change in update.changes:
            value = change.row[column.name]
            if isinstance(value, int | float) and math.isfinite(value) and (change.diff > 0 or emit is Emit.DSTREAM):
                name = " ".join(cell_text(change.row[key]) for key in keys)
                self._lines.setdefault(name, _Line()).points.append((update.time, float(value)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._time is None:
            yield Text.assemble((self._query, "bold"), ("  waiting for the first report", "dim"))
            return
        yield Text.assemble(
            (f"{self._query}.{self._wanted}", "bold"), f"  {clock(self._time)}", (f"  report {self.reports}", "dim")
        )
        shown = sorted(self._lines.items(), key=lambda line: -abs(line[1].points[-1][1]))[:MOST_LINES]
        if shown:
            yield Group(*_drawn(shown, options.max_width, min(HEIGHT, max(4, options.height or HEIGHT))))
        if len(self._lines) > MOST_LINES:
            yield Text(f"… and {len(self._lines) - MOST_LINES} more", style="dim")


def plotted(query: str, columns: Sequence[Column], wanted: str | None) -> Column:
    """The column to draw."""
    numbers = {column.name: column for column in columns if column.type.is_numeric}
    if wanted is None:
        if not numbers:
            raise StairwiseError(f"query {query!r} has no column that is a number", hint="leave --plot out for a table")
        return next(iter(numbers.values()))
    if wanted not in numbers:
        raise NotFoundError("column of numbers", wanted, numbers)
    return numbers[wanted]


def _drawn(lines: Sequence[tuple[str, _Line]], width: int, height: int) -> Iterator[Text]:
    low = min(value for _, line in lines for _, value in line.points)
    high = max(value for _, line in lines for _, value in line.points)
    first = min(line.points[0][0] for _, line in lines)
    last = max(line.points[-1][0] for _, line in lines)
    labels = [cell_text(high), cell_text(low)]
    margin = max(map(len, labels)) + 1
    canvas = _Canvas(max(10, width - margin - 1), height)
    for number, (_, line) in reversed(list(enumerate(lines))):
        canvas.draw([_place(canvas, point, (first, last), (low, high)) for point in line.points], number)
    for row, text in enumerate(canvas.rows()):
        label = labels[0] if row == 0 else labels[1] if row == height - 1 else ""
        yield Text.assemble((label.rjust(margin - 1) + " ", "dim"), text)
    for number, (name, line) in enumerate(lines):
        value = cell_text(line.points[-1][1])
        yield Text.assemble(("━ ", STYLES[number]), name, " " if name else "", (value, "bold"))


def _place(canvas: _Canvas, point: Point, times: tuple[float, float], values: tuple[float, float]) -> tuple[int, int]:
    """The dot of a point: x to the right, y downwards."""
    across = (point[0] - times[0]) / ((times[1] - times[0]) or 1)
    upwards = (point[1] - values[0]) / ((values[1] - values[0]) or 1) if values[1] > values[0] else 0.5
    return round(across * (canvas.dots_wide - 1)), round((1 - upwards) * (canvas.dots_high - 1))


class _Canvas:
    """Dots, each with the number of the line that it belongs to."""

    def __init__(self, width: int, height: int) -> None:
        self.dots_wide, self.dots_high = 2 * width, 4 * height
        self._bits = [[0] * width for _ in range(height)]
        self._owner = [[0] * width for _ in range(height)]

    def draw(self, dots: Sequence[tuple[int, int]], number: int) -> None:
        """A line through the dots."""
        for (x0, y0), (x1, y1) in zip(dots, dots[1:] or dots, strict=False):
            steps = max(abs(x1 - x0), abs(y1 - y0), 1)
            for step in range(steps + 1):
                self._set(round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps), number)

    def _set(self, x: int, y: int, number: int) -> None:
        self._bits[y // 4][x // 2] |= _DOTS[y % 4][x % 2]
        self._owner[y // 4][x // 2] = number

    def rows(self) -> Iterator[Text]:
        for bits, owners in zip(self._bits, self._owner, strict=True):
            row = Text()
            for cell, owner in zip(bits, owners, strict=True):
                row.append(chr(_BLANK + cell) if cell else " ", STYLES[owner] if cell else None)
            yield row
