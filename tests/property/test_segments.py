"""A shard's pages over Spark's state and files: after kills, elsewhere, and gone back, they are as committed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.operators import segments, spark_pages
from tests.committed import State

Change = tuple[bytes, bytes | None]


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    """Everything happens at sizes that are soon reached, and no disk is waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_pages, "LARGE", 6)
        patch.setattr(spark_pages, "TINY", 2)
        patch.setattr(spark_pages, "ROW_BYTES", 5)
        patch.setattr(spark_pages, "TOGETHER", 2)
        patch.setattr(segments, "RETAINED", 2)
        patch.setattr(segments, "MANY", 4)
        patch.setattr(segments, "TOGETHER", 2)
        patch.setattr(segments, "MOVED_BYTES", 8)
        patch.setattr(os, "fsync", lambda _: None)
        yield


change = st.tuples(st.sampled_from([b"a", b"ab", b"b", b"c", b"d"]), st.none() | st.binary(max_size=9))
outcome = st.sampled_from(["goes on", "goes on", "goes on", "other worker", "worker killed", "driver killed"])


@settings(max_examples=3 * settings().max_examples)
@given(st.lists(st.tuples(st.lists(change, max_size=4), outcome), max_size=30))
def test_every_state_that_spark_keeps_is_read_as_it_was_committed(batches: list[tuple[list[Change], str]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        state, wanted = State(Path(directory)), [dict[bytes, bytes]()]
        store = state.read()
        for changes, then in batches:
            now = dict(wanted[-1])
            for key, page in changes:
                if page is None:
                    store.delete(key)
                    now.pop(key, None)
                else:
                    store.put(key, page)
                    now[key] = page
                assert store.get(key) == page
            assert list(store.scan(b"a")) == sorted(item for item in now.items() if item[0].startswith(b"a"))
            is_committed = not then.endswith("killed")
            state.save(store, is_committed=is_committed)
            wanted += [now] if is_committed else []
            if then == "driver killed":
                state.restart()
            if then == "goes on":
                store.collect()
            else:
                store = state.read()
            for back in range(min(len(state.versions), segments.RETAINED + 1)):
                assert state.look(back) == wanted[-1 - back]
        _assert_all_garbage_goes(state)


def _assert_all_garbage_goes(state: State) -> None:
    store = state.read()
    for _ in range(2 * segments.RETAINED + 2):
        state.save(store)
        store.collect()
    in_rows = [page for page, is_extent in state.versions[-1][0].rows.values() if not is_extent]
    assert all(len(page) < spark_pages.LARGE for page in in_rows)
    assert sum(len(page) for page in in_rows if len(page) >= spark_pages.TINY) <= spark_pages.ROW_BYTES
    live = sum(len(page) for _, page in store.scan(b"")) - sum(map(len, in_rows))
    assert live <= sum(file.stat().st_size for file in state.files()) <= 2 * live
