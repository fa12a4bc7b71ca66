"""A column may be called anything that CREATE STREAM takes: whatever its name, the same lines come out of every format.

The oracle is the same script with plain names: nothing but the names may differ.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stairwise.algebra.spelling import spell_stream
from stairwise.client.publisher import _key_reader
from stairwise.cql.script import Catalogue
from stairwise.cql.select import RESERVED_OUTPUTS
from stairwise.local.driver import run_files
from stairwise.local.output import CsvOutput, JsonOutput
from stairwise.plan.explain import explain
from stairwise.schema import Stream, Type, quoted
from stairwise.streams.messages import ENOUGH_OBJECTS, MessageDecoder
from stairwise.streams.reason_codes import Code
from stairwise.wire.schemas import stream_from_proto, stream_to_proto

HOSTILE = [
    '"',
    "\\",
    '\\"',
    "\x00",
    "\n",
    "\r\n",
    "\t",
    "\x1f",
    "\x7f",
    " ",
    "'",
    ";",
    "--",
    "/*",
    ":",
    '":',
    "{",
    "}",
    ",",
]
HOSTILE += ["a.b", "a", "$", "select", "", "é", "\u2028", "😀", "%s", "{0}", "\\u0041", "A", "/", "\ufeff"]
OURS = [
    "_t",
    "_p",
    "_s",
    "keep",
    "_appeared",
    "_number",
    "level",
    "time",
    "query",
    "diff",
    "row",
    "f0",
    "key",
    "item",
]
NAMES = (
    st.sampled_from(HOSTILE)
    | st.lists(st.sampled_from(HOSTILE), max_size=4).map("".join)
    | st.sampled_from(OURS)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
).filter(lambda name: name and name not in RESERVED_OUTPUTS)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.BIGINT: st.integers(-3, 3),
    Type.DOUBLE: st.integers(-3, 3).map(lambda x: x / 2),
    Type.STRING: st.sampled_from(["", "x", 'y":"', "\\"]),
    Type.BOOLEAN: st.booleans(),
    Type.TIMESTAMP: st.integers(0, 3),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[Type], list[list[Any]]]:
    """Names, the first of which is the time's, the types of the others, and rows."""
    names = draw(st.lists(NAMES, min_size=3, max_size=4, unique=True))
    types = [draw(st.sampled_from(list(VALUES))) for _ in names[1:]]
    rows = draw(st.lists(st.tuples(*(st.none() | VALUES[type_] for type_ in types)), min_size=1, max_size=5))
    return names, types, [[1_000 * i, *row] for i, row in enumerate(rows)]


def script(names: Sequence[str], types: Sequence[Type]) -> str:
    ts, a, b, *_ = map(quoted, names)
    typed = ", ".join(f"{quoted(n)} {t.value}" for n, t in zip(names[1:], types, strict=True))
    everything = ", ".join(map(quoted, names))
    return f"""
        CREATE STREAM s ({ts} TIMESTAMP, {typed}) TIMESTAMP BY {ts} PARTITION BY {a} PARTITIONS 1;
        SELECT {everything} FROM s WHERE {a} IS NULL OR {b} IS NOT NULL;
        SELECT {a}, COUNT({b}) AS {b} FROM s [RANGE 3 SECONDS SLIDE 1 SECOND] GROUP BY {a} HAVING COUNT(*) > 0;
        SELECT DISTINCT {b}, {a} FROM s [TUMBLE 2 SECONDS];
        SELECT x.{a}, y.{b} FROM s [RANGE 2 SECONDS] x JOIN s [RANGE 1 SECOND] y ON x.{a} = y.{a};
        SELECT {b}, COUNT(*) AS {a} FROM s [ROWS 2] GROUP BY {b};
        SELECT {a}, {b} FROM s [PARTITION BY {a} ROWS 1];
        SELECT {a} FROM s [RANGE 2 SECONDS] EXCEPT SELECT {a} FROM s [RANGE 1 SECOND];
        SELECT {", ".join(f"{quoted(n)} AS o{i}" for i, n in enumerate(names))} FROM s [RANGES 4s, 2s SLIDES 2s, 1s];
    """


def jsonl(names: Sequence[str], types: Sequence[Type], rows: Sequence[Sequence[Any]]) -> bytes:
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows).encode()


def unescaped(names: Sequence[str], types: Sequence[Type], rows: Sequence[Sequence[Any]]) -> bytes:
    lines = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows]
    return "".join(line + "\n" for line in lines).encode()


def comma_separated(names: Sequence[str], types: Sequence[Type], rows: Sequence[Sequence[Any]]) -> bytes:
    def field(value: Any) -> str:
        return "" if value is None else '"' + str(value).replace('"', '""') + '"'

    return "".join(",".join(map(field, row)) + "\n" for row in (names, *rows)).encode()


def parquet(names: Sequence[str], types: Sequence[Type], rows: Sequence[Sequence[Any]]) -> bytes:
    arrays = [pa.array(c, t.arrow) for c, t in zip(zip(*rows, strict=True), [Type.TIMESTAMP, *types], strict=True)]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=list(names)), file)
    return file.getvalue()


FORMATS: dict[str, Callable[..., bytes]] = {
    "rows.jsonl": jsonl,
    "rows.ndjson": unescaped,
    "rows.csv": comma_separated,
    "rows.parquet": parquet,
}


def lines_of(text: str, path: Path) -> tuple[Catalogue, list[dict[str, Any]]]:
    catalogue = Catalogue()
    catalogue.execute(text)
    queries = list(catalogue.queries.values())
    out = io.BytesIO()
    summary = run_files(catalogue.streams, queries, {"s": [str(path)]}, JsonOutput(queries, out))
    assert summary.streams[0].bad == 0
    return catalogue, [json.loads(line) for line in out.getvalue().splitlines()]


@settings(max_examples=settings().max_examples // 3 or 1)
@given(tables(), st.sampled_from(sorted(FORMATS)))
def test_the_same_lines_come_out_whatever_the_columns_are_called(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[list[str], list[Type], list[list[Any]]], name: str
) -> None:
    names, types, rows = drawn
    directory = tmp_path_factory.mktemp("names", numbered=True)
    plain = [f"c{i}" for i in range(len(names))]
    (directory / "plain.jsonl").write_bytes(jsonl(plain, types, rows))
    _, expected = lines_of(script(plain, types), directory / "plain.jsonl")
    (directory / name).write_bytes(FORMATS[name](names, types, rows))
    catalogue, found = lines_of(script(names, types), directory / name)
    odd = dict(zip(plain, names, strict=True))
    assert found == [{**line, "row": _renamed(line["row"], odd)} for line in expected]
    stream = catalogue.streams["s"]
    assert stream_from_proto(stream_to_proto(stream)) == stream
    again = Catalogue()
    again.execute(spell_stream(stream))
    assert again.streams["s"] == stream
    for query in catalogue.queries.values():
        assert explain(query, {})


def _renamed(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in row.items()}


@given(tables())
def test_every_message_format_gives_the_same_rows_and_says_the_field_that_is_wrong(
    drawn: tuple[list[str], list[Type], list[list[Any]]],
) -> None:
    names, types, rows = drawn
    catalogue = Catalogue()
    catalogue.execute(script(names, types))
    stream = catalogue.streams["s"]
    for declared in (stream, replace(stream, reject_unknown=True)):
        expected = [dict(zip(names, row, strict=True)) for row in rows]
        lines = jsonl(names, types, rows).splitlines()
        many = lines * (ENOUGH_OBJECTS // len(lines) + 1)
        for messages in (lines, [b"\n".join(lines)], unescaped(names, types, rows).split(b"\n")[:-1]):
            assert decoded(declared, messages) == (expected, [])
        assert decoded(declared, many) == (expected * (len(many) // len(lines)), [])
        batch = pa.RecordBatch.from_pylist(expected, schema=declared.arrow_schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        assert decoded(declared, [bytes(sink.getvalue())]) == (expected, [])
        wrong = [b'{"no such": 1, ' + lines[0][1:], json.dumps({names[0]: []}).encode()]
        wrong.append(lines[0][:-1] + b", " + json.dumps(names[1]).encode() + b": null}")
        spelled = "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in names[0])
        wrong.append(lines[0][:-1] + f', "{spelled}": 1}}'.encode())
        found = decoded(declared, wrong)
        is_strict = declared.reject_unknown
        assert found[0] == ([] if is_strict or "no such" in names else expected[:1])
        codes = [(Code.WRONG_TYPE, names[0]), (Code.DUPLICATE_FIELD, names[1]), (Code.DUPLICATE_FIELD, names[0])]
        assert found[1] == [(Code.UNKNOWN_FIELD, "no such")] * is_strict + codes
    assert _key_reader(stream)(lines[0]) == rows[0][1]


def decoded(stream: Stream, messages: Sequence[bytes]) -> tuple[list[dict[str, Any]], list[tuple[Code, str | None]]]:
    blocks = list(MessageDecoder(stream).decode(messages, None, lambda _: None))
    rows = [row for block in blocks for row in block.rows.to_pylist()]
    return rows, [(bad.reason.code, bad.reason.field) for block in blocks for bad in block.bad]


@given(st.lists(NAMES.filter(lambda n: n not in ("query", "time", "diff")), min_size=1, max_size=3, unique=True))
def test_the_header_of_comma_separated_results_can_be_read_again(names: list[str]) -> None:
    catalogue = Catalogue()
    columns = ", ".join(f"{quoted(name)} BIGINT" for name in names)
    catalogue.execute(f"CREATE STREAM s ({columns}); SELECT {', '.join(map(quoted, names))} FROM s")
    out = io.BytesIO()
    CsvOutput(list(catalogue.queries.values()), out).close()
    assert next(csv.reader(io.StringIO(out.getvalue().decode(), newline=""))) == ["query", "time", "diff", *names]
