"""How long operators takes to go on after its driver was killed with a large state, beside a start with none.

    cold       start ────────▶ session ─▶ first micro-batch
    recovery   start ────────▶ session ─▶ state from the checkpoint ─▶ first micro-batch

    python -m bench.spark_recovery BROKERS DIRECTORY    operators, until it is killed; tells of every micro-batch

The state is that of a window which lies an hour back: every slice is kept and no report shows it yet.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from bench.spark_backlog import START
from services.operators import pipeline
from services.operators.segments import stored_bytes
from services.windows.registry import Registry
from stairwise.platform import kafka
from stairwise.platform.config import Settings
from stairwise.schema import DAWN, Stream
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders, pack_rows

KEYS = 16_384
KEY_BYTES = 50
"""Of a key, written as twice as many characters."""
SLICES = 600
"""As many as make more than a GiB."""
PER_BATCH = 20
QUERY = "SELECT k, SUM(x) AS total FROM {stream} [RANGE 1 HOUR SLIDE 1 SECOND LAG 1 HOUR] GROUP BY k"


class Source:
    """A stream whose every message is a second in which each key has one row."""

    def __init__(self, brokers: str, registry: Registry, name: str) -> None:
        query = QUERY.format(stream=name)
        columns = "ts TIMESTAMP, k STRING, x BIGINT"
        registry.execute(
            f"CREATE STREAM {name} ({columns}) TIMESTAMP BY ts PARTITIONS 1; CREATE QUERY {name}_q AS {query}"
        )
        self.stream: Stream = registry.catalogue.streams[name]
        self._version = registry.catalogue.version
        self._producer = kafka.producer(brokers, linger_ms=5, compression_type="none")
        self._keys = pa.array([os.urandom(KEY_BYTES).hex() for _ in range(KEYS)])
        self._second, self._watermark = 0, DAWN

    def write(self, messages: int) -> None:
        for _ in range(messages):
            time_ = START + 1000 * self._second
            arrays = [pa.array(np.full(KEYS, time_)), self._keys, pa.array(np.arange(KEYS))]
            rows = pa.RecordBatch.from_arrays(arrays, names=["ts", "k", "x"])
            headers = BatchHeaders(
                version=self._version,
                sequence=self._second * KEYS,
                rows=KEYS,
                watermark=time_ - 1,
                previous=self._watermark,
                lowest=time_,
                highest=time_,
                sealed=False,
            )
            self._second, self._watermark = self._second + 1, time_ - 1
            while True:
                try:
                    value = pack_rows(rows)
                    self._producer.produce(topics.sequenced(self.stream), value, partition=0, headers=headers.encode())
                    break
                except BufferError:
                    self._producer.poll(0.1)
        assert self._producer.flush(120) == 0


@contextmanager
def operators(brokers: str, directory: Path) -> Iterator[Iterator[dict[str, int]]]:
    """A process of its own; gives its micro-batches, and is killed with all that it has started."""
    command = [sys.executable, "-m", "bench.spark_recovery", brokers, str(directory)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield _batches(process.stdout)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _batches(said: IO[str]) -> Iterator[dict[str, int]]:
    for line in said:
        yield json.loads(line)
    raise SystemExit("operators ended by itself")


def started(brokers: str, directory: Path) -> float:
    """Seconds from the start of the process to the end of its first micro-batch."""
    begun = time.monotonic()
    with operators(brokers, directory) as batches:
        next(batches)
        return time.monotonic() - begun


def recovery(brokers: str, registry: Registry, directory: Path, say: Callable[[str], None]) -> tuple[float, float, int]:
    """Seconds of a start with no state, of one after a kill, and the bytes of state."""
    source = Source(brokers, registry, "recovered")
    source.write(1)
    cold = started(brokers, directory / "cold")
    say(f"  a start without state: {cold:.1f} s")
    source.write(SLICES)
    taken = size = 0
    with operators(brokers, directory / "filled") as batches:
        while taken < SLICES + 1:
            batch = next(batches)
            taken, size = taken + batch["messages"], batch["bytes"]
    say(f"  {size / 2**20:,.0f} MiB of state")
    source.write(1)
    after = started(brokers, directory / "filled")
    say(f"  a start after the kill: {after:.1f} s")
    registry.execute("DROP QUERY recovered_q; DROP STREAM recovered")
    topics.delete(kafka.admin(brokers), topics.topics_of(source.stream))
    return cold, after, size


def main() -> None:
    settings = replace(Settings(), brokers=sys.argv[1], directory=Path(sys.argv[2]), batch_messages=PER_BATCH)
    pipeline.make_topics(settings)
    query = pipeline.start(pipeline.session(settings), settings)
    told = -1
    while query.isActive:
        for progress in query.recentProgress:
            if progress["batchId"] > told and progress["numInputRows"]:
                told = progress["batchId"]
                print(json.dumps(_batch(progress, pipeline.checkpoint(settings))), flush=True)
        time.sleep(0.05)
    raise SystemExit(str(query.exception()))


def _batch(progress: Any, checkpoint: Path) -> dict[str, int]:
    """What a micro-batch took in, and how large the state is: RocksDB's files, and those of large pages."""
    (state,) = progress["stateOperators"]
    size = state["customMetrics"]["rocksdbSstFileSize"] + stored_bytes(checkpoint)
    return {"messages": progress["numInputRows"], "bytes": size}


if __name__ == "__main__":
    main()
