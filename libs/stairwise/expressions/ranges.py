"""Many ranges of whole numbers as one array."""

from __future__ import annotations

import numpy as np

from stairwise.expressions.allowance import must_fit
from stairwise.expressions.views import Ints


def expand_ranges(start: Ints, count: Ints) -> Ints:
    """start[0], start[0]+1, ... count[0] times, then from start[1], and so on."""
    total = int(count.sum())
    must_fit(total)
    before = np.cumsum(count) - count
    places: Ints = np.arange(total) + np.repeat(start - before, count)
    return places
