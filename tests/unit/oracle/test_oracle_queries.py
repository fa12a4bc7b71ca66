"""The oracle on cases that were worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.oracle import Line, OracleRow, evaluate

S = 1000
STREAMS = """
    CREATE STREAM trades (ts TIMESTAMP, ticker STRING, qty BIGINT) TIMESTAMP BY ts;
    CREATE STREAM quotes (ts TIMESTAMP, ticker STRING, price DOUBLE) TIMESTAMP BY ts;
"""


def rows(*data: tuple[object, ...]) -> list[OracleRow]:
    """Rows of (seconds, value, ...) in one partition."""
    made = []
    for sequence, (seconds, *values) in enumerate(data):
        ts = round(float(seconds) * S)  # type: ignore[arg-type]
        made.append(OracleRow(ts, 0, sequence, (ts, *values)))  # type: ignore[arg-type]
    return made


def lines(select: str, trades: list[OracleRow], quotes: Iterable[OracleRow] = (), **asked: int) -> list[Line]:
    return evaluate(STREAMS + select, {"trades": trades, "quotes": list(quotes)}, **asked)


def said(select: str, trades: list[OracleRow], quotes: Iterable[OracleRow] = (), **asked: int) -> list[tuple]:
    """Lines as (seconds, diff, value, ...): easier on the eye."""
    found = lines(select, trades, quotes, **asked)
    return [(line["time"] / S, line["diff"], *line["row"].values()) for line in found]


FOUR = rows((1, "A", 10), (4, "B", 20), (10, "A", 5), (12, "A", 1))


def test_a_sliding_sum_reports_from_the_first_row_to_the_first_time_past_the_last() -> None:
    select = "SELECT SUM(qty), COUNT(*) FROM trades [RANGE 10s SLIDE 5s]"
    assert said(select, FOUR) == [(5, 1, 30, 2), (10, 1, 35, 3), (15, 1, 6, 2)]


def test_rear_is_excluded_and_front_included() -> None:
    data = rows((0, "A", 1), (5, "A", 2), (10, "A", 4))
    assert said("SELECT SUM(qty) FROM trades [TUMBLE 5s]", data) == [(0, 1, 1), (5, 1, 2), (10, 1, 4)]


def test_groups_are_ordered_by_key_and_vanish_when_empty() -> None:
    data = rows((1, "B", 1), (1, "A", 2), (2, None, 4), (9, "B", 8))
    select = "SELECT ticker, SUM(qty) FROM trades [TUMBLE 5s] GROUP BY ticker"
    assert said(select, data) == [(5, 1, None, 4), (5, 1, "A", 2), (5, 1, "B", 1), (10, 1, "B", 8)]


def test_a_global_aggregate_of_an_empty_window_is_one_row() -> None:
    data = rows((1, "A", 1), (21, "A", 2))
    select = "SELECT COUNT(*), SUM(qty) FROM trades [RANGE 5s SLIDE 10s]"
    assert said(select, data) == [(10, 1, 0, None), (20, 1, 0, None), (30, 1, 0, None)]


def test_having_sees_the_group_row() -> None:
    grouped = "FROM trades [RANGE 10s SLIDE 5s] GROUP BY ticker"
    select = f"SELECT ticker, SUM(qty) AS total {grouped} HAVING total > 15"
    assert said(select, FOUR) == [(5, 1, "B", 20), (10, 1, "B", 20)]


def test_lag_shows_the_past_and_sealing_does_not_wait_for_it() -> None:
    assert said("SELECT SUM(qty) FROM trades [TUMBLE 5s LAG 5s]", FOUR) == [(5, 1, None), (10, 1, 30), (15, 1, 5)]


def test_a_query_that_joins_late_begins_above_its_point_and_sees_what_is_above_its_horizon() -> None:
    select = "SELECT SUM(qty) FROM trades [RANGE 10s SLIDE 5s]"
    assert said(select, FOUR, after=5 * S, horizon=3 * S) == [(10, 1, 25), (15, 1, 6)]


def test_without_sealing_reports_end_at_the_watermark() -> None:
    assert said("SELECT SUM(qty) FROM trades [RANGE 10s SLIDE 5s]", FOUR, sealed=False) == [(5, 1, 30), (10, 1, 35)]


def test_without_rows_there_are_no_reports() -> None:
    assert said("SELECT COUNT(*) FROM trades [RANGE 10s SLIDE 5s]", []) == []


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        (
            "RSTREAM",
            [(5, 1, "A"), (5, 1, "B"), (10, 1, "A"), (10, 1, "A"), (10, 1, "B"), (15, 1, "A"), (15, 1, "A")],
        ),
        ("ISTREAM", [(5, 1, "A"), (5, 1, "B"), (10, 1, "A")]),
        ("DSTREAM", [(15, -1, "B")]),
        ("CHANGES", [(5, 1, "A"), (5, 1, "B"), (10, 1, "A"), (15, -1, "B")]),
    ],
)
def test_emit_shows_answers_or_their_differences_by_value(emit: str, expected: list[tuple]) -> None:
    assert said(f"SELECT ticker FROM trades [RANGE 10s SLIDE 5s] EMIT {emit}", FOUR) == expected


def test_what_leaves_comes_before_what_enters() -> None:
    select = "SELECT ticker, SUM(qty) FROM trades [TUMBLE 5s] GROUP BY ticker EMIT CHANGES"
    data = rows((1, "A", 9), (7, "A", 1), (7, "B", 2))
    assert said(select, data) == [
        (5, 1, "A", 9),
        (10, -1, "A", 9),
        (10, 1, "A", 1),
        (10, 1, "B", 2),
    ]


def test_of_equal_rows_those_with_the_smaller_group_keys_cancel() -> None:
    """The sums 5, 6, 5 of A, B, C become the 5 of D: A's 5 cancels, so C's leaves after B's 6."""
    select = "SELECT SUM(qty) FROM trades [TUMBLE 5s] GROUP BY ticker EMIT CHANGES"
    data = rows((1, "A", 5), (1, "B", 6), (1, "C", 5), (7, "D", 5))
    assert said(select, data) == [
        (5, 1, 5),
        (5, 1, 6),
        (5, 1, 5),
        (10, -1, 6),
        (10, -1, 5),
    ]


def test_distinct_counts_null_as_one_value() -> None:
    data = rows((1, None, 1), (2, "A", 1), (3, None, 2), (4, "A", 3))
    assert said("SELECT DISTINCT ticker FROM trades [TUMBLE 5s]", data) == [(5, 1, None), (5, 1, "A")]


def test_a_join_never_matches_null() -> None:
    select = """
        SELECT a.qty, b.price FROM trades [RANGE 10s SLIDE 5s] a JOIN quotes [TUMBLE 5s] b ON a.ticker = b.ticker
        EMIT RSTREAM
    """
    trades = rows((1, "A", 1), (2, None, 2), (7, "A", 3))
    quotes = rows((3, "A", 0.5), (4, None, 1.5), (8, "A", 2.5))
    assert said(select, trades, quotes) == [(5, 1, 1, 0.5), (10, 1, 1, 2.5), (10, 1, 3, 2.5)]


def test_windows_with_different_slides_report_at_the_union_each_as_of_its_own_last_time() -> None:
    select = """
        SELECT ticker FROM trades [RANGE 100s SLIDE 2s] UNION ALL SELECT ticker FROM quotes [RANGE 100s SLIDE 5s]
    """
    trades = rows((1, "t1", 1), (3, "t3", 1), (6, "t6", 1))
    quotes = rows((1, "q1", 0.5), (6, "q6", 0.5))
    assert said(select, trades, quotes) == [
        (2, 1, "t1"),
        (4, 1, "t3"),
        (5, 1, "q1"),
        (6, 1, "t6"),
    ]


def test_except_is_a_difference_of_multisets() -> None:
    select = "SELECT ticker FROM trades [TUMBLE 5s] EXCEPT SELECT ticker FROM quotes [TUMBLE 5s]"
    trades = rows((1, "A", 1), (2, "A", 1), (3, "A", 1), (3, None, 1))
    quotes = rows((1, "A", 0.5), (2, "B", 0.5), (3, None, 0.5))
    assert said(select, trades, quotes) == [(5, 1, "A"), (5, 1, "A")]


def test_a_landmark_grows_and_stops_reporting_past_its_end() -> None:
    data = rows((1, "A", 1), (3, "A", 2), (12, "A", 4), (13, "A", 8), (30, "A", 16))
    assert said("SELECT SUM(qty) FROM trades [FROM 3000 UNTIL 12000 SLIDE 5s]", data) == [
        (5, 1, 2),
        (10, 1, 2),
        (15, 1, 6),
    ]


def test_a_finished_landmark_keeps_its_state_beside_a_window_that_goes_on() -> None:
    landmark = "SELECT SUM(qty) FROM trades [FROM 0 UNTIL 5000 SLIDE 5s]"
    going_on = "SELECT SUM(qty) FROM trades [TUMBLE 5s]"
    data = rows((1, "A", 1), (7, "A", 2), (12, "A", 4))
    assert said(f"{landmark} UNION ALL {going_on} EMIT RSTREAM", data) == [
        (5, 1, 1),
        (5, 1, 1),
        (10, 1, 1),
        (10, 1, 2),
        (15, 1, 1),
        (15, 1, 4),
    ]


def test_retain_keeps_the_last_rows_of_a_landmark() -> None:
    data = rows((1, "A", 1), (3, "B", 2), (4, "C", 4), (6, "D", 8))
    assert said("SELECT ticker FROM trades [FROM 2000 SLIDE 5s RETAIN 2 ROWS]", data) == [
        (5, 1, "B"),
        (5, 1, "C"),
        (10, -1, "B"),
        (10, 1, "D"),
    ]


def test_a_rows_window_reports_at_every_mth_row() -> None:
    data = rows((1, "A", 1), (1, "A", 2), (2, "A", 4), (5, "A", 8), (6, "A", 16))
    assert said("SELECT SUM(qty) FROM trades [ROWS 3 SLIDE 2]", data) == [(1, 1, 3), (5, 1, 14)]


def test_rows_of_one_instant_report_one_after_the_other() -> None:
    data = rows((1, "A", 1), (1, "A", 2), (1, "A", 4))
    assert said("SELECT SUM(qty) FROM trades [ROWS 2]", data) == [(1, 1, 1), (1, 1, 3), (1, 1, 6)]


def test_where_comes_after_a_rows_window() -> None:
    data = rows((1, "A", 1), (2, "A", 2), (3, "B", 4))
    assert said("SELECT qty FROM trades [ROWS 2 SLIDE 5s] WHERE ticker = 'A'", data) == [(5, 1, 2)]


def test_a_row_slide_beside_a_time_slide_keeps_the_order_of_moments() -> None:
    select = "SELECT qty FROM trades [ROWS 1] UNION ALL SELECT qty FROM trades [TUMBLE 5s] EMIT RSTREAM"
    data = rows((1, "A", 1), (5, "A", 2), (5, "A", 4))
    assert said(select, data) == [
        (1, 1, 1),
        (5, 1, 1),
        (5, 1, 2),
        (5, 1, 2),
        (5, 1, 4),
        (5, 1, 1),
        (5, 1, 2),
        (5, 1, 4),
        (5, 1, 4),
    ]


def test_a_partitioned_window_keeps_the_last_rows_of_each_partition_for_ever() -> None:
    select = "SELECT ticker, qty FROM trades [PARTITION BY ticker ROWS 1 SLIDE 5s] EMIT RSTREAM"
    data = rows((1, "A", 1), (2, "B", 2), (3, "A", 4), (9, "B", 8))
    assert said(select, data) == [
        (5, 1, "A", 4),
        (5, 1, "B", 2),
        (10, 1, "A", 4),
        (10, 1, "B", 8),
    ]


def test_the_order_of_rows_is_time_then_partition_then_sequence() -> None:
    data = [
        OracleRow(1 * S, 1, 0, (1 * S, "A", 1)),
        OracleRow(1 * S, 0, 1, (1 * S, "A", 2)),
        OracleRow(1 * S, 0, 0, (1 * S, "A", 4)),
    ]
    assert said("SELECT FIRST(qty), LAST(qty) FROM trades [TUMBLE 5s]", data) == [(5, 1, 4, 1)]


NESTED = "RANGES 8s, 2s SLIDES 4s, 2s"
SIX = rows((1, "A", 1), (3, "A", 2), (4, "B", 4), (5, "A", 8), (7, "B", 16), (8, "A", 32))


def test_each_due_level_reports_with_its_number_finest_first() -> None:
    found = lines(f"SELECT SUM(qty) AS total FROM trades [{NESTED}]", SIX)
    assert [(line["time"] // S, line["row"]) for line in found] == [
        (2, {"level": 0, "total": 1}),
        (4, {"level": 0, "total": 6}),
        (4, {"level": 1, "total": 7}),
        (6, {"level": 0, "total": 8}),
        (8, {"level": 0, "total": 48}),
        (8, {"level": 1, "total": 63}),
    ]


def test_changes_of_a_level_are_between_its_own_reports() -> None:
    found = said(f"SELECT SUM(qty) FROM trades [{NESTED}] EMIT CHANGES", SIX)
    assert found[:5] == [(2, 1, 0, 1), (4, -1, 0, 1), (4, 1, 0, 6), (4, 1, 1, 7), (6, -1, 0, 6)]


def test_weights_apply_to_what_a_level_adds_beyond_the_finer_one() -> None:
    found = said(f"SELECT SUM(qty), COUNT(*), AVG(qty) FROM trades [{NESTED} WEIGHTED BY (1, 0.1)]", SIX)
    assert found[-1] == (8, 1, 1, 49.5, 2.4, 20.625)


def test_a_continuous_horizon_has_no_levels() -> None:
    found = said(f"SELECT SUM(qty) FROM trades [{NESTED} CONTINUOUS HORIZON 3s]", SIX)
    assert [line for line in found if line[0] % 2 == 0] == [(2, 1, 1), (4, 1, 6), (6, 1, 12), (8, 1, 48)]
    assert len(found) == 8


def test_items_recur_that_are_in_every_step() -> None:
    data = rows((1, "A", 1), (3, "C", 2), (5, "B", 4), (7, "A", 8), (7, "B", 8), (8, "D", 16), (8, "B", 1))
    assert said(f"SELECT RECURRING(ticker) FROM trades [{NESTED}]", data)[-5:] == [
        (8, 1, 0, "B", 2),
        (8, 1, 0, "A", 1),
        (8, 1, 0, "D", 1),
        (8, 1, 1, "B", 3),
        (8, 1, 1, "A", 2),
    ]


def test_append_only_selection_has_the_time_of_its_rows() -> None:
    select = "SELECT ticker FROM trades WHERE qty > 4 EMIT CHANGES"
    assert said(select, FOUR) == [(1, 1, "A"), (4, 1, "B"), (10, 1, "A")]


def test_lines_have_exactly_the_four_parts_in_order() -> None:
    (line,) = lines("SELECT COUNT(*) FROM trades [TUMBLE 5s]", rows((1, "A", 1)))
    assert list(line.items()) == [("query", "q1"), ("time", 5000), ("diff", 1), ("row", {"COUNT(*)": 1})]
