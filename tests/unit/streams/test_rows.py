"""JSON messages become rows or bad rows with a reason, and nothing is lost on the way."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.schema import LATEST, Column, Stream, Type
from stairwise.streams.reason_codes import Code
from stairwise.streams.rows import BadRow, RowDecoder

TRADES = Stream(
    "trades",
    (
        Column("ts", Type.TIMESTAMP, nullable=False),
        Column("ticker", Type.STRING, nullable=False),
        Column("price", Type.DOUBLE),
        Column("qty", Type.BIGINT),
        Column("open", Type.BOOLEAN),
        Column("seen", Type.TIMESTAMP),
    ),
    timestamp_by="ts",
)
DECODER = RowDecoder(TRADES)


def row(**values: object) -> bytes:
    return json.dumps({"ts": 1, "ticker": "AB", **values}).encode()


def only_bad(message: bytes) -> BadRow:
    decoded = DECODER.decode([message])
    assert decoded.rows.num_rows == 0
    (bad,) = decoded.bad
    return bad


def value_of(column: str, message: bytes) -> object:
    decoded = DECODER.decode([message])
    assert not decoded.bad
    return decoded.rows.column(column)[0].as_py()


def test_every_type_is_decoded_into_its_arrow_column() -> None:
    decoded = DECODER.decode([row(price=1.5, qty=7, open=True, seen=9)])
    assert decoded.rows.schema == TRADES.arrow_schema
    assert decoded.rows.to_pylist() == [{"ts": 1, "ticker": "AB", "price": 1.5, "qty": 7, "open": True, "seen": 9}]


@pytest.mark.parametrize(
    ("column", "given", "value"),
    [
        ("price", 3, 3.0),
        ("price", -1e300, -1e300),
        ("price", "Infinity", math.inf),
        ("price", "-Infinity", -math.inf),
        ("price", None, None),
        ("qty", 2**63 - 1, 2**63 - 1),
        ("qty", -(2**63), -(2**63)),
        ("seen", "1970-01-01T00:00:01.5Z", 1500),
        ("seen", "1970-01-01T01:00:00+01:00", 0),
        ("seen", "1969-12-31T23:59:59.9995Z", -1),
        ("ticker", "", ""),
        ("ticker", "é\n\u0000", "é\n\u0000"),
    ],
)
def test_a_value_is_taken(column: str, given: object, value: object) -> None:
    assert value_of(column, row(**{column: given})) == value


def test_nan_is_a_double() -> None:
    assert math.isnan(value_of("price", row(price="NaN")))  # type: ignore[arg-type]


def test_a_missing_nullable_field_is_null() -> None:
    assert value_of("qty", b'{"ts": 1, "ticker": "AB"}') is None


def test_unknown_fields_are_skipped_unread() -> None:
    assert value_of("ticker", b'{"x": [1, {"y": 1e999}], "ts": 1, "ticker": "AB"}') == "AB"


def test_a_row_with_a_key_that_comes_twice_is_bad() -> None:
    bad = only_bad(b'{"ts": 1, "ticker": "AB", "ticker": "CD"}')
    assert (bad.code, bad.field) == (Code.DUPLICATE_FIELD, "ticker")


@pytest.mark.parametrize(
    ("message", "code", "field"),
    [
        (row(qty=1.0), Code.WRONG_TYPE, "qty"),
        (row(qty="1"), Code.WRONG_TYPE, "qty"),
        (row(qty=True), Code.WRONG_TYPE, "qty"),
        (row(qty=2**63), Code.OUT_OF_RANGE, "qty"),
        (row(qty=-(2**63) - 1), Code.OUT_OF_RANGE, "qty"),
        (row(price="1.5"), Code.WRONG_TYPE, "price"),
        (row(price="nan"), Code.WRONG_TYPE, "price"),
        (row(open=1), Code.WRONG_TYPE, "open"),
        (row(ticker=5), Code.WRONG_TYPE, "ticker"),
        (row(ticker=None), Code.NULL_FIELD, "ticker"),
        (row(ts=None), Code.NULL_FIELD, "ts"),
        (row(ts="yesterday"), Code.WRONG_TYPE, "ts"),
        (row(ts="2024-01-01T00:00:00"), Code.WRONG_TYPE, "ts"),
        (row(ts=1.5), Code.WRONG_TYPE, "ts"),
        (row(ts=LATEST + 1), Code.OUT_OF_RANGE, "ts"),
        (b'{"ts": 1}', Code.MISSING_FIELD, "ticker"),
        (b'{"ticker": "AB"}', Code.MISSING_FIELD, "ts"),
        (b"", Code.MALFORMED, None),
        (b"  ", Code.MALFORMED, None),
        (b"null", Code.MALFORMED, None),
        (b"[1]", Code.MALFORMED, None),
        (b'{"ts": 1', Code.MALFORMED, None),
        (row() + row(), Code.MALFORMED, None),
        (b'{"ts": 1, "ticker": "\xff"}', Code.MALFORMED, None),
        (b'{"ts": 1, "ticker": "\\ud800"}', Code.MALFORMED, None),
        (b'{"ts": 1, "ticker": "AB", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", Code.MALFORMED, None),
        (b'{"ts": 1, "ticker": "AB", "price": 1e999}', Code.OUT_OF_RANGE, None),
    ],
)
def test_a_bad_message_says_why(message: bytes, code: Code, field: str | None) -> None:
    bad = only_bad(message)
    assert (bad.code, bad.field) == (code, field)
    assert bad.message


def test_the_message_names_the_field_what_was_expected_and_what_was_there() -> None:
    assert only_bad(row(qty="many")).message == "field 'qty': expected an integer, got \"many\""


def test_microseconds_are_recognised_by_their_size() -> None:
    assert "microseconds" in only_bad(row(ts=1_700_000_000_000_000)).message


def test_good_rows_know_the_messages_that_they_came_from() -> None:
    decoded = DECODER.decode([row(qty=0), b"x", row(qty=2), row(ts=LATEST + 1), row(qty=4), b""])
    assert decoded.rows.column("qty").to_pylist() == [0, 2, 4]
    assert decoded.index.tolist() == [0, 2, 4]
    assert [bad.index for bad in decoded.bad] == [1, 3, 5]


def test_a_stream_without_timestamp_by_takes_its_time_from_the_transport() -> None:
    decoder = RowDecoder(Stream("s", (Column("x", Type.BIGINT),)))
    decoded = decoder.decode([b'{"x": 1}', b"x", b'{"x": 3}'], np.array([10, 20, 30]))
    assert decoded.rows.to_pylist() == [{"x": 1, "_time": 10}, {"x": 3, "_time": 30}]


def test_quoted_names_of_columns_are_the_names_of_fields() -> None:
    stream = Stream("s", (Column("ts", Type.TIMESTAMP), Column("a b", Type.BIGINT)), timestamp_by="ts")
    decoded = RowDecoder(stream).decode([b'{"ts": 1, "a b": 2}'])
    assert decoded.rows.to_pylist() == [{"ts": 1, "a b": 2}]


MESSAGES = st.lists(
    st.sampled_from([row(), row(price=2), row(price="NaN"), row(ts="1970-01-01T00:00:00Z"), b"x", b"", b"{}"])
    | st.binary(max_size=12).filter(lambda message: b"\n" not in message)
)


@given(MESSAGES)
def test_every_message_is_a_row_or_a_bad_row(messages: list[bytes]) -> None:
    decoded = DECODER.decode(messages)
    assert len(decoded.index) == decoded.rows.num_rows
    assert sorted([*decoded.index.tolist(), *(bad.index for bad in decoded.bad)]) == list(range(len(messages)))


@given(MESSAGES)
def test_lines_decoded_in_one_go_are_the_lines_decoded_one_by_one(messages: list[bytes]) -> None:
    at_once = DECODER.decode_lines(b"".join(message + b"\n" for message in messages))
    one_by_one = DECODER.decode(messages)
    if at_once is None:
        return
    assert not one_by_one.bad
    assert str(at_once.rows.to_pylist()) == str(one_by_one.rows.to_pylist())


def test_an_object_over_two_lines_is_not_taken_for_a_row_in_each() -> None:
    assert DECODER.decode_lines(b'{"ts":1,"ticker":"a"\n}{"ts":2,"ticker":"b"}\n') is None
