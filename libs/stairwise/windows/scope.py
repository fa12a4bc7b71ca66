"""Which rows a window holds at τ (seed 002 section 3, seed 003 section III).

A scope is a half-open interval of event time, ``(rear, front]``, so that the rows it holds are one slice of
the sorted timestamps:

    rows   ──●─────●────●───●───●─────●──●──────●────────▶ time
                     (──────────────────────]───────τ
                     rear               front  lag

    TimeWindow         (τ−d−w, τ−d]          half-filled: the rear is never before the query's horizon h
    LandmarkWindow     (t1−1, min(τ, t2)]    either bound may be open; RETAIN n keeps the last n rows of it
    RowsWindow         the last n rows of the stream, whatever their times
    PartitionedWindow  the last n rows of each partition (``partitioned_scope``)
    MultiWindow        per level k (τ−rk, τ]; the levels are nested, each adds one step beyond the finer one

                               (τ−r2        τ−r1     τ−r0         τ]
        step 0                                         (───────────]
        step 1                                (────────]
        step 2                   (────────────]
        level 2 = steps 0 ∪ 1 ∪ 2
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stairwise.windows.spec import PartitionedWindow

Positions = npt.NDArray[np.intp]


def partitioned_scope(window: PartitionedWindow, codes: npt.NDArray[np.intp]) -> Positions:
    """The positions, ascending, of the last n rows of each partition.

    ``codes`` gives for each row that has passed, in stream order, the number of its partition.
    """
    if len(codes) == 0:
        return np.empty(0, dtype=np.intp)
    by_partition = np.argsort(codes, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(codes[by_partition])), len(codes) - 1)
    sizes = np.diff(ends, prepend=-1)
    rank_from_end = np.repeat(ends, sizes) - np.arange(len(codes))
    return np.sort(by_partition[rank_from_end < window.rows])
