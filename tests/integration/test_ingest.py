"""What producers publish becomes batches, late rows and dead letters, each exactly once; one instance."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition
from confluent_kafka.admin import ConfigResource

from stairwise.cli.main import cli
from stairwise.client import Publisher
from stairwise.errors import ConflictError
from stairwise.platform import kafka
from stairwise.schema import DUSK, Stream
from stairwise.wire import topics
from tests.integration.ingest_system import START, IngestSystem, ingest_system, wait_for

pytestmark = [pytest.mark.jvm, pytest.mark.filterwarnings("ignore:alter_configs")]


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestSystem]:
    with ingest_system(tmp_path_factory.mktemp("ingest")) as system, system.running():
        yield system


def arrow(**columns: list[object]) -> bytes:
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


def numbers(system: IngestSystem, stream: Stream, partition: int = 0) -> list[int]:
    return [row["n"] for row in system.rows(stream, partition)]


def codes(system: IngestSystem, stream: Stream, partition: int = 0) -> list[tuple[str, str]]:
    return [(headers["code"], headers["field"]) for _, headers in system.dead(stream, partition)]


def await_sealed(system: IngestSystem, stream: Stream) -> None:
    for partition in range(stream.partitions):
        wait_for(
            lambda p=partition: (found := system.sequenced(stream, p)) and found[-1].headers.sealed,
            f"partition {partition} of {stream.name} is sealed",
        )


def test_objects_lines_and_arrow_come_out_in_order_and_late_rows_by_themselves(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 1 LATENESS 5 ms")
    system.publish(
        stream,
        [
            {"ts": START, "n": 0},
            b'{"ts":%d,"n":1}\n{"ts":%d,"n":2}' % (START + 10, START + 3),
            arrow(ts=[START + 20, START + 1, START + 14, START + 15], n=[3, 4, 5, 6]),
            b'{"ts":%d,"n":7}' % (START + 14),
        ],
    )
    system.await_read(stream)
    assert numbers(system, stream) == [0, 1, 3, 6]
    late = system.late(stream)
    assert late[0][0] == b'{"ts":%d,"n":2}' % (START + 3)
    assert pa.ipc.open_stream(late[1][0]).read_all()["n"].to_pylist() == [4, 5]
    assert late[2][0] == b'{"ts":%d,"n":7}' % (START + 14)
    assert {headers["code"] for _, headers in late} == {"LATE"}
    assert [(headers["rows"], headers["offset"]) for _, headers in late] == [("1", "1"), ("2", "2"), ("1", "3")]
    assert f"its time {START + 3} is at or below the partition's watermark {START + 4}" in late[0][1]["reason"]
    assert system.sequenced(stream)[-1].headers.watermark == START + 20 - 5 - 1


def test_every_kind_of_bad_row_is_a_dead_letter_with_its_reason_and_the_bytes_that_came(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 1 REJECT UNKNOWN FIELDS", "ts TIMESTAMP, n BIGINT NOT NULL, v DOUBLE")
    bad = {
        b'{"ts":1,"n":': ("MALFORMED", ""),
        b'{"ts":1,"n":"x"}': ("WRONG_TYPE", "n"),
        b'{"ts":1}': ("MISSING_FIELD", "n"),
        b'{"ts":1,"n":1,"extra":2}': ("UNKNOWN_FIELD", "extra"),
        b'{"ts":1,"n":null}': ("NULL_FIELD", "n"),
        b'{"ts":1,"n":1,"v":NaN}': ("MALFORMED", ""),
        b'{"ts":1,"n":1,"v":Infinity}': ("MALFORMED", ""),
        b'{"ts":1,"n":9223372036854775808}': ("OUT_OF_RANGE", "n"),
        b'{"ts":1,"n":1,"v":"\xff"}': ("MALFORMED", ""),
        b'{"ts":1,"n":1,"n":2}': ("DUPLICATE_FIELD", "n"),
        b"": ("MALFORMED", ""),
        b'{"ts":1,"n":' + b"[" * 50_000: ("MALFORMED", ""),
        b'{"ts":99999999999999999,"n":1}': ("OUT_OF_RANGE", "ts"),
        arrow(ts=[1], n=["x"]): ("WRONG_TYPE", "n"),
        arrow(ts=[1], n=[1])[:-30]: ("MALFORMED", ""),
    }
    system.publish(stream, [*bad, {"ts": START, "n": 1}])
    system.await_read(stream)
    dead = system.dead(stream)
    assert [value for value, _ in dead] == list(bad)
    assert [(headers["code"], headers["field"]) for _, headers in dead] == list(bad.values())
    assert [int(headers["offset"]) for _, headers in dead] == list(range(len(bad)))
    assert {(h["topic"], h["partition"]) for _, h in dead} == {(topics.incoming(stream.name), "0")}
    assert all(headers["reason"] for _, headers in dead)
    assert numbers(system, stream) == [1]


def test_a_message_that_is_too_large_is_told_by_its_headers_alone(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 1", "ts TIMESTAMP, n BIGINT, s STRING")
    resource = ConfigResource(
        ConfigResource.Type.TOPIC, topics.incoming(stream.name), {"max.message.bytes": str(16 << 20)}
    )
    admin = kafka.admin(system.brokers)
    for future in admin.alter_configs([resource]).values():
        future.result(30)
    system.publish(stream, [{"ts": START, "n": 1}, {"ts": START, "n": 2, "s": "x" * 10_000_000}, {"ts": START, "n": 3}])
    system.await_read(stream)
    ((value, headers),) = system.dead(stream)
    assert value == b""
    assert (headers["code"], headers["offset"]) == ("TOO_LARGE", "1")
    assert int(headers["size"]) > 10_000_000
    assert numbers(system, stream) == [1, 3]


def test_rows_that_would_make_a_batch_too_large_for_kafka_are_cut(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 1", "ts TIMESTAMP, n BIGINT, s STRING")
    system.publish(stream, [{"ts": START, "n": n, "s": "x" * 1_000_000} for n in range(12)])
    system.await_read(stream)
    assert numbers(system, stream) == list(range(12))


def test_a_row_far_in_the_future_is_a_dead_letter_and_does_not_drag_time_along(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 1 FUTURE 1 HOUR")
    now = int(time.time() * 1000)
    system.publish(stream, [{"ts": now, "n": 1}, {"ts": now + 7_200_000, "n": 2}, {"ts": now + 1, "n": 3}])
    system.await_read(stream)
    assert numbers(system, stream) == [1, 3]
    assert codes(system, stream) == [("FUTURE", "ts")]
    assert system.sequenced(stream)[-1].headers.watermark == now


def test_an_idle_partition_follows_the_active_ones_and_a_returning_row_is_late(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 2 IDLE AFTER 300 ms")
    system.publish(stream, [{"ts": START, "n": 1}], 1)
    system.publish(stream, [{"ts": START + 100, "n": 2}], 0)
    system.await_read(stream)

    def is_given() -> bool:
        system.publish(stream, [{"ts": START + 5_000, "n": 0}], 0)
        return system.sequenced(stream, 1)[-1].headers.watermark == START + 4_999

    wait_for(is_given, "the idle partition has the watermark of the active one")
    system.publish(stream, [{"ts": START + 4_999, "n": 3}, {"ts": START + 5_000, "n": 4}], 1)
    system.await_read(stream)
    assert [row["n"] for row in system.rows(stream, 1)] == [1, 4]
    assert [json.loads(value)["n"] for value, _ in system.late(stream, 1)] == [3]


def test_a_live_stream_without_rows_goes_on_by_the_clock(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 2 IDLE AFTER 200 ms", "n BIGINT", by="")
    before = int(time.time() * 1000)
    for partition in (0, 1):
        wait_for(
            lambda p=partition: (found := system.sequenced(stream, p)) and found[-1].headers.watermark > before,
            "time goes on",
        )


def test_a_sealed_stream_ends_and_later_rows_are_dead_until_it_is_reopened(system: IngestSystem) -> None:
    first = system.declare("PARTITIONS 2")
    system.publish(first, [{"ts": START + n, "n": n} for n in range(5)])
    system.sql(f"SEAL STREAM {first.name}")
    system.publish(first, [{"ts": START + 9, "n": 9}])
    await_sealed(system, first)
    wait_for(lambda: codes(system, first) == [("SEALED", "")], "a row after the seal is dead")
    system.sql(f"CREATE STREAM {first.name} (ts TIMESTAMP, n BIGINT) TIMESTAMP BY ts PARTITIONS 2")
    second = system.registry.catalogue.streams[first.name]
    system.publish(second, [{"ts": START, "n": 10}])
    system.await_read(second)
    assert numbers(system, first) == [0, 1, 2, 3, 4]
    assert numbers(system, second) == [10]
    assert len(system.dead(second)) == 1


def test_rows_belong_to_the_incarnation_that_was_there_however_late_they_are_read(system: IngestSystem) -> None:
    """Sealed, reopened, dropped and created again while nobody reads."""
    (running,) = [i for i in system.instances if i.process.poll() is None]
    first = system.declare("PARTITIONS 1")
    system.await_read(first)
    wait_for(lambda: system.sequenced(first), "it is open")
    running.stop()
    create = f"CREATE STREAM {first.name} (ts TIMESTAMP, n BIGINT) TIMESTAMP BY ts PARTITIONS 1"
    system.publish(first, [{"ts": START + n, "n": n} for n in range(3)])
    system.sql(f"SEAL STREAM {first.name}")
    system.publish(first, [{"ts": START, "n": 3}])
    system.sql(create)
    second = system.registry.catalogue.streams[first.name]
    system.publish(second, [{"ts": START, "n": 4}])
    system.sql(f"DROP STREAM {first.name}")
    dropped_at = system.registry.catalogue.version
    system.sql(create)
    third = system.registry.catalogue.streams[first.name]
    system.publish(third, [{"ts": START, "n": 5}])
    system.start()
    system.await_read(third)
    assert numbers(system, first) == [0, 1, 2]
    assert system.sequenced(first)[-1].headers.sealed
    assert [b.headers.version for b in system.sequenced(second)][-1] == dropped_at
    assert numbers(system, third) == [5]
    everywhere = [n for s in (first, second, third) for n in numbers(system, s)]
    assert sorted([*everywhere, *(json.loads(value)["n"] for value, _ in system.dead(third))]) == [0, 1, 2, 3, 4, 5]


def test_streams_that_are_dropped_and_created_under_load_lose_nothing(system: IngestSystem) -> None:
    name, sent = system.name(), 0
    create = f"CREATE STREAM {name} (ts TIMESTAMP, n BIGINT) TIMESTAMP BY ts PARTITIONS 1"
    incarnations = []
    for _ in range(4):
        system.sql(create)
        incarnations.append(system.registry.catalogue.streams[name])
        system.publish(name, [{"ts": START, "n": n} for n in range(sent, sent + 500)])
        sent += 500
        system.sql(f"DROP STREAM {name}")
        system.publish(name, [{"ts": START, "n": n} for n in range(sent, sent + 10)])
        sent += 10
    system.sql(create)
    incarnations.append(system.registry.catalogue.streams[name])
    system.publish(name, [{"ts": START, "n": sent}])
    system.await_read(name)
    found = [n for stream in incarnations for n in numbers(system, stream)]
    found += [json.loads(value)["n"] for value, _ in system.dead(incarnations[0])]
    assert sorted(found) == list(range(sent + 1))
    assert numbers(system, incarnations[-1]) == [sent]
    for stream in incarnations[:-1]:
        wait_for(lambda s=stream: system.sequenced(s), f"incarnation {stream.incarnation} has said that it is gone")


def test_dead_letters_are_shown_with_their_reason_and_published_again_once(
    system: IngestSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = system.declare("PARTITIONS 1")
    rows = b'{"ts":%d,"n":1}\n{"ts":%d,"n":2}' % (START, START)
    system.sql(f"SEAL STREAM {stream.name}")
    system.publish(stream, [rows, b"bad \xff"], **{"content-type": "application/x-ndjson"})
    wait_for(lambda: len(system.dead(stream)) == 2, "they are dead")
    system.sql(f"CREATE STREAM {stream.name} (ts TIMESTAMP, n BIGINT) TIMESTAMP BY ts PARTITIONS 1")
    again = system.registry.catalogue.streams[stream.name]
    for name in ("BROKERS", "REGISTRY", "RESULTS"):
        monkeypatch.setenv(f"STAIRWISE_{name}", system.brokers)

    def run(*arguments: str) -> list[dict[str, object]]:
        done = CliRunner().invoke(cli, ["dlq", *arguments])
        assert done.exit_code == 0, done.output
        return [json.loads(line) for line in done.stdout.splitlines()]

    first, second = run("show", stream.name)
    assert (first["code"], first["value"], first["offset"]) == ("SEALED", rows.decode(), 0)
    assert "sealed" in str(first["reason"])
    assert second["base64"] == "YmFkIP8="
    assert run("show", stream.name, "--limit", "1") == [first]
    assert run("show", stream.name, "--code", "malformed") == []
    assert run("replay", stream.name, "--code", "MALFORMED")[0]["published"] == 0
    assert run("replay", stream.name) == [{"stream": stream.name, "published": 2, "skipped": 0}]
    assert run("replay", stream.name, "--code", "SEALED")[0]["published"] == 0
    wait_for(lambda: numbers(system, again) == [1, 2], "they are rows now")
    wait_for(lambda: run("show", stream.name, "--code", "MALFORMED"), "and the other one is dead again")


def test_a_stream_that_is_dropped_while_nobody_runs_says_so_afterwards(system: IngestSystem) -> None:
    (running,) = [i for i in system.instances if i.process.poll() is None]
    stream = system.declare("PARTITIONS 2")
    wait_for(lambda: system.sequenced(stream, 1), "it is open")
    running.kill()
    system.sql(f"DROP STREAM {stream.name}")
    version = system.registry.catalogue.version
    system.start()
    for partition in (0, 1):
        wait_for(lambda p=partition: system.sequenced(stream, p)[-1].headers.version == version, "the drop is said")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_stream_that_is_created_while_nobody_runs_is_read_afterwards(system: IngestSystem, end: str) -> None:
    (running,) = [i for i in system.instances if i.process.poll() is None]
    getattr(running, end)()
    stream = system.declare("PARTITIONS 2")
    system.publish(stream, [{"ts": START, "n": 1}])
    system.start()
    system.await_read(stream)
    assert numbers(system, stream) == [1]


def test_a_topic_that_is_deleted_does_not_end_ingest(system: IngestSystem) -> None:
    (running,) = [i for i in system.instances if i.process.poll() is None]
    stream, other = system.declare("PARTITIONS 1"), system.declare("PARTITIONS 1")
    for one in (stream, other):
        system.publish(one, [{"ts": START, "n": 1}])
        system.await_read(one)
    topics.delete(kafka.admin(system.brokers), [topics.incoming(stream.name)])
    system.declare("PARTITIONS 1")  # now ingest asks Kafka for the topics that it reads
    said = f'"partition left", "topic": "{topics.incoming(stream.name)}"'
    wait_for(lambda: said in running.log.read_text(), "its partition is let go")
    system.publish(other, [{"ts": START + 1, "n": 2}])
    system.await_read(other)
    assert numbers(system, other) == [1, 2]
    assert running.process.poll() is None
    system.sql(f"DROP STREAM {stream.name}")


def test_a_group_whose_offsets_have_expired_goes_on_from_what_it_wrote(system: IngestSystem) -> None:
    (running,) = [i for i in system.instances if i.process.poll() is None]
    stream = system.declare("PARTITIONS 1")
    system.publish(stream, [{"ts": START + n, "n": n} for n in range(5)] + [{"ts": START - 9, "n": 5}, b"bad"])
    system.await_read(stream)
    running.stop()
    admin = kafka.admin(system.brokers)

    def forgotten() -> bool:
        for future in admin.delete_consumer_groups(["stairwise-ingest"]).values():
            if future.exception() is None or "GROUP_ID_NOT_FOUND" in str(future.exception()):
                return True
        return False

    wait_for(forgotten, "the group is gone", within=120)
    system.publish(stream, [{"ts": START + 9, "n": 6}])
    system.start()
    system.await_read(stream)
    assert numbers(system, stream) == [0, 1, 2, 3, 4, 6]
    assert len(system.late(stream)) == 1
    assert len(system.dead(stream)) == 1
    reader = system.consumer("stairwise-ingest")
    assert reader.committed([TopicPartition(topics.incoming(stream.name), 0)], timeout=30)[0].offset == 8
    reader.close()


def test_a_table_is_told_how_far_its_streams_are_once_its_own_input_is_read(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 2")
    topic, name = topics.sequenced(stream), system.name()
    system.sql(
        f"CREATE TABLE {name} (n BIGINT, w BIGINT, since TIMESTAMP) KEY (n) TIMESTAMP BY since PARTITIONS 1;"
        f"SELECT s.ts, t.w FROM {stream.name} [NOW] s JOIN {name} t ON s.n = t.n"
    )
    table = system.registry.catalogue.streams[name]
    updates = Publisher(system.brokers, table)

    def told() -> int | None:
        batches = system.sequenced(table)
        return batches[-1].headers.follows.get(topic) if batches else None

    updates.publish([{"n": 1, "w": 10, "since": START + 90}])
    system.publish(stream, [{"ts": START + 100, "n": 1}], 0)
    system.publish(stream, [{"ts": START + 50, "n": 1}], 1)
    wait_for(lambda: told() == START + 49, "the table is at its streams' lowest watermark")
    updates.publish([{"n": 1, "w": 20, "since": START}, {"n": None, "w": 0, "since": START}])
    producer = kafka.producer(system.brokers)
    producer.produce(topics.incoming(name), None, b"[1]", partition=0)
    assert producer.flush(30) == 0
    system.await_read(table)
    batches = [batch for batch in system.sequenced(table) if batch.rows]
    assert [[row["w"] for row in batch.rows] for batch in batches] == [[10], [20]], "no update is late"
    assert [batch.headers.follows for batch in batches] == [{}, {topic: START + 49}], "as the mark before says"
    assert codes(system, table) == [("NULL_FIELD", "n"), ("TOMBSTONE", "")]
    system.sql(f"SEAL STREAM {stream.name}")
    wait_for(lambda: told() == DUSK, "and at the end with them")
    system.sql(f"SEAL TABLE {name}")
    await_sealed(system, table)
    with pytest.raises(ConflictError, match="was a table"):
        system.sql(f"DROP TABLE {name}; CREATE STREAM {name} (a BIGINT) PARTITIONS 1")
