"""Rows in both encodings, whole and cut into pieces, against protobuf's own messages."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.results import encoding, protobuf_rows
from services.results.encoding import Encoding
from services.results.selection import selection_of
from stairwise.errors import LimitError
from stairwise.platform.kafka import MAX_MESSAGE
from stairwise.reports.emission import Emission
from stairwise.schema import Type
from stairwise.state.pages import concat, from_page
from stairwise.v1 import results_pb2 as pb
from tests.unit.results.small_reports import query_of

TYPES = (Type.BIGINT, Type.DOUBLE, Type.STRING, Type.BOOLEAN, Type.HUGEINT)
QUERY = query_of(
    "SELECT v AS i, v * 1.5 AS d, k AS s, v > 1 AS b, v + 1 AS h FROM t [TUMBLE 10 ms]",
).query
CELLS = {
    Type.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Type.DOUBLE: st.floats(),
    Type.STRING: st.text(max_size=200),
    Type.BOOLEAN: st.booleans(),
    Type.HUGEINT: st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
}
Row = tuple[object, ...]
rows_ = st.lists(st.tuples(*(st.none() | CELLS[t] for t in TYPES)), max_size=100)


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    columns = [pa.array([row[i] for row in rows], t.arrow) for i, t in enumerate(TYPES)]
    return pa.RecordBatch.from_arrays(columns, names=list("idsbh"))


def value(type_: Type, cell: object) -> pb.Value:
    if cell is None:
        return pb.Value()
    field = {Type.BIGINT: "integer", Type.DOUBLE: "double", Type.STRING: "string", Type.BOOLEAN: "boolean"}
    return pb.Value(**{field.get(type_, "hugeint"): str(cell) if type_ is Type.HUGEINT else cell})


def row_message(row: Row) -> pb.Row:
    return pb.Row(values=[value(t, cell) for t, cell in zip(TYPES, row, strict=True)])


@given(rows_)
def test_the_bytes_of_rows_are_those_that_protobuf_writes(rows: list[Row]) -> None:
    expected = [row_message(row).SerializeToString() for row in rows]
    assert protobuf_rows.rows(TYPES, batch_of(rows)).to_pylist() == expected


@given(st.integers(0, 2**20).map(lambda n: b"x" * (n % 40_000)))
def test_a_field_of_any_length_is_read_back(message: bytes) -> None:
    assert pb.SubscribeResponse.FromString(protobuf_rows.delimited(b"\x2a", message)).token == message


@given(rows=rows_, data=st.data(), chunk=st.sampled_from([1, 100, 1 << 20]), few=st.sampled_from([0, 1000]))
@pytest.mark.parametrize("how", Encoding)
def test_the_pieces_of_an_emission_hold_every_change_once(
    how: Encoding, rows: list[Row], data: st.DataObject, chunk: int, few: int
) -> None:
    diffs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(rows), max_size=len(rows)), "diffs")
    skip = data.draw(st.integers(0, len(rows) + 1), "skip")
    batch = batch_of(rows)
    emission = Emission(10, 0, np.array(diffs, np.int8), batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoding, "CHUNK", chunk)
        patch.setattr(encoding, "BLOCK", 2 * chunk)
        patch.setattr(encoding, "FEW", few)
        patch.setattr(encoding, "columns", lambda _: [pb_column(t) for t in TYPES])
        pieces = list(encoding.pieces(QUERY, how, emission, skip))
    updates = [pb.Update.FromString(piece.body) for piece in pieces]
    assert sum(piece.rows for piece in pieces) == max(0, len(rows) - skip)
    if how is Encoding.VALUES:
        changes = [c for update in updates for c in update.changes]
        assert [c.diff for c in changes] == diffs[skip:]
        assert [c.row.SerializeToString() for c in changes] == [row_message(r).SerializeToString() for r in rows[skip:]]
    elif updates:
        batches = [from_page(update.arrow) for update in updates]
        assert concat(batches).equals(batch.slice(skip)) or has_nan(rows)
        said = [list(u.diffs) or [1] * b.num_rows for u, b in zip(updates, batches, strict=True)]
        assert [d for some in said for d in some] == diffs[skip:]


def test_long_rows_that_stand_together_are_sent_apart() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(["x" * 3_000] * 4 + ["y"] * 996)], names=["k"])
    parts = list(encoding.sliced(rows, 4_000))
    assert concat(parts).equals(rows)
    assert max(part.nbytes for part in parts) <= 8_000


def test_a_row_that_no_message_can_hold_is_refused_with_what_to_do() -> None:
    assert encoding.sendable(QUERY, b"x" * MAX_MESSAGE)
    with pytest.raises(LimitError, match="takes 8388609 bytes") as refused:
        encoding.sendable(QUERY, b"x" * (MAX_MESSAGE + 1))
    assert "fewer or shorter columns" in refused.value.hint


def has_nan(rows: list[Row]) -> bool:
    return any(row[1] is not None and row[1] != row[1] for row in rows)


def pb_column(type_: Type) -> encoding.Column:
    return encoding.Column(type_.value, type_)


@given(
    rows=st.lists(st.tuples(st.none() | st.sampled_from("abc"), st.none() | st.integers(0, 3)), max_size=30),
    keys=st.lists(st.none() | st.sampled_from("abcd"), max_size=3),
    counts=st.none() | st.lists(st.none() | st.integers(0, 4), max_size=3),
)
def test_a_filter_passes_the_rows_whose_values_it_names(
    rows: list[tuple[str | None, int | None]], keys: list[str | None], counts: list[int | None] | None
) -> None:
    query = query_of("SELECT k, v FROM t [TUMBLE 10 ms]").query
    matches = [pb.Match(column="k", values=[pb.Value(string=k) if k else pb.Value() for k in keys])]
    if counts is not None:
        matches.append(
            pb.Match(column="v", values=[pb.Value(integer=n) if n is not None else pb.Value() for n in counts])
        )
    columns = [pa.array([r[0] for r in rows], pa.string()), pa.array([r[1] for r in rows], pa.int64())]
    batch = pa.RecordBatch.from_arrays(columns, names=["k", "v"])
    passed = selection_of(query, matches).apply(Emission(10, 0, np.ones(len(rows), np.int8), batch))
    expected = [r for r in rows if r[0] in keys and (counts is None or r[1] in counts)]
    assert [tuple(r.values()) for r in passed.rows.to_pylist()] == expected
    assert len(passed.diff) == len(expected)


def test_a_filter_is_told_by_what_it_says_and_not_by_the_order() -> None:
    query = query_of("SELECT k, v FROM t [TUMBLE 10 ms]").query
    one, two = pb.Match(column="k", values=[pb.Value(string="a"), pb.Value()]), pb.Match(column="v")
    turned = pb.Match(column="k", values=[pb.Value(), pb.Value(string="a")])
    assert selection_of(query, [one, two]).digest == selection_of(query, [two, turned]).digest
    assert selection_of(query, [one, two]).digest != selection_of(query, [one]).digest
    assert selection_of(query, []).digest == b""
