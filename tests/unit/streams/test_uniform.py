"""Lines that look alike are read as columns, and give what they give one by one; or nothing, and are read so."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.schema import Column, Stream, Type
from stairwise.streams.rows import RowDecoder
from stairwise.streams.uniform import UniformDecoder

STREAM = Stream(
    "t",
    (
        Column("ts", Type.TIMESTAMP, nullable=False),
        Column("k", Type.STRING, nullable=False),
        Column("a long name", Type.DOUBLE),
        Column("n", Type.BIGINT),
        Column("ok", Type.BOOLEAN),
    ),
    timestamp_by="ts",
)


def uniform(lines: Sequence[bytes], stream: Stream = STREAM) -> pa.RecordBatch | None:
    return UniformDecoder(stream).decode([line + b"\n" for line in lines], len(lines), None)


def one_by_one(lines: Sequence[bytes]) -> pa.RecordBatch | None:
    """The rows as the decoder of single messages reads them; None where one is bad."""
    decoded = RowDecoder(STREAM).decode(lines)
    return None if decoded.bad else decoded.rows


def line(**fields: object) -> bytes:
    return json.dumps({"ts": 1, "k": "a"} | fields).encode()


def test_keys_in_any_order_and_with_spaces_are_read() -> None:
    lines = [b'{ "n": %d, "k":"x:,{}%d", "ts": 5 }' % (i, i) for i in range(-3, 12)]
    rows = uniform(lines)
    assert rows is not None
    assert rows.equals(one_by_one(lines))


def test_nulls_and_booleans_are_read() -> None:
    values: list[tuple[object, object]] = [(None, True), (1, None), (2.5, False), (-3, True)]
    lines = [json.dumps({"ts": 1, "k": "a", "a long name": x, "ok": ok, "n": None}).encode() for x, ok in values]
    rows = uniform(lines)
    assert rows is not None
    assert rows.equals(one_by_one(lines))
    assert rows["a long name"].to_pylist() == [None, 1.0, 2.5, -3.0]
    assert rows["n"].null_count == 4


@pytest.mark.parametrize(
    "odd",
    [
        line(n="1"),
        line(n=1, x=2),
        line(),
        line(n=1, k='"'),
        line(n=1, k="\t"),
        line(n=2**63),
        line(n=[1]),
        b'{"ts": 1, "k": "a", "n": 01}',
        b'{"ts": 1, "k": "a", "n": 0x1}',
        b'{"ts": 1, "k": "a", "n": 1.0}',
        b'{"ts": 1, "k": "a", "n": +1}',
        b'{"ts": 1, "k": "a", "n": -}',
        b'{"ts": 1, "k": "a", "n": }',
        b'{"ts": 1, "k": "a", "n": 1},',
        b'{"ts": 1, "k": "a", "n": 1}{"ts": 1, "k": "a", "n": 1}',
        b'{"ts": 1, "k": "\xff", "n": 1}',
        b'{"ts": null, "k": "a", "n": 1}',
        b'{"ts": 1, "k": "a", "ts": 1}',
        b'["ts": 1, "k": "a", "n": 1}',
        b'{"ts": 1, "k": "a" "n": 1}',
        b'{"ts": 1, "k": "a", "n": 1',
        b"",
    ],
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_line_that_is_not_like_the_others_leaves_them_to_be_read_one_by_one(odd: bytes, at: int) -> None:
    lines = [line(n=1), line(n=2)]
    lines.insert(at, odd)
    rows = uniform(lines)
    assert rows is None or rows.equals(one_by_one(lines))


@pytest.mark.parametrize("text", ["nan", "NaN", "Infinity", "-inf", "1.", ".5", "-.5", "01.5", "1e", "1e999", "0x1p3"])
def test_what_is_no_number_in_json_is_none_here(text: str) -> None:
    lines = [b'{"ts": 1, "k": "a", "a long name": %s}' % v for v in (b"1.5", text.encode(), b"2")]
    assert uniform(lines) is None


NUMBERS = (
    st.integers(-(2**64), 2**64).map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.sampled_from(["0", "-0", "-0.0", "0.0", "1E5", "1e+5", "1e-400", "00", "1..2", "--1", "1-1", "null", "true"])
    | st.text("0123456789.-+eE", min_size=1, max_size=6)
)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.text(max_size=4)), min_size=1, max_size=4), st.booleans())
def test_numbers_and_strings_are_what_they_are_one_by_one(rows: list[tuple[str, str, str]], spaces: bool) -> None:
    sep = ", " if spaces else ","
    lines = [
        sep.join(
            (f'{{"ts":{n % 7 + 1}', f'"k":{json.dumps(k, ensure_ascii=False)}', f'"n":{a}', f'"a long name":{b}}}')
        )
        for n, (a, b, k) in enumerate(rows)
    ]
    encoded = [text.encode() for text in lines]
    found = uniform(encoded)
    if found is not None:
        expected = one_by_one(encoded)
        assert expected is not None
        assert found.equals(expected)
        signs = [math.copysign(1, x) for x in expected["a long name"].drop_null().to_pylist()]
        assert [math.copysign(1, x) for x in found["a long name"].drop_null().to_pylist()] == signs


@given(st.data())
def test_damage_is_never_read_as_something_else(data: st.DataObject) -> None:
    good = [b'{"ts":%d,"k":"key%d","a long name":%d.25,"n":%d,"ok":true}' % (n, n, n, n) for n in range(1, 5)]
    text = bytearray(b"\n".join(good))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        match data.draw(st.sampled_from(["change", "drop", "add"])):
            case "change":
                text[at] = data.draw(st.sampled_from(b'{}[]":,.\\-01e \xff'))
            case "drop":
                del text[at]
            case "add":
                text.insert(at, data.draw(st.sampled_from(b'{}[]":,.\\-01e \xff')))
    lines = bytes(text).split(b"\n")
    found = uniform(lines)
    if found is not None:
        expected = one_by_one(lines)
        assert expected is not None
        assert found.equals(expected)


def test_a_stream_without_a_time_of_its_own_takes_that_of_its_messages() -> None:
    live = Stream("t", (Column("v", Type.BIGINT),), live=True)
    rows = UniformDecoder(live).decode([b'{"v":1}\n{"v":2}\n'], 2, np.array([7, 8]))
    assert rows is not None
    assert rows.to_pylist() == [{"v": 1, "_time": 7}, {"v": 2, "_time": 8}]
