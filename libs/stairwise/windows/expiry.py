"""When a row leaves a window: expiration times and orders, known as soon as the row is there (seed 002).

    [RANGE w SLIDE b]   ●────────── w ──────────┤         the row's time + w + lag ...
                        ts                      └──▶ τ    ... at the first report time from there on

    [ROWS n]            ρ  ρ+1  ρ+2  ...  ρ+n             the row with number ρ leaves when row ρ+n comes

So nothing that a window lets go has to be announced by a negative tuple, and a result made of several rows lives
until the first of them expires. What follows for whole plans is in ``cql.patterns``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stairwise.schema import DUSK
from stairwise.windows.spec import MultiWindow, PartitionedWindow, RowsWindow, TimeWindow

Times = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]

NEVER = DUSK
"""The expiration time, or order, of what stays for ever."""


def admission_reports(window: TimeWindow, times: Times) -> Times:
    """The first report time that shows each row, unless it has expired by then (a slide beyond the range)."""
    return _first_reports(times + window.lag, window.slide, window.offset)


def expiration_times(window: TimeWindow, times: Times) -> Times:
    """From when on no state can hold each row: in the order of the rows themselves (proposition 2)."""
    return times + (window.lag + window.range)


def expiration_reports(window: TimeWindow, times: Times) -> Times:
    """The first report time that no longer shows each row."""
    return _first_reports(expiration_times(window, times), window.slide, window.offset)


def level_expiration_reports(window: MultiWindow, level: int, times: Times) -> Times:
    """The first report of a level that no longer shows each row."""
    return _first_reports(times + window.levels[level].range, window.levels[level].slide, 0)


def _first_reports(instants: Times, slide: int, offset: int) -> Times:
    return instants + (offset - instants) % slide


def landmark_expirations(times: Times) -> Times:
    """What a landmark has once held it holds for ever (proposition 4); RETAIN lets go by rows instead."""
    return np.full(len(times), NEVER, dtype=np.int64)


def expiration_orders(window: RowsWindow, numbers: Numbers) -> Numbers:
    """The number of the row whose admission expels each row: ρ + n (proposition 5)."""
    return numbers + window.rows


def partitioned_expiration_orders(window: PartitionedWindow, codes: Numbers) -> Numbers:
    """The same where each partition counts for itself: the position of the row that expels each row.

    ``codes`` are the partitions of rows in stream order and positions count from 0 within them; NEVER where
    the n-th row after it in its partition has not come.
    """
    expelled_by = np.full(len(codes), NEVER, dtype=np.int64)
    by_partition = np.argsort(codes, kind="stable")
    if len(codes) > window.rows:
        earlier, later = by_partition[: -window.rows], by_partition[window.rows :]
        same = codes[earlier] == codes[later]
        expelled_by[earlier[same]] = later[same]
    return expelled_by


def joint_expirations(*expirations: Times) -> Times:
    """When results made of several rows expire: with the first of their parts. Only times can be compared so;
    the orders of different streams cannot, and a join over row windows carries one for each side."""
    first: Times = np.minimum.reduce(expirations)
    return first
