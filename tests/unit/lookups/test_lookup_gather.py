"""Two workers over real gRPC that hold a partition each: either answers for both, at one instant, or says not yet.

What Kafka and Faust would do is done by hand: the batches are put into the holdings, the owners are told.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pytest

from services.lookups import peers
from services.lookups.holdings import Holdings, Key
from services.lookups.peers import Peers
from services.lookups.servicer import SERVICE, LookupsServicer
from stairwise.aggregates.contract import Rows
from stairwise.client.lookups import Answer, Many
from stairwise.errors import NotReadyError, StairwiseError
from stairwise.lookups import partition_history, scan
from stairwise.lookups.statement import Lookup
from stairwise.platform import server as platform_server
from stairwise.platform.error_status import from_rpc_error
from stairwise.schema import DAWN, Column, Stream, Type
from stairwise.state.pages import from_page
from stairwise.v1 import lookups_pb2, lookups_pb2_grpc
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, encode_rows
from stairwise.wire.plans import PlanCatalogue

COLUMNS = (Column("ts", Type.TIMESTAMP, False), Column("k", Type.STRING), Column("n", Type.BIGINT))
STREAM = Stream("s", COLUMNS, timestamp_by="ts", partitions=2)
TOPIC = topics.sequenced(STREAM)
ROWS = [(time, f"k{(time * 7 + part) % 10}", time % 13) for time in range(400) for part in (0, 1)]


@dataclass
class Member:
    """What the gRPC face asks of its Faust worker."""

    address: str = ""
    owners: dict[Key, str] = field(default_factory=dict)


class Server:
    """A worker without Kafka: holds one partition."""

    def __init__(self, number: int) -> None:
        self.server = platform_server.Server("127.0.0.1:0")
        self.member = Member(f"127.0.0.1:{self.server.port}")
        self.holdings = Holdings()
        self.holdings.assign({(TOPIC, number): STREAM})
        self.number = number
        self._peers = Peers()
        plans = SimpleNamespace(catalogue=PlanCatalogue(version=1, streams={"s": STREAM}))
        self.api = LookupsServicer(plans, self.member, self.holdings, self._peers)  # type: ignore[arg-type]

    async def start(self) -> None:
        await self.server.start(lambda s: lookups_pb2_grpc.add_LookupsServicer_to_server(self.api, s), [SERVICE])
        self.channel = grpc.aio.insecure_channel(self.member.address)
        self.stub: Any = lookups_pb2_grpc.LookupsStub(self.channel)

    def take(self, upto: int) -> None:
        """All rows of the partition up to a time."""
        rows = [row for i, row in enumerate(ROWS) if i % 2 == self.number and row[0] <= upto]
        columns = [pa.array([row[i] for row in rows], c.type.arrow) for i, c in enumerate(COLUMNS)]
        batch = pa.RecordBatch.from_arrays(columns, schema=STREAM.arrow_schema)
        headers = BatchHeaders(1, 0, len(rows), upto - 1, DAWN, 0, upto)
        partition = self.holdings.get((TOPIC, self.number))
        assert partition is not None
        partition.target = 0
        partition.take((TOPIC, self.number), 0, headers, encode_rows(batch))

    async def lookup(self, select: str, **asked: Any) -> Answer:
        try:
            response = await self.stub.Lookup(lookups_pb2.LookupRequest(select=select, **asked), timeout=10)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error, self.member.address) from error
        return Answer(response.watermark_ms, from_page(response.rows))

    async def stop(self) -> None:
        await self.channel.close()
        await self._peers.close()
        await self.server.stop(0)


def with_two(test: Callable[[Server, Server], Awaitable[None]], *, known: bool = True) -> None:
    """Run a test with two workers that have read up to different times."""

    async def run() -> None:
        servers = [Server(0), Server(1)]
        for server, upto in zip(servers, (399, 300), strict=True):
            await server.start()
            server.take(upto)
            if known:
                server.member.owners = {(TOPIC, other.number): other.member.address for other in servers}
        try:
            await test(*servers)
        finally:
            for server in servers:
                await server.stop()

    asyncio.run(run())


def sums(rear: int, front: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for time, key, n in ROWS:
        if rear < time <= front:
            found[key] = found.get(key, 0) + n
    return found


def test_either_worker_answers_for_both_at_the_lesser_watermark() -> None:
    async def ask(one: Server, other: Server) -> None:
        for server in (one, other) * 3:  # from the rows at first, then from structures
            answer = await server.lookup("SELECT k, SUM(n) AS v FROM s [RANGE 100 ms] GROUP BY k")
            assert answer.time == 299
            assert {row["k"]: row["v"] for row in answer.rows} == sums(199, 299)

    with_two(ask)


def test_a_filter_over_two_workers_is_exact() -> None:
    expected = {k: v for k, v in sums(199, 299).items() if v > 115}
    assert 0 < len(expected) < 10

    async def ask(one: Server, other: Server) -> None:
        for server in (one, other) * 3:
            answer = await server.lookup("SELECT k, SUM(n) AS v FROM s [RANGE 100 ms] GROUP BY k HAVING SUM(n) > 115")
            assert {row["k"]: row["v"] for row in answer.rows} == expected

    with_two(ask)


def test_the_last_rows_are_those_of_both() -> None:
    async def ask(one: Server, other: Server) -> None:
        answer = await other.lookup("SELECT COUNT(*) AS c, MIN(ts) AS first, MAX(ts) AS last FROM s [ROWS 51]")
        assert answer.rows == [{"c": 51, "first": 274, "last": 299}]

    with_two(ask)


def test_keys_asked_one_by_one_and_a_lookup_see_one_instant() -> None:
    async def ask(one: Server, other: Server) -> None:
        item = Many("SELECT k, SUM(n) AS v FROM s [RANGE 9 ms] GROUP BY k", ["k3", "none", "k1"], [50, 60, 70])
        request = lookups_pb2.LookupManyRequest(
            lookups=[item.to_proto(), Many("SELECT COUNT(*) AS c FROM s [RANGE 10 ms]").to_proto()]
        )
        response = await one.stub.LookupMany(request, timeout=10)
        keys, total = (from_page(rows).to_pylist() for rows in response.rows)
        assert response.watermark_ms == 299
        expected = [sums(299 - length, 299).get(key) for key, length in (("k3", 50), ("none", 60), ("k1", 70))]
        assert [None if row["v"] is None else int(row["v"]) for row in keys] == expected
        assert total == [{"c": 20}]

    with_two(ask)


def test_keys_asked_one_by_one_over_the_last_rows_of_both() -> None:
    last = sorted((row[0], i % 2, row[1]) for i, row in enumerate(ROWS) if row[0] <= 299)[-51:]

    async def ask(one: Server, other: Server) -> None:
        item = Many("SELECT k, COUNT(*) AS c FROM s [ROWS 51] GROUP BY k", ["k3", "none", "k1"])
        for server in (one, other):
            request = lookups_pb2.LookupManyRequest(lookups=[item.to_proto()])
            response = await server.stub.LookupMany(request, timeout=10)
            counts = [row["c"] for row in from_page(response.rows[0]).to_pylist()]
            assert counts == [sum(key == asked for *_, key in last) for asked in ("k3", "none", "k1")]

    with_two(ask)


def test_a_scan_is_in_nobodys_way_and_ends_with_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """While rows are looked through, lookups are answered and batches taken; a call that is over has no more slices."""
    gate, entered, seen = threading.Event(), threading.Event(), list[int]()
    look_through = scan._looked_through

    def slowly(lookup: Lookup, rows: pa.RecordBatch, places: Rows) -> pa.RecordBatch:
        if "MEDIAN" in lookup.text:
            seen.append(rows.num_rows)
            entered.set()
            gate.wait(20)
        return look_through(lookup, rows, places)

    monkeypatch.setattr(scan, "_looked_through", slowly)
    monkeypatch.setattr(partition_history, "SLICE", 64)

    async def ask(one: Server, other: Server) -> None:
        point = "SELECT COUNT(*) AS c FROM s [RANGE 400 ms] WHERE k = 'k1'"
        median = "SELECT k, MEDIAN(n) AS m FROM s [RANGE 300 ms] GROUP BY k"
        expected = [{"c": sum(k == "k1" and time <= 299 for time, k, _ in ROWS)}]
        for server in (one, other) * 2:
            assert (await server.lookup(point)).rows == expected
            while server.holdings.get((TOPIC, server.number)).history.makings:  # type: ignore[union-attr]
                await asyncio.sleep(0)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await one.stub.Lookup(lookups_pb2.LookupRequest(select=median), timeout=0.2)
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        await asyncio.to_thread(entered.wait, 20)
        assert (await one.lookup(point)).rows == expected
        slices = len(seen)
        gate.set()
        for server in (one, other):  # a short scan has its turn after the slices that were under way
            await server.lookup("SELECT k, COUNT(DISTINCT n) AS c FROM s [RANGE 10 ms] GROUP BY k")
        assert len(seen) == slices <= 2

    with_two(ask)


def test_a_partition_that_nobody_holds_yet_is_worth_another_try() -> None:
    async def ask(one: Server, other: Server) -> None:
        with pytest.raises(NotReadyError, match="no worker holds partition 1 of s yet") as caught:
            await one.lookup("SELECT COUNT(*) FROM s [RANGE 9 ms]")
        assert caught.value.retry_after == 2

    with_two(ask, known=False)


def test_a_worker_that_died_or_lost_its_partition_is_worth_another_try() -> None:
    async def ask(one: Server, other: Server) -> None:
        other.holdings.assign({})
        with pytest.raises(NotReadyError, match="on its way to another worker"):
            await one.lookup("SELECT COUNT(*) FROM s [RANGE 9 ms]")
        await other.server.stop(0)
        with pytest.raises(NotReadyError, match="does not answer"):
            await one.lookup("SELECT COUNT(*) FROM s [RANGE 9 ms]")

    with_two(ask)


def test_a_worker_that_hangs_is_missed_without_waiting_for_a_whole_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "QUICK", 0.2)
    monkeypatch.setattr(peers, "TIMEOUT", 60.0)

    async def ask(one: Server, other: Server) -> None:
        hung = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)  # takes calls and never answers
        address = f"127.0.0.1:{hung.sockets[0].getsockname()[1]}"
        one.member.owners[TOPIC, 1] = address
        with pytest.raises(NotReadyError, match=f"the worker at {address} does not answer"):
            await one.lookup("SELECT COUNT(*) FROM s [RANGE 9 ms]")
        hung.close()

    with_two(ask)


def test_at_least_waits_for_the_slower_worker() -> None:
    async def ask(one: Server, other: Server) -> None:
        with pytest.raises(StairwiseError, match="has not reached 390 in time, it is at 299"):
            await asyncio.wait_for(_ask_soon(one), 10)
        waiting = asyncio.create_task(one.lookup("SELECT COUNT(*) AS c FROM s [RANGE 9 ms]", at_least_ms=390))
        other.holdings.assign({})
        other.holdings.assign({(TOPIC, 1): STREAM})
        other.take(399)
        answer = await waiting
        assert (answer.time, answer.rows) == (398, [{"c": 18}])

    async def _ask_soon(one: Server) -> None:
        request = lookups_pb2.LookupRequest(select="SELECT COUNT(*) AS c FROM s [RANGE 9 ms]", at_least_ms=390)
        try:
            await one.stub.Lookup(request, timeout=0.5)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error, one.member.address) from error

    with_two(ask)


def test_a_lookup_at_a_time_is_the_report_of_that_time() -> None:
    async def ask(one: Server, other: Server) -> None:
        for server in (one, other) * 2:
            for at in (150, 299):
                answer = await server.lookup("SELECT k, SUM(n) AS v FROM s [RANGE 100 ms] GROUP BY k", at_ms=at)
                assert answer.time == at
                assert {row["k"]: row["v"] for row in answer.rows} == sums(at - 100, at)
                answer = await server.lookup("SELECT COUNT(*) AS c, MIN(ts) AS t FROM s [ROWS 21 LAG 2]", at_ms=at)
                assert answer.rows == [{"c": 21, "t": at - 11}]
        with pytest.raises(StairwiseError, match="give one of the two"):
            await one.lookup("SELECT COUNT(*) FROM s [RANGE 9 ms]", at_ms=5, at_least_ms=5)

    with_two(ask)


def test_keys_of_another_type_change_nothing_and_say_so() -> None:
    async def ask(one: Server, other: Server) -> None:
        select = "SELECT k, SUM(n) FROM s [RANGE 9 ms] GROUP BY k"
        for item, message in (
            (Many(select, np.arange(3).tolist()).to_proto(), "the keys have the types int64"),
            (lookups_pb2.ManyItem(select=select, keys=b"nonsense"), "no Arrow IPC stream"),
            (Many(select, ["k1"], [1, 2]).to_proto(), "1 keys and 2 ranges"),
            (Many("SELECT COUNT(*) FROM s [RANGE 9 ms]", ["k1"]).to_proto(), "types"),
            (Many(f"EXPLAIN {select}").to_proto(), "EXPLAIN is asked by itself"),
            (Many(select.replace("RANGE 9 ms", "ROWS 9"), ["k1"], [5]).to_proto(), "only a window by RANGE"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await one.stub.LookupMany(lookups_pb2.LookupManyRequest(lookups=[item]), timeout=10)
            assert message in str(caught.value.details())

    with_two(ask)
