"""How many messages ingest asks for at a time follows their size."""

from __future__ import annotations

from confluent_kafka import Message

from services.ingest.dispatch import AT_ONCE, FIRST, MOST, Dispatch


def messages(count: int, size: int) -> list[Message]:
    return [Message(topic="in.a", partition=0, offset=n, value=b"x" * size) for n in range(count)]


def test_it_grows_while_messages_are_small() -> None:
    dispatch = Dispatch({})
    appetites = [dispatch.appetite]
    for _ in range(6):
        dispatch.take(messages(dispatch.appetite, 20))
        appetites.append(dispatch.appetite)
    assert appetites == [FIRST, 4 * FIRST, 16 * FIRST, 64 * FIRST, 256 * FIRST, MOST, MOST]


def test_large_messages_behind_many_small_ones_are_asked_for_one_by_one() -> None:
    dispatch = Dispatch({})
    dispatch.appetite = MOST
    dispatch.take(messages(5_000, 20) + messages(FIRST, AT_ONCE))
    assert dispatch.appetite == 1


def test_large_messages_among_small_ones_count_by_their_share() -> None:
    dispatch = Dispatch({})
    dispatch.appetite = MOST
    dispatch.take([message for _ in range(8) for message in messages(63, 1_000) + messages(1, 100_000)])
    assert AT_ONCE // 8_000 < dispatch.appetite < AT_ONCE // 2_000
