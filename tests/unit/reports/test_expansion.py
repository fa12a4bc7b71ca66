"""What a query shows of its reports: HAVING, projection, EMIT, order, and going on from an earlier answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from stairwise.reports.contract import Report
from stairwise.reports.expansion import Expansion, output_schema, report_schema
from stairwise.reports.lines import line_dicts
from tests.unit.recompute.feeding import query_of

COUNTS = "SELECT COUNT(*) AS n, k FROM s [TUMBLE 10s] GROUP BY k"


def report(select: str, time: int, *rows: Sequence[Any]) -> Report:
    schema = report_schema(query_of(select))
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return Report("q1", time, pa.RecordBatch.from_arrays(columns, schema=schema))


def expanded(select: str, *reports: Report) -> list[tuple[int, int, tuple[Any, ...]]]:
    expansion = Expansion(query_of(select))
    lines = [line for r in reports for line in line_dicts("q1", expansion.expand(r))]
    return [(line["time"], line["diff"], tuple(line["row"].values())) for line in lines]


def test_group_rows_become_output_rows_in_order_of_the_group_key() -> None:
    assert expanded(COUNTS, report(COUNTS, 10, ("b", 1), (None, 9), ("a", 2))) == [
        (10, 1, (9, None)),
        (10, 1, (2, "a")),
        (10, 1, (1, "b")),
    ]


def test_having_keeps_the_groups_for_which_it_is_true() -> None:
    select = f"{COUNTS} HAVING COUNT(*) > 1"
    assert expanded(select, report(select, 10, ("b", 1), ("a", 2))) == [(10, 1, (2, "a"))]


@pytest.mark.parametrize(
    ("emit", "lines"),
    [
        ("RSTREAM", [(10, 1, ("a",)), (10, 1, ("b",)), (20, 1, ("b",)), (20, 1, ("c",))]),
        ("ISTREAM", [(10, 1, ("a",)), (10, 1, ("b",)), (20, 1, ("c",))]),
        ("DSTREAM", [(20, -1, ("a",))]),
        ("CHANGES", [(10, 1, ("a",)), (10, 1, ("b",)), (20, -1, ("a",)), (20, 1, ("c",))]),
    ],
)
def test_emit_shows_the_answer_or_its_changes(emit: str, lines: list[Any]) -> None:
    select = f"SELECT k FROM s [TUMBLE 10s] EMIT {emit}"
    assert expanded(select, report(select, 10, ("b",), ("a",)), report(select, 20, ("b",), ("c",))) == lines


def test_a_row_that_leaves_while_an_equal_one_enters_shows_nothing() -> None:
    select = "SELECT COUNT(*) AS n FROM s [TUMBLE 10s] GROUP BY k EMIT CHANGES"
    assert expanded(select, report(select, 10, ("a", 1)), report(select, 20, ("b", 1))) == [(10, 1, (1,))]


def test_an_expansion_resumes_from_an_earlier_report() -> None:
    select = "SELECT k FROM s [TUMBLE 10s] EMIT CHANGES"
    expansion = Expansion(query_of(select))
    expansion.resume(report(select, 10, ("a",), ("b",)))
    lines = line_dicts("q1", expansion.expand(report(select, 20, ("b",))))
    assert [(line["diff"], line["row"]) for line in lines] == [(-1, {"k": "a"})]


def test_levels_are_compared_with_their_own_last_answer() -> None:
    select = "SELECT k FROM s [RANGES 8s, 2s SLIDES 4s, 2s] EMIT CHANGES"
    reports = (
        report(select, 4000, (0, "a"), (1, "a")),
        report(select, 6000, (0, "b")),
        report(select, 8000, (0, "b")),
    )
    assert expanded(select, *reports) == [
        (4000, 1, (0, "a")),
        (4000, 1, (1, "a")),
        (6000, -1, (0, "a")),
        (6000, 1, (0, "b")),
        (8000, -1, (1, "a")),
    ]


def test_the_items_of_a_group_stand_by_falling_count() -> None:
    select = "SELECT TOP(x, 2) FROM s [TUMBLE 10s] EMIT CHANGES"
    rows = [(7, 1), (3, 5), (1, 5)]
    assert [row for _, _, row in expanded(select, report(select, 10, *rows))] == [(1, 5), (3, 5), (7, 1)]


def test_faults_of_outputs_are_counted() -> None:
    select = "SELECT 1 / (COUNT(*) - 1) AS q FROM s [TUMBLE 10s] GROUP BY k"
    expansion = Expansion(query_of(select))
    expansion.expand(report(select, 10, ("a", 1), ("b", 2)))
    assert expansion.faults.division == 1


def test_schemas_say_the_columns_of_reports_and_lines() -> None:
    query = query_of("SELECT k, SUM(x) + 1 AS s FROM s [RANGES 8s, 2s SLIDES 4s, 2s] GROUP BY k")
    assert report_schema(query).names == ["level", "key0", "agg0"]
    assert output_schema(query).names == ["level", "k", "s"]
