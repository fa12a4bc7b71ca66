"""Whatever a producer sends, ingest reads it in bounded memory, and every message ends up somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from stairwise.platform import kafka
from stairwise.schema import Stream
from stairwise.wire import topics
from tests.integration.ingest_system import IngestSystem, Instance, ingest_system

pytestmark = pytest.mark.jvm

MEGABYTE = 1_000_000
MOST = 768
"""Megabytes: the process by itself takes 200, and may hold 224 MB fetched (32 MB that wait, and three quarters of a
megabyte that unpack to 192), as much again where it is taken all at once, some 28 MB of rows, 32 MB to be sent and 64
MB that were freed."""
COLUMNS = ", ".join(f"c{n} BIGINT" for n in range(8)) + ", s STRING, ok BOOLEAN"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestSystem]:
    with ingest_system(tmp_path_factory.mktemp("ingest-memory")) as system:
        yield system


def peak(instance: Instance) -> int:
    """The most memory that a process ever had, in megabytes."""
    status = Path(f"/proc/{instance.process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 // MEGABYTE


def bits(rows: int) -> bytes:
    """An Arrow message of one column of bits."""
    table = pa.table({"ok": pa.array(np.ones(rows, bool))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def takes_large_messages(system: IngestSystem, stream: Stream) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topics.incoming(stream.name))
    resource.add_incremental_config(
        ConfigEntry("max.message.bytes", str(16 << 20), incremental_operation=AlterConfigOpType.SET)
    )
    admin = kafka.admin(system.brokers)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def test_memory_stays_bounded_whatever_a_producer_sends(system: IngestSystem) -> None:
    stream = system.declare("PARTITIONS 2", COLUMNS, by="")
    takes_large_messages(system, stream)
    hostile = {
        "a flood": [b'{"c0":%d}' % n for n in range(100_000)],
        "too large": [b'{"s":"' + b"x" * 10 * MEGABYTE + b'"}'] * 80,
        "as large as may be": [b'{"s":"' + b"x" * 4 * MEGABYTE + b'"}'] * 80,
        "nested": [b'{"s":' + b"[" * 4 * MEGABYTE] * 20,
        "more rows than bytes": [bits(4 * MEGABYTE)] * 20,
        "tiny rows": [b"{}\n{}" + b"\n{}" * (MEGABYTE // 3)] * 6,
    }
    assert sum(len(value) for values in hostile.values() for value in values) > 1.5 * MOST * MEGABYTE
    for values in hostile.values():
        system.publish(stream, values, 0, compression="zstd")
    with system.running() as instance:
        system.await_read(stream, within=240)
        found = peak(instance)
    print(f"peak {found} MB")
    assert found < MOST
    dead = [headers["code"] for _, headers in system.dead(stream, 0)]
    assert {code: dead.count(code) for code in dead} == {"TOO_LARGE": 100, "MALFORMED": 20}
    rows = sum(int(kafka.headers_of(m)["rows"]) for m in system.read(topics.sequenced(stream), 0))
    assert rows == 80 + 6 * (MEGABYTE // 3 + 2) + 100_000
