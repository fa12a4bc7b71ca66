"""Reports cut into pieces come together again, whatever else was written in between and never completed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.results.assembly import Assembly
from services.results.piece_joiner import OPEN, PieceJoiner
from services.results.report_message import ReportMessage
from stairwise.wire.message_pieces import HEADER, MessagePiece, cut
from stairwise.wire.reports import ReportHeaders

SIGNATURE = "q@1"


def written(value: bytes, time: int = 10, most: int = 4, first: int = 0) -> list[ReportMessage]:
    """The messages of one write, at offsets from ``first`` on."""
    headers = ReportHeaders(SIGNATURE, 0, 1, time)
    said = [(MessagePiece.decode({HEADER: piece}), part) for piece, part in cut(value, most)]
    return [ReportMessage(headers, part, first + n, piece=piece) for n, (piece, part) in enumerate(said)]


def joined(messages: list[ReportMessage]) -> list[tuple[int, bytes, int]]:
    joining = PieceJoiner()
    found = [joining.take(message) for message in messages]
    return [(m.headers.time, m.value, m.offset) for m in found if m is not None]


@given(st.binary(max_size=50), st.integers(1, 60))
def test_what_is_cut_comes_together(value: bytes, most: int) -> None:
    messages = written(value, most=most)
    assert all(len(m.value) <= most for m in messages)
    assert joined(messages) == [(10, value, 0)]


def test_a_report_that_fits_is_one_message_without_a_header() -> None:
    assert list(cut(b"1234", 4)) == [(b"", b"1234")]
    assert [len(part) for _, part in cut(b"12345", 4)] == [4, 1]


def test_two_writes_of_a_report_have_nothing_in_common() -> None:
    assert {said for said, _ in cut(b"12345", 4)}.isdisjoint(said for said, _ in cut(b"12345", 4))


def test_reading_that_begins_in_the_middle_of_a_write_passes_over_it() -> None:
    first = written(b"0123456789", 10)
    assert joined([*first[1:], *written(b"abcdefgh", 20, first=3)]) == [(20, b"abcdefgh", 3)]


def test_pieces_of_a_replay_are_not_mixed_with_those_of_the_write_that_broke_off() -> None:
    broken, replay = written(b"abcdefghijkl"), written(b"ABCDEFGHIJKL", first=2)
    assert joined([*broken[:2], *replay]) == [(10, b"ABCDEFGHIJKL", 2)]


def test_a_writer_that_was_given_up_does_not_stop_the_one_that_finishes() -> None:
    zombie, alive = written(b"abcdefghijkl"), written(b"ABCDEFGHIJKL")
    assert [value for _, value, _ in joined([alive[0], zombie[0], alive[1], zombie[1], alive[2]])] == [b"ABCDEFGHIJKL"]


def test_what_broke_off_is_let_go_when_the_report_is_there() -> None:
    joining = PieceJoiner()
    for message in [*written(b"abcdefghijkl")[:2], *written(b"ABCDEFGHIJKL", first=2)]:
        joining.take(message)
    assert joining.offsets == []


def test_writes_that_break_off_again_and_again_take_no_more_memory() -> None:
    joining = PieceJoiner()
    for attempt in range(20):
        joining.take(written(b"abcdefghijkl", first=10 * attempt)[0])
    assert joining.offsets == [10 * attempt for attempt in range(20 - OPEN, 20)]


@pytest.mark.parametrize("said", [b"a", b"a/b/c", b"a/1/1", b"a/-1/3", b"a/0/0", b"\xff/0/1"])
def test_a_header_that_makes_no_sense_is_refused(said: bytes) -> None:
    with pytest.raises(ValueError, match=r"unpack|invalid literal|no piece|decode"):
        MessagePiece.decode({HEADER: said})


WRITERS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.integers(0, 20), st.integers(0, 3)), max_size=6)


@given(WRITERS, st.randoms(use_true_random=False))
def test_every_report_comes_once_and_whole_however_writers_break_off(
    writers: list[tuple[int, int, int, int]], chance: random.Random
) -> None:
    """Each writer begins at or before the first report that is not complete, and breaks off after some messages; the
    last does not. Some more of one that is not quite dead stands between what its successor writes."""
    topic: list[ReportMessage] = []
    late: list[ReportMessage] = []
    done = 0
    for number, (back, most, length, more) in enumerate([*writers, (4, 2, 100, 0)]):
        reports = range(max(0, done - back), 4)
        attempt = [m for r in reports for m in written(b"%d, by %d" % (r, number) * (r + 1), 10 * (r + 1), most)]
        for message in attempt[:length]:
            if late and chance.random() < 0.5:
                topic.append(late.pop(0))
            topic.append(message)
            if message.piece is None or message.piece.is_last:
                done = max(done, message.headers.time // 10)
        late = attempt[length : length + more]
    topic = [ReportMessage(m.headers, m.value, offset, piece=m.piece) for offset, m in enumerate(topic)]
    whole = _values(topic)
    assembly = Assembly()
    released = [r for message in topic for r in assembly.take(message)]
    assert [r.position[0] for r in released] == [10, 20, 30, 40]
    assert all(r.messages[0].value in whole[r.position[0]] for r in released)
    for report in released:  # from a report's own offset it is found again, and all that follow
        reading = Assembly()
        tail = [r for m in topic if m.offset >= report.offset for r in reading.take(m)]
        assert [r.position for r in tail if r.position >= report.position] == [
            r.position for r in released if r.position >= report.position
        ]
        again = next(r for r in tail if r.position == report.position)
        assert again.messages[0].value == report.messages[0].value


def _values(topic: list[ReportMessage]) -> dict[int, set[bytes]]:
    """By time, the bytes of the writes that are complete: found by looking at each write alone."""
    found: dict[int, set[bytes]] = {}
    writes = {m.piece.write for m in topic if m.piece is not None}
    for write in writes:
        mine = [m for m in topic if m.piece is not None and m.piece.write == write]
        if mine[-1].piece is not None and len(mine) == mine[-1].piece.count:
            found.setdefault(mine[0].headers.time, set()).add(b"".join(m.value for m in mine))
    for message in topic:
        if message.piece is None:
            found.setdefault(message.headers.time, set()).add(message.value)
    return found
