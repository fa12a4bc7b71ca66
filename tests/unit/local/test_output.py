"""Results as files: one order over all queries, every format with the same content."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stairwise.algebra.query import Query
from stairwise.cql.script import Catalogue
from stairwise.errors import ConfigError
from stairwise.local import merge
from stairwise.local.driver import run_files
from stairwise.local.output import CsvOutput, JsonOutput, LineWriter, ParquetOutput
from stairwise.local.table import TableOutput

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT, d DOUBLE) TIMESTAMP BY ts LATENESS 1s;\n"
QUERIES = """
SELECT k, SUM(x) AS total FROM s [TUMBLE 2s] GROUP BY k;
CREATE QUERY second AS SELECT AVG(d) AS mean, MAX(ts) AS latest FROM s [RANGE 4s SLIDE 2s];
"""
ROWS = [
    {"ts": 1000, "k": 'a,"b"', "x": 2, "d": 0.5},
    {"ts": 1500, "k": None, "x": 3, "d": 1.5},
    {"ts": 3000, "k": "", "x": None, "d": "NaN"},
]


def catalogue_of(script: str) -> Catalogue:
    catalogue = Catalogue()
    catalogue.execute(script)
    return catalogue


def write(tmp_path: Path, catalogue: Catalogue, output: LineWriter) -> None:
    data = tmp_path / "s.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    run_files(catalogue.streams, list(catalogue.queries.values()), {"s": [str(data)]}, output)
    output.close()


@pytest.fixture
def catalogue() -> Catalogue:
    return catalogue_of(STREAM + QUERIES)


@pytest.fixture
def queries(catalogue: Catalogue) -> list[Query]:
    return list(catalogue.queries.values())


EXPECTED: list[tuple[str, int, int, dict[str, Any]]] = [
    ("q1", 2000, 1, {"k": None, "total": 3}),
    ("q1", 2000, 1, {"k": 'a,"b"', "total": 2}),
    ("second", 2000, 1, {"mean": 1.0, "latest": 1500}),
    ("q1", 4000, 1, {"k": "", "total": None}),
    ("second", 4000, 1, {"mean": "NaN", "latest": 3000}),
]


def test_json_lines_come_by_time_then_by_query(tmp_path: Path, catalogue: Catalogue, queries: list[Query]) -> None:
    file = io.BytesIO()
    write(tmp_path, catalogue, JsonOutput(queries, file))
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [(x["query"], x["time"], x["diff"], x["row"]) for x in lines] == EXPECTED


@pytest.mark.parametrize("piece", [0, 1, 3])
def test_the_order_does_not_depend_on_how_much_waits(
    tmp_path: Path, catalogue: Catalogue, queries: list[Query], piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "PIECE", piece)
    test_json_lines_come_by_time_then_by_query(tmp_path, catalogue, queries)


def test_csv_has_the_columns_of_all_queries(tmp_path: Path, catalogue: Catalogue, queries: list[Query]) -> None:
    file = io.BytesIO()
    write(tmp_path, catalogue, CsvOutput(queries, file))
    lines = list(csv.reader(io.StringIO(file.getvalue().decode())))
    assert lines == [
        ["query", "time", "diff", "k", "total", "mean", "latest"],
        ["q1", "2000", "1", "", "3", "", ""],
        ["q1", "2000", "1", 'a,"b"', "2", "", ""],
        ["second", "2000", "1", "", "", "1.0", "1500"],
        ["q1", "4000", "1", "", "", "", ""],
        ["second", "4000", "1", "", "", "NaN", "3000"],
    ]
    assert b'q1,4000,1,"",,,' in file.getvalue()


def test_parquet_keeps_the_types(tmp_path: Path, catalogue: Catalogue, queries: list[Query]) -> None:
    path = tmp_path / "out.parquet"
    with path.open("wb") as file:
        write(tmp_path, catalogue, ParquetOutput(queries, file))
    rows = pq.read_table(path).to_pylist()
    assert [(row["query"], row["time"], row["k"]) for row in rows] == [
        (query, time, row.get("k")) for query, time, _, row in EXPECTED
    ]
    assert rows[0]["total"] == 3


def test_a_table_has_a_header_for_each_run_of_a_query(
    tmp_path: Path, catalogue: Catalogue, queries: list[Query]
) -> None:
    file = io.StringIO()
    write(tmp_path, catalogue, TableOutput(queries, file))
    lines = file.getvalue().splitlines()
    assert lines[:3] == [
        "time                      query  diff  k      total",
        "1970-01-01T00:00:02.000Z  q1       +1  NULL       3",
        '1970-01-01T00:00:02.000Z  q1       +1  a,"b"      2',
    ]
    assert lines[4].split() == ["time", "query", "diff", "mean", "latest"]
    assert lines[5].split()[-2:] == ["1.0", "1970-01-01T00:00:01.500Z"]


def test_columns_of_one_name_and_different_types_do_not_fit_into_one_csv(tmp_path: Path) -> None:
    catalogue = catalogue_of(STREAM + "SELECT k AS v FROM s [NOW]; SELECT x AS v FROM s [NOW];")
    with pytest.raises(ConfigError, match="different types"):
        CsvOutput(list(catalogue.queries.values()), io.BytesIO())


def test_a_column_cannot_be_called_as_those_that_every_line_has() -> None:
    catalogue = catalogue_of(STREAM + "SELECT x AS time FROM s [NOW];")
    with pytest.raises(ConfigError, match="'time'"):
        CsvOutput(list(catalogue.queries.values()), io.BytesIO())
