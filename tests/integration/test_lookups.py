"""The lookups service as a process, on a real broker: what it reads, what it says, and what a kill leaves of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import grpc
import pytest

from stairwise.platform.error_status import from_rpc_error
from stairwise.schema import Stream
from tests.integration.lookup_system import COLUMNS, Worker, Writer, eventually

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def writer(broker) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap)
    yield writer
    writer.close()


@pytest.fixture(scope="module")
def trades(writer: Writer) -> Stream:
    """A stream with history, from before any worker starts: committed and aborted batches in both partitions."""
    stream = Stream(f"trades_{uuid.uuid4().hex[:6]}", COLUMNS, timestamp_by="ts", lateness=5, partitions=2)
    writer.create(stream)
    writer.write(stream, 0, range(1_000, 1_100))
    writer.write(stream, 0, range(2_000, 2_050))
    writer.write(stream, 1, range(5_000, 5_010))
    for _ in range(3):
        writer.write(stream, 1, range(9_000, 9_100), abort=True)
    return stream


@pytest.fixture(scope="module")
def worker(broker, trades: Stream) -> Iterator[Worker]:
    worker = Worker(broker.bootstrap, broker.directory)
    try:
        worker.await_healthy()
        yield worker
    finally:
        worker.close()


def test_it_is_healthy_with_whatever_is_declared_which_may_be_nothing(broker, writer: Writer) -> None:
    worker = Worker(broker.bootstrap, broker.directory)
    try:
        worker.await_healthy()
        assert {owner.stream for owner in worker.owners()} == writer.declared
    finally:
        assert worker.close() == 0


def test_a_healthy_worker_has_taken_in_what_was_committed_before(worker: Worker, trades: Stream) -> None:
    first, second = worker.owners(trades)
    assert (first.stream, first.partition, first.address) == (trades.name, 0, worker.address)
    assert (first.ready, first.rows, first.watermark_ms) == (True, 150, 2_049 - 5 - 1)
    assert (second.ready, second.rows, second.watermark_ms) == (True, 10, 5_009 - 5 - 1)


def test_what_is_written_while_it_runs_is_taken_in(worker: Worker, writer: Writer, trades: Stream) -> None:
    writer.write(trades, 1, range(6_000, 6_005))
    eventually(lambda: worker.rows(trades) == [150, 15], "five more rows")
    assert worker.owners(trades)[1].watermark_ms == 6_004 - 5 - 1


def test_streams_that_are_created_while_it_runs_join_and_a_dropped_one_leaves(
    worker: Worker, writer: Writer, trades: Stream
) -> None:
    names = [f"{name}_{uuid.uuid4().hex[:6]}" for name in ("quotes", "halts")]
    quotes, halts = (Stream(name, COLUMNS, timestamp_by="ts", partitions=3) for name in names)
    writer.create(quotes, halts)
    writer.write(quotes, 2, range(100, 107))
    eventually(lambda: worker.rows(quotes) == [0, 0, 7], "the new stream's rows")
    eventually(lambda: all(o.ready for o in worker.owners(halts)), "an empty stream is ready")
    assert not worker.owners(quotes)[0].HasField("watermark_ms")
    assert worker.rows(trades) == [150, 15]

    writer.drop(halts)
    writer.write(quotes, 0, range(100, 103))
    eventually(lambda: worker.rows(quotes) == [3, 0, 7], "the others go on")
    eventually(lambda: halts.name not in {o.stream for o in worker.owners()}, "it is gone from the list")
    with pytest.raises(grpc.RpcError) as caught:
        worker.owners(halts)
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_stream_that_does_not_exist_gets_the_nearest_name(worker: Worker, trades: Stream) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        worker.owners(trades.name + "x")
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND
    error = from_rpc_error(caught.value, worker.address)
    assert error.hint == f"did you mean {trades.name!r}?"


def test_reflection_names_the_service(worker: Worker) -> None:
    assert {"stairwise.v1.Lookups", "grpc.health.v1.Health"} <= worker.services()


def test_a_killed_worker_replays_before_it_says_that_it_serves(worker: Worker, writer: Writer, trades: Stream) -> None:
    before = worker.rows(trades)
    worker.kill()
    writer.write(trades, 0, range(3_000, 3_020))
    worker.start()
    worker.await_healthy()
    assert worker.rows(trades) == [before[0] + 20, before[1]]
    assert all(owner.ready for owner in worker.owners(trades))


def test_two_workers_share_the_partitions_and_the_one_left_takes_over(
    broker, worker: Worker, writer: Writer, trades: Stream
) -> None:
    rows = worker.rows(trades)
    second = Worker(broker.bootstrap, broker.directory)
    try:
        second.await_healthy()
        both = (worker, second)
        addresses = {w.address for w in both}

        def own_rows() -> dict[int, int]:
            return {o.partition: o.rows for w in both for o in w.owners(trades) if o.address == w.address}

        for one in both:
            eventually(lambda w=one: {o.address for o in w.owners(trades)} == addresses, "both know both")
        eventually(lambda: own_rows() == dict(enumerate(rows)), "each has the rows of its own partition")
        second.kill()

        def has_taken_over() -> bool:
            return all(o.ready and o.address == worker.address for o in worker.owners(trades))

        eventually(has_taken_over, "the one left holds all, and has caught up")
        assert worker.rows(trades) == rows
    finally:
        second.close()


def test_sigterm_ends_it_in_good_order(worker: Worker) -> None:
    assert worker.close() == 0


def test_a_day_of_marks_is_passed_over_and_the_rows_between_are_not(broker, writer: Writer) -> None:
    stream = Stream(f"idle_{uuid.uuid4().hex[:6]}", COLUMNS, timestamp_by="ts", partitions=2)
    writer.create(stream)
    writer.write(stream, 0, range(1_000, 1_100))
    writer.write_marks(stream, 0, range(2_000, 32_000))
    writer.write(stream, 0, range(40_000, 40_010))
    writer.write_marks(stream, 0, range(50_000, 80_000))
    writer.write_marks(stream, 1, range(50_000, 80_000))
    worker = Worker(broker.bootstrap, broker.directory)
    try:
        worker.await_healthy()
        first, second = worker.owners(stream)
        assert (first.rows, first.watermark_ms) == (110, 79_999)
        assert (second.rows, second.watermark_ms) == (0, 79_999)
        writer.write(stream, 0, range(90_000, 90_005))
        eventually(lambda: worker.rows(stream) == [115, 0], "it goes on")
        taken = [record for record in worker.log.read_text().splitlines() if "passed over" in record]
        assert len(taken) >= 2
    finally:
        worker.close()
