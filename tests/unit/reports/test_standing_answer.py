"""What stands after each report follows from the changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from stairwise.reports import standing_answer
from stairwise.reports.emission import Emissions
from stairwise.reports.standing_answer import StandingAnswer

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
Change = tuple[int, int, str | None, int]
"""Time, diff, and a row."""


def changes(*lines: Change) -> Emissions:
    times, diff, k, n = (list(column) for column in zip(*lines, strict=True)) if lines else ([], [], [], [])
    rows = pa.RecordBatch.from_arrays([pa.array(k, pa.string()), pa.array(n, pa.int64())], schema=SCHEMA)
    return Emissions(np.array(times, np.int64), np.zeros(len(times), np.int64), np.array(diff, np.int8), rows, 0)


def stood(answer: StandingAnswer, times: Sequence[int], *lines: Change) -> list[list[tuple[str | None, int]]]:
    """The rows after each report, in order."""
    emitted = changes(*lines)
    spans = {time: span for time, _, span in emitted.spans()}
    found = list(answer.after(emitted, [spans.get(time) for time in times]))
    return [sorted(tuple(row.values()) for row in rows.to_pylist()) for rows in found]


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
        assert len(answer._copies) <= 12
