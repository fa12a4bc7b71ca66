"""A query's answer on a terminal, as it changes."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from stairwise.algebra.query import Emit
from stairwise.client import Update
from stairwise.schema import Column, Instant

MOST_ROWS = 40
"""How many rows a table shows; it says how many it leaves out."""


class LiveAnswer:
    """The latest answer of a query: for RSTREAM the last report, for CHANGES what the changes add up to.

    For ISTREAM and DSTREAM there is no answer to be had, so the last changes are shown.
    """

    def __init__(self, query: str) -> None:
        self.reports = 0
        self.time: Instant | None = None
        self._query = query
        self._columns: tuple[Column, ...] = ()
        self._rows: Counter[tuple[object, ...]] = Counter()

    def apply(self, update: Update, emit: Emit) -> None:
        """Take the next report in."""
        self.reports += 1
        self.time = update.time
        self._columns = update.columns
        rows = [tuple(change.row[c.name] for c in update.columns) for change in update.changes]
        if emit is not Emit.CHANGES or update.snapshot:
            if emit in (Emit.ISTREAM, Emit.DSTREAM) and not rows:
                return
            self._rows.clear()
        for change, row in zip(update.changes, rows, strict=True):
            self._rows[row] += 1 if emit is Emit.DSTREAM else change.diff
            if not self._rows[row]:
                del self._rows[row]

    def __rich__(self) -> Group:
        if self.time is None:
            return Group(Text.assemble((self._query, "bold"), ("  waiting for the first report", "dim")))
        title = Text.assemble((self._query, "bold"), f"  {clock(self.time)}", (f"  report {self.reports}", "dim"))
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in self._columns:
            table.add_column(column.name, justify="right" if column.type.is_numeric else "left")
        rows = [row for row, count in self._rows.items() for _ in range(count)]
        for row in rows[:MOST_ROWS]:
            table.add_row(*map(cell_text, row))
        if len(rows) > MOST_ROWS:
            table.add_row(Text(f"… and {len(rows) - MOST_ROWS} more", style="dim"))
        return Group(title, table)


def cell_text(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def clock(time: Instant) -> str:
    """An instant as people read it; one that no calendar has as its number."""
    try:
        moment = datetime.datetime.fromtimestamp(time / 1000, datetime.UTC)
    except (OverflowError, ValueError, OSError):
        return str(time)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{time % 1000:03d}Z"


def plain_line(query: str, time: Instant, cells: Sequence[object]) -> str:
    """A row where there is no terminal to draw on."""
    return f"{clock(time)}  {query}  " + "  ".join(map(cell_text, cells))
