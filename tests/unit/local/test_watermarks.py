"""Watermarks by partition, and the minimum that reports wait for."""

from __future__ import annotations

from stairwise.local.watermarks import Watermarks
from stairwise.schema import DAWN, DUSK


def test_a_partition_that_has_said_nothing_holds_everything_back() -> None:
    watermarks = Watermarks({"s": 2})
    watermarks.reached("s", 0, 100)
    assert watermarks.watermark(["s"]) == DAWN


def test_the_watermark_is_the_minimum_over_all_partitions_of_the_streams_asked_for() -> None:
    watermarks = Watermarks({"s": 2, "t": 1})
    watermarks.reached("s", 0, 100)
    watermarks.reached("s", 1, 70)
    watermarks.reached("t", 0, 50)
    assert watermarks.watermark(["s"]) == 70
    assert watermarks.watermark(["s", "t"]) == 50


def test_watermarks_never_go_back() -> None:
    watermarks = Watermarks({"s": 1})
    watermarks.reached("s", 0, 100)
    watermarks.reached("s", 0, 90)
    assert watermarks.watermark(["s"]) == 100


def test_a_sealed_stream_holds_nothing_back() -> None:
    watermarks = Watermarks({"s": 2, "t": 1})
    watermarks.seal("s")
    watermarks.reached("t", 0, 100)
    assert watermarks.watermark(["s"]) == DUSK
    assert watermarks.watermark(["s", "t"]) == 100
