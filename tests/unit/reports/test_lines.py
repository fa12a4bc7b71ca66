"""Result lines: one JSON object each, with every value in its one spelling."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stairwise.reports.emission import Emission, Emissions
from stairwise.reports.lines import json_lines, line_dicts, texts, to_bytes


def emission(**columns: pa.Array) -> Emission:
    rows = pa.RecordBatch.from_pydict(columns)
    return Emission(1_700_000_060_000, 0, np.ones(rows.num_rows, np.int8), rows)


def test_a_line_is_the_one_of_the_design() -> None:
    lines = json_lines("q1", emission(ticker=pa.array(["AB"]), volume=pa.array([1200])))
    expected = '{"query": "q1", "time": 1700000060000, "diff": 1, "row": {"ticker": "AB", "volume": 1200}}\n'
    assert lines.to_pylist() == [expected]


def test_doubles_have_their_shortest_form_and_what_is_no_number_is_a_string() -> None:
    column = pa.array([0.1, 100.0, 1e300, math.nan, math.inf, -math.inf, None])
    assert texts(column).to_pylist() == ["0.1", "100.0", "1e300", '"NaN"', '"Infinity"', '"-Infinity"', "null"]


def test_the_exact_sum_of_integers_is_a_json_integer() -> None:
    column = pa.array([Decimal(10**37), Decimal(-5), None], pa.decimal128(38, 0))
    assert texts(column).to_pylist() == ["1" + "0" * 37, "-5", "null"]


def test_diffs_of_both_signs_are_shown() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([1, 2])})
    lines = json_lines("q", Emission(5, 0, np.array([-1, 1], np.int8), rows))
    assert [json.loads(line)["diff"] for line in lines.to_pylist()] == [-1, 1]


def test_no_lines_are_no_text() -> None:
    assert to_bytes(json_lines("q", emission(x=pa.array([], pa.int64())))) == b""


def test_the_text_of_a_part_of_the_lines_is_that_part() -> None:
    lines = json_lines("q", emission(x=pa.array([1, 2, 3])))
    assert to_bytes(lines.slice(1, 1)) == lines[1].as_py().encode()


VALUES = st.fixed_dictionaries(
    {
        "s": st.none() | st.text(),
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "d": st.none() | st.floats(),
        "b": st.none() | st.booleans(),
    }
)


@given(st.lists(VALUES, min_size=1))
def test_the_text_of_a_line_parses_to_its_dict(rows: list[dict[str, object]]) -> None:
    types = {"s": pa.string(), "i": pa.int64(), "d": pa.float64(), "b": pa.bool_()}
    columns = {name: pa.array([row[name] for row in rows], type_) for name, type_ in types.items()}
    emitted = emission(**columns)
    parsed = [json.loads(line) for line in to_bytes(json_lines("q", emitted)).decode().split("\n")[:-1]]
    assert parsed == list(line_dicts("q", emitted))


def test_emissions_split_into_the_reports_that_show_something() -> None:
    rows = pa.RecordBatch.from_pydict({"x": pa.array([1, 2, 3, 4])})
    times, ordinals = np.array([5, 5, 5, 9]), np.array([0, 0, 1, 0])
    parts = list(Emissions(times, ordinals, np.ones(4, np.int8), rows, reports=7).split())
    assert [(p.time, p.ordinal, p.rows.num_rows) for p in parts] == [(5, 0, 2), (5, 1, 1), (9, 0, 1)]
