"""Messages reach the lane of their partition and all of their rows are written, however they come mixed and cut."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from confluent_kafka import KafkaError, Message
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.dispatch import Dispatch
from services.ingest.lane import Lane, Outcome
from services.ingest.partition_state import PartitionState
from services.ingest.recovery import Key
from stairwise.schema import DAWN, EARLIEST, FOREVER, Column, Stream, Type
from stairwise.streams.sequence import Position
from stairwise.wire.batches import BatchHeaders, decode_rows
from stairwise.wire.incarnations import Incarnation

COLUMNS = (Column("ts", Type.TIMESTAMP), Column("n", Type.BIGINT, nullable=False))
KEYS: list[Key] = [("in.a", 0), ("in.a", 1), ("in.b", 0), ("in.b", 1)]
LIMIT = 2_000
CLOCK = 10**13


def arrow(number: int) -> bytes:
    batch = pa.record_batch({"ts": [5, 5], "n": [number, number]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def value(kind: str, number: int) -> bytes | None:
    match kind:
        case "object":
            return b'{"ts":5,"n":%d}' % number
        case "lines":
            return b'{"ts":5,"n":%d}\n{"ts":5,"n":%d}' % (number, number)
        case "arrow":
            return arrow(number)
        case "late":
            return b'{"ts":4,"n":%d}' % number
        case "bad":
            return b'{"ts":5,"n":'
        case "large":
            return b"x" * (LIMIT + 1)
        case _:
            return None


MESSAGES = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from(["object", "lines", "arrow", "late", "bad", "large", "nothing"])),
    max_size=40,
)


@given(MESSAGES, st.integers(1, 12), st.integers(0, 40))
def test_every_row_is_written_in_order_in_its_own_partition(
    sent: list[tuple[Key, str]], size: int, end_at: int
) -> None:
    streams = {name: Stream(name, COLUMNS, "ts") for name in "ab"}
    lanes = {key: Lane(key[1], Incarnation(streams[key[0][3:]], 1), PartitionState(1), 0, LIMIT) for key in KEYS}
    dispatch = Dispatch(lanes)
    messages: list[Message] = []
    expected: dict[Key, list[int]] = {key: [] for key in KEYS}
    outcomes = dict.fromkeys(KEYS, Outcome())
    offsets = dict.fromkeys(KEYS, 0)
    begun: set[Key] = set()
    for number, (key, kind) in enumerate(sent):
        at = {"topic": key[0], "partition": key[1], "offset": offsets[key]}
        messages.append(Message(**at, value=value(kind, number), timestamp=(1, 5)))
        offsets[key] += 1
        rows = {"object": 1, "lines": 2, "arrow": 2}.get(kind, 0)
        is_late = kind == "late" and key in begun
        is_row = kind == "late" and key not in begun
        begun |= {key} if rows else set()
        expected[key] += [number] * (rows + is_row)
        dead = kind in ("bad", "large", "nothing")
        outcomes[key] += Outcome(rows + is_row, int(is_late), int(dead))
    end = KafkaError(KafkaError._PARTITION_EOF)
    messages.insert(end_at, Message(topic="in.a", partition=1, offset=99, error=end))
    written: dict[Key, list[int]] = {key: [] for key in KEYS}
    for start in range(0, len(messages), size):
        dispatch.take(messages[start : start + size])
        for key, lane in lanes.items():
            for out in lane.write(1, CLOCK):
                if out.topic.startswith("s."):
                    written[key] += decode_rows(out.value, lane.stream).column("n").to_pylist()
    assert written == expected
    assert {key: lane.settle() for key, lane in lanes.items()} == outcomes
    assert {key: lane.written_upto for key, lane in lanes.items()} == offsets
    assert lanes["in.a", 1].end_seen == 99


TABLE = Stream("names", COLUMNS[1:], keys=("n",), lateness=FOREVER)


def update(offset: int, value: bytes | None) -> Message:
    return Message(topic="in.names", partition=0, offset=offset, key=b"[7]", value=value, timestamp=(1, 5))


def test_a_table_says_with_every_batch_how_far_its_streams_are_and_keeps_what_counts_under_keys_of_its_own() -> None:
    lane = Lane(0, Incarnation(TABLE, 1), PartitionState(1, version=1), 0, LIMIT)
    lane.take([update(0, b'{"n":7}')])
    out = [*lane.write(1, CLOCK), lane.follow(1, {"s.a.1": 40}), lane.follow(1, {"s.a.1": 50}), lane.mark(2)]
    lane.take([update(1, b'{"n":7}')])
    out += [*lane.write(2, CLOCK), lane.mark(2, sealed=True)]
    headers = [BatchHeaders.decode(dict(message.headers)) for message in out]
    assert {message.topic for message in out} == {"t.names.1"}
    assert [h.follows.get("s.a.1") for h in headers] == [None, 40, 50, 50, 50, 50]
    assert [h.sequence for h in headers] == [0, 1, 1, 1, 1, 2]
    keys = [message.key for message in out]
    assert keys[1] == keys[2] == b"progress"
    assert len(set(keys)) == 5
    assert [h.lowest for h in headers if h.rows] == [EARLIEST, EARLIEST], "it has held for ever"


def test_a_tombstone_of_a_table_is_a_dead_letter_that_says_why() -> None:
    lane = Lane(0, Incarnation(TABLE, 1), PartitionState(1), 0, LIMIT)
    lane.take([update(0, None), update(1, b'{"n":7}'), update(2, b'{"n":null}')])
    written: dict[str, list[dict[str, bytes]]] = {}
    for message in lane.write(1, CLOCK):
        written.setdefault(message.topic, []).append(dict(message.headers))
    assert [headers["code"] for headers in written["dlq.names"]] == [b"TOMBSTONE", b"NULL_FIELD"]
    assert b"replaced, not deleted" in written["dlq.names"][0]["reason"]
    assert lane.settle() == Outcome(rows=1, dead=2)


WRITES = st.lists(
    st.tuples(
        st.integers(0, 2),  # how many versions on
        st.lists(st.integers(0, 60), max_size=5),
        st.one_of(st.none(), st.integers(0, 60)),
        st.sampled_from(["goes on", "from what is committed", "from the last batch"]),
    ),
    min_size=1,
    max_size=12,
)


@given(WRITES, st.lists(st.integers(0, 30), min_size=1, max_size=6))
def test_lateness_is_altered_from_a_version_on_and_the_watermark_never_goes_back(
    writes: list[tuple[int, list[int], int | None, str]], lateness: list[int]
) -> None:
    """Whoever goes on with a partition, and from whatever it recovers, judges the rows as one that never stopped."""
    streams = [replace(Stream("a", COLUMNS, "ts"), lateness=each) for each in lateness]
    incarnation = Incarnation(streams[-1], 1, altered=tuple(enumerate(streams[:-1], 2)))
    lane = Lane(0, incarnation, PartitionState(1), 0, LIMIT)
    version, offset, highest, mark, rows = 1, 0, DAWN, DAWN, 0
    last: dict[str, bytes] | None = None
    for ahead, times, given_mark, recovery in writes:
        version = min(version + ahead, len(lateness))
        late = lateness[version - 1]
        if times:
            values = [b'{"ts":%d,"n":%d}' % (ts, i) for i, ts in enumerate(times)]
            lane.take([Message(topic="in.a", partition=0, offset=offset, value=b"\n".join(values))])
            offset += 1
        said = list(lane.write(version, CLOCK))
        kept = []
        for ts in times:
            now = mark if highest == DAWN else max(mark, highest - late - 1)
            if ts > now:
                kept.append(ts)
                highest = max(highest, ts)
        if lane.state.version < version:
            said.append(lane.mark(version))
        if given_mark is not None and given_mark > lane.watermark:
            said.append(lane.mark(version, given_mark))
            mark = given_mark
        mark = mark if highest == DAWN else max(mark, highest - late - 1)
        written = [dict(out.headers) for out in said if out.topic == "s.a.1"]
        before = lane.watermark if not written else int(written[0]["previous"])
        assert last is None or not written or before == int(last["watermark"])
        rows += len(kept)
        if written:
            last = written[-1]
            assert (int(last["watermark"]), int(last["sequence"]) + int(last["rows"])) == (mark, rows)
            assert sum(int(headers["rows"]) for headers in written) == len(kept)
        match recovery:
            case "from what is committed":
                lane = Lane(0, incarnation, PartitionState.decode(lane.state.encode()), offset, LIMIT)
            case "from the last batch" if last is not None:
                lane = Lane(0, incarnation, PartitionState.of_batch(incarnation, last), offset, LIMIT)
        assert lane.watermark == mark


def test_what_was_committed_before_streams_could_be_altered_is_still_read() -> None:
    """Its LATENESS was that of the version it was written under, so that the watermark stands where it stood."""
    stream = Stream("a", COLUMNS, "ts", lateness=50)
    incarnation = Incarnation(stream, 1, altered=((3, replace(stream, lateness=10)),))
    state = PartitionState.decode("[1, 7, 100, 2, false, 5]")
    assert (state.position, state.active) == (Position(7, 100), 5)
    lane = Lane(0, incarnation, state, 0, LIMIT)
    headers = BatchHeaders.decode(dict(lane.mark(3).headers))
    assert (headers.previous, headers.watermark, headers.seen) == (89, 89, 100)
    old = [(name, value) for name, value in headers.encode() if name != "seen"]
    assert PartitionState.of_batch(Incarnation(stream, 1), dict(old)).watermark(Incarnation(stream, 1)) == 89


APPENDED = 1_700_000_000_000
HOUR = 3_600_000
AHEAD = st.sampled_from([-1, 0, 1]).map(lambda d: HOUR + d) | st.sampled_from([-HOUR, 0, 10**12])


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(0, 5 * HOUR), AHEAD), min_size=1, max_size=12),
    st.integers(1, 12),
)
def test_how_far_ahead_a_row_is_counts_from_its_messages_append_time_however_they_are_cut(
    sent: list[tuple[int, int, int]], size: int
) -> None:
    stream = Stream("a", COLUMNS, "ts", future=HOUR, lateness=10**12)
    lane = Lane(0, Incarnation(stream, 1), PartitionState(1), 0, LIMIT)
    messages = []
    for number, (kind, after, ahead) in enumerate(sent):
        appended = APPENDED + after
        row = b'{"ts":%d,"n":%d}' % (appended + ahead, number)
        messages.append(Message(topic="in.a", partition=0, offset=number, value=row, timestamp=(kind, appended)))
    kept, dead = [], []
    for start in range(0, len(messages), size):
        lane.take(messages[start : start + size])
        for out in lane.write(1, CLOCK):
            if out.topic.startswith("s."):
                kept += decode_rows(out.value, stream).column("n").to_pylist()
            else:
                headers = dict(out.headers)
                assert headers["code"] == b"FUTURE"
                dead.append(int(headers["offset"]))
    assert kept == [n for n, (_, _, ahead) in enumerate(sent) if ahead <= HOUR]
    assert dead == [n for n, (_, _, ahead) in enumerate(sent) if ahead > HOUR]
