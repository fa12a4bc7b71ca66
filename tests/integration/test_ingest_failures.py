"""Whatever goes wrong for one stream, the others go on; and odd names, units and sentinels on a real broker."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator

import grpc
import pytest
from confluent_kafka import TopicPartition
from grpc_health.v1 import health_pb2, health_pb2_grpc

from stairwise.cql import column_types
from stairwise.platform import kafka
from stairwise.schema import Stream, Type
from stairwise.system.ports import free_ports
from stairwise.wire import topics
from tests.integration.ingest_system import START, IngestSystem, Instance, ingest_system, wait_for

pytestmark = pytest.mark.jvm

NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Watched:
    """An ingest whose health and metrics can be asked."""

    def __init__(self, system: IngestSystem, instance: Instance, health: int, metrics: int) -> None:
        self.system = system
        self.instance = instance
        self._channel = grpc.insecure_channel(f"127.0.0.1:{health}")
        self._metrics = f"http://127.0.0.1:{metrics}/metrics"

    def health(self, stream: Stream) -> object:
        request = health_pb2.HealthCheckRequest(service=f"stream/{stream.name}")
        try:
            return health_pb2_grpc.HealthStub(self._channel).Check(request, timeout=30).status
        except grpc.RpcError:
            return None

    def failed(self) -> list[str]:
        with urllib.request.urlopen(self._metrics, timeout=30) as page:
            lines = page.read().decode().splitlines()
        return [line for line in lines if line.startswith("stairwise_ingest_stream_failed{")]

    def await_failed(self, stream: Stream) -> None:
        wait_for(lambda: self.health(stream) == NOT_SERVING, f"{stream.name} fails")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    health, metrics = free_ports(2)
    settings = {"STAIRWISE_LISTEN": f"127.0.0.1:{health}", "STAIRWISE_METRICS": f"127.0.0.1:{metrics}"}
    with ingest_system(tmp_path_factory.mktemp("failures")) as system, system.running(**settings) as instance:
        yield Watched(system, instance, health, metrics)


def numbers(system: IngestSystem, stream: Stream) -> list[int]:
    return [row["n"] for row in system.rows(stream)]


def test_a_stream_that_cannot_be_read_rests_and_the_others_go_on_until_it_is_dropped(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = watched.system
    good = system.declare("PARTITIONS 1")
    system.publish(good, [{"ts": START, "n": 1}])
    with monkeypatch.context() as patched:  # nothing that the registry takes is known to fail
        patched.setitem(column_types._COLUMN_TYPES, "HUGEINT", Type.HUGEINT)
        bad = system.declare("PARTITIONS 2", "ts TIMESTAMP, n HUGEINT")
    system.publish(bad, [{"ts": START, "n": 1}])
    watched.await_failed(bad)
    (line,) = watched.failed()
    assert f'stream="{bad.name}"' in line
    assert "KeyError" in line
    system.publish(good, [{"ts": START + 1, "n": 2}])
    other = system.declare("PARTITIONS 1")
    system.publish(other, [{"ts": START, "n": 7}])
    system.await_read(good)
    system.await_read(other)
    assert (numbers(system, good), numbers(system, other)) == ([1, 2], [7])
    assert system.lag(bad) == 1, "nothing of it is passed over"
    assert watched.instance.process.poll() is None
    system.sql(f"DROP STREAM {bad.name}")

    def is_closed() -> bool:
        return all(system.sequenced(bad, p)[-1:] for p in range(2))

    wait_for(is_closed, "every partition says that the stream is gone")
    wait_for(lambda: not watched.failed(), "it has not failed any more")
    system.sql(f"CREATE STREAM {bad.name} (ts TIMESTAMP, n BIGINT) TIMESTAMP BY ts PARTITIONS 2")
    again = system.registry.catalogue.streams[bad.name]
    system.publish(again, [{"ts": START, "n": 3}])
    system.await_read(again)
    assert numbers(system, again) == [3]


def test_a_stream_whose_topic_is_gone_rests_and_the_others_go_on(watched: Watched) -> None:
    system = watched.system
    good, bad = system.declare("PARTITIONS 1"), system.declare("PARTITIONS 1")
    system.publish(good, [{"ts": START, "n": 1}])
    system.publish(bad, [{"ts": START, "n": 1}])
    system.await_read(good)
    system.await_read(bad)
    topics.delete(kafka.admin(system.brokers), [topics.sequenced(bad)])
    system.publish(bad, [{"ts": START + 1, "n": 2}])
    watched.await_failed(bad)
    system.publish(good, [{"ts": START + 1, "n": 2}])
    system.await_read(good)
    assert numbers(system, good) == [1, 2]
    assert system.lag(bad) >= 1


def test_a_stream_called_as_our_own_topics_is_one_like_any_other(watched: Watched) -> None:
    system = watched.system
    for name in ("plans", "results", "lives", "in", "s-1_", "PLANS"):
        system.sql(f'CREATE STREAM "{name}" (ts TIMESTAMP, n BIGINT) TIMESTAMP BY ts PARTITIONS 1')
        stream = system.registry.catalogue.streams[name]
        system.publish(stream, [{"ts": START, "n": 1}])
        system.await_read(stream)
        assert numbers(system, stream) == [1]


def test_a_sentinel_is_a_dead_letter_and_what_follows_is_on_time(watched: Watched) -> None:
    system = watched.system
    stream = system.declare("PARTITIONS 1")
    assert stream.future is not None
    now = int(time.time() * 1000)
    rows = [
        {"ts": now, "n": 1},
        {"ts": "9999-12-31T00:00:00Z", "n": 2},
        {"ts": now + 1, "n": 3},
        {"ts": now // 1000, "n": 4},
    ]
    system.publish(stream, rows)
    system.await_read(stream)
    assert numbers(system, stream) == [1, 3]
    assert [headers["code"] for _, headers in system.dead(stream)] == ["UNIT", "FUTURE"]
    assert 'Declare TIMESTAMP BY "ts" IN SECONDS' in system.dead(stream)[0][1]["reason"]
    (message,) = system.read(topics.incoming(stream.name), 0)[:1]
    assert message.timestamp()[0] == 2, "Kafka says when it came"
    seconds = system.declare("PARTITIONS 1 FUTURE UNLIMITED", by="ts IN SECONDS")
    system.publish(seconds, [{"ts": now // 1000, "n": 1}, {"ts": 253_402_214_400, "n": 2}])
    system.await_read(seconds)
    assert [row["ts"] for row in system.rows(seconds)] == [now // 1000 * 1000, 253_402_214_400_000]


def test_columns_of_any_name_go_through_ingest(watched: Watched) -> None:
    system = watched.system
    stream = system.declare("PARTITIONS 1", '"t""\\s" TIMESTAMP, "a\nb" BIGINT, n BIGINT', '"t""\\s"')
    system.publish(stream, [{'t"\\s': START, "a\nb": 5, "n": 1}, {'t"\\s': START, "a\nb": "x", "n": 2}])
    system.await_read(stream)
    assert system.rows(stream) == [{'t"\\s': START, "a\nb": 5, "n": 1}]
    ((_, headers),) = system.dead(stream)
    assert (headers["code"], headers["field"]) == ("WRONG_TYPE", "a\nb")
    committed = system.onlooker.committed([TopicPartition(topics.incoming(stream.name), 0)], timeout=30)
    assert committed[0].offset == 2
