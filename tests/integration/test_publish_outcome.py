"""`stairwise publish` tells the truth: every format as `run` reads it, refusals before anything is sent, and at the end
what ingest made of the rows."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.windows.servicer import NAME, RegistryServicer
from stairwise.cli.main import main
from stairwise.client import AsyncClient, Client, PublishError
from stairwise.errors import ConflictError, NotFoundError
from stairwise.local.sources import FileSource
from stairwise.platform import kafka
from stairwise.platform.server_thread import ServerThread
from stairwise.schema import Stream
from stairwise.v1 import registry_pb2_grpc
from stairwise.wire import topics
from tests.integration.ingest_system import START, IngestSystem, ingest_system

pytestmark = pytest.mark.jvm

COLUMNS = "ts TIMESTAMP, k STRING, n BIGINT NOT NULL, x DOUBLE, b BOOLEAN"
JSON = b"".join(
    b'{"ts": %d, "k": "k%d", "n": %d, "x": %s, "b": true}\n' % (START + i, i, i, b"null" if i % 3 else b"0.%d" % i)
    for i in range(50)
)
CSV = b"b,ts,k,n,x,more\n" + b"".join(
    b"true,%d,k%d,%d,%s,?\n" % (START + i, i, i, b"" if i % 3 else b"0.%d" % i) for i in range(50)
)
TABLE = pa.table(
    {
        "ts": pa.array([(START + i) * 1000 + 7 for i in range(50)], pa.timestamp("us", "UTC")),
        "k": pa.array([f"k{i}" for i in range(50)]).dictionary_encode(),
        "n": pa.array(range(50), pa.uint8()),
        "x": [None if i % 3 else float(f"0.{i}") for i in range(50)],
        "b": [True] * 50,
    }
)
ROWS = [{"ts": START + i, "k": f"k{i}", "n": i, "x": None if i % 3 else float(f"0.{i}"), "b": True} for i in range(50)]


def parquet(table: pa.Table = TABLE) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


def zst(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(content)
    return bytes(sink.getvalue())


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestSystem]:
    with ingest_system(tmp_path_factory.mktemp("publish")) as system, system.running():
        yield system


@pytest.fixture(scope="module")
def registry(system: IngestSystem) -> Iterator[str]:
    servicer = RegistryServicer(system.registry)
    server = ServerThread(
        "127.0.0.1:0", lambda s: registry_pb2_grpc.add_RegistryServicer_to_server(servicer, s), [NAME]
    )
    yield f"127.0.0.1:{server.port}"
    server.stop()


@pytest.fixture
def client(system: IngestSystem, registry: str) -> Iterator[Client]:
    with Client.connect(registry=registry, results=registry, lookups=registry, brokers=system.brokers) as client:
        yield client


class Done(NamedTuple):
    code: int
    said: dict[str, Any] | None
    stderr: str


Verb = Callable[..., Done]


@pytest.fixture
def publish(
    system: IngestSystem, registry: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Verb:
    """The verb, called as from a shell but in this process."""

    def call(stream: Stream | str, file: Path | str, *options: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        name = stream if isinstance(stream, str) else stream.name
        places = ["--registry", registry, "--results", registry, "--brokers", system.brokers]
        with pytest.raises(SystemExit) as ended:
            main(["publish", name, str(file), *options, *places])
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, json.loads(out) if out else None, err)

    return call


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def sent(system: IngestSystem, stream: Stream) -> int:
    return sum(topics.ends(kafka.admin(system.brokers), topics.incoming(stream.name), stream.partitions))


FILES = {
    "rows.jsonl": JSON,
    "rows.csv": CSV,
    "rows.parquet": parquet(),
    "rows.jsonl.gz": gzip.compress(JSON),
    "rows.csv.zst": zst(CSV),
    "rows.parquet.gz": gzip.compress(parquet()),
    "rows.log": JSON,
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_rows_that_run_reads(
    system: IngestSystem, publish: Verb, tmp_path: Path, name: str
) -> None:
    stream = system.declare("PARTITIONS 1", COLUMNS)
    done = publish(stream, written(tmp_path / name, FILES[name]))
    assert done.code == 0, done.stderr
    assert done.said is not None
    expected = {"stream": stream.name, "rows": 50, "sealed": False, "taken": 50, "late": 0, "dead": 0}
    assert done.said | expected == done.said
    assert done.said["reason"] is None
    assert system.rows(stream) == ROWS


@pytest.mark.parametrize(("format_", "content"), [("csv", CSV), ("parquet", parquet()), ("csv.gz", gzip.compress(CSV))])
def test_stdin_is_what_input_format_says(system: IngestSystem, publish: Verb, format_: str, content: bytes) -> None:
    stream = system.declare("PARTITIONS 1", COLUMNS)
    done = publish(stream, "-", "--input-format", format_, "--batch", "7", "--rate", "1000", stdin=content)
    assert done.code == 0, done.stderr
    assert system.rows(stream) == ROWS


BAD_CSV = b"""ts,k,n,x,b
1700000000000,a,1,,
1700000000001,b,many,,
1700000000002
1700000000003,c,,,
1700000000004,d,4,,
1699999999000,late,5,,
soon,e,6,,
1700000000005,\xff,7,,
1700000000006,f,8,,
"""


def test_bad_rows_of_a_file_are_dead_letters_that_say_where_they_stand(
    system: IngestSystem, publish: Verb, tmp_path: Path
) -> None:
    stream = system.declare("PARTITIONS 1", COLUMNS)
    file = written(tmp_path / "bad.csv", BAD_CSV)
    done = publish(stream, file)
    assert done.code == 1
    counted = {"rows": 9, "taken": 3, "late": 1, "dead": 5, "waiting": 0}
    assert done.said is not None
    assert done.said | counted == done.said
    first = """bad.csv, line 3: field 'n': expected an integer, got "many\""""
    assert done.said["reason"] == first
    assert f"6 of 9 rows were refused: 1 late, 5 dead; the first: {first}" in done.stderr
    assert f"stairwise dlq show {stream.name}" in done.stderr
    assert "--allow-rejects" in done.stderr
    rejected = [bad for chunk in FileSource(stream, str(file)).chunks() for bad in chunk.rejected]
    found = [(headers["code"], headers["reason"], value.decode()) for value, headers in system.dead(stream)]
    assert found == [(bad.code.name, f"bad.csv, line {bad.number}: {bad.message}", bad.raw) for bad in rejected]
    assert [bad.number for bad in rejected] == [3, 4, 5, 8, 9]
    assert [row["n"] for row in system.rows(stream)] == [1, 4, 8]
    again = publish(stream, file, "--allow-rejects", "--seal")  # what was taken comes too late a second time
    assert again.code == 0
    assert again.said is not None
    counted = {"rows": 9, "taken": 1, "late": 3, "dead": 5, "sealed": True}  # the highest is as late as its equal: not
    assert again.said | counted == again.said
    assert "8 of 9 rows were refused" in again.stderr


@pytest.mark.parametrize("format_", ["json", "ndjson", "arrow"])
def test_late_and_dead_lines_are_counted_in_every_format(system: IngestSystem, publish: Verb, format_: str) -> None:
    stream = system.declare("PARTITIONS 1", "ts TIMESTAMP, n BIGINT")
    lines = b'{"ts": 5000000, "n": 1}\nbad\n{"ts": 4000000, "n": 2}\n\n{"ts": 5000000, "n": "x"}\n{"ts": 4000000}\n'
    done = publish(stream, "-", "--format", format_, stdin=lines)
    assert done.code == 1
    assert done.said is not None
    counted = {"rows": 5, "taken": 1, "late": 2, "dead": 2}
    assert done.said | counted == done.said
    assert publish(stream, "-", "--format", format_, "--allow-rejects", stdin=lines).code == 0


REFUSED = {
    "cut.parquet": (parquet()[:-30], "cannot be read as parquet"),
    "junk.parquet": (b"\x00\xff" * 100, "cannot be read as parquet"),
    "page.parquet": (parquet()[:200] + b"\xff" * 60 + parquet()[260:], "cannot be read"),
    "cut.jsonl.gz": (gzip.compress(JSON)[:-40], "cannot be read: Truncated compressed stream"),
    "cut.csv.zst": (zst(CSV)[:-10], "cannot be read: Truncated compressed stream"),
    "cut.parquet.gz": (gzip.compress(parquet())[:-40], "cannot be read: Truncated compressed stream"),
    "junk.jsonl": (b"\x8f\x00{\xff\n" * 100, "does not look like JSON lines"),
    "table.jsonl": (CSV, "--input-format csv"),
    "packed.jsonl": (gzip.compress(JSON), "--input-format jsonl.gz"),
    "columns.bin": (parquet(), "--input-format parquet"),
    "junk.csv": (b"\xff\xfe\x00\n" * 100, "its header is not valid UTF-8"),
    "other.csv": (b"a,b\n1,2\n", "has no column 'ts'"),
    "empty.jsonl": (b"", "is empty: there is nothing to publish"),
}


@pytest.fixture(scope="module")
def untouched(system: IngestSystem) -> Stream:
    return system.declare("PARTITIONS 1", COLUMNS)


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_broken_is_refused_before_anything_is_sent(
    system: IngestSystem, untouched: Stream, publish: Verb, tmp_path: Path, name: str
) -> None:
    content, complaint = REFUSED[name]
    done = publish(untouched, written(tmp_path / name, content))
    assert (done.code, done.said) == (1, None)
    assert name in done.stderr
    assert complaint in done.stderr
    assert "hint: " in done.stderr
    assert sent(system, untouched) == 0


def test_a_call_that_cannot_be_is_refused(
    system: IngestSystem, untouched: Stream, publish: Verb, tmp_path: Path
) -> None:
    assert publish(untouched, tmp_path).code == 2
    assert publish(untouched, tmp_path / "nowhere.csv").code == 2
    assert publish(untouched, written(tmp_path / "rows.csv", CSV), "--format", "json").code == 2
    assert sent(system, untouched) == 0


def test_a_sealed_or_unknown_stream_is_refused_before_anything_is_sent(
    system: IngestSystem, registry: str, publish: Verb, client: Client, tmp_path: Path
) -> None:
    stream = system.declare("PARTITIONS 1", COLUMNS)
    file = written(tmp_path / "rows.jsonl", JSON)
    assert publish(stream, file, "--seal").code == 0
    before = sent(system, stream)
    done = publish(stream, file)
    assert (done.code, done.said) == (1, None)
    assert f"stream '{stream.name}' is sealed" in done.stderr
    assert f"CREATE STREAM {stream.name}" in done.stderr
    unknown = publish(stream.name + "x", file)
    assert unknown.code == 1
    assert f"did you mean '{stream.name}'?" in unknown.stderr
    with pytest.raises(ConflictError, match="is sealed"):
        client.publish(stream.name, [{"ts": 1, "n": 1}])

    async def ask() -> None:
        async with AsyncClient(client.addresses) as other:
            with pytest.raises(ConflictError, match="is sealed"):
                await other.publish(stream.name, [{"ts": 1, "n": 1}])
            with pytest.raises(NotFoundError):
                await other.publisher(stream.name + "x", tracked=True)

    asyncio.run(ask())
    assert sent(system, stream) == before


def test_a_publisher_confirms_its_own_rows_and_no_others(system: IngestSystem, client: Client) -> None:
    stream = system.declare("PARTITIONS 2 PARTITION BY n", "ts TIMESTAMP, n BIGINT NOT NULL")
    first, second = (client.publisher(stream.name, tracked=True) for _ in range(2))
    for i in range(20):
        first.send({"ts": START + i, "n": i})
        first.flush()
        second.send_lines([b"bad %d" % i])
        second.flush()
    confirmed = first.confirm()
    assert (confirmed.rows, confirmed.taken, confirmed.late, confirmed.dead, confirmed.reason) == (20, 20, 0, 0, None)
    assert first.confirm().rows == 0
    assert (second.confirm().dead, second.confirm().rows) == (20, 0)
    first.publish(pa.table({"ts": ["a"] * 7, "n": range(7)}))  # no message of these can be read
    confirmed = first.confirm()
    assert (confirmed.rows, confirmed.taken, confirmed.dead) == (7, 0, 7)
    assert "field 'ts'" in (confirmed.reason or "")
    first.publish(pa.table({"ts": [START + 100] * 8, "n": pa.array([*range(7), None], pa.int8())}))
    confirmed = first.confirm()
    assert (confirmed.rows, confirmed.taken, confirmed.dead) == (8, 7, 1)
    with pytest.raises(PublishError, match="does not keep track"):
        client.publisher(stream.name).confirm()


def test_updates_of_a_table_are_confirmed(system: IngestSystem, publish: Verb) -> None:
    name = system.name()
    system.sql(f"CREATE TABLE {name} (k STRING, v BIGINT) KEY (k) PARTITIONS 1")
    done = publish(name, "-", "--input-format", "csv", "--seal", "--allow-rejects", stdin=b"k,v\na,1\nb,x\na,2\n")
    assert done.code == 0, done.stderr
    assert done.said is not None
    assert done.said | {"rows": 3, "taken": 2, "late": 0, "dead": 1, "sealed": True} == done.said
    assert [row["v"] for row in system.rows(system.registry.catalogue.streams[name])] == [1, 2]


def test_what_ingest_has_not_judged_yet_is_said(system: IngestSystem, publish: Verb) -> None:
    stream = system.declare("PARTITIONS 1", COLUMNS)
    (running,) = [i for i in system.instances if i.process.poll() is None]
    running.stop()
    try:
        done = publish(stream, "-", "--wait", "0", stdin=JSON)
        assert done.code == 0
        assert done.said is not None
        assert done.said | {"rows": 50, "taken": 0, "late": 0, "dead": 0, "waiting": 50} == done.said
        assert "ingest has judged 0 of 50 rows so far" in done.stderr
        unasked = publish(stream, "-", "--no-wait", stdin=JSON)
        assert unasked.code == 0
        assert unasked.said is not None
        assert unasked.said | {"rows": 50, "taken": None, "late": None, "dead": None} == unasked.said
    finally:
        system.start()
