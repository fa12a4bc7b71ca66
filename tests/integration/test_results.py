"""The results service as a process, over a real broker: plans and reports are written as the other services do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from services.results.cursor import Cursor
from services.results.encoding import Encoding
from services.results.feed import Feed
from services.results.history import History
from services.results.journal import FIRST, Journal
from services.results.rendition import Renditions
from services.results.results_follower import ResultsFollower
from services.results.selection import Selection
from services.results.tail import find_tail
from services.results.update_stream import UpdateStream
from stairwise.client import Update
from stairwise.errors import StairwiseError
from stairwise.system.health import Check, probe
from stairwise.v1 import results_pb2, results_pb2_grpc
from stairwise.wire.reports import Mark
from tests.integration.results_system import Service, Writer, counts, running, seen, until

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def writer(broker) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap)
    yield writer
    writer.close()


@pytest.fixture(scope="module")
def service(broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all tests that do not kill it."""
    with running(broker.bootstrap, tmp_path_factory.mktemp("results") / "results.log") as service:
        yield service


@pytest.fixture
def mortal(broker, tmp_path: Path) -> Iterator[Service]:
    """One of the test's own."""
    with running(broker.bootstrap, tmp_path / "results.log") as service:
        yield service


def test_reports_come_in_order_with_shards_merged_and_repeats_dropped(service: Service, writer: Writer) -> None:
    query = counts(writer)
    for shard, keys in ((0, "ac"), (1, "bd")):
        for time_, key in zip((10, 20), keys, strict=True):
            writer.report(query, time_, [(key, 1, 2**70)], shard, 2)
    writer.report(query, 10, [("a", 1, 5)], 0, 2)  # a micro-batch is replayed
    writer.report(query, 20, [("c", 1, 5)], 0, 2)
    writer.report(query, 30, [], 1, 2)
    writer.report(query, 30, [("a", 3, None)], 0, 2)
    writer.end(query, shard=0, shards=2)
    writer.end(query, shard=1, shards=2)
    writer.flush()
    with service.client() as client:
        subscription = client.subscribe(query.query.name, "earliest")
        updates = list(subscription)
    assert seen(updates) == [(10, [(1, "a"), (1, "b")]), (20, [(1, "c"), (1, "d")]), (30, [(1, "a")])]
    assert updates[0].changes[0].row == {"k": "a", "n": 1, "s": 2**70}
    assert updates[2].changes[0].row == {"k": "a", "n": 3, "s": None}
    assert subscription.end == "sealed"


@pytest.mark.parametrize("emit", ["RSTREAM", "ISTREAM", "DSTREAM", "CHANGES"])
def test_a_subscription_resumes_from_every_token(service: Service, writer: Writer, emit: str) -> None:
    query = counts(writer, emit)
    for time_, keys in ((10, "ab"), (20, "bc"), (30, ""), (40, "a")):
        writer.report(query, time_, [(key, 1, 1) for key in keys])
    writer.end(query)
    writer.flush()
    name = query.query.name
    with service.client() as client, service.stub() as stub:
        whole = seen(client.subscribe(name, "earliest"))
        assert [time_ for time_, _ in whole] == [10, 20, 30, 40]
        raw = list(stub.Subscribe(results_pb2.SubscribeRequest(query=name, earliest=results_pb2.Earliest())))
        for i, message in enumerate(raw):
            # Rows that came before the token, rows that come after it: together all of them, once.
            before = [c for m in raw[: i + 1] for c in m.update.changes]
            resumed = list(stub.Subscribe(results_pb2.SubscribeRequest(query=name, token=message.token)))
            after = [c for m in resumed for c in m.update.changes]
            assert before + after == [c for m in raw for c in m.update.changes]
            assert resumed[-1].HasField("end")


def test_changes_from_latest_begin_with_a_marked_snapshot(service: Service, writer: Writer) -> None:
    query = counts(writer, "CHANGES")
    writer.report(query, 10, [("a", 1, 1)])
    writer.report(query, 20, [("a", 1, 1), ("b", 1, 1)])
    writer.flush()
    with service.client() as client:
        until(lambda: client.snapshot(query.query.name)[0] == 20)
        subscription = client.subscribe(query.query.name)
        first = next(subscription)
        writer.report(query, 30, [("b", 1, 1)])
        writer.end(query)
        writer.flush()
        rest = list(subscription)
    assert first.snapshot
    assert seen([first, *rest]) == [(20, [(1, "a"), (1, "b")]), (30, [(-1, "a")])]


def test_latest_shows_what_becomes_final_from_now_on(service: Service, writer: Writer) -> None:
    query = counts(writer)
    writer.report(query, 10, [("a", 1, 1)])
    writer.flush()
    with service.client() as client, service.stub() as stub:
        until(lambda: client.snapshot(query.query.name)[0] == 10)
        messages = stub.Subscribe(results_pb2.SubscribeRequest(query=query.query.name))
        assert next(messages).HasField("header")
        writer.report(query, 20, [("b", 1, 1)])
        writer.flush()
        assert next(messages).update.time_ms == 20
        messages.cancel()


def test_a_subscription_begins_at_a_time(service: Service, writer: Writer) -> None:
    query = counts(writer)
    for time_ in (10, 20, 30):
        writer.report(query, time_, [("a", 1, 1)])
    writer.end(query, Mark.LEFT)
    writer.flush()
    with service.client() as client:
        subscription = client.subscribe(query.query.name, 15)
        assert [update.time for update in subscription] == [20, 30]
        assert subscription.end == "dropped"


def test_a_large_report_comes_in_pieces_and_whole(service: Service, writer: Writer) -> None:
    query = counts(writer)
    rows = [(f"{i:06}" + "x" * 200, i, i) for i in range(10_000)]
    writer.report(query, 10, rows)
    writer.end(query)
    writer.flush()
    name = query.query.name
    with service.client() as client, service.stub() as stub:
        (update,) = client.subscribe(name, "earliest")
        assert [c.row["n"] for c in update.changes] == list(range(10_000))
        raw = list(stub.Subscribe(results_pb2.SubscribeRequest(query=name, earliest=results_pb2.Earliest())))
        pieces = [m for m in raw if m.HasField("update")]
        assert len(pieces) > 3
        resumed = stub.Subscribe(results_pb2.SubscribeRequest(query=name, token=pieces[1].token))
        rest = [c.row.values[1].integer for m in resumed for c in m.update.changes]
        assert rest == list(range(len(pieces[0].update.changes) + len(pieces[1].update.changes), 10_000))


@pytest.mark.timeout(180)
def test_a_report_larger_than_any_message_of_kafka_comes_whole(
    service: Service, broker, writer: Writer, tmp_path: Path
) -> None:
    """From the journal; and, after a start whose tail begins in the middle of its pieces, from Kafka."""
    query, chance = counts(writer), random.Random(0)
    rows = [(f"{chance.getrandbits(2_000):0500x}", number, 1) for number in range(45_000)]
    writer.report(query, 10, rows[:1], shards=1)
    writer.report(query, 20, rows, messages=3)  # operators is killed
    writer.report(query, 20, rows[::-1])
    writer.report(query, 30, rows[:1])
    writer.end(query)
    writer.flush()
    expected = [(10, rows[:1]), (20, sorted(rows)), (30, rows[:1])]
    for tried in (service, None):
        with running(broker.bootstrap, tmp_path / "again.log") if tried is None else nullcontext(tried) as serving:
            with serving.client() as client:
                updates = list(client.subscribe(query.query.name, "earliest", encoding="arrow"))
                resumed = list(client.subscribe(query.query.name, updates[0].token, encoding="arrow"))
            got = [
                (u.time, [tuple(row.values()) for row in u.to_arrow().select(["k", "n", "s"]).to_pylist()])
                for u in updates
            ]
            assert got == expected
            assert [(u.time, len(u.changes)) for u in resumed] == [(20, len(rows)), (30, 1)]
            assert updates[1].to_arrow().nbytes > 20 << 20


def test_a_client_resumes_when_the_service_is_killed_and_started_again(mortal: Service, writer: Writer) -> None:
    query = counts(writer, "CHANGES")
    expected = []
    with mortal.client() as client:
        subscription = client.subscribe(query.query.name, "earliest")
        got: list[Update] = []
        for round_ in range(3):
            for i in range(4):
                number = 4 * round_ + i + 1
                writer.report(query, 10 * number, [(f"k{number}", 1, 1)], 0, 2)
                writer.report(query, 10 * number, [], 1, 2)
                left = [(-1, f"k{number - 1}")] if number > 1 else []
                expected.append((10 * number, [*left, (1, f"k{number}")]))
            writer.flush()
            got += islice(subscription, 2)
            mortal.kill()
            mortal.start()
            got += islice(subscription, 2)
        writer.end(query, shard=0, shards=2)
        writer.end(query, shard=1, shards=2)
        writer.flush()
        got += subscription
    assert seen(got) == expected


def test_a_query_that_does_not_exist_is_refused_with_the_nearest_name(service: Service, writer: Writer) -> None:
    name = counts(writer).query.name
    with service.client() as client, pytest.raises(StairwiseError, match=f"did you mean '{name}'") as refused:
        next(client.subscribe(name + "x"))
    assert isinstance(refused.value.__cause__, grpc.RpcError)
    assert refused.value.__cause__.code() == grpc.StatusCode.NOT_FOUND


def test_a_query_is_known_the_moment_after_it_was_created(service: Service, writer: Writer) -> None:
    with service.stub() as stub:
        for _ in range(5):
            query = counts(writer)
            messages = stub.Subscribe(results_pb2.SubscribeRequest(query=query.query.name), timeout=20)
            columns = next(messages).header.columns
            assert [c.name for c in columns] == ["k", "n", "s"]
            messages.cancel()


def code_of(stub: results_pb2_grpc.ResultsStub, request: results_pb2.SubscribeRequest) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as refused:
        list(stub.Subscribe(request, timeout=20))
    return refused.value.code(), refused.value.details()


def test_tokens_that_do_not_fit_are_refused(service: Service, writer: Writer) -> None:
    first, second = counts(writer), counts(writer)
    request = results_pb2.SubscribeRequest
    with service.stub() as stub:
        token = next(stub.Subscribe(request(query=first.query.name))).token
        assert code_of(stub, request(query=first.query.name, token=b"nonsense"))[0] == grpc.StatusCode.INVALID_ARGUMENT
        assert code_of(stub, request(query=second.query.name, token=token))[0] == grpc.StatusCode.INVALID_ARGUMENT
        writer.drop(first)
        writer.query(first.query.text, first.query.name)
        code, text = code_of(stub, request(query=first.query.name, token=token))
        assert code == grpc.StatusCode.FAILED_PRECONDITION
        assert "dropped and created again" in text


def test_the_last_reports_of_a_dropped_query_can_still_be_resumed(service: Service, writer: Writer) -> None:
    query = counts(writer)
    writer.report(query, 10, [("a", 1, 1)])
    writer.flush()
    with service.client() as client:
        token = next(client.subscribe(query.query.name, "earliest")).token
        writer.drop(query)
        writer.report(query, 20, [("b", 1, 1)])
        writer.end(query, Mark.LEFT)
        writer.flush()
        subscription = client.subscribe(query.query.name, token)
        assert seen(subscription) == [(20, [(1, "b")])]
        assert subscription.end == "dropped"


def test_a_snapshot_is_the_latest_report_and_its_token_goes_on_from_there(service: Service, writer: Writer) -> None:
    query = counts(writer, "CHANGES")
    request = results_pb2.SnapshotRequest(query=query.query.name)
    with service.client() as client, service.stub() as stub:
        with pytest.raises(StairwiseError, match="no final report"):
            client.snapshot(query.query.name)
        writer.report(query, 10, [("a", 1, 1)])
        writer.report(query, 20, [("a", 1, 1), ("b", 1, 7)])
        writer.flush()
        until(lambda: client.snapshot(query.query.name)[0] == 20)
        assert client.snapshot(query.query.name) == (20, [{"k": "a", "n": 1, "s": 1}, {"k": "b", "n": 1, "s": 7}])
        assert stub.Snapshot(results_pb2.SnapshotRequest(query=query.query.name, time_ms=19)).time_ms == 10
        token = stub.Snapshot(request).token
        writer.report(query, 30, [("b", 1, 7)])
        writer.end(query)
        writer.flush()
        assert seen(client.subscribe(query.query.name, token)) == [(30, [(-1, "a")])]


def test_a_client_that_goes_away_frees_its_place(broker, tmp_path: Path, writer: Writer) -> None:
    name = counts(writer).query.name

    def subscribe_many(service: Service, count: int) -> set[grpc.StatusCode]:
        """Open subscriptions, leave, and say which were refused."""
        refusals = set()
        with service.stub() as stub:
            calls = [stub.Subscribe(results_pb2.SubscribeRequest(query=name)) for _ in range(count)]
            for call in calls:
                try:
                    assert next(call).HasField("header")
                except grpc.RpcError as error:
                    refusals.add(error.code())
            for call in calls:
                call.cancel()
        return refusals

    limited = {"STAIRWISE_RESULTS_SUBSCRIPTIONS": "112"}
    with running(broker.bootstrap, tmp_path / "results.log", **limited) as service:
        assert subscribe_many(service, 120) == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        until(lambda: subscribe_many(service, 100) == set())
        assert probe(Check("grpc", service.address), 5).healthy


def test_positions_older_than_the_journal_are_read_from_kafka(broker, writer: Writer) -> None:
    query = counts(writer, "CHANGES")
    for number in range(1, 9):
        writer.report(query, 10 * number, [(f"k{number}", 1, 1)], 0, 2)
        writer.report(query, 10 * number, [("every", 1, 1)], 1, 2)
    writer.flush()

    async def scenario() -> list[results_pb2.Update]:
        journal, history = Journal(per_signature=3000), History(broker.bootstrap)  # about two reports
        tail = await asyncio.to_thread(find_tail, broker.bootstrap)
        follower = ResultsFollower(broker.bootstrap, tail, journal, lambda: None)
        follower.start()
        try:
            await asyncio.wait_for(follower.caught_up.wait(), 60)
            assert not journal.covers(query.signature, FIRST)
            with Renditions().use(query, Encoding.VALUES, Selection()) as rendition:
                feed = Feed(journal, history, query.signature)
                messages = UpdateStream(rendition, Cursor((30, 0), complete=True), feed).messages()
                sent = [(await anext(messages)).message for _ in range(1 + 2 * 5)]
                writer.report(query, 90, [], 0, 2)
                writer.report(query, 90, [("every", 1, 1)], 1, 2)
                writer.flush()
                sent.append((await anext(messages)).message)
        finally:
            await follower.stop()
            history.close()
        said = [results_pb2.SubscribeResponse.FromString(message) for message in sent]
        return [m.update for m in said if m.HasField("update")]

    got = asyncio.run(scenario())
    changes = [[(c.diff, c.row.values[0].string) for c in update.changes] for update in got]
    assert changes == [[(-1, f"k{n - 1}"), (1, f"k{n}")] for n in range(4, 9)] + [[(-1, "k8")]]


def test_a_message_that_is_no_report_is_passed_over(service: Service, writer: Writer) -> None:
    query = counts(writer)
    writer.litter(query)
    writer.report(query, 10, [("a", 1, 1)])
    writer.end(query)
    writer.flush()
    with service.client() as client:
        assert seen(client.subscribe(query.query.name, "earliest")) == [(10, [(1, "a")])]


def test_the_trace_of_a_report_reaches_the_subscriber(service: Service, writer: Writer) -> None:
    query = counts(writer)
    trace = "0af7651916cd43dd8448eb211c80319c"
    writer.report(query, 10, [("a", 1, 1)], traceparent=f"00-{trace}-b7ad6b7169203331-01")
    writer.report(query, 20, [("a", 1, 1)])
    writer.end(query)
    writer.flush()
    request = results_pb2.SubscribeRequest(query=query.query.name, earliest=results_pb2.Earliest())
    with service.stub() as stub:
        updates = [m.update for m in stub.Subscribe(request) if m.HasField("update")]
    assert updates[0].traceparent.split("-")[1] == trace
    assert updates[1].traceparent == ""


def test_it_says_what_it_serves_by_reflection(service: Service) -> None:
    with grpc.insecure_channel(service.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = stub.ServerReflectionInfo(iter([request]))
    names = {entry.name for entry in answer.list_services_response.service}
    assert {"stairwise.v1.Results", "grpc.health.v1.Health"} <= names
