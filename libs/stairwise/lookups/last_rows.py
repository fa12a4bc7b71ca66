"""What a window holds of each partition: a stretch of its rows, told by time or by number.

    [RANGE w]    rear < ts ≤ front                 the same for all partitions

    [ROWS 5]     partition 0   ──●──●────●────●│   the last five of all partitions, in stream order: of each
                 partition 1   ────────●───●──●│   partition the rows with the numbers first to end − 1
                                    └── 5 ────┘

A window by rows is cut by time as closely as time can: some instant t has fewer than n rows after it and n or more
from it on. Rows at t itself are told apart by their partition and number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from stairwise.expressions.views import Ints
from stairwise.lookups.extent import WindowExtent
from stairwise.lookups.partition_history import PartitionHistory
from stairwise.lookups.statement import Lookup
from stairwise.schema import Instant
from stairwise.windows.spec import PartitionedWindow, RowsWindow


def extents(lookup: Lookup, at: Instant, histories: Mapping[int, PartitionHistory]) -> list[WindowExtent]:
    """What the window holds of each partition at T, where all partitions are held here."""
    if not isinstance(lookup.window, RowsWindow):
        return [_by_time(lookup, at)] * len(histories)
    counts = last_of_all(histories, at, lookup.window.rows + lookup.lag)
    skips = last_of_all(histories, at, lookup.lag) if lookup.lag else {}
    return [extent_at(lookup, at, kept, counts[number], skips.get(number, 0)) for number, kept in histories.items()]


def extent_at(lookup: Lookup, at: Instant, history: PartitionHistory, count: int, skip: int) -> WindowExtent:
    """The same for one partition; ``count`` of its rows reach back to the rear of a window by rows, ``skip`` of them
    are left out by LAG.
    """
    if not isinstance(lookup.window, RowsWindow):
        return _by_time(lookup, at)
    end = history.number_at(at)
    return history.extent_of(end - count, end - skip)


def _by_time(lookup: Lookup, at: Instant) -> WindowExtent:
    extent = WindowExtent(*lookup.span(at))
    if isinstance(lookup.window, PartitionedWindow):
        return replace(extent, each=lookup.window.rows, lag=lookup.lag)
    return extent


def last_of_all(histories: Mapping[int, PartitionHistory], at: Instant, count: int) -> dict[int, int]:
    """How many rows of each partition are among the last ``count`` of all, in the order of the stream."""
    cuts = next(iter(histories.values())).cuts  # what is true at T stays true, so one partition may remember it for all
    if (at, count) not in cuts:
        counts = _last_of_all(histories, at, count)
        cuts[at, count] = counts
    return cuts[at, count]


def _last_of_all(histories: Mapping[int, PartitionHistory], at: Instant, count: int) -> dict[int, int]:
    ends = {number: history.number_at(at) for number, history in histories.items()}
    if sum(ends.values()) <= count or len(ends) == 1:
        return {number: min(end, count) for number, end in ends.items()}

    def from_on(instant: Instant) -> int:
        return sum(end - histories[number].number_at(instant - 1) for number, end in ends.items())

    # There are ``count`` rows or more from ``low`` on, and fewer from ``high`` on. Rows come about as often at one time
    # as at another, so the instant between is guessed by that; every other time it is the middle.
    low = min(histories[number].time_of(max(0, end - count)) for number, end in ends.items())
    high = at + 1
    rows_low, rows_high = from_on(low), 0
    is_guess = True
    while high - low > 1:
        share = (rows_low - count + 0.5) / (rows_low - rows_high) if is_guess else 0.5
        tried = min(max(low + int(share * (high - low)), low + 1), high - 1)
        is_guess = not is_guess
        rows = from_on(tried)
        if rows >= count:
            low, rows_low = tried, rows
        else:
            high, rows_high = tried, rows
    counts = {number: end - histories[number].number_at(low) for number, end in ends.items()}
    left = count - sum(counts.values())
    for number in sorted(ends, reverse=True):  # of equal times, the row of the higher partition is the later one
        at_low = min(left, histories[number].number_at(low) - histories[number].number_at(low - 1))
        counts[number] += at_low
        left -= at_low
    return counts


def among_the_last(times: Mapping[int, Ints], count: int) -> dict[int, int]:
    """The same from the times of the last ``count`` rows of each partition, wherever they are."""
    numbers = sorted(times)
    every = np.concatenate([times[number] for number in numbers])
    partition = np.repeat(numbers, [len(times[number]) for number in numbers])
    last = partition[np.lexsort([partition, every])[-count:]] if count else partition[:0]
    return {number: int(np.count_nonzero(last == number)) for number in numbers}
