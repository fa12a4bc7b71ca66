"""Pages are Arrow IPC streams: what a stream writer writes, byte for byte, so that anyone can read them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stairwise.state.pages import from_page, to_page, to_plain_page

LONG = pa.record_batch({"n": list(range(1000)), "s": [str(n) for n in range(1000)]})


@pytest.mark.parametrize(
    "batch",
    [
        pa.record_batch({"a": [1, 2], "b": ["x", None], "c": [0.5, 2.0]}),
        pa.record_batch({"a": pa.array([], pa.int64())}),
        LONG.slice(100, 50),
        pa.record_batch({"l": [[1, 2], None], "d": pa.array([10**20, None], pa.decimal128(38, 0))}),
    ],
)
def test_a_plain_page_is_what_a_stream_writer_writes(batch: pa.RecordBatch) -> None:
    assert to_plain_page(batch) == to_page(batch)
    assert from_page(to_plain_page(batch)).equals(batch)


def test_a_page_may_have_dictionaries() -> None:
    batch = pa.record_batch({"k": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert from_page(to_page(batch)).equals(batch)
