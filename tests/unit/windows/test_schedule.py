"""Report times: grids, their unions, rows that report, and where a query begins and ends."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from stairwise.schema import DAWN, DUSK
from stairwise.windows.schedule import (
    BLOCK,
    Agenda,
    Grid,
    Moment,
    due,
    due_blocks,
    last_report,
    moments,
    next_report,
    ordinals,
    report_grids,
    row_reports,
)
from stairwise.windows.spec import LandmarkWindow, Level, MultiWindow, PartitionedWindow, RowsWindow, TimeWindow

S = 1000
MINUTE = TimeWindow(60 * S, 60 * S)
TEN = TimeWindow(60 * S, 10 * S)


def test_report_times_are_aligned_to_the_epoch() -> None:
    assert list(due([TEN], 0, 30 * S)) == [10 * S, 20 * S, 30 * S]
    assert list(due([TEN], -25 * S, 5 * S)) == [-20 * S, -10 * S, 0]


def test_an_offset_moves_them_and_wraps_at_the_slide() -> None:
    assert list(due([TimeWindow(9, 10, offset=3)], 0, 30)) == [3, 13, 23]
    assert list(due([TimeWindow(9, 10, offset=23)], 0, 30)) == [3, 13, 23]


def test_the_span_excludes_where_it_begins_and_includes_where_it_ends() -> None:
    assert list(due([TEN], 10 * S, 20 * S)) == [20 * S]
    assert list(due([TEN], 10 * S, 10 * S)) == []


def test_several_slides_report_at_the_union_each_time_once() -> None:
    windows = [TimeWindow(9, 6), TimeWindow(9, 4), TimeWindow(9, 12)]
    assert list(due(windows, 0, 24)) == [4, 6, 8, 12, 16, 18, 20, 24]


def test_ten_years_of_seconds_are_not_laid_out_at_once() -> None:
    ten_years = 10 * 365 * 86400 * S
    taken = list(islice(due([TimeWindow(60 * S, S), TimeWindow(60 * S, 7 * S)], 0, ten_years), 3))
    assert taken == [1 * S, 2 * S, 3 * S]


def test_blocks_are_bounded_sorted_and_join_without_a_seam() -> None:
    windows = [TimeWindow(9, 2), TimeWindow(9, 3)]
    blocks = list(due_blocks(windows, 0, 5 * BLOCK))
    assert len(blocks) > 2
    assert all(0 < len(block) <= 2 * BLOCK for block in blocks)
    assert np.concatenate(blocks).tolist() == [t for t in range(1, 5 * BLOCK + 1) if t % 2 == 0 or t % 3 == 0]


def test_a_finished_fine_landmark_does_not_slow_a_coarse_slide() -> None:
    windows = [LandmarkWindow(0, 10, slide=1), TimeWindow(10, 10**9)]
    blocks = due_blocks(windows, 0, 10**12)
    assert next(blocks).tolist() == list(range(1, 11))
    assert len(next(blocks)) == 1000
    assert next(blocks, None) is None


def test_a_landmark_reports_from_the_first_time_past_its_start_to_the_first_past_its_end() -> None:
    assert list(due([LandmarkWindow(12, 31, slide=10)], 0, 100)) == [20, 30, 40]
    assert list(due([LandmarkWindow(20, 30, slide=10)], 0, 100)) == [20, 30]
    assert list(due([LandmarkWindow(None, 15, slide=10)], 0, 100)) == [10, 20]
    assert list(due([LandmarkWindow(85, None, slide=10)], 0, 100)) == [90, 100]


def test_rows_and_partitions_report_by_time_where_the_slide_is_a_time() -> None:
    assert list(due([RowsWindow(3, None, time_slide=10)], 0, 25)) == [10, 20]
    assert list(due([PartitionedWindow(("a",), 3, 10)], 0, 25)) == [10, 20]
    assert report_grids(RowsWindow(3, 1)) == ()
    assert report_grids(None) == ()


def test_levels_report_at_the_union_of_their_slides() -> None:
    window = MultiWindow((Level(4, 4), Level(12, 6)))
    assert list(due([window], 0, 24)) == [4, 6, 8, 12, 16, 18, 20, 24]
    assert list(due([MultiWindow(window.levels, horizon=5, granule=3)], 0, 10)) == [3, 6, 9]


def test_the_next_report_of_several_windows_is_the_earliest() -> None:
    assert next_report([MINUTE, TEN], 61 * S) == 70 * S
    assert next_report([LandmarkWindow(0, 5, slide=10)], 11) is None


@pytest.mark.parametrize(
    ("windows", "last_row", "expected"),
    [
        ([MINUTE], 61 * S, 120 * S),
        ([MINUTE], 60 * S, 60 * S),
        ([MINUTE, TEN], 61 * S, 70 * S),
        ([LandmarkWindow(0, 20 * S, S), MINUTE], 61 * S, 120 * S),
        ([LandmarkWindow(90 * S, None, S), MINUTE], 61 * S, 120 * S),
        ([LandmarkWindow(90 * S, None, S)], 61 * S, 61 * S),
        ([RowsWindow(3, 1)], 61 * S, 61 * S),
    ],
)
def test_sealing_ends_at_the_first_report_past_the_last_row(
    windows: list[TimeWindow], last_row: int, expected: int
) -> None:
    assert last_report(windows, last_row) == expected


def test_row_slides_report_at_multiples_counted_from_the_streams_first_row() -> None:
    window = RowsWindow(3, row_slide=3)
    assert row_reports(window, 0, 7).tolist() == [2, 5]
    assert row_reports(window, 7, 3).tolist() == [1]
    assert row_reports(RowsWindow(3, row_slide=1), 7, 3).tolist() == [0, 1, 2]


def test_rows_of_one_instant_have_ordinals() -> None:
    assert ordinals(np.array([1, 1, 2, 5, 5, 5])).tolist() == [0, 1, 0, 0, 1, 2]


def test_grids_and_row_slides_merge_into_one_order_of_moments() -> None:
    rows = [Moment(5, 1), Moment(10, 0), Moment(10, 2), Moment(12, 0)]
    assert list(moments([10, 20], rows)) == [
        Moment(5, 1),
        Moment(10, 0),
        Moment(10, 2),
        Moment(12, 0),
        Moment(20, 0),
    ]


def test_a_grid_covers_its_multiples_only() -> None:
    assert Grid(5, 2).covers(Grid(10, 7))
    assert not Grid(5, 2).covers(Grid(10, 5))
    assert not Grid(5, 2, first=10).covers(Grid(10, 7))


def test_an_agenda_begins_at_the_first_report_past_the_first_row() -> None:
    agenda = Agenda((TEN,))
    assert list(agenda.due(100 * S)) == []
    agenda.observe(25 * S, 42 * S)
    assert list(agenda.due(39 * S)) == [30 * S]
    assert list(agenda.due(39 * S)) == []
    assert list(agenda.due(40 * S)) == [40 * S]
    assert list(agenda.due(DUSK)) == [50 * S]


def test_an_agenda_begins_above_the_point_where_its_query_takes_effect() -> None:
    agenda = Agenda((TEN,), passed=30 * S)
    agenda.observe(5 * S, 42 * S)
    assert list(agenda.due(DUSK)) == [40 * S, 50 * S]


def test_an_agenda_goes_on_where_it_was_left() -> None:
    agenda = Agenda((TEN,))
    agenda.observe(1 * S, 42 * S)
    assert next(agenda.due(40 * S)) == 10 * S
    assert [b.tolist() for b in agenda.blocks(40 * S)] == [[20 * S, 30 * S, 40 * S]]
    assert agenda.passed == 40 * S


def test_a_sealed_stream_without_rows_reports_nothing() -> None:
    assert list(Agenda((TEN,)).due(DUSK)) == []
    assert Agenda((TEN,)).passed == DAWN
