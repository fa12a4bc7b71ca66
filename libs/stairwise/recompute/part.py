"""The contract inside an operator: one SELECT of a query, evaluated over many moments at once.

A query is a tree of SELECTs under UNION ALL and EXCEPT. Each SELECT is a part of its own with its own state and its
own algorithm; the operator asks all of them for the same moments and puts their answers together.
"""

from __future__ import annotations

from typing import Protocol

from stairwise.algebra.query import Select
from stairwise.expressions.faults import Faults
from stairwise.expressions.views import Ints
from stairwise.reports.cells import Cells
from stairwise.reports.contract import Batch, Joined
from stairwise.reports.moments import Moments
from stairwise.schema import Instant


class Part(Protocol):
    select: Select
    algorithm: str
    """What it is called in EXPLAIN."""

    def insert(self, batch: Batch, horizon: Instant, faults: Faults) -> None:
        """Rows of one of its streams; those at or below the horizon are in no scope."""

    def joined(self, change: Joined) -> None:
        """The query takes effect, before any row is inserted."""

    def settle(self, watermark: Instant) -> None:
        """No row at or below the watermark follows. Called before the moments up to it are asked for."""

    def row_moments(self) -> tuple[Ints, Ints]:
        """The places (times, ordinals) among the newly settled rows at which its row slides report."""

    def work(self, moments: Moments) -> Ints:
        """About how many rows it takes to answer at each moment, so that blocks can be cut to a bearable size."""

    def answers(self, moments: Moments, faults: Faults) -> Cells:
        """Group rows where the SELECT groups, output rows where it does not; cells ascend.

        A moment is asked for once, in order, and not above the watermark. States are as of the windows' own last
        reports at or before it.
        """

    def evict(self, watermark: Instant) -> None:
        """All moments up to the watermark are behind: drop what none above it can need."""

    def flush(self) -> None:
        """Write back to the store what changed."""
