"""WINDOW_START and WINDOW_END: where the window of a report begins and ends.

answers     WINDOW_START, WINDOW_END, for one time window
class       distributive, subtractable
cost        none beside COUNT(*), whose partial it looks at
order       none
source      seed 002 section 3: (τ−d−w, τ−d]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.aggregates.counts import Count
from stairwise.expressions.views import from_numpy
from stairwise.schema import Duration, Instant


@dataclass(frozen=True)
class WindowEdge(Count):
    """An instant that lies so far before the report."""

    before: Duration

    def lower(self, partials: pa.RecordBatch, at: Instant) -> pa.Array:
        return from_numpy(np.full(partials.num_rows, at - self.before))
