"""How EXPLAIN shows a query's group."""

from __future__ import annotations

from stairwise.subsumption.drawing import draw
from stairwise.subsumption.grouping import WindowGroups
from stairwise.windows.spec import TimeWindow

S = 1000


def test_bars_are_as_long_as_ranges_and_heavy_where_a_slide_is_new() -> None:
    grouping = WindowGroups()
    for query, wide, slide in [("a", 10, 5), ("b", 10, 5), ("c", 10, 10), ("fast", 20, 5), ("d", 40, 10)]:
        grouping.embed(query, TimeWindow(wide * S, slide * S))
    assert draw(grouping.group_of("fast"), "fast").splitlines() == [
        "group 1: 4 windows of 5 queries",
        " " * 30 + "─────━━━━━┫  RANGE 10 SECONDS  SLIDE 5 SECONDS   seed, 2 queries",
        " " * 30 + "╌╌╌╌╌╌╌╌╌╌┤  RANGE 10 SECONDS  SLIDE 10 SECONDS  piggybacked, 1 report in 2",
        " " * 20 + "───────────────━━━━━┫  RANGE 20 SECONDS  SLIDE 5 SECONDS   enclosing                   ◀ fast",
        "──────────────────────────────━━━━━━━━━━┫  RANGE 40 SECONDS  SLIDE 10 SECONDS  enclosing",
        " " * 40 + "τ",
    ]


def test_a_lag_moves_the_front_and_an_offset_stands_with_the_slide() -> None:
    grouping = WindowGroups()
    grouping.embed("q", TimeWindow(60 * S, 60 * S, lag=5 * S, offset=15 * S))
    assert draw(grouping.group_of("q"), "q").splitlines() == [
        "group 1: 1 window of 1 query",
        "━" * 40 + "┫  RANGE 1 MINUTE  SLIDE 1 MINUTE OFFSET 15 SECONDS  seed  ◀ q",
        "τ − 5 SECONDS".rjust(41),
    ]


def test_a_long_group_is_cut_down_to_its_ends_and_the_query() -> None:
    grouping = WindowGroups()
    for wide in range(1, 101):
        grouping.embed(f"q{wide}", TimeWindow(wide * S, S))
    for slide in range(2, 10):
        grouping.embed(f"r{slide}", TimeWindow(100 * S, slide * S))
    lines = draw(grouping.group_of("q50"), "q50").splitlines()
    assert [line.strip() for line in lines if "⋮" in line] == [
        "⋮   43 windows more",
        "⋮   44 windows more",
        "⋮   8 windows more",
    ]
    assert sum("RANGE" in line for line in lines) == 13
    rider = draw(grouping.group_of("r9"), "r9").splitlines()
    assert [line for line in rider if "RANGE" in line][1].endswith("enclosing")
    assert rider[-2].endswith("◀ r9")
