"""The oracle on cases that were worked out by hand."""

from __future__ import annotations

import pytest

from stairwise.cql.query import (
    Aggregate,
    Emit,
    Except,
    Field,
    Output,
    Select,
    Union,
)
from stairwise.schema import Type
from stairwise.windows.spec import (
    LandmarkWindow,
    Level,
    MultiWindow,
    PartitionedWindow,
    RowsWindow,
    TimeWindow,
)
from tests.oracle import OracleRow, evaluate
from tests.unit.oracle.queries import (
    COUNT,
    QTY,
    QUOTES,
    TICKER,
    TOTAL,
    TRADES,
    S,
    compare,
    const,
    grouping,
    query,
    reading,
    rows,
    selecting,
    shown,
)

FOUR = rows((1, "A", 10), (4, "B", 20), (10, "A", 5), (12, "A", 1))


def test_a_sliding_sum_reports_from_the_first_row_to_the_first_time_past_the_last() -> None:
    window = TimeWindow(10 * S, 5 * S)
    lines = evaluate(query(grouping(reading(TRADES, window), (), TOTAL, COUNT)), {"trades": FOUR})
    assert shown(lines) == [(5, 1, 30, 2), (10, 1, 35, 3), (15, 1, 6, 2)]


def test_rear_is_excluded_and_front_included() -> None:
    data = rows((0, "A", 1), (5, "A", 2), (10, "A", 4))
    lines = evaluate(query(grouping(reading(TRADES, TimeWindow(5 * S, 5 * S)), (), TOTAL)), {"trades": data})
    assert shown(lines) == [(0, 1, 1), (5, 1, 2), (10, 1, 4)]


def test_groups_are_ordered_by_key_and_vanish_when_empty() -> None:
    data = rows((1, "B", 1), (1, "A", 2), (2, None, 4), (9, "B", 8))
    window = TimeWindow(5 * S, 5 * S)
    lines = evaluate(query(grouping(reading(TRADES, window), (TICKER,), TOTAL)), {"trades": data})
    assert shown(lines) == [(5, 1, None, 4), (5, 1, "A", 2), (5, 1, "B", 1), (10, 1, "B", 8)]


def test_a_global_aggregate_of_an_empty_window_is_one_row() -> None:
    data = rows((1, "A", 1), (21, "A", 2))
    window = TimeWindow(5 * S, 10 * S)
    lines = evaluate(query(grouping(reading(TRADES, window), (), COUNT, TOTAL)), {"trades": data})
    assert shown(lines) == [(10, 1, 0, None), (20, 1, 0, None), (30, 1, 0, None)]


def test_having_sees_the_group_row() -> None:
    having = compare(">", Field(1, "a0", Type.HUGEINT), const(15, Type.HUGEINT))
    select = grouping(reading(TRADES, TimeWindow(10 * S, 5 * S)), (TICKER,), TOTAL, having=having)
    lines = evaluate(query(select), {"trades": FOUR})
    assert shown(lines) == [(5, 1, "B", 20), (10, 1, "B", 20)]


def test_lag_shows_the_past_and_sealing_does_not_wait_for_it() -> None:
    window = TimeWindow(5 * S, 5 * S, lag=5 * S)
    lines = evaluate(query(grouping(reading(TRADES, window), (), TOTAL)), {"trades": FOUR})
    assert shown(lines) == [(5, 1, None), (10, 1, 30), (15, 1, 5)]


def test_a_query_that_joins_late_begins_above_its_point_and_sees_what_is_above_its_horizon() -> None:
    select = grouping(reading(TRADES, TimeWindow(10 * S, 5 * S)), (), TOTAL)
    lines = evaluate(query(select), {"trades": FOUR}, after=5 * S, horizon=3 * S)
    assert shown(lines) == [(10, 1, 25), (15, 1, 6)]


def test_without_sealing_reports_end_at_the_watermark() -> None:
    select = grouping(reading(TRADES, TimeWindow(10 * S, 5 * S)), (), TOTAL)
    assert shown(evaluate(query(select), {"trades": FOUR}, sealed=False)) == [(5, 1, 30), (10, 1, 35)]


def test_without_rows_there_are_no_reports() -> None:
    select = grouping(reading(TRADES, TimeWindow(10 * S, 5 * S)), (), COUNT)
    assert evaluate(query(select), {"trades": []}) == []


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        (
            Emit.RSTREAM,
            [(5, 1, "A"), (5, 1, "B"), (10, 1, "A"), (10, 1, "A"), (10, 1, "B"), (15, 1, "A"), (15, 1, "A")],
        ),
        (Emit.ISTREAM, [(5, 1, "A"), (5, 1, "B"), (10, 1, "A")]),
        (Emit.DSTREAM, [(15, -1, "B")]),
        (Emit.CHANGES, [(5, 1, "A"), (5, 1, "B"), (10, 1, "A"), (15, -1, "B")]),
    ],
)
def test_emit_shows_answers_or_their_differences_by_value(emit: Emit, expected: list[tuple]) -> None:
    select = selecting(reading(TRADES, TimeWindow(10 * S, 5 * S)), TICKER)
    assert shown(evaluate(query(select, emit), {"trades": FOUR})) == expected


def test_what_leaves_comes_before_what_enters() -> None:
    select = grouping(reading(TRADES, TimeWindow(5 * S, 5 * S)), (TICKER,), TOTAL)
    data = rows((1, "A", 9), (7, "A", 1), (7, "B", 2))
    assert shown(evaluate(query(select, Emit.CHANGES), {"trades": data})) == [
        (5, 1, "A", 9),
        (10, -1, "A", 9),
        (10, 1, "A", 1),
        (10, 1, "B", 2),
    ]


def test_of_equal_rows_those_with_the_smaller_group_keys_cancel() -> None:
    """The sums 5, 6, 5 of A, B, C become the 5 of D: A's 5 cancels, so C's leaves after B's 6."""
    by_ticker = grouping(reading(TRADES, TimeWindow(5 * S, 5 * S)), (TICKER,), TOTAL)
    select = Select(by_ticker.inputs, by_ticker.outputs[1:], keys=by_ticker.keys, aggregates=by_ticker.aggregates)
    data = rows((1, "A", 5), (1, "B", 6), (1, "C", 5), (7, "D", 5))
    assert shown(evaluate(query(select, Emit.CHANGES), {"trades": data})) == [
        (5, 1, 5),
        (5, 1, 6),
        (5, 1, 5),
        (10, -1, 6),
        (10, -1, 5),
    ]


def test_distinct_counts_null_as_one_value() -> None:
    data = rows((1, None, 1), (2, "A", 1), (3, None, 2), (4, "A", 3))
    select = selecting(reading(TRADES, TimeWindow(5 * S, 5 * S)), TICKER, distinct=True)
    assert shown(evaluate(query(select), {"trades": data})) == [(5, 1, None), (5, 1, "A")]


def test_a_join_never_matches_null() -> None:
    left = reading(TRADES, TimeWindow(10 * S, 5 * S), "a")
    right = reading(QUOTES, TimeWindow(5 * S, 5 * S), "b")
    on = compare("=", Field(1, "ticker", Type.STRING), Field(4, "ticker", Type.STRING))
    outputs = (
        Output("qty", Field(2, "qty", Type.BIGINT)),
        Output("price", Field(5, "price", Type.DOUBLE)),
    )
    trades = rows((1, "A", 1), (2, None, 2), (7, "A", 3))
    quotes = rows((3, "A", 0.5), (4, None, 1.5), (8, "A", 2.5))
    lines = evaluate(query(Select((left, right), outputs, where=on)), {"trades": trades, "quotes": quotes})
    assert shown(lines) == [(5, 1, 1, 0.5), (10, 1, 1, 2.5), (10, 1, 3, 2.5)]


def test_windows_with_different_slides_report_at_the_union_each_as_of_its_own_last_time() -> None:
    fine = selecting(reading(TRADES, TimeWindow(100 * S, 2 * S)), TICKER)
    coarse = selecting(reading(QUOTES, TimeWindow(100 * S, 5 * S)), Field(1, "ticker", Type.STRING))
    data = {
        "trades": rows((1, "t1", 1), (3, "t3", 1), (6, "t6", 1)),
        "quotes": rows((1, "q1", 0.5), (6, "q6", 0.5)),
    }
    assert shown(evaluate(query(Union(fine, coarse), Emit.CHANGES), data)) == [
        (2, 1, "t1"),
        (4, 1, "t3"),
        (5, 1, "q1"),
        (6, 1, "t6"),
    ]


def test_except_is_a_difference_of_multisets() -> None:
    left = selecting(reading(TRADES, TimeWindow(10 * S, 5 * S)), TICKER)
    right = selecting(reading(QUOTES, TimeWindow(10 * S, 5 * S)), Field(1, "ticker", Type.STRING))
    data = {
        "trades": rows((1, "A", 1), (2, "A", 1), (3, "A", 1), (3, None, 1)),
        "quotes": rows((1, "A", 0.5), (2, "B", 0.5), (3, None, 0.5)),
    }
    assert shown(evaluate(query(Except(left, right)), data)) == [(5, 1, "A"), (5, 1, "A")]


def test_a_landmark_grows_and_stops_reporting_past_its_end() -> None:
    window = LandmarkWindow(3 * S, 12 * S, slide=5 * S)
    data = rows((1, "A", 1), (3, "A", 2), (12, "A", 4), (13, "A", 8), (30, "A", 16))
    lines = evaluate(query(grouping(reading(TRADES, window), (), TOTAL)), {"trades": data})
    assert shown(lines) == [(5, 1, 2), (10, 1, 2), (15, 1, 6)]


def test_a_finished_landmark_keeps_its_state_beside_a_window_that_goes_on() -> None:
    landmark = grouping(reading(TRADES, LandmarkWindow(0, 5 * S, slide=5 * S)), (), TOTAL)
    going_on = grouping(reading(TRADES, TimeWindow(5 * S, 5 * S)), (), TOTAL)
    data = rows((1, "A", 1), (7, "A", 2), (12, "A", 4))
    assert shown(evaluate(query(Union(landmark, going_on)), {"trades": data})) == [
        (5, 1, 1),
        (5, 1, 1),
        (10, 1, 1),
        (10, 1, 2),
        (15, 1, 1),
        (15, 1, 4),
    ]


def test_retain_keeps_the_last_rows_of_a_landmark() -> None:
    window = LandmarkWindow(2 * S, None, slide=5 * S, retain=2)
    data = rows((1, "A", 1), (3, "B", 2), (4, "C", 4), (6, "D", 8))
    select = selecting(reading(TRADES, window), TICKER)
    assert shown(evaluate(query(select, Emit.CHANGES), {"trades": data})) == [
        (5, 1, "B"),
        (5, 1, "C"),
        (10, -1, "B"),
        (10, 1, "D"),
    ]


def test_a_rows_window_reports_at_every_mth_row() -> None:
    select = grouping(reading(TRADES, RowsWindow(3, row_slide=2)), (), TOTAL)
    data = rows((1, "A", 1), (1, "A", 2), (2, "A", 4), (5, "A", 8), (6, "A", 16))
    assert shown(evaluate(query(select), {"trades": data})) == [(1, 1, 3), (5, 1, 14)]


def test_rows_of_one_instant_report_one_after_the_other() -> None:
    select = grouping(reading(TRADES, RowsWindow(2, row_slide=1)), (), TOTAL)
    data = rows((1, "A", 1), (1, "A", 2), (1, "A", 4))
    assert shown(evaluate(query(select), {"trades": data})) == [(1, 1, 1), (1, 1, 3), (1, 1, 6)]


def test_where_comes_after_a_rows_window() -> None:
    where = compare("=", TICKER, const("A", Type.STRING))
    select = selecting(reading(TRADES, RowsWindow(2, row_slide=None, time_slide=5 * S)), QTY, where=where)
    data = rows((1, "A", 1), (2, "A", 2), (3, "B", 4))
    assert shown(evaluate(query(select), {"trades": data})) == [(5, 1, 2)]


def test_a_row_slide_beside_a_time_slide_keeps_the_order_of_moments() -> None:
    by_rows = selecting(reading(TRADES, RowsWindow(1, row_slide=1)), QTY)
    by_time = selecting(reading(TRADES, TimeWindow(5 * S, 5 * S)), QTY)
    data = rows((1, "A", 1), (5, "A", 2), (5, "A", 4))
    assert shown(evaluate(query(Union(by_rows, by_time)), {"trades": data})) == [
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
    select = selecting(reading(TRADES, PartitionedWindow(("ticker",), 1, 5 * S)), TICKER, QTY)
    data = rows((1, "A", 1), (2, "B", 2), (3, "A", 4), (9, "B", 8))
    assert shown(evaluate(query(select), {"trades": data})) == [
        (5, 1, "A", 4),
        (5, 1, "B", 2),
        (10, 1, "A", 4),
        (10, 1, "B", 8),
    ]


def test_the_order_of_rows_is_time_then_partition_then_sequence() -> None:
    select = grouping(
        reading(TRADES, TimeWindow(5 * S, 5 * S)),
        (),
        Aggregate("FIRST", (QTY,), Type.BIGINT),
        Aggregate("LAST", (QTY,), Type.BIGINT),
    )
    data = [
        OracleRow(1 * S, 1, 0, (1 * S, "A", 1)),
        OracleRow(1 * S, 0, 1, (1 * S, "A", 2)),
        OracleRow(1 * S, 0, 0, (1 * S, "A", 4)),
    ]
    assert shown(evaluate(query(select), {"trades": data})) == [(5, 1, 4, 1)]


NESTED = MultiWindow((Level(2 * S, 2 * S), Level(8 * S, 4 * S)))
SIX = rows((1, "A", 1), (3, "A", 2), (4, "B", 4), (5, "A", 8), (7, "B", 16), (8, "A", 32))


def test_each_due_level_reports_with_its_number_finest_first() -> None:
    lines = evaluate(query(grouping(reading(TRADES, NESTED), (), TOTAL)), {"trades": SIX})
    assert [(line["time"] // S, line["row"]) for line in lines] == [
        (2, {"level": 0, "a0": 1}),
        (4, {"level": 0, "a0": 6}),
        (4, {"level": 1, "a0": 7}),
        (6, {"level": 0, "a0": 8}),
        (8, {"level": 0, "a0": 48}),
        (8, {"level": 1, "a0": 63}),
    ]


def test_changes_of_a_level_are_between_its_own_reports() -> None:
    lines = evaluate(query(grouping(reading(TRADES, NESTED), (), TOTAL), Emit.CHANGES), {"trades": SIX})
    assert shown(lines)[:5] == [(2, 1, 0, 1), (4, -1, 0, 1), (4, 1, 0, 6), (4, 1, 1, 7), (6, -1, 0, 6)]


def test_weights_apply_to_what_a_level_adds_beyond_the_finer_one() -> None:
    window = MultiWindow(NESTED.levels, weights=(1.0, 0.1))
    total = Aggregate("SUM", (QTY,), Type.DOUBLE)
    average = Aggregate("AVG", (QTY,), Type.DOUBLE)
    count = Aggregate("COUNT", (), Type.DOUBLE)
    lines = evaluate(query(grouping(reading(TRADES, window), (), total, count, average)), {"trades": SIX})
    assert lines[-1]["row"] == {"level": 1, "a0": 49.5, "a1": 2.4, "a2": 20.625}


def test_a_continuous_horizon_has_no_levels() -> None:
    window = MultiWindow(NESTED.levels, horizon=3 * S, granule=2 * S)
    lines = evaluate(query(grouping(reading(TRADES, window), (), TOTAL)), {"trades": SIX})
    assert shown(lines) == [(2, 1, 1), (4, 1, 6), (6, 1, 12), (8, 1, 48)]


def test_items_recur_that_are_in_every_step() -> None:
    recurring = Aggregate("RECURRING", (TICKER,), Type.STRING)
    outputs = (Output("item", Field(0, "item", Type.STRING)), Output("count", Field(1, "count", Type.BIGINT)))
    select = Select((reading(TRADES, NESTED),), outputs, aggregates=(recurring,))
    data = rows((1, "A", 1), (3, "C", 2), (5, "B", 4), (7, "A", 8), (7, "B", 8), (8, "D", 16), (8, "B", 1))
    lines = evaluate(query(select), {"trades": data})
    assert shown(lines)[-5:] == [
        (8, 1, 0, "B", 2),
        (8, 1, 0, "A", 1),
        (8, 1, 0, "D", 1),
        (8, 1, 1, "B", 3),
        (8, 1, 1, "A", 2),
    ]


def test_append_only_selection_has_the_time_of_its_rows() -> None:
    select = selecting(reading(TRADES, None), TICKER, where=compare(">", QTY, const(4, Type.BIGINT)))
    assert shown(evaluate(query(select, Emit.CHANGES), {"trades": FOUR})) == [
        (1, 1, "A"),
        (4, 1, "B"),
        (10, 1, "A"),
    ]


def test_lines_have_exactly_the_four_parts_in_order() -> None:
    (line,) = evaluate(
        query(grouping(reading(TRADES, TimeWindow(5 * S, 5 * S)), (), COUNT)), {"trades": rows((1, "A", 1))}
    )
    assert list(line.items()) == [("query", "q1"), ("time", 5000), ("diff", 1), ("row", {"a0": 1})]
