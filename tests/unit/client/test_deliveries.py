"""Which messages of a topic are a publisher's own, and how many rows they have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stairwise.client.confirmation import Confirmation
from stairwise.client.deliveries import Deliveries

MESSAGES = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.booleans()), max_size=60)
"""Partition, rows, and whether it is one's own, in the order in which Kafka took them."""


@given(MESSAGES, st.lists(st.integers(0, 30), min_size=3, max_size=3))
def test_what_is_one_s_own_is_known_message_by_message(messages: list[tuple[int, int, bool]], upto: list[int]) -> None:
    deliveries, offsets, own = Deliveries(), [0, 0, 0], {}
    for partition, rows, is_own in messages:
        if is_own:
            own[partition, offsets[partition]] = rows
            deliveries.add(partition, offsets[partition], rows)
        offsets[partition] += 1
    assert deliveries.rows == sum(own.values())
    for partition, end in enumerate(offsets):
        for offset in range(end + 1):
            assert deliveries.rows_at(partition, offset) == own.get((partition, offset), 0)
    assert deliveries.ends() == {p: max(o for q, o in own if q == p) + 1 for p in {p for p, _ in own}}
    below = sum(rows for (p, offset), rows in own.items() if offset < upto[p])
    assert deliveries.rows_below(dict(enumerate(upto))) == below


def test_what_is_not_known_is_not_guessed() -> None:
    whole = Confirmation(10, 10, late=2, dead=3)
    assert (whole.taken, whole.waiting, whole.refused) == (5, 0, 5)
    unread = Confirmation(10, 8, untold="not allowed")
    assert (unread.taken, unread.waiting, unread.refused) == (None, 2, 0)
