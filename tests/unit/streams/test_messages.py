"""Messages of every format become the same rows, in order, and what is wrong is said of the part that is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.schema import Column, Stream, Type
from stairwise.streams import rejected
from stairwise.streams.decoded_rows import BLOCK_ROWS, DecodedRows
from stairwise.streams.messages import ENOUGH_OBJECTS, UNLIKE, Format, MessageDecoder
from stairwise.streams.reason_codes import Code

STREAM = Stream(
    "t",
    (
        Column("ts", Type.TIMESTAMP, nullable=False),
        Column("k", Type.STRING, nullable=False),
        Column("v", Type.DOUBLE),
        Column("n", Type.BIGINT),
        Column("ok", Type.BOOLEAN),
    ),
    timestamp_by="ts",
)
STRICT = Stream("t", STREAM.columns, timestamp_by="ts", reject_unknown=True)
LIVE = Stream("t", (Column("v", Type.BIGINT),), live=True)


def arrow(table: pa.Table | pa.RecordBatch, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


def blocks(values: Sequence[bytes], stream: Stream = STREAM, told: Format | None = None) -> list[DecodedRows]:
    times = np.arange(100, 100 + len(values)) if stream.timestamp_by is None else None
    return list(MessageDecoder(stream).decode(values, times, lambda _: told))


def rows(values: Sequence[bytes], stream: Stream = STREAM, told: Format | None = None) -> list[dict[str, object]]:
    return [row for block in blocks(values, stream, told) for row in block.rows.to_pylist()]


def reasons(
    values: Sequence[bytes], stream: Stream = STREAM, told: Format | None = None
) -> list[tuple[int, Code, str | None, bytes | None]]:
    return [
        (bad.message, bad.reason.code, bad.reason.field, bad.excerpt)
        for block in blocks(values, stream, told)
        for bad in block.bad
    ]


def row(ts: int, k: str = "a", v: float | None = None) -> dict[str, object]:
    return {"ts": ts, "k": k, "v": v, "n": None, "ok": None}


def test_objects_lines_and_arrow_batches_mix_in_order() -> None:
    batch = pa.table({"k": ["c", "d"], "ts": [4, 5], "v": [0.5, None]})
    values = [b'{"ts":1,"k":"a"}', b'{"ts":2,"k":"a"}\n{"ts":3,"k":"b","v":1}\n', arrow(batch), b'{"k":"e","ts":6}']
    assert rows(values) == [row(1), row(2), row(3, "b", 1.0), row(4, "c", 0.5), row(5, "d"), row(6, "e")]
    assert [m for block in blocks(values) for m in block.message.tolist()] == [0, 1, 1, 2, 2, 3]


ODD = {
    "none": b'{"ts":1,"k":"a","n":1}',
    "other order": b'{"k":"a","ts":1,"n":1}',
    "null": b'{"ts":1,"k":null,"n":1}',
    "too far": b'{"ts":999999999999999999,"k":"a","n":1}',
    "two lines": b'{"ts":1,"k":"a","n":1}\n{"ts":2,"k":"b","n":2}',
    "a line's end": b'{"ts":1,"k":"a","n":1}\n',
    "two objects": b'{"ts":1,"k":"a","n":1}{"ts":2,"k":"b","n":2}',
    "empty": b"",
    "no JSON": b"ts,k,n",
    "Arrow": arrow(pa.table({"ts": [1], "k": ["a"], "n": [1]})),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("at", [0, ENOUGH_OBJECTS // 2, ENOUGH_OBJECTS])
def test_many_objects_are_what_they_are_one_by_one(odd: str, at: int) -> None:
    """Also in the times after some that did not look alike, and once those are over."""
    alike = [b'{"ts":%d,"k":"k%d","n":%d}' % (100 + n, n % 7, n) for n in range(ENOUGH_OBJECTS)]
    values = [*alike[:at], ODD[odd], *alike[at:]]
    few = MessageDecoder(STREAM)
    expected = _told(
        (start, block)
        for start in range(0, len(values), 1_000)
        for block in few.decode(values[start : start + 1_000], None, lambda _: None)
    )
    decoder = MessageDecoder(STREAM)
    for _ in range(UNLIKE + 2):
        assert _told((0, block) for block in decoder.decode(values, None, lambda _: None)) == expected


def _told(blocks_from: Iterable[tuple[int, DecodedRows]]) -> tuple[list[object], list[object], list[object]]:
    """Rows, what is bad, and the parts that the rows were, with the numbers of their messages."""
    rows: list[object] = []
    bad: list[object] = []
    parts: list[object] = []
    for start, block in blocks_from:
        rows += zip((block.message + start).tolist(), block.rows.to_pylist(), strict=True)
        bad += [(b.message + start, b.rows, b.reason.code, b.reason.field, b.excerpt) for b in block.bad]
        parts += [(message + start, *part) for message, *part in block.parts(np.arange(block.rows.num_rows))]
    return rows, bad, parts


def test_lines_may_end_as_windows_ends_them_and_empty_ones_are_no_rows() -> None:
    assert rows([b'{"ts":1,"k":"a"}\r\n{"ts":2,"k":"a"}\r\n\r\n\n']) == [row(1), row(2)]


def test_an_object_may_be_written_over_several_lines() -> None:
    assert rows([b'{\n "ts": 1,\n "k": "a"\n}\n']) == [row(1)]


def test_a_content_type_of_json_means_one_object() -> None:
    assert reasons([b'{"ts":1,"k":"a"}\n{"ts":2,"k":"a"}'], told=Format.JSON) == [(0, Code.MALFORMED, None, None)]


def test_a_row_that_its_publisher_rejected_is_bad_for_the_reason_that_it_gives() -> None:
    said = rejected.encode(Code.WRONG_TYPE, "n", 'a.csv, line 3: field "n"', "a,b,x")
    told = [Format.REJECTED, None, Format.REJECTED]
    values = [said, b'{"v": 1}', b'{"v": 2}'] * 1000
    (block,) = MessageDecoder(LIVE).decode(values, np.zeros(len(values), np.int64), lambda i: told[i % 3])
    assert block.rows.num_rows == 2000  # an object is a row, whatever its header says
    assert len(block.bad) == 1000
    bad = block.bad[0]
    assert (bad.rows, bad.reason.code, bad.reason.field, bad.excerpt) == (1, Code.WRONG_TYPE, "n", b"a,b,x")
    assert bad.reason.message == 'a.csv, line 3: field "n"'
    assert reasons([b'["NO", null]'], LIVE, Format.REJECTED) == [(0, Code.MALFORMED, None, None)]


def test_a_bad_line_is_bad_alone() -> None:
    block = b'{"ts":1,"k":"a"}\n{"ts":2}\n{"ts":3,"k":"a","v":"x"}\n{"ts":4,"k":"b"}\n{"ts":5,"k":"b","ts":6}'
    assert rows([block]) == [row(1), row(4, "b")]
    assert reasons([b'{"ts":0,"k":"a"}', block]) == [
        (1, Code.MISSING_FIELD, "k", b'{"ts":2}'),
        (1, Code.WRONG_TYPE, "v", b'{"ts":3,"k":"a","v":"x"}'),
        (1, Code.DUPLICATE_FIELD, "ts", b'{"ts":5,"k":"b","ts":6}'),
    ]


def test_more_lines_than_a_block_has_rows_are_cut() -> None:
    lines = [b'{"ts":%d,"k":"a"}' % i for i in range(2 * BLOCK_ROWS + 5)]
    found = blocks([b"\n".join(lines)])
    assert [block.rows.num_rows for block in found] == [BLOCK_ROWS, BLOCK_ROWS, 5]
    assert [r["ts"] for b in found for r in b.rows.to_pylist()] == list(range(2 * BLOCK_ROWS + 5))
    assert list(found[1].parts(np.array([3]))) == [(0, 1, lines[BLOCK_ROWS + 3])]


def test_parts_are_the_bytes_that_came() -> None:
    values = [b'{"ts":1,"k":"a"}', b'{"ts":2,"k":"a"}\n{"ts":3,"k":"b"}\n', b'{"ts":4, "k":"a"}']
    (block,) = blocks(values)
    assert list(block.parts(np.array([0, 2, 3]))) == [(0, 1, None), (1, 1, b'{"ts":3,"k":"b"}'), (2, 1, None)]


def test_parts_of_an_arrow_message_are_one_arrow_message() -> None:
    table = pa.table({"ts": [1, 2, 3], "k": ["a", "b", "c"], "extra": [7, 8, 9]})
    (block,) = blocks([arrow(table)])
    ((message, count, excerpt),) = block.parts(np.array([0, 2]))
    assert (message, count) == (0, 2)
    assert excerpt is not None
    assert pa.ipc.open_stream(excerpt).read_all().to_pylist() == table.take([0, 2]).to_pylist()


def test_arrow_types_that_hold_the_same_values_are_taken() -> None:
    table = pa.table(
        {
            "ts": pa.array([1_999, -1, None], pa.timestamp("us")),
            "k": pa.array(["a", "b", "c"], pa.large_string()),
            "v": pa.array([1, 2, None], pa.int8()),
            "n": pa.array([1, None, 3], pa.uint32()),
        }
    )
    assert rows([arrow(table)]) == [
        {"ts": 1, "k": "a", "v": 1.0, "n": 1, "ok": None},
        {"ts": -1, "k": "b", "v": 2.0, "n": None, "ok": None},
    ]
    ((message, code, field, excerpt),) = reasons([arrow(table)])
    assert (message, code, field) == (0, Code.NULL_FIELD, "ts")
    assert pa.ipc.open_stream(excerpt).read_all().to_pylist() == table.take([2]).to_pylist()


def test_rows_of_a_stream_without_a_time_take_that_of_their_message() -> None:
    values = [b'{"v":1}', b'{"v":2}\n{"v":3}', arrow(pa.table({"v": [4, 5]}))]
    assert [(r["v"], r["_time"]) for r in rows(values, LIVE)] == [(1, 100), (2, 101), (3, 101), (4, 102), (5, 102)]


GOOD = pa.table({"ts": [1], "k": ["a"]})
REFUSED = {
    "torn": (arrow(GOOD)[:-60], Code.MALFORMED, None),
    "noise": (b"\xff\xff\xff\xff" + bytes(range(200)), Code.MALFORMED, None),
    "only the marker": (b"\xff\xff\xff\xff", Code.MALFORMED, None),
    "compressed": (arrow(pa.table({"ts": [1] * 999, "k": ["a"] * 999}), compression="lz4"), Code.MALFORMED, None),
    "dictionary": (arrow(pa.table({"ts": [1], "k": pa.array(["a"]).dictionary_encode()})), Code.WRONG_TYPE, "k"),
    "type": (arrow(pa.table({"ts": ["1"], "k": ["a"]})), Code.WRONG_TYPE, "ts"),
    "missing": (arrow(pa.table({"ts": [1]})), Code.MISSING_FIELD, "k"),
    "none of its columns": (arrow(pa.table({"x": [1]})), Code.MISSING_FIELD, None),
    "too big": (arrow(GOOD.append_column("n", pa.array([2**63], pa.uint64()))), Code.OUT_OF_RANGE, "n"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_arrow_message_that_cannot_be_the_streams_is_refused_whole(name: str) -> None:
    value, code, field = REFUSED[name]
    assert reasons([b'{"ts":1,"k":"a"}', value]) == [(1, code, field, None)]
    assert rows([value]) == []


def test_a_batch_with_more_rows_than_could_be_meant_is_refused() -> None:
    value = arrow(pa.table({"v": pa.array(np.zeros(1 << 20 | 1, np.int8))}))
    assert [code for _, code, _, _ in reasons([value], LIVE)] == [Code.TOO_LARGE]


def test_unknown_fields_are_passed_over_or_rejected_as_the_stream_says() -> None:
    values = [b'{"ts":1,"k":"a","x":{"ts":3}}', arrow(GOOD.append_column("x", pa.array([1])))]
    assert rows(values) == [row(1), row(1)]
    assert reasons(values, STRICT) == [(0, Code.UNKNOWN_FIELD, "x", None), (1, Code.UNKNOWN_FIELD, "x", None)]


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
def test_a_corrupt_arrow_message_is_rows_or_refused_and_never_an_accident(at: int, noise: bytes) -> None:
    value = bytearray(arrow(pa.table({"ts": [1, 2], "k": ["a", "bc"], "v": [0.5, None], "n": [1, 2]})))
    at %= len(value)
    value[at : at + len(noise)] = noise
    for block in blocks([b"\xff\xff\xff\xff" + bytes(value[4:])]):
        block.rows.validate(full=True)


TEXT = st.sampled_from(["", "a", ":", '"ts"', '"ts":', "k", "\\", "ü", "\n"])
VALUE = st.one_of(st.none(), st.integers(-5, 5), TEXT, st.booleans())
KEY = st.sampled_from(["ts", "k", "v", "n", "ok", "x", "t:s"])


@given(st.lists(st.lists(st.tuples(KEY, VALUE), max_size=6), min_size=1, max_size=8), st.booleans(), st.booleans())
def test_a_declared_field_that_comes_twice_is_found_whatever_else_is_there(objects, ascii_, lines) -> None:
    """Against a reader that keeps all keys."""

    def text(pairs: list[tuple[str, object]]) -> bytes:
        inner = ", ".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=ascii_)}" for k, v in pairs)
        return ("{" + inner + "}").encode()

    full = [[("ts", 1), ("k", "a"), *pairs] for pairs in objects]
    texts = [text(pairs) for pairs in full]
    found = {b.excerpt or texts[b.message] for block in blocks([b"\n".join(texts)] if lines else texts)
             for b in block.bad if b.reason.code is Code.DUPLICATE_FIELD}  # fmt: skip
    for pairs, raw in zip(full, texts, strict=True):
        names = [k for k, _ in pairs if k in STREAM.by_name]
        twice = len(names) > len(set(names))
        read_alone = not [1 for b in blocks([raw]) for bad in b.bad if bad.reason.code is not Code.DUPLICATE_FIELD]
        assert (raw in found) == (twice and read_alone)


def test_a_few_bytes_that_would_be_very_many_rows_are_refused() -> None:
    stream = Stream("t", (Column("ok", Type.BOOLEAN), Column("v", Type.DOUBLE)), live=True)
    few, many = (arrow(pa.table({"ok": pa.array(np.ones(count, bool))})) for count in (100, 100_000))
    assert len(many) < 100_000
    found = list(MessageDecoder(stream).decode([few, many, few], np.array([7, 8, 9]), lambda _: None))
    assert [block.rows.num_rows for block in found if block.rows.num_rows] == [100, 100]
    assert [(bad.message, bad.reason.code) for block in found for bad in block.bad] == [(1, Code.TOO_LARGE)]


KINDS = ["plain", "two batches", "null", "torn", "strings torn", "line", "no batch", "no end", "two schemas", "no rows"]
KINDS += ["only a schema", "noise behind"]


@given(st.lists(st.sampled_from(KINDS), max_size=8))
def test_what_an_arrow_message_is_does_not_depend_on_its_neighbours(kinds: list[str]) -> None:
    """They are read together where they are alike; each must be what it is by itself."""
    whole = pa.record_batch({"ts": [1, 2], "k": ["a", "bc"], "n": [1, None]})
    plain = arrow(whole)
    broken = bytearray(plain)
    at = plain.index(b"abc")
    broken[at + 1] = 0xFF
    empty = arrow(whole.slice(0, 0))
    only_schema = arrow(pa.Table.from_batches([], schema=whole.schema))
    assert plain.startswith(only_schema[:-8])
    values = {
        "no batch": only_schema,
        "only a schema": only_schema[:-8],
        "no end": plain[:-8],
        "two schemas": only_schema[:-8] + plain,
        "no rows": empty,
        "noise behind": plain + b"\xff" * 9,
        "plain": plain,
        "two batches": arrow(pa.Table.from_batches([whole, whole])),
        "null": arrow(pa.record_batch({"ts": [1, 2], "k": ["a", None], "n": [1, None]})),
        "torn": plain[:-30],
        "strings torn": bytes(broken),
        "line": b'{"ts":5,"k":"x"}',
    }
    messages = [values[kind] for kind in kinds]
    together = blocks(messages)
    alone = [blocks([message]) for message in messages]
    assert rows(messages) == [row for found in alone for block in found for row in block.rows.to_pylist()]
    assert [m for block in together for m in block.message.tolist()] == [
        number for number, found in enumerate(alone) for block in found for _ in range(block.rows.num_rows)
    ]
    assert reasons(messages) == [
        (number, bad.reason.code, bad.reason.field, bad.excerpt)
        for number, found in enumerate(alone)
        for block in found
        for bad in block.bad
    ]
    late = [part for block in together for part in block.parts(np.arange(block.rows.num_rows))]
    assert [(message, count) for message, count, _ in late] == [
        (number, count)
        for number, found in enumerate(alone)
        for block in found
        for _, count, _ in block.parts(np.arange(block.rows.num_rows))
    ]
