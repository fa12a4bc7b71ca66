"""Rows that are published go where the local engine would put them."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.client.publisher import _key_reader, _partitioner
from stairwise.schema import Column, Stream, Type
from stairwise.streams.partition import partition_of, split


def stream_by(type_: Type | None) -> Stream:
    columns = (Column("other", Type.BIGINT), Column("key", type_ or Type.STRING))
    return Stream("s", columns, partition_by="key" if type_ else None, partitions=5)


VALUES: dict[Type, st.SearchStrategy[object]] = {
    Type.STRING: st.text(),
    Type.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Type.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    Type.BOOLEAN: st.booleans(),
}


@pytest.mark.parametrize("type_", VALUES)
@given(data=st.data())
def test_a_line_goes_to_the_partition_of_its_key(type_: Type, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.none() | VALUES[type_], min_size=1, max_size=5))
    stream = stream_by(type_)
    batch = pa.RecordBatch.from_pydict({"key": pa.array(keys, type_.arrow)})
    read, partition = _key_reader(stream), _partitioner(stream)
    lines = [msgspec.json.encode({"other": 1, "key": key}) for key in keys]
    assert [partition(read(line)) for line in lines] == split(batch, "key", stream.partitions, 0).tolist()


def test_without_partition_by_rows_go_round_in_turn() -> None:
    partition = _partitioner(stream_by(None))
    assert [partition(None) for _ in range(7)] == [0, 1, 2, 3, 4, 0, 1]


@pytest.mark.parametrize("line", [b"", b"nonsense", b"[1]", b'{"other": 1}', b'{"key": null}', b'{"key": "x'])
def test_a_line_without_a_readable_key_goes_where_null_goes(line: bytes) -> None:
    stream = stream_by(Type.STRING)
    assert _partitioner(stream)(_key_reader(stream)(line)) == partition_of(None, 5)


def test_the_key_is_found_whatever_surrounds_it() -> None:
    read = _key_reader(stream_by(Type.STRING))
    assert read('{"a": {"key": "no"}, "b": [{"key": "no"}], "key": "yes", "ü": "\\u0000"}'.encode()) == "yes"
