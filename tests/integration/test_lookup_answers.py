"""Lookups of a running service: the right answer at its watermark, whoever holds the partitions and whoever dies."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from stairwise.cli.main import cli
from stairwise.client import AsyncClient
from stairwise.client.lookups import Answer, Many
from stairwise.errors import NotReadyError, StairwiseError, StatementError
from stairwise.lookups.statement import read_lookup
from stairwise.schema import Column, Stream, Type
from stairwise.streams.partition import partition_of
from tests.integration.lookup_system import Worker, Writer, eventually

pytestmark = pytest.mark.jvm

COLUMNS = (
    Column("ts", Type.TIMESTAMP, nullable=False),
    Column("ticker", Type.STRING),
    Column("qty", Type.BIGINT),
    Column("price", Type.DOUBLE),
)
Row = tuple[int, str, int, float]


class Market:
    """A stream in two partitions, and all rows that were written to it."""

    def __init__(self, writer: Writer) -> None:
        self.stream = Stream(f"market_{uuid.uuid4().hex[:6]}", COLUMNS, timestamp_by="ts", partitions=2)
        self.rows: list[Row] = []
        self._writer = writer
        self._chance = np.random.default_rng(7)
        writer.create(self.stream)

    def write(self, start: int, count: int) -> None:
        """``count`` rows in each partition, a millisecond apart."""
        for partition in range(2):
            times = np.arange(start, start + count)
            tickers = [f"t{number}" for number in self._chance.integers(0, 50, count)]
            qty, price = self._chance.integers(0, 100, count), self._chance.normal(size=count)
            columns = [pa.array(times), pa.array(tickers), pa.array(qty), pa.array(price)]
            self.rows += list(zip(*(column.to_pylist() for column in columns), strict=True))
            self._writer.write_rows(
                self.stream, partition, pa.RecordBatch.from_arrays(columns, schema=self.stream.arrow_schema)
            )

    def volumes(self, rear: int, front: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for ts, ticker, qty, _ in self.rows:
            if rear < ts <= front:
                found[ticker] = found.get(ticker, 0) + qty
        return found

    def select(self, what: str, rest: str = "", window: str = "RANGE 300 MILLISECONDS") -> str:
        return f"SELECT {what} FROM {self.stream.name} [{window}] {rest}"


@pytest.fixture(scope="module")
def writer(broker) -> Iterator[Writer]:
    writer = Writer(broker.bootstrap)
    yield writer
    writer.close()


@pytest.fixture(scope="module")
def market(writer: Writer) -> Market:
    market = Market(writer)
    market.write(0, 1000)
    market.write(1000, 1000)
    return market


@pytest.fixture(scope="module")
def worker(broker, market: Market) -> Iterator[Worker]:
    worker = Worker(broker.bootstrap, broker.directory)
    try:
        worker.await_healthy()
        yield worker
    finally:
        worker.close()


def test_a_group_by_is_answered_at_the_watermark(worker: Worker, market: Market) -> None:
    for _ in range(3):  # from the rows, and then from structures
        answer = worker.client.lookup(market.select("ticker, SUM(qty) AS v", "GROUP BY ticker"), None, 30)
        assert answer.time == 1998
        expected = market.volumes(1998 - 300, 1998)
        assert answer.rows == [{"ticker": k, "v": expected[k]} for k in sorted(expected)]


def test_one_key_is_answered_and_one_without_rows_too(worker: Worker, market: Market) -> None:
    expected = market.volumes(1598, 1898)
    window = "RANGE 300 MILLISECONDS LAG 100 MILLISECONDS"
    for ticker, volume in (("t7", expected["t7"]), ("nobody", None)):
        select = market.select("SUM(qty) AS v", f"WHERE ticker = '{ticker}'", window)
        assert worker.client.lookup(select, None, 30).rows == [{"v": volume}]


def test_a_filter_is_exact_although_a_key_lies_in_both_partitions(worker: Worker, market: Market) -> None:
    expected = {k: v for k, v in market.volumes(1698, 1998).items() if v > 700}
    assert 0 < len(expected) < 50
    for _ in range(3):
        answer = worker.client.lookup(
            market.select("ticker, SUM(qty) AS v", "GROUP BY ticker HAVING SUM(qty) > 700"), None, 30
        )
        assert {row["ticker"]: row["v"] for row in answer.rows} == expected


def test_the_last_rows_of_all_partitions_are_found(worker: Worker, market: Market) -> None:
    last = sorted(row for row in market.rows if row[0] <= 1998)[-40:]
    times = {row[0] for row in last}
    answer = worker.client.lookup(market.select("COUNT(*) AS n, MIN(ts) AS first", window="ROWS 40"), None, 30)
    assert answer.rows == [{"n": 40, "first": min(times)}]


def test_many_lookups_see_one_instant_and_keys_come_in_their_order(worker: Worker, market: Market) -> None:
    volume = market.select("ticker, SUM(qty) AS v", "GROUP BY ticker")
    keys, ranges = ["t9", "t1", "nobody", "t9"], [100, 200, 300, 400]
    each, total = worker.client.lookup_many(
        [Many(volume, keys, ranges), Many(market.select("COUNT(*) AS n"))], None, 30
    )
    assert each.time == total.time == 1998
    assert total.rows == [{"n": 600}]
    expected = [market.volumes(1998 - length, 1998).get(key) for key, length in zip(keys, ranges, strict=True)]
    assert [row["v"] for row in each.rows] == expected


def test_the_asyncio_client_gets_the_same(worker: Worker, market: Market) -> None:
    volume = market.select("ticker, SUM(qty) AS v", "GROUP BY ticker")

    async def asked() -> tuple[Answer, list[Answer]]:
        async with AsyncClient.connect("127.0.0.1", lookups=worker.address) as client:
            with pytest.raises(StairwiseError, match="no stream"):
                await client.lookup("SELECT COUNT(*) FROM nowhere [RANGE 5s]")
            return await client.lookup(volume), await client.lookup_many([volume, Many(volume, ["t9"])])

    one, (first, second) = asyncio.run(asked())
    assert one.rows == first.rows == worker.client.lookup(volume, None, 30).rows
    assert second.rows == [row for row in one.rows if row["ticker"] == "t9"]


def test_what_cannot_be_answered_gets_a_clear_error(worker: Worker, market: Market) -> None:
    for select, message in (
        (market.select("qty"), "aggregates"),
        (market.select("COUNT(*)", "EMIT CHANGES"), "no EMIT"),
        ("SELECT COUNT(*) FROM nowhere [RANGE 5s]", "no stream"),
    ):
        with pytest.raises(StairwiseError, match=message):
            worker.client.lookup(select, None, 30)
    with pytest.raises(StatementError) as caught:
        worker.client.lookup("SELECT COUNT(*) FRM s", None, 30)
    assert caught.value.column == 21
    with pytest.raises(StairwiseError, match="types"):
        worker.client.lookup_many([Many(market.select("SUM(qty)", "GROUP BY ticker"), [1, 2])], None, 30)


def test_the_command_line_prints_lines(worker: Worker, market: Market, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAIRWISE_LOOKUPS", worker.address)
    select = market.select("ticker, SUM(qty) AS v", "WHERE ticker = 't7' GROUP BY ticker", "FROM 0 UNTIL 1000")
    done = CliRunner().invoke(cli, ["lookup", select, "--format", "jsonl"])
    assert done.exit_code == 0, done.output
    row = {"ticker": "t7", "v": market.volumes(-1, 1000)["t7"]}
    line = json.loads(done.stdout)
    assert (line["query"], line["diff"], line["row"]) == ("lookup", 1, row)


def test_explain_says_which_structure_answers(worker: Worker, market: Market) -> None:
    select = market.select("ticker, SUM(qty), MAX(price)", "GROUP BY ticker HAVING SUM(qty) > 700")
    explanation = worker.client.lookup(f"EXPLAIN {select}", None, 30).explanation
    assert "R-INT" in explanation
    assert "B-INT" in explanation
    assert "CI-SUM" in explanation


def test_at_least_waits_for_the_watermark_and_gives_up_at_the_deadline(worker: Worker, market: Market) -> None:
    select = market.select("COUNT(*) AS n", window="RANGE 100 MILLISECONDS")
    with pytest.raises(StairwiseError, match="has not reached 2500"):
        worker.client.lookup(select, 2500, 1)
    writing = threading.Timer(0.3, market.write, (2000, 600))
    writing.start()
    answer = worker.client.lookup(select, 2500, 60)
    writing.join()
    assert answer.time >= 2500
    assert answer.rows == [{"n": 200}]


def test_a_stream_without_a_row_says_that_it_is_not_ready(worker: Worker, writer: Writer) -> None:
    fresh = Stream(f"fresh_{uuid.uuid4().hex[:6]}", COLUMNS, timestamp_by="ts", partitions=1)
    writer.create(fresh)
    with pytest.raises(NotReadyError) as caught:
        eventually_answers(worker, f"SELECT COUNT(*) AS n FROM {fresh.name} [RANGE 5s]")
    assert caught.value.retry_after > 0
    columns = [pa.array([v]) for v in (5, "a", 1, 0.5)]
    writer.write_rows(fresh, 0, pa.RecordBatch.from_arrays(columns, schema=fresh.arrow_schema))
    writer.write_rows(fresh, 0, pa.RecordBatch.from_pylist([], schema=fresh.arrow_schema), sealed=True)
    answer = worker.client.lookup(f"SELECT COUNT(*) AS n FROM {fresh.name} [RANGE 5s]", 5, 60)
    assert (answer.time, answer.rows) == (5, [{"n": 1}])


def eventually_answers(worker: Worker, select: str) -> Any:
    """Ask once the service knows of the stream."""
    stream = select.split(" FROM ")[1].split()[0]
    eventually(lambda: bool(worker.owners(stream)), "the stream is known")
    return worker.client.lookup(select, None, 1)


def test_two_workers_answer_as_one_and_the_one_left_answers_for_all(broker, worker: Worker, market: Market) -> None:
    select = market.select("ticker, SUM(qty) AS v", "GROUP BY ticker HAVING SUM(qty) > 700")
    lookup = read_lookup(select, {market.stream.name: market.stream})
    at = worker.client.lookup(select, None, 30).time
    expected = {k: v for k, v in market.volumes(at - 300, at).items() if v > 700}

    def volumes(of: Worker) -> dict[str, int]:
        answer = of.client.lookup(lookup.text, None, 60)
        assert answer.time == at
        return {row["ticker"]: row["v"] for row in answer.rows}

    second = Worker(broker.bootstrap, broker.directory)
    try:
        second.await_healthy()
        for one in (worker, second):
            eventually(lambda w=one: len({o.address for o in w.owners(market.stream)}) == 2, "both know both")
            assert volumes(one) == expected
            assert one.client.lookup(market.select("COUNT(*) AS n", window="ROWS 40"), None, 60).rows == [{"n": 40}]
        second.kill()
        begin = time.monotonic()
        assert volumes(worker) == expected
        print(f"lookups came back {time.monotonic() - begin:.1f} s after a kill")
    finally:
        second.close()


def test_what_is_at_home_with_one_worker_is_answered_while_the_other_is_dead(
    broker, worker: Worker, writer: Writer
) -> None:
    """The rows of each ticker lie where PARTITION BY sends it. Time stands still until all are read again."""
    shop = Shop(writer)
    shop.write(0, 1000)
    second = Worker(broker.bootstrap, broker.directory)
    try:
        second.await_healthy()
        eventually(lambda: len({o.address for o in worker.owners(shop.stream)}) == 2, "they share")
        held = {o.partition for o in worker.owners(shop.stream) if o.address == worker.address}
        ours, theirs = (
            next(ticker for ticker in shop.tickers if (shop.home(ticker) in held) is here) for here in (True, False)
        )
        assert [shop.asked(worker, ticker, within=10) for ticker in (ours, theirs)] == [998, 998]
        second.kill()
        shop.write(1000, 1000)
        asked, refused, times = 0, 0, {998}
        while 1998 not in times:
            asked += 1
            times.add(shop.asked(worker, ours))
            try:
                shop.asked(worker, theirs)
            except NotReadyError:
                refused += 1
        assert times == {998, 1998}
        assert refused > 0
        print(f"{asked} lookups on keys of the one that lives, and none refused; of the other's, {refused} were")
    finally:
        second.close()


def test_a_ticker_that_lies_astray_is_not_taken_to_be_at_home(broker, worker: Worker, writer: Writer) -> None:
    shop = Shop(writer)
    shop.write(0, 1000, astray=True)
    second = Worker(broker.bootstrap, broker.directory)
    try:
        second.await_healthy()
        eventually(lambda: len({o.address for o in worker.owners(shop.stream)}) == 2, "they share")
        for ticker in shop.tickers:
            assert shop.asked(worker, ticker, within=10) == 998
        second.kill()
        for ticker in shop.tickers:
            with pytest.raises(NotReadyError):
                shop.asked(worker, ticker)
    finally:
        second.close()


class Shop:
    """A stream with PARTITION BY, and a row of some ticker in each partition at every millisecond."""

    tickers = tuple(f"t{number}" for number in range(20))

    def __init__(self, writer: Writer) -> None:
        name = f"shop_{uuid.uuid4().hex[:6]}"
        self.stream = Stream(name, COLUMNS, timestamp_by="ts", partition_by="ticker", partitions=4)
        self.rows: list[tuple[int, str]] = []
        self._writer = writer
        writer.create(self.stream)

    def home(self, ticker: str) -> int:
        return partition_of(ticker, self.stream.partitions)

    def write(self, start: int, count: int, *, astray: bool = False) -> None:
        for partition in range(self.stream.partitions):
            times = np.arange(start, start + count)
            known = [t for t in self.tickers if (self.home(t) == partition) is not astray]
            tickers = [known[time_ % len(known)] for time_ in times.tolist()]
            self.rows += list(zip(times.tolist(), tickers, strict=True))
            columns = [pa.array(times), pa.array(tickers), pa.array(times), pa.array(np.zeros(count))]
            rows = pa.RecordBatch.from_arrays(columns, schema=self.stream.arrow_schema)
            self._writer.write_rows(self.stream, partition, rows)

    def asked(self, worker: Worker, ticker: str, within: float = 0.5) -> int:
        """Ask; the answer must be right at its time, which is given. A refusal is asked again for so many seconds."""
        select = f"SELECT COUNT(*) AS n FROM {self.stream.name} [RANGE 300 MILLISECONDS] WHERE ticker = '{ticker}'"
        answer = worker.client.lookup(select, None, within)
        window = range(answer.time - 299, answer.time + 1)
        assert answer.rows == [{"n": sum(time_ in window and ticker == one for time_, one in self.rows)}]
        return answer.time


@pytest.mark.long
def test_streams_that_are_created_stop_no_lookups_on_the_others_for_longer_than_a_rebalance(
    worker: Worker, writer: Writer, market: Market
) -> None:
    select = market.select("COUNT(*) AS n", window="FROM 0 UNTIL 1000")
    expected = worker.client.lookup(select, None, 30).rows
    gaps, refused = [0.0], 0
    last = time.monotonic()
    for number in range(20):
        writer.create(Stream(f"new{number}_{uuid.uuid4().hex[:6]}", COLUMNS, timestamp_by="ts", partitions=2))
        for _ in range(100):
            try:
                assert worker.client.lookup(select, None, 0.9).rows == expected
                gaps.append(time.monotonic() - last)
                last = time.monotonic()
            except NotReadyError:
                refused += 1
    print(f"20 streams created: {len(gaps) - 1} lookups, {refused} refused, longest gap {max(gaps):.1f} s")
    assert len(gaps) > 1000
