"""The rows that a partitioned window holds, on a timeline that fits on one line."""

from __future__ import annotations

import numpy as np

from stairwise.windows.scope import partitioned_scope
from stairwise.windows.spec import PartitionedWindow


def test_a_partitioned_window_holds_the_last_n_of_each_partition_in_stream_order() -> None:
    codes = np.array([0, 1, 0, 0, 2, 1, 0, 1])
    assert partitioned_scope(PartitionedWindow(("a",), 2, 1000), codes).tolist() == [3, 4, 5, 6, 7]
    assert partitioned_scope(PartitionedWindow(("a",), 9, 1000), codes).tolist() == list(range(8))
    assert partitioned_scope(PartitionedWindow(("a",), 2, 1000), codes[:0]).tolist() == []
