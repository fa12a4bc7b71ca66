"""What an operator keeps is bounded by its windows, not by the stream."""

from __future__ import annotations

import pytest

from stairwise.plan.parts import operator_for
from stairwise.state.store import MemoryStore
from tests.unit.recompute.feeding import WINDOWED, batch, query_of

BATCH = 500
BOUNDED = [select for select in WINDOWED if "MEDIAN" not in select]


class SizedStore(MemoryStore):
    """A store that knows how much it holds."""

    def size(self) -> int:
        return sum(len(key) + len(page) for key, page in self.scan(b""))


@pytest.mark.parametrize("select", BOUNDED)
def test_the_store_does_not_grow_with_the_stream(select: str) -> None:
    query, store = query_of(select), SizedStore()
    operator = operator_for(query, store)
    sizes = []
    for start in range(0, 40 * BATCH, BATCH):
        messages = [{"ts": 700 * i, "k": "abc"[i % 3], "x": i % 4, "d": 1.0} for i in range(start, start + BATCH)]
        for stream in query.streams:
            operator.insert(batch(stream, messages, first=start))
        for _ in operator.advance(messages[-1]["ts"] - 5001):
            pass
        operator.flush()
        sizes.append(store.size())
    assert max(sizes[20:]) <= 1.2 * max(sizes[:20])


def test_keys_that_have_left_the_window_are_forgotten() -> None:
    query, store = query_of("SELECT k, COUNT(*) FROM s [RANGE 10s SLIDE 5s] GROUP BY k"), SizedStore()
    operator = operator_for(query, store)
    (part,) = operator._parts
    known = []
    for start in range(0, 20 * BATCH, BATCH):
        messages = [{"ts": 700 * i, "k": f"key {i}", "x": 1, "d": 1.0} for i in range(start, start + BATCH)]
        operator.insert(batch(query.streams[0], messages, first=start))
        list(operator.advance(messages[-1]["ts"] - 1))
        known.append(part.operator.most_rows)  # type: ignore[attr-defined]
    assert max(known) <= 1024 + BATCH
