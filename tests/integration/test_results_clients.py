"""What clients ask of the results service beyond rows in order: Arrow, filters, large snapshots, asyncio, patience."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path

import grpc
import pyarrow as pa
import pytest

from services.results.feed import Feed
from services.results.history import History
from services.results.journal import FIRST, Journal
from services.results.results_follower import ResultsFollower
from services.results.tail import find_tail
from stairwise.client import AsyncClient, Client, Update
from stairwise.errors import StairwiseError
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.plans import Registered
from tests.integration.results_system import Service, Writer, counts, running, seen, until

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def writer(broker) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap)
    yield writer
    writer.close()


@pytest.fixture(scope="module")
def service(broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    log = tmp_path_factory.mktemp("results") / "results.log"
    with running(broker.bootstrap, log, STAIRWISE_RESULTS_STALL_MS="300") as service:
        yield service


def written(writer: Writer, emit: str = "CHANGES") -> Registered:
    """Four reports and the end."""
    query = counts(writer, emit)
    for time, keys in ((10, "ab"), (20, "bc"), (30, ""), (40, "a")):
        writer.report(query, time, [*((key, 1, 2**70) for key in keys), (None, 1, None)])
    writer.end(query)
    writer.flush()
    return query


@pytest.mark.parametrize("emit", ["RSTREAM", "CHANGES"])
def test_arrow_says_what_values_say(service: Service, writer: Writer, emit: str) -> None:
    name = written(writer, emit).query.name
    with service.client() as client:
        values = list(client.subscribe(name, "earliest"))
        arrow = list(client.subscribe(name, "earliest", encoding="arrow"))
        batches = list(client.subscribe(name, "earliest").batches())
        frames = list(client.subscribe(name, "earliest").frames())
    assert [(u.time, list(u.changes), u.token, u.snapshot) for u in arrow] == [
        (u.time, u.changes, u.token, u.snapshot) for u in values
    ]
    assert [b.to_pydict() for b in batches] == [u.to_arrow().to_pydict() for u in values]
    assert [list(frame["_diff"]) for frame in frames] == [[c.diff for c in u.changes] for u in values]


def test_a_filter_leaves_only_the_rows_that_meet_it(service: Service, writer: Writer) -> None:
    name = written(writer).query.name
    with service.client() as client:
        every = seen(client.subscribe(name, "earliest"))
        some = list(client.subscribe(name, "earliest", where={"k": ["a", None]}))
        assert seen(some) == [(time, [c for c in changes if c[1] in ("a", None)]) for time, changes in every]
        assert client.snapshot(name, 20, where={"k": "c", "n": [1, 2]}) == (20, [{"k": "c", "n": 1, "s": 2**70}])
        assert client.snapshot(name, 20, where={"s": 2**70, "k": "b"})[1] == [{"k": "b", "n": 1, "s": 2**70}]
        rest = list(client.subscribe(name, some[1].token, where={"k": [None, "a"]}))
        assert seen(rest) == seen(some[2:])


@pytest.mark.parametrize(
    ("where", "complaint"),
    [
        ({"kk": "a"}, "no column 'kk' to filter by"),
        ({"k": 1}, "'k' is STRING, but the filter has a value of kind 'integer'"),
        ({"s": "many"}, "'s' is HUGEINT"),
        ({"k": [str(i) for i in range(10_001)]}, "more than 10000 values"),
    ],
)
def test_a_filter_that_does_not_fit_is_refused(
    service: Service, writer: Writer, where: dict[str, object], complaint: str
) -> None:
    name = written(writer).query.name
    with service.client() as client:
        with pytest.raises(StairwiseError, match=complaint):
            list(client.subscribe(name, where=where))  # type: ignore[arg-type]
        with pytest.raises(StairwiseError, match=complaint):
            client.snapshot(name, where=where)  # type: ignore[arg-type]


def test_a_token_of_another_filter_is_refused(service: Service, writer: Writer) -> None:
    name = written(writer).query.name
    with service.client() as client:
        first = next(client.subscribe(name, "earliest", where={"k": "a"}))
        with pytest.raises(StairwiseError, match="one of another filter"):
            list(client.subscribe(name, first.token, where={"k": "b"}))


def test_a_snapshot_larger_than_any_message_comes_in_pages(service: Service, writer: Writer) -> None:
    query = counts(writer)
    for shard in (0, 1):
        rows = [(f"{i:06}" + "x" * 200, i, i) for i in range(shard, 60_000, 2)]
        writer.report(query, 10, rows, shard, 2)
    writer.flush()
    name = query.query.name
    with service.client() as client:
        until(lambda: _has_report(client, name))
        whole = client.report(name)
        assert sum(column.nbytes for column in whole.emission().rows.columns) > 12 << 20
        assert whole.to_arrow().column("n").to_pylist() == list(range(60_000))
        assert [row["n"] for row in client.snapshot(name)[1]] == list(range(60_000))
        few = client.report(name, where={"n": [7, 59_999]})
        assert few.to_arrow().column("n").to_pylist() == [7, 59_999]


def _has_report(client: Client, name: str) -> bool:
    try:
        return client.report(name, where={"n": []}).time == 10
    except StairwiseError:
        return False


def test_the_asyncio_client_says_what_the_other_says(service: Service, writer: Writer) -> None:
    name = written(writer).query.name

    async def asked() -> tuple[list[Update], list[pa.RecordBatch], object, Update]:
        async with AsyncClient.connect(results=service.address, brokers=service.brokers) as client:
            updates = [update async for update in client.subscribe(name, "earliest", where={"k": "a"})]
            batches = [batch async for batch in client.subscribe(name, "earliest").batches()]
            with pytest.raises(StairwiseError, match="there is no query") as refused:
                await client.snapshot(name + "x")
            assert f"did you mean '{name}'" in refused.value.hint
            return updates, batches, await client.snapshot(name, 25), await client.report(name)

    updates, batches, snapshot, report = asyncio.run(asked())
    with service.client() as client:
        assert updates == list(client.subscribe(name, "earliest", where={"k": "a"}))
        assert batches == list(client.subscribe(name, "earliest").batches())
        assert snapshot == client.snapshot(name, 25)
        assert report == client.report(name)


def test_a_heartbeat_comes_when_nothing_else_does(service: Service, writer: Writer) -> None:
    query = counts(writer)
    with service.stub() as stub:
        call = stub.Subscribe(pb.SubscribeRequest(query=query.query.name, heartbeat_ms=1_000))
        header, beat = next(call), next(call)
        call.cancel()
    assert beat.HasField("heartbeat")
    assert beat.heartbeat.clock_ms > 0
    assert beat.token == header.token


def test_who_does_not_read_holds_up_nobody_and_gets_the_token_to_go_on_from(service: Service, writer: Writer) -> None:
    query = counts(writer)
    rows = [(f"{i:06}" + "x" * 200, i, i) for i in range(4_000)]
    request = pb.SubscribeRequest(query=query.query.name, earliest=pb.Earliest())
    with service.stub() as slow, service.client() as client:
        call = slow.Subscribe(request)
        got = [next(call)]
        times = range(10, 310, 10)  # about 30 MB: more than the windows of a connection hold
        for time in times:
            writer.report(query, time, rows)
        writer.end(query)
        writer.flush()
        assert [u.time for u in client.subscribe(query.query.name, "earliest", encoding="arrow")] == list(times)
        until(lambda: "its client took nothing" in service.log.read_text(), lambda: "the slow one is served on")
        with pytest.raises(grpc.RpcError) as ended:
            got.extend(call)
        assert ended.value.code() == grpc.StatusCode.ABORTED
        (token,) = (value for key, value in ended.value.trailing_metadata() if key == "stairwise-token-bin")
        assert token == got[-1].token
        got += slow.Subscribe(pb.SubscribeRequest(query=query.query.name, token=token))
    sent = [(m.update.time_ms, c.row.values[1].integer) for m in got for c in m.update.changes]
    assert sent == [(time, i) for time in times for i in range(4_000)]


def test_a_start_near_the_end_of_the_topic_finds_what_is_older(broker, writer: Writer) -> None:
    queries = [counts(writer) for _ in range(3)]
    old, half, new = queries
    for time in range(10, 210, 10):
        for query in queries if time <= 100 else (half, new) if time <= 150 else (new,):
            writer.report(query, time, [], 0, 2)
            writer.report(query, time, [], 1, 2)
    writer.flush()
    last = {old.signature: 100, half.signature: 150, new.signature: 200}

    async def scenario() -> None:
        tail = await asyncio.to_thread(find_tail, broker.bootstrap, 1 << 20, 5)
        journal, history = Journal(), History(broker.bootstrap)
        journal.holds_all_of = lambda _: False
        follower = ResultsFollower(broker.bootstrap, tail, journal, lambda: None)
        follower.start()
        try:
            await asyncio.wait_for(follower.caught_up.wait(), 60)
            for query in queries:
                feed = Feed(journal, history, query.signature)
                latest = await feed.last_before((math.inf, 0))  # type: ignore[arg-type]
                assert latest is not None
                assert latest.position == (last[query.signature], 0)
                reports = feed.reports(FIRST, before=False)
                expected = range(10, last[query.signature] + 10, 10)
                assert [(await anext(reports)).position[0] for _ in expected] == list(expected)  # type: ignore[union-attr]
                writer.report(query, 500, [], 0, 2)
                writer.report(query, 500, [], 1, 2)
                writer.flush()
                assert (await anext(reports)).position[0] == 500  # type: ignore[union-attr]
        finally:
            await follower.stop()
            history.close()

    asyncio.run(scenario())


def test_a_client_finds_its_host_on_the_usual_ports(tmp_path: Path) -> None:
    client = Client.connect("example.org", directory=tmp_path, environ={})
    assert client.addresses.results == "example.org:7071"
    assert client.addresses.brokers == "example.org:9092"
    with pytest.raises(StairwiseError, match="not the name of a host"):
        Client.connect("example.org:7071", directory=tmp_path, environ={})
