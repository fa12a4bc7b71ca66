"""Watermarks by partition, and the minimum that reports wait for."""

from __future__ import annotations

from stairwise.operators.progress import Progress
from stairwise.schema import DAWN, DUSK


def test_a_partition_that_has_said_nothing_holds_everything_back() -> None:
    progress = Progress({"s": 2})
    progress.reached("s", 0, 100)
    assert progress.watermark() == DAWN


def test_the_watermark_is_the_minimum_over_all_partitions_of_the_streams_asked_for() -> None:
    progress = Progress({"s": 2, "t": 1})
    progress.reached("s", 0, 100)
    progress.reached("s", 1, 70)
    progress.reached("t", 0, 50)
    assert progress.watermark(["s"]) == 70
    assert progress.watermark() == 50


def test_watermarks_never_go_back() -> None:
    progress = Progress({"s": 1})
    progress.reached("s", 0, 100)
    progress.reached("s", 0, 90)
    assert progress.watermark() == 100


def test_a_sealed_partition_holds_nothing_back() -> None:
    progress = Progress({"s": 2})
    progress.reached("s", 0, 100)
    progress.seal("s", 1)
    assert progress.watermark() == 100
    progress.seal("s")
    assert progress.watermark() == DUSK
    assert progress.is_sealed(["s"])


def test_the_first_and_last_row_of_the_streams_are_kept() -> None:
    progress = Progress({"s": 1, "t": 1})
    assert progress.rows_between(["s"]) == (DUSK, DAWN)
    progress.saw_rows("s", 5, 9)
    progress.saw_rows("s", 3, 4)
    progress.saw_rows("t", 7, 20)
    assert progress.rows_between(["s"]) == (3, 9)
    assert progress.rows_between(["s", "t"]) == (3, 20)


def test_progress_survives_as_bytes() -> None:
    progress = Progress({"s": 2})
    progress.saw_rows("s", 5, 9)
    progress.reached("s", 0, 8)
    progress.seal("s", 1)
    again = Progress.from_bytes(progress.to_bytes())
    assert again.watermark() == 8
    assert again.rows_between(["s"]) == (5, 9)
