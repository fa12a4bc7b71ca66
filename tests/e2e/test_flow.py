"""From an event on Kafka to a line on a subscriber's screen, with the commands that a user types."""

from __future__ import annotations

import json
import random

import pytest
from confluent_kafka import TopicPartition

from stairwise.platform import kafka
from stairwise.wire import topics
from stairwise.wire.message_pieces import MessagePiece
from tests.e2e.conftest import System

pytestmark = pytest.mark.jvm

START = 1_700_000_000_000


def declare(system: System, stream: str, partitions: int = 2, more: str = "") -> None:
    system.sql(
        f"CREATE STREAM {stream} (ts TIMESTAMP, ticker STRING NOT NULL, price DOUBLE, qty BIGINT) "
        f"TIMESTAMP BY ts PARTITION BY ticker PARTITIONS {partitions} {more}"
    )


def trade(second: float, ticker: str, qty: int | None) -> dict[str, object]:
    return {"ts": START + int(second * 1000), "ticker": ticker, "price": 1.5, "qty": qty}


def test_tumbling_count_and_sum_by_group_come_out_line_by_line(system: System) -> None:
    declare(system, "flow")
    system.sql(
        "CREATE QUERY flow_volume AS SELECT ticker, COUNT(*) AS n, SUM(qty) AS volume "
        "FROM flow [TUMBLE 10 SECONDS] GROUP BY ticker;"
        "CREATE QUERY flow_all AS SELECT COUNT(*) AS n, SUM(qty) AS volume FROM flow [TUMBLE 10 SECONDS]"
    )
    rows = [trade(1, "A", 1), trade(2, "B", 2), trade(3, "A", None), trade(10, "B", 5), trade(31, "A", 7)]
    system.publish("flow", rows, "--seal")
    assert system.lines("flow_volume") == [
        {
            "query": "flow_volume",
            "time": START + t * 1000,
            "diff": 1,
            "row": {"ticker": k, "n": n, "volume": v},
        }
        for t, k, n, v in [(10, "A", 2, 1), (10, "B", 2, 7), (40, "A", 1, 7)]
    ]
    assert system.lines("flow_all") == [
        {"query": "flow_all", "time": START + t * 1000, "diff": 1, "row": {"n": n, "volume": v}}
        for t, n, v in [(10, 4, 8), (20, 0, None), (30, 0, None), (40, 1, 7)]
    ]


def test_a_report_of_many_messages_comes_whole_and_holds_up_no_other_query(system: System) -> None:
    """The system is set to pieces of 64 KiB: each shard's report is some ten of them."""
    declare(system, "crowd")
    system.sql(
        "CREATE QUERY crowd_keys AS SELECT ticker, SUM(qty) AS volume FROM crowd [TUMBLE 10 SECONDS] GROUP BY ticker;"
        "CREATE QUERY crowd_all AS SELECT COUNT(*) AS n FROM crowd [TUMBLE 10 SECONDS]"
    )
    chance = random.Random(0)
    rows = [trade(1 + number / 10_000, f"{chance.getrandbits(256):064x}", number) for number in range(16_000)]
    system.publish("crowd", rows, "--seal")
    answers = [(line["row"]["ticker"], line["row"]["volume"]) for line in system.lines("crowd_keys")]
    assert answers == sorted((row["ticker"], row["qty"]) for row in rows)
    assert [line["row"]["n"] for line in system.lines("crowd_all")] == [16_000]
    pieces = [piece for piece in _pieces(system) if piece is not None]
    assert len({piece.write for piece in pieces}) >= 2
    assert len(pieces) > 10


def _pieces(system: System) -> list[MessagePiece | None]:
    """What every message of ``results`` says of the part of a report that it is."""
    brokers = json.loads((system.directory / "system.json").read_text())["addresses"]["brokers"]
    reader = kafka.consumer(brokers, "test-pieces", enable_partition_eof=True)
    partitions = [TopicPartition(topics.RESULTS, p, 0) for p in range(topics.RESULTS_PARTITIONS)]
    found = [MessagePiece.decode(kafka.headers_of(message)) for message in kafka.read_to_end(reader, partitions)]
    reader.close()
    return found


def test_a_malformed_event_is_dead_lettered_with_its_reason_and_the_stream_goes_on(system: System) -> None:
    declare(system, "sick", partitions=1)
    system.sql("CREATE QUERY sick_count AS SELECT COUNT(*) AS n FROM sick [TUMBLE 10 SECONDS]")
    bad = ["{not json\n", '{"ts": 1, "ticker": "A", "qty": "many"}\n', '{"ts": 1}\n']
    system.publish("sick", [trade(1, "A", 1), *bad, trade(2, "A", 1)], "--seal", "--allow-rejects")
    assert [line["row"]["n"] for line in system.lines("sick_count")] == [2]
    brokers = json.loads((system.directory / "system.json").read_text())["addresses"]["brokers"]
    reader = kafka.consumer(brokers, "test-dead", enable_partition_eof=True)
    dead = list(kafka.read_to_end(reader, [TopicPartition(topics.dead("sick"), 0, 0)]))
    reader.close()
    assert [m.value().decode() for m in dead] == [b.rstrip("\n") for b in bad]
    headers = [kafka.headers_of(m) for m in dead]
    assert [h["code"] for h in headers] == [b"MALFORMED", b"WRONG_TYPE", b"MISSING_FIELD"]
    assert [h["field"] for h in headers] == [b"", b"qty", b"ticker"]
    assert all(h["reason"] for h in headers)


def test_a_query_that_joins_while_data_flow_reports_from_its_own_first_time(system: System) -> None:
    declare(system, "joined", partitions=1)
    system.publish("joined", [trade(s, "A", 1) for s in range(25)])
    system.await_ingest()
    system.sql("CREATE QUERY joined_late AS SELECT COUNT(*) AS n FROM joined [TUMBLE 10 SECONDS]")
    system.publish("joined", [trade(s, "A", 1) for s in range(25, 45)], "--seal")
    # It saw nothing up to second 24: the window that ends at 30 is half filled.
    assert [(line["time"] - START, line["row"]["n"]) for line in system.lines("joined_late")] == [
        (30_000, 6),
        (40_000, 10),
        (50_000, 4),
    ]


def test_a_query_that_joins_others_sees_the_history_that_they_share(system: System) -> None:
    declare(system, "kept", partitions=1)
    values = "SELECT DISTINCT ticker FROM kept [{0}] EMIT RSTREAM"
    pairs = (
        "SELECT a.qty, b.qty AS later FROM kept [{0}] a JOIN kept [{0}] b"
        " ON a.ticker = b.ticker WHERE a.qty < b.qty EMIT RSTREAM"
    )
    wide, late = "RANGE 30 SECONDS SLIDE 10 SECONDS", "TUMBLE 10 SECONDS"
    system.sql(f"CREATE QUERY kept_values AS {values.format(wide)}; CREATE QUERY kept_pairs AS {pairs.format(wide)}")
    system.publish("kept", [trade(s, f"T{s // 5}", s) for s in range(25)])
    system.await_ingest()
    system.sql(f"CREATE QUERY late_values AS {values.format(late)}; CREATE QUERY late_pairs AS {pairs.format(late)}")
    system.publish("kept", [trade(s, f"T{s // 5}", s) for s in range(25, 31)], "--seal")
    seconds = range(21, 31)
    assert [line["row"]["ticker"] for line in system.lines("late_values")] == ["T4", "T5", "T6"]
    assert [(line["row"]["qty"], line["row"]["later"]) for line in system.lines("late_pairs")] == [
        (a, b) for a in seconds for b in seconds if a < b and a // 5 == b // 5
    ]


def test_a_dropped_query_ends_its_subscriptions_and_a_new_one_takes_its_name(system: System) -> None:
    declare(system, "dropped", partitions=1)
    system.sql("CREATE QUERY dropped_q AS SELECT COUNT(*) AS n FROM dropped [TUMBLE 10 SECONDS]")
    system.publish("dropped", [trade(s, "A", 1) for s in range(25)])
    system.await_ingest()
    subscription = system.start("subscribe", "dropped_q", "--from", "earliest")
    assert subscription.stdout is not None
    assert json.loads(subscription.stdout.readline())["row"] == {"n": 1}
    system.sql("DROP QUERY dropped_q")
    assert [json.loads(line)["row"] for line in subscription.stdout] == [{"n": 10}, {"n": 10}]
    assert subscription.wait(60) == 0
    system.sql("CREATE QUERY dropped_q AS SELECT COUNT(*) AS m FROM dropped [TUMBLE 10 SECONDS]")
    system.publish("dropped", [trade(s, "A", 1) for s in range(25, 35)], "--seal")
    assert [line["row"] for line in system.lines("dropped_q")] == [{"m": 6}, {"m": 4}]


def test_a_bad_statement_gets_line_column_and_hint_and_changes_nothing(system: System) -> None:
    before = system.ok("sql", "--streams")
    script = "CREATE STREAM fine (ts TIMESTAMP) TIMESTAMP BY ts;\nSELECT COUNT(*) FROM fin [TUMBLE 10 SECONDS]"
    refused = system.run("sql", "-e", script)
    assert refused.returncode == 1
    assert "line 2, column 22" in refused.stderr
    assert "did you mean 'fine'?" in refused.stderr
    assert system.ok("sql", "--streams") == before


def test_a_subscription_to_a_query_that_does_not_exist_names_the_nearest(system: System) -> None:
    declare(system, "nearest", partitions=1)
    system.sql("CREATE QUERY nearest_volume AS SELECT COUNT(*) AS n FROM nearest [TUMBLE 10 SECONDS]")
    refused = system.run("subscribe", "nearest_volum")
    assert refused.returncode == 1
    assert "there is no query 'nearest_volum'" in refused.stderr
    assert "did you mean 'nearest_volume'?" in refused.stderr


def test_status_shows_every_part_healthy_and_nothing_left_to_read(system: System) -> None:
    parts = system.parts()
    assert set(parts) - {"zipkin"} == {"broker", "windows", "ingest", "operators", "results", "lookups"}
    assert {part["health"] for part in parts.values()} == {"healthy"}
    assert parts["ingest"]["lag"] == 0


@pytest.mark.parametrize(("stream", "more"), [("idle", "IDLE AFTER 500 MILLISECONDS"), ("empty", "")])
def test_idle_and_empty_partitions_do_not_hold_reports_back(system: System, stream: str, more: str) -> None:
    declare(system, stream, partitions=4, more=more)
    system.sql(f"CREATE QUERY {stream}_count AS SELECT COUNT(*) AS n FROM {stream} [TUMBLE 10 SECONDS]")
    subscription = system.start("subscribe", f"{stream}_count", "--from", "earliest", "--limit", "1")
    for second in range(0, 60, 5):
        system.publish(stream, [trade(second, "A", 1)])
        if subscription.poll() is not None:
            break
    out, _ = subscription.communicate(timeout=60)
    assert json.loads(out)["row"] == {"n": 1}
