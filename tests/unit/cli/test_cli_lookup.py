"""How an answer of `stairwise lookup` looks on a terminal."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stairwise.cli.lookup import show_table
from stairwise.client.lookups import Answer


def test_numbers_stand_to_the_right_and_the_time_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [pa.array(["A", "Longer"]), pa.array([5, 12345])]
    show_table(Answer(1_700_000_000_000, pa.RecordBatch.from_arrays(columns, names=["k", "n"])))
    *rows, footer = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [row.split() for row in rows] == [["k", "n"], ['"A"', "5"], ['"Longer"', "12345"]]
    assert len({len(row) for row in rows}) == 1
    assert footer == "at 1700000000000"
