"""Files of every format give the same rows, and what is wrong with the others."""

from __future__ import annotations

import datetime
import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stairwise.errors import ConfigError
from stairwise.local.chunks import Rejected
from stairwise.local.jsonl import JsonLines
from stairwise.local.sources import FileSource
from stairwise.schema import Column, Stream, Type
from stairwise.streams.reason_codes import Code

STREAM = Stream(
    "s",
    (
        Column("ts", Type.TIMESTAMP, nullable=False),
        Column("k", Type.STRING),
        Column("x", Type.BIGINT, nullable=False),
        Column("d", Type.DOUBLE),
        Column("b", Type.BOOLEAN),
    ),
    timestamp_by="ts",
)
ROWS = [
    {"ts": 1, "k": "a", "x": 5, "d": 0.5, "b": True},
    {"ts": 2, "k": None, "x": -6, "d": None, "b": None},
    {"ts": 3, "k": "", "x": 7, "d": float("inf"), "b": False},
]
JSON = b"""{"ts": 1, "k": "a", "x": 5, "d": 0.5, "b": true}
{"ts": "1970-01-01T00:00:00.002Z", "x": -6}

{"ts": 3, "k": "", "x": 7, "d": "Infinity", "b": false, "more": [1]}
"""
CSV = b"""ts,more,k,x,d,b
1,,a,5,0.5,true
1970-01-01T00:00:00.002Z,,,-6,,
3,x,"",7,inf,FALSE
"""


def read(path: Path, stream: Stream = STREAM) -> tuple[list[dict[str, Any]], list[Rejected]]:
    rows: list[dict[str, Any]] = []
    rejected: list[Rejected] = []
    source = FileSource(stream, str(path))
    for chunk in source.chunks():
        rows += chunk.rows.to_pylist()
        rejected += chunk.rejected
    assert source.position() == source.size
    return rows, rejected


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


FILES = {
    "rows.jsonl": JSON,
    "rows.ndjson": JSON,
    "rows.jsonl.gz": gzip.compress(JSON),
    "rows.jsonl.zst": pa.Codec("zstd").compress(JSON, asbytes=True),
    "rows.csv": CSV,
    "rows.csv.gz": gzip.compress(CSV),
    "rows.csv.zst": pa.Codec("zstd").compress(CSV, asbytes=True),
    "windows.csv": CSV.replace(b"\n", b"\r\n"),
    "windows.jsonl": JSON.replace(b"\n", b"\r\n"),
    "open.jsonl": JSON.rstrip(b"\n"),
    "open.csv": CSV.rstrip(b"\n"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_text_format_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    assert read(written(tmp_path / name, FILES[name])) == (ROWS, [])


@pytest.mark.parametrize("kind", ["plain", "instants", "dictionary"])
def test_parquet_gives_the_same_rows(tmp_path: Path, kind: str) -> None:
    table = pa.Table.from_pylist(ROWS, schema=STREAM.arrow_schema)
    if kind == "instants":
        utc = datetime.UTC
        times = [datetime.datetime(1970, 1, 1, 0, 0, 0, 1000 * n + 999, utc) for n in (1, 2, 3)]
        table = table.set_column(0, "ts", pa.array(times, pa.timestamp("us", "UTC")))
    if kind == "dictionary":
        table = table.set_column(1, "k", table.column("k").dictionary_encode())
    pq.write_table(table, tmp_path / "rows.parquet")
    assert read(tmp_path / "rows.parquet") == (ROWS, [])


def test_bad_lines_of_json_say_where_they_stand(tmp_path: Path) -> None:
    content = b'{"ts": 1, "x": 1}\n\nnonsense\n{"ts": 2, "x": "y"}\n{"ts": 3, "x": 3}\n'
    rows, rejected = read(written(tmp_path / "rows.jsonl", content))
    assert [row["ts"] for row in rows] == [1, 3]
    assert [(bad.number, bad.code, bad.raw) for bad in rejected] == [
        (3, Code.MALFORMED, "nonsense"),
        (4, Code.WRONG_TYPE, '{"ts": 2, "x": "y"}'),
    ]


@pytest.mark.parametrize(
    ("line", "code", "field"),
    [
        (b"2,a,1.0,,", Code.WRONG_TYPE, "x"),
        (b"2,a,9223372036854775808,,", Code.OUT_OF_RANGE, "x"),
        (b"2,a,,,", Code.NULL_FIELD, "x"),
        (b"2,a,1,abc,", Code.WRONG_TYPE, "d"),
        (b"2,a,1,,maybe", Code.WRONG_TYPE, "b"),
        (b",a,1,,", Code.NULL_FIELD, "ts"),
        (b"soon,a,1,,", Code.WRONG_TYPE, "ts"),
        (b"1970-01-01T00:00:00,a,1,,", Code.WRONG_TYPE, "ts"),
        (b"9999999999999999,a,1,,", Code.OUT_OF_RANGE, "ts"),
        (b"2,\xff,1,,", Code.MALFORMED, "k"),
        (b"2,a,1", Code.MALFORMED, None),
    ],
)
def test_a_bad_line_of_csv_says_why(tmp_path: Path, line: bytes, code: Code, field: str | None) -> None:
    content = b"ts,k,x,d,b\n1,a,5,,\n" + line + b"\n3,b,6,,\n"
    rows, (bad,) = read(written(tmp_path / "rows.csv", content))
    assert [row["ts"] for row in rows] == [1, 3]
    assert (bad.code, bad.field) == (code, field)
    assert bad.raw


def test_bad_lines_of_csv_say_where_they_stand_however_far_the_reader_is_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stairwise.local.csv.BLOCK", 64)
    bad = {7: b"torn", 8: b"8,a,x,,", 20: b"torn", 21: b"torn", 40: b"40,a,,,", 60: b"torn"}
    lines = [b"ts,k,x,d,b", *(bad.get(n, b"%d,a,%d,," % (n, n)) for n in range(2, 61))]
    rows, rejected = read(written(tmp_path / "rows.csv", b"\n".join(lines)))
    assert [row["x"] for row in rows] == [n for n in range(2, 61) if n not in bad]
    assert [row.number for row in rejected] == sorted(bad)


def test_a_file_that_breaks_off_is_an_error_whatever_its_format(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS * 1000, schema=STREAM.arrow_schema)
    pq.write_table(table, tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    broken = {
        "footer.parquet": whole[:-9],
        "page.parquet": whole[:300] + b"\xff" * 300 + whole[600:],
        "packed.parquet.gz": gzip.compress(whole)[:-20],
        "rows.csv.gz": gzip.compress(CSV)[:-9],
    }
    for name, content in broken.items():
        with pytest.raises(ConfigError, match=f"{name} cannot be read"):
            read(written(tmp_path / name, content))
    assert len(read(written(tmp_path / "whole.parquet.gz", gzip.compress(whole)))[0]) == len(ROWS) * 1000


def test_a_file_without_any_column_of_the_stream_is_an_error(tmp_path: Path) -> None:
    lenient = Stream("s", (Column("a", Type.BIGINT),))
    with pytest.raises(ConfigError, match="has no column of stream s: a"):
        read(written(tmp_path / "rows.csv", b"x,y\n1,2\n"), lenient)


def test_a_bad_row_of_parquet_is_shown_with_its_nanoseconds_cut_off(tmp_path: Path) -> None:
    times = pa.array([1, 2_000_001], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"ts": times, "x": [1, None]}), tmp_path / "rows.parquet")
    rows, (bad,) = read(tmp_path / "rows.parquet")
    assert [row["ts"] for row in rows] == [0]
    assert bad.raw == '{"ts":"1970-01-01T00:00:00.002000Z","x":null}'


def test_nulls_and_impossible_numbers_in_parquet_are_bad_rows(tmp_path: Path) -> None:
    table = pa.table({"ts": [1, 2, 3], "x": pa.array([1, None, 2**63], pa.uint64())})
    pq.write_table(table, tmp_path / "rows.parquet")
    rows, rejected = read(tmp_path / "rows.parquet")
    assert [row["ts"] for row in rows] == [1]
    assert [(bad.number, bad.code) for bad in rejected] == [(2, Code.NULL_FIELD), (3, Code.OUT_OF_RANGE)]


def test_a_column_of_parquet_that_cannot_be_is_an_error_of_the_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1], "x": [1.0]}), tmp_path / "rows.parquet")
    with pytest.raises(ConfigError, match="column 'x' is double"):
        FileSource(STREAM, str(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_file_without_a_column_that_must_be_there_is_an_error(tmp_path: Path, name: str) -> None:
    if name.endswith("csv"):
        (tmp_path / name).write_bytes(b"ts,k\n1,a\n")
    else:
        pq.write_table(pa.table({"ts": [1], "k": ["a"]}), tmp_path / name)
    with pytest.raises(ConfigError, match="has no column 'x'"):
        read(tmp_path / name)


@pytest.mark.parametrize("name", ["rows.txt", "rows", "rows.gz"])
def test_a_name_that_says_no_format_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="does not say what the file holds"):
        FileSource(STREAM, str(written(tmp_path / name, b"")))


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no file"):
        FileSource(STREAM, "nowhere.jsonl")


def test_a_broken_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read(written(tmp_path / "rows.jsonl.gz", b"this is not gzip"))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.jsonl.gz"])
def test_an_empty_file_has_no_rows(tmp_path: Path, name: str) -> None:
    content = gzip.compress(b"") if name.endswith("gz") else b""
    assert read(written(tmp_path / name, content)) == ([], [])


def test_rows_of_a_stream_without_timestamp_by_get_the_time_of_reading() -> None:
    stream = Stream("s", (Column("x", Type.BIGINT),))
    reader = JsonLines(stream, io.BytesIO(b'{"x": 1}\nbad\n{"x": 2}\n'), clock=lambda: 42)
    rows = [row for chunk in reader.chunks() for row in chunk.rows.to_pylist()]
    assert rows == [{"x": 1, "_time": 42}, {"x": 2, "_time": 42}]
