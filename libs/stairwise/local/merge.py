"""The lines of all queries in one order: by time, then by query in order of definition, then as the query has them.

    q1   ●  ●  ●  ●  ●│ ●  ●            every query has blocks of its own and gets ahead of the others;
    q2   ●     ●     ●│    ●            what no query can add to any more goes out
    q3   ●        ●   │
                      └ reached by all

Blocks are drawn from the query that is farthest behind, so that about one block of each query waits at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.reports.emission import Emissions
from stairwise.schema import DAWN, Instant

PIECE = 50_000
"""Lines that wait before some are let out."""


@dataclass(frozen=True)
class QueryLines:
    """Lines of one query, by its number in order of definition."""

    query: int
    lines: Emissions


class Merge:
    """Holds back lines until their turn has come."""

    def __init__(self, queries: int) -> None:
        self._waiting: dict[int, list[Emissions]] = {}
        """By query, in order of time."""
        self._reached: list[Instant] = [DAWN] * queries
        """For each query, up to where all of its lines are here."""
        self._let_out_upto: Instant = DAWN
        self._count = 0

    def drain(
        self, sources: Mapping[int, Iterator[tuple[Instant, Emissions]]], goals: Sequence[Instant]
    ) -> Iterator[list[QueryLines]]:
        """Draw the blocks of the queries in ``sources``, which are all of them, each up to its goal, and let out what
        is in order.

        Each item is a piece of the output: its lines are to be put in order with one another, and stand before
        those of every later item.
        """
        behind = [(self._reached[query], query) for query in sources]
        heapq.heapify(behind)
        done = min(goals, default=DAWN)
        while behind:
            _, query = behind[0]
            drawn = next(sources[query], None)
            if drawn is None:
                heapq.heappop(behind)
                self._reached[query] = goals[query]
                continue
            last, emitted = drawn
            self._reached[query] = max(self._reached[query], last - 1)  # the next block may go on at that time
            heapq.heapreplace(behind, (self._reached[query], query))
            if emitted.rows.num_rows:
                self._waiting.setdefault(query, []).append(emitted)
                self._count += emitted.rows.num_rows
            if self._count > PIECE:
                yield from self._let_out(min(behind[0][0], done))
        yield from self._let_out(done)

    def _let_out(self, upto: Instant) -> Iterator[list[QueryLines]]:
        """The lines up to an instant that every query has reached."""
        if upto <= self._let_out_upto:
            return
        self._let_out_upto = upto
        pieces: list[QueryLines] = []
        for query in sorted(self._waiting):
            kept: list[Emissions] = []
            for block in self._waiting[query]:
                ready = int(np.searchsorted(block.times, upto, side="right"))
                if ready:
                    pieces.append(QueryLines(query, cut(block, 0, ready)))
                if ready < len(block.times):
                    kept.append(cut(block, ready, len(block.times)))
                self._count -= ready
            self._waiting[query] = kept
        self._waiting = {query: blocks for query, blocks in self._waiting.items() if blocks}
        if pieces:
            yield pieces


def cut(lines: Emissions, start: int, stop: int) -> Emissions:
    """Some of the lines."""
    if start == 0 and stop == len(lines.times):
        return lines
    return Emissions(
        lines.times[start:stop],
        lines.ordinals[start:stop],
        lines.diff[start:stop],
        lines.rows.slice(start, stop - start),
        lines.reports,
    )


def in_order(pieces: Sequence[QueryLines]) -> np.ndarray | None:
    """The order of all lines of some pieces, laid end to end; None where they lie in order already.

    The pieces come by query and, of one query, by time: a stable sort by time keeps that.
    """
    if len({piece.query for piece in pieces}) <= 1:
        return None
    times = np.concatenate([piece.lines.times for piece in pieces])
    return np.argsort(times, kind="stable")


def ordered(arrays: Sequence[pa.Array], order: np.ndarray | None) -> pa.Array:
    """Arrays of the pieces as one, in the order of all lines."""
    whole = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    return whole if order is None else whole.take(pa.array(order))
