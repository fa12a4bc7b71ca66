"""Values on their way from protobuf to Python and to result lines."""

from __future__ import annotations

import math

import pytest

from stairwise.client.update import Cell, Change, Update, read_changes, read_value
from stairwise.reports.lines import json_lines, to_bytes
from stairwise.schema import Column, Type
from stairwise.v1 import results_pb2 as pb

COLUMNS = tuple(
    Column(type_.value.lower(), type_)
    for type_ in (Type.BIGINT, Type.DOUBLE, Type.STRING, Type.BOOLEAN, Type.TIMESTAMP, Type.HUGEINT)
)
LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (pb.Value(), None),
        (pb.Value(integer=0), 0),
        (pb.Value(integer=-LARGEST - 1), -LARGEST - 1),
        (pb.Value(double=0.1), 0.1),
        (pb.Value(string=""), ""),
        (pb.Value(boolean=False), False),
        (pb.Value(hugeint="-123456789012345678901234567890"), -123456789012345678901234567890),
    ],
)
def test_each_value_has_its_python_value(value: pb.Value, expected: Cell) -> None:
    assert read_value(value) == expected
    assert type(read_value(value)) is type(expected)


def test_rows_are_read_by_the_header_s_columns() -> None:
    row = pb.Row(values=[pb.Value(integer=1), pb.Value()])
    message = pb.Update(changes=[pb.Update.Change(diff=-1, row=row)])
    assert read_changes(message, COLUMNS[:2]) == [Change(-1, {"bigint": 1, "double": None})]


def line(*cells: Cell, diff: int = 1) -> str:
    row = dict(zip((c.name for c in COLUMNS), cells, strict=True))
    update = Update("q1", 1700000060000, [Change(diff, row)], b"", COLUMNS)
    return to_bytes(json_lines("q1", update.emission())).decode()


def test_an_update_prints_the_result_line_that_everything_prints() -> None:
    assert line(LARGEST, 0.1, 'a"é', True, 1700000000000, 2**70) == (
        '{"query": "q1", "time": 1700000060000, "diff": 1, "row": {"bigint": 9223372036854775807, "double": 0.1, '
        '"string": "a\\"é", "boolean": true, "timestamp": 1700000000000, "hugeint": 1180591620717411303424}}\n'
    )
    assert line(None, math.nan, None, None, None, None, diff=-1) == (
        '{"query": "q1", "time": 1700000060000, "diff": -1, "row": {"bigint": null, "double": "NaN", '
        '"string": null, "boolean": null, "timestamp": null, "hugeint": null}}\n'
    )


def test_an_update_without_changes_prints_nothing() -> None:
    assert to_bytes(json_lines("q", Update("q", 1, [], b"", COLUMNS).emission())) == b""
