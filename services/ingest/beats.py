"""Whether a watermark moves anything: a mark that makes no report due is a message that everybody reads for nothing.

every fifth of a second     ·   ·   ·   ·   ·   ·   ·   ·   ·   ·   ·
SLIDE 1 SECOND              ●                   ●                   ●    the marks that are worth writing
"""

from __future__ import annotations

from dataclasses import dataclass

from stairwise.algebra.query import inputs
from stairwise.schema import Duration, Instant, Stream
from stairwise.windows.schedule import Grid, report_grids, without_covered
from stairwise.windows.spec import RelationWindow
from stairwise.wire.plans import PlanCatalogue

UNREAD: Duration = 10_000
"""How far apart the marks of an idle partition are, in milliseconds, where only lookups may ask for its stream."""


@dataclass(frozen=True)
class Beat:
    """When the queries over a stream have something to say."""

    grids: frozenset[Grid]
    by_row: bool
    """Does a row alone make one report, whatever its time?"""

    def moves(self, before: Instant, after: Instant) -> bool:
        """Does a watermark that rises so make anything due?"""
        return any((due := grid.at_or_before(after)) is not None and due > before for grid in self.grids)


class Beats:
    """Those of all streams, at the newest plan version that was asked for."""

    def __init__(self) -> None:
        self._version = -1
        self._known: dict[Stream, Beat] = {}

    def of(self, stream: Stream, plans: PlanCatalogue) -> Beat:
        if plans.version != self._version:
            self._version, self._known = plans.version, {}
        if stream not in self._known:
            self._known[stream] = beat_of(stream, plans)
        return self._known[stream]


def beat_of(stream: Stream, plans: PlanCatalogue) -> Beat:
    """Lookups want to know of every granule, while anybody takes an interest in the stream."""
    windows = [i.window for r in plans.readers(stream) for i in inputs(r.query.relation)]
    if not windows:
        return Beat(frozenset({Grid(max(stream.granule, UNREAD))}), by_row=False)
    grids = {grid for window in windows for grid in report_grids(window)} | {Grid(stream.granule)}
    by_row = any(not report_grids(w) and not isinstance(w, RelationWindow) for w in windows)
    return Beat(frozenset(without_covered(grids)), by_row)
