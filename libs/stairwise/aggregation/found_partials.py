"""What a way of looking back finds: the partials of the steps of a stair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stairwise.expressions.views import Ints


@dataclass(frozen=True)
class Found:
    """Partials of steps: those of step i are rows ``start[i]`` to ``stop[i]``, by key."""

    start: Ints
    stop: Ints
    key: npt.NDArray[np.integer]
    columns: list[pa.Array | None]
    """None stands for counts of which it is only asked whether they are zero, and none is."""
    is_shared: bool
    """May several steps have the same rows? Then they are all of one time."""

    def times(self, times: Ints) -> Ints:
        """For each row the time of its steps; one for all where they have the same."""
        return times[:1] if self.is_shared else np.repeat(times, self.stop - self.start)
