"""Spark's own windows over the same messages, one query for each window, as a user would write it.

    python -m bench.spark_windows BROKERS DIRECTORY TOPIC MESSAGES_PER_BATCH SECONDS MEMORY WINDOWS

Prints how each micro-batch went, as JSON: messages taken by all queries and milliseconds, after two batches that warm
up, until SECONDS have passed since then. WINDOWS is a list of [range, slide] in seconds, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from services.operators.pipeline import CONFIGURATION
from stairwise.platform.config import Settings
from stairwise.state.pages import from_page
from stairwise.wire.narrow import widened

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("x", pa.int64())])
WARM_UP = 2


def rows_of(messages: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of Arrow messages."""
    for batch in messages:
        for value in batch.column("value"):
            yield widened(from_page(value.as_buffer()), SCHEMA)


def main() -> None:
    brokers, directory, topic, per_batch = sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    seconds, memory, windows = float(sys.argv[5]), sys.argv[6], json.loads(sys.argv[7])
    spark = _session(memory)
    queries = [
        _start(spark, brokers, topic, per_batch, directory / f"w{i}", window) for i, window in enumerate(windows)
    ]
    begun: float | None = None
    spent: list[list[tuple[int, int]]] = []
    while begun is None or time.monotonic() < begun + seconds:
        time.sleep(0.5)
        spent = [_batches(query) for query in queries]
        if begun is None and all(len(batches) >= WARM_UP for batches in spent):
            begun = time.monotonic()
        if begun is not None and all(len(batches) >= WARM_UP + 3 for batches in spent):
            break
    # Where no query has ended a batch since, one is counted as if it just had: they are not faster than that.
    taken = [sum(messages for messages, _ in batches[WARM_UP:]) for batches in spent]
    taken = taken if any(taken) else [int(per_batch)] * len(queries)
    elapsed = time.monotonic() - begun
    print(json.dumps({"messages": sum(taken) / len(taken), "seconds": elapsed}))
    sys.stdout.flush()
    os._exit(0)  # to stop dozens of queries in the middle of their batches takes minutes


def _session(memory: str) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("windows").master("local[2]")
    jars = ",".join(str(jar) for jar in Settings().spark_jars())
    settings = CONFIGURATION | {
        "spark.jars": jars,
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": "",  # here the JVM does the work: with all of its compiler
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _start(
    spark: SparkSession, brokers: str, topic: str, per_batch: str, checkpoint: Path, window: tuple[int, int]
) -> Any:
    range_s, slide_s = window
    rows = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", per_batch)
        .load()
        .select("value")
        .mapInArrow(rows_of, "ts long, k string, x long")
        .withColumn("at", F.timestamp_millis("ts"))
        .withWatermark("at", "0 seconds")
    )
    sums = rows.groupBy(F.window("at", f"{range_s} seconds", f"{slide_s} seconds"), "k").agg(F.sum("x"))
    stream = sums.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    return stream.outputMode("append").start()


def _batches(query: Any) -> list[tuple[int, int]]:
    if not query.isActive:
        raise SystemExit(str(query.exception()))
    taken = {p["batchId"]: (p["numInputRows"], p["durationMs"]["triggerExecution"]) for p in query.recentProgress}
    return [taken[number] for number in sorted(taken) if taken[number][0]]


if __name__ == "__main__":
    main()
