"""What stands after each report follows from the changes."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from stairwise.reports import standing_answer
from stairwise.reports.standing_answer import DIFF, UNTIL, KeptAnswer, StandingAnswer, StandingRows, without_last

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
Change = tuple[int, int, str | None, int]
"""Time, diff or end, and a row."""


def moves(lines: Sequence[Change], last: pa.Field) -> pa.RecordBatch:
    said, k, n = ([line[i] for line in lines] for i in (1, 2, 3))
    arrays = [pa.array(k, pa.string()), pa.array(n, pa.int64()), pa.array(said, last.type)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA.append(last))


def stood(answer: KeptAnswer, times: Sequence[int], *lines: Change) -> list[list[tuple[str | None, int]]]:
    """The rows after each report, in order."""
    found = []
    for time in times:
        last = UNTIL if isinstance(answer, StandingRows) else DIFF
        answer.take(time, moves([line for line in lines if line[0] == time], last))
        rows = without_last(answer.rows()).to_pylist()
        assert len(rows) == len(answer)
        found.append(sorted(tuple(row.values()) for row in rows))
    return found


def test_rows_leave_at_the_end_that_they_came_with() -> None:
    answer = StandingRows(SCHEMA)
    lines = [(10, 40, "a", 1), (10, 30, "b", 2), (20, 30, "b", 2)]
    assert stood(answer, [10, 20], *lines) == [[("a", 1), ("b", 2)], [("a", 1), ("b", 2), ("b", 2)]]
    assert answer.leave(30).to_pylist() == [{"k": "b", "n": 2, "until": 30}] * 2
    assert stood(answer, [30, 40], (30, 50, "c", 3)) == [[("a", 1), ("c", 3)], [("c", 3)]]


def test_copies_of_a_row_come_and_go_one_by_one() -> None:
    answer = StandingAnswer(SCHEMA, 2)
    lines = [(10, 1, "a", 1), (10, 1, "b", 2), (10, 1, "b", 2), (20, -1, "b", 2), (40, -1, "a", 1)]
    assert stood(answer, [10, 20, 30, 40], *lines) == [
        [("a", 1), ("b", 2), ("b", 2)],
        [("a", 1), ("b", 2)],
        [("a", 1), ("b", 2)],
        [("b", 2)],
    ]
    assert stood(answer, [50], (50, 1, "b", 2)) == [[("b", 2), ("b", 2)]]


def test_a_group_row_replaces_the_one_with_its_keys() -> None:
    answer = StandingAnswer(SCHEMA, 1)
    assert stood(answer, [10], (10, 1, "a", 1), (10, 1, "b", 5)) == [[("a", 1), ("b", 5)]]
    assert stood(answer, [20], (20, -1, "a", 1), (20, 1, "a", 2)) == [[("a", 2), ("b", 5)]]
    assert stood(answer, [30, 40], (40, -1, "b", 5)) == [[("a", 2), ("b", 5)], [("a", 2)]]


def test_a_row_without_keys_is_the_only_one() -> None:
    answer = StandingAnswer(SCHEMA, 0)
    assert stood(answer, [10], (10, 1, "a", 1)) == [[("a", 1)]]
    assert stood(answer, [20], (20, -1, "a", 1), (20, 1, "a", 2)) == [[("a", 2)]]


def test_what_has_gone_is_forgotten_and_what_stands_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_answer, "_MANY", 4)
    answer = StandingAnswer(SCHEMA, 2)
    assert stood(answer, [0], (0, 1, "stays", 0), (0, 1, "stays", 0)) == [[("stays", 0), ("stays", 0)]]
    for time in range(1, 50):
        gone = [(time, -1, "k", time - 1)] if time > 1 else []
        assert stood(answer, [time], *gone, (time, 1, "k", time)) == [[("k", time), ("stays", 0), ("stays", 0)]]
        assert answer._rows.num_rows <= 12
