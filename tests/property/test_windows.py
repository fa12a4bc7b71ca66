"""Properties of windows: the propositions of seed 002, and scopes and schedules against their definitions.

Times are small integers so that windows, slides and rows collide often; nothing depends on the unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import assume, given
from hypothesis import strategies as st

from stairwise.algebra.spelling import spell_window
from stairwise.cql.parser import parse_script
from stairwise.plan.patterns import Pattern, window_pattern
from stairwise.windows import expiry, schedule, scope
from stairwise.windows.spec import LandmarkWindow, Level, MultiWindow, PartitionedWindow, RowsWindow, TimeWindow, Window
from tests.oracle import Line, OracleRow, evaluate, read
from tests.oracle import windows as definition

Times = npt.NDArray[np.int64]

instants = st.integers(-60, 60)
lengths = st.integers(1, 25)
times = st.lists(instants, max_size=30).map(lambda ts: np.array(sorted(ts), dtype=np.int64))

sliding = st.builds(TimeWindow, lengths, lengths, lag=st.integers(0, 9), offset=st.integers(0, 30))
overlapping = sliding.filter(lambda w: w.slide < w.range)
tumbling = lengths.flatmap(lambda w: st.builds(TimeWindow, st.just(w), st.just(w), offset=st.integers(0, 30)))
lower_landmarks = st.builds(LandmarkWindow, instants, st.none(), lengths)
upper_landmarks = st.builds(LandmarkWindow, st.none(), instants, lengths)
bands = st.tuples(instants, instants).flatmap(
    lambda ends: st.builds(LandmarkWindow, st.just(min(ends)), st.just(max(ends)), lengths)
)
landmarks = lower_landmarks | upper_landmarks | bands
counted = st.builds(RowsWindow, st.integers(1, 6), st.integers(1, 4))
counted_by_time = st.builds(RowsWindow, st.integers(1, 6), st.none(), lengths)
partitioned = st.builds(PartitionedWindow, st.just(("key",)), st.integers(1, 4), lengths)


@st.composite
def nested(draw: st.DrawFn) -> MultiWindow:
    slides = sorted(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    levels: list[Level] = []
    for slide in slides:
        shortest = levels[-1].range // slide + 1 if levels else 1
        levels.append(Level(slide * draw(st.integers(shortest, shortest + 3)), slide))
    return MultiWindow(tuple(levels))


any_window = sliding | tumbling | landmarks | counted | counted_by_time | partitioned | nested()

STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, key BIGINT, id BIGINT) TIMESTAMP BY ts;" for name in ("s", "other")
)


def numbered(ts: Times, keys: Sequence[int] | None = None) -> list[OracleRow]:
    """Rows at these times, each with its number as id."""
    keys = [0] * len(ts) if keys is None else keys
    return [OracleRow(t, 0, i, (t, keys[i], i)) for i, t in enumerate(ts.tolist())]


def defined(window: Window) -> definition.Window:
    """The same as the oracle reads it."""
    (statement,) = parse_script(f"SELECT * FROM s {spell_window(window)}")
    return definition.read_window(statement.relation.sources[0].window, read(STREAMS).streams["s"])


def held(
    window: Window, rows: Sequence[OracleRow], tau: int, horizon: int = -(10**9), level: int = 0
) -> list[OracleRow]:
    """What the definition says that a window holds above a horizon."""
    return [row for row in definition.held(defined(window), rows, definition.Moment(tau), level) if row.ts > horizon]


def changes(select: str, **rows: list[OracleRow]) -> list[Line]:
    return evaluate(f"{STREAMS}{select} EMIT CHANGES", rows)


def holds(window: TimeWindow, tau: int, time: int) -> bool:
    """Is a row of this time in (τ−d−w, τ−d]?"""
    return tau - window.lag - window.range < time <= tau - window.lag


def removals(lines: Iterable[Line], column: str = "id") -> dict[object, int]:
    """When each value left the answer."""
    return {line["row"][column]: line["time"] for line in lines if line["diff"] < 0}


# ── scopes and schedules against their definitions ──────────────────────────────────────────────────────────


@given(partitioned, times, st.data())
def test_partitions_hold_the_rows_that_the_definition_says(
    window: PartitionedWindow, ts: Times, data: st.DataObject
) -> None:
    keys = data.draw(st.lists(st.integers(0, 2), min_size=len(ts), max_size=len(ts)))
    tau = window.slide * 100
    rows = numbered(ts, keys)
    inside = scope.partitioned_scope(window, np.array(keys, dtype=np.intp))
    assert [rows[i] for i in inside] == held(window, rows, tau)


@given(st.lists(any_window, max_size=4), instants, st.integers(0, 80))
def test_due_times_are_those_at_which_some_window_reports(windows: list[Window], after: int, length: int) -> None:
    ours = list(map(defined, windows))
    times = range(after + 1, after + length + 1)
    expected = [tau for tau in times if any(definition.reports_at(window, tau) for window in ours)]
    assert list(schedule.due(windows, after, after + length)) == expected


@given(any_window, instants)
def test_the_next_report_is_the_nearest(window: Window, instant: int) -> None:
    ours = defined(window)
    assume(ours.grids)
    around = [t for t in range(instant - 120, instant + 121) if definition.reports_at(ours, t)]
    following = schedule.next_report([window], instant)
    near_after = min((t for t in around if t >= instant), default=None)
    assert following == near_after or (near_after is None and following > instant + 120)


@given(st.lists(any_window, min_size=1, max_size=4), instants)
def test_sealing_ends_where_the_definition_says(windows: list[Window], last_row: int) -> None:
    assert schedule.last_report(windows, last_row) == definition.end_of_reports(list(map(defined, windows)), last_row)


@given(counted, times, st.integers(0, 5))
def test_row_slides_report_at_the_moments_of_the_definition(window: RowsWindow, ts: Times, taken: int) -> None:
    rows = numbered(ts)
    expected = list(definition.row_moments(defined(window), rows))
    positions = schedule.row_reports(window, 0, len(ts)).tolist()
    ordinals = schedule.ordinals(ts).tolist()
    assert [(p + 1, (int(ts[p]), ordinals[p])) for p in positions] == expected
    taken = min(taken, len(ts))
    split = schedule.row_reports(window, 0, taken).tolist()
    split += [taken + p for p in schedule.row_reports(window, taken, len(ts) - taken).tolist()]
    assert split == positions


@given(st.lists(sliding, min_size=1, max_size=3), times, st.lists(instants, max_size=6))
def test_an_agenda_gives_each_report_once_however_often_it_is_asked(
    windows: list[Window], ts: Times, watermarks: list[int]
) -> None:
    assume(len(ts))
    agenda = schedule.Agenda(tuple(windows))
    agenda.observe(int(ts[0]), int(ts[-1]))
    end = schedule.last_report(windows, int(ts[-1]))
    taken = [tau for mark in sorted(watermarks) for tau in agenda.due(min(mark, end))]
    taken += agenda.due(2**62)
    assert taken == list(schedule.due(windows, int(ts[0]) - 1, end))


# ── the propositions of seed 002 ────────────────────────────────────────────────────────────────────────────


@given(sliding, times)
def test_proposition_2_a_sliding_window_loses_rows_in_their_order(window: TimeWindow, ts: Times) -> None:
    expiration = expiry.expiration_times(window, ts)
    for (t1, e1), (t2, e2) in zip(
        zip(ts, expiration, strict=True), zip(ts[1:], expiration[1:], strict=True), strict=False
    ):
        assert (t1 <= t2) == (e1 <= e2)
        assert (t2 <= t1) == (e2 <= e1)
    reports = expiry.expiration_reports(window, ts)
    assert (np.diff(reports) >= 0).all()


@given(sliding, times, st.integers(-8, 8))
def test_a_state_holds_a_row_from_its_admission_up_to_its_expiration(window: TimeWindow, ts: Times, k: int) -> None:
    tau = k * window.slide + window.offset
    admitted = expiry.admission_reports(window, ts) <= tau
    expired = expiry.expiration_reports(window, ts) <= tau
    assert (admitted & ~expired).tolist() == [holds(window, tau, t) for t in ts.tolist()]


@given(tumbling, times)
def test_proposition_3_states_of_a_tumbling_window_have_nothing_in_common_and_miss_nothing(
    window: TimeWindow, ts: Times
) -> None:
    for t in ts.tolist():
        states = [tau for tau in schedule.due([window], t - 60, t + 60) if holds(window, tau, t)]
        assert len(states) == 1
    admitted, expired = expiry.admission_reports(window, ts), expiry.expiration_reports(window, ts)
    assert (expired - admitted == window.slide).all()


@given(overlapping, times)
def test_proposition_6_neutral_operators_lose_results_as_their_window_loses_rows(window: TimeWindow, ts: Times) -> None:
    assume(len(ts))
    left = removals(changes(f"SELECT id FROM s {spell_window(window)}", s=numbered(ts)))
    end = schedule.last_report([window], int(ts[-1]))
    start = schedule.next_report([window], int(ts[0]))
    reports = expiry.expiration_reports(window, ts).tolist()
    admitted = expiry.admission_reports(window, ts).tolist()
    expected = {i: r for i, r in enumerate(reports) if r <= end and admitted[i] < r and r > start}
    assert left == expected
    assert list(left.values()) == sorted(left.values())
    assert window_pattern(window) is Pattern.WKS


@given(landmarks, times, st.lists(st.integers(0, 2), min_size=30, max_size=30))
def test_proposition_7_over_landmarks_distinct_values_and_groups_stay(
    window: LandmarkWindow, ts: Times, keys: list[int]
) -> None:
    rows = numbered(ts, keys)
    distinct = changes(f"SELECT DISTINCT key FROM s {spell_window(window)}", s=rows)
    assert all(line["diff"] > 0 for line in distinct)
    grouped = f"SELECT key, COUNT(*) FROM s {spell_window(window)} GROUP BY key"
    for line in (lines := changes(grouped, s=rows)):
        replaced = [x for x in lines if x["time"] == line["time"] and x["row"]["key"] == line["row"]["key"]]
        assert line["diff"] > 0 or len(replaced) == 2
    assert window_pattern(window) is Pattern.MONOTONIC


def joining(left: Window, right: Window) -> str:
    """Pairs of ids with equal keys."""
    a, b = spell_window(left), spell_window(right)
    return f"SELECT a.id, b.id AS other FROM s {a} AS a JOIN other {b} AS b ON a.key = b.key"


@given(landmarks, landmarks, times, times)
def test_proposition_7_over_landmarks_join_results_stay(
    left: LandmarkWindow, right: LandmarkWindow, ts: Times, others: Times
) -> None:
    lines = changes(joining(left, right), s=numbered(ts[:8]), other=numbered(others[:8]))
    assert all(line["diff"] > 0 for line in lines)


@given(lengths, lengths, st.integers(1, 5), times, times)
def test_proposition_7_a_join_result_expires_with_the_first_of_its_rows(
    left: int, right: int, slide: int, ts: Times, others: Times
) -> None:
    ts, others = ts[:8], others[:8]
    windows = TimeWindow(left, slide), TimeWindow(right, slide)
    lines = changes(joining(*windows), s=numbered(ts), other=numbered(others))
    for line in lines:
        if line["diff"] < 0:
            i, j = line["row"]["id"], line["row"]["other"]
            parts = (
                expiry.expiration_reports(windows[0], ts[i : i + 1]),
                expiry.expiration_reports(windows[1], others[j : j + 1]),
            )
            assert line["time"] == min(parts)[0]


def test_proposition_8_a_difference_takes_results_back_whenever_a_match_comes() -> None:
    forever = spell_window(LandmarkWindow(-100, None, 1))
    select = f"SELECT key FROM s {forever} EXCEPT SELECT key FROM other {forever}"
    mine = numbered(np.array([0, 1, 2]), keys=[1, 2, 3])
    theirs = numbered(np.array([5, 6]), keys=[2, 1])
    assert removals(changes(select, s=mine, other=theirs), "key") == {2: 5, 1: 6}


@given(lower_landmarks, overlapping, times, times)
def test_proposition_9_beside_a_landmark_a_sliding_window_decides_when_join_results_expire(
    landmark: LandmarkWindow, window: TimeWindow, ts: Times, others: Times
) -> None:
    ts, others = ts[:8], others[:8]
    lines = changes(joining(landmark, window), s=numbered(ts), other=numbered(others))
    for line in lines:
        if line["diff"] < 0:
            j = line["row"]["other"]
            assert line["time"] == expiry.expiration_reports(window, others[j : j + 1])[0]
