"""The one streaming query: ``s.*`` through stage 1 and stage 2 into ``results``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from services.operators import stage2
from services.operators.checkpoint import claim
from services.operators.relocation import relocate
from services.operators.segments import RETAINED
from services.operators.stage1 import INPUT, OUTPUT_DDL, stage1
from stairwise.platform import kafka
from stairwise.platform.config import Settings
from stairwise.platform.kafka_security import KafkaSecurity
from stairwise.wire import topics

LOOK_EVERY = 300
"""How often it is looked whether there is something to do, in milliseconds, at the most."""
SINGLE = ("OMP_NUM_THREADS", "ARROW_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables that tell libraries to use one thread: Spark gives each task its core."""

# State commits went from about a second to 30 ms by the changelog and the plain file system manager.
CONFIGURATION = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # States that know which attempt wrote them: what a kill left, and Spark has stored, must not pass for committed.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "32",
    # The files of segments stay as long as the states that name them.
    "spark.sql.streaming.minBatchesToRetain": str(RETAINED),
    # Of what a shard reads back after a start, up to 32 KiB each: by default thousands go in one message.
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "128",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.kafka.consumer.cache.capacity": "4096",  # one for each topic partition, or it is made anew each batch
    "spark.driver.memory": "1g",
    # Python does the work by the row; the JVM plans and passes on. Its optimising compiler never earns what it costs
    # there (half of the JVM's CPU time for minutes), and collectors that run beside the tasks take their cores.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:NewSize=512m",
    # What Spark shows of a query's options must not show how it logs in.
    "spark.sql.redaction.options.regex": "(?i)url|secret|password|jaas|keystore",
}


HERE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Hadoop's own starts chmod for each file of a checkpoint and for its checksum, a dozen times a micro-batch.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
}
"""Where driver and workers are one process."""

# Spark's own figures, for Prometheus too, at /metrics/prometheus and /metrics/executors/prometheus of its page.
PROMETHEUS = {
    "spark.ui.prometheus.enabled": "true",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
}


def make_topics(settings: Settings) -> None:
    """What it reads and writes beside the streams, if it is not there yet."""
    admin = kafka.admin(settings.brokers)
    topics.ensure(
        admin, {topics.PLANS: 1, topics.RESULTS: topics.RESULTS_PARTITIONS, topics.CARRIED: 1}, topics.FOREVER
    )
    topics.ensure(admin, {topics.LIVES: 1, topics.COSTS: 1, topics.FAILURES: 1}, topics.COMPACTED)


def session(settings: Settings) -> SparkSession:
    """Spark with the connector, its Python workers being this very environment, or one like it elsewhere."""
    is_here = settings.spark_master.startswith("local")
    if is_here:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for threads in SINGLE:
        os.environ.setdefault(threads, "1")
    builder = SparkSession.builder.appName("stairwise-operators").master(settings.spark_master)
    jars = [str(jar) for jar in settings.spark_jars()]
    builder = builder.config("spark.local.dir", str(scratch(settings)))
    if is_here:
        builder = builder.config("spark.driver.extraClassPath", os.pathsep.join(jars))
        for name, value in HERE.items():
            builder = builder.config(name, value)
    else:
        builder = builder.config("spark.jars", ",".join(jars))
    if settings.spark_ui_port is None:
        builder = builder.config("spark.ui.enabled", "false")
    else:
        builder = builder.config("spark.ui.port", str(settings.spark_ui_port))
        for name, value in PROMETHEUS.items():
            builder = builder.config(name, value)
    for name, value in (CONFIGURATION | executor_environment(settings.spark_master, os.environ)).items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.shuffle.partitions", str(settings.shards))  # both are part of the checkpoint
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def executor_environment(master: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What Python workers have to find in their environment: where our code is, how Kafka is reached, where spans go.

    On a machine of one's own they inherit it, and on Kubernetes the pods are made with it.
    """
    if not master.startswith("spark://"):
        return {}
    return {
        f"spark.executorEnv.{name}": value
        for name, value in environ.items()
        if name.startswith(("STAIRWISE_", "OTEL_")) or name in (*SINGLE, "PYTHONPATH")
    }


def scratch(settings: Settings) -> Path:
    return settings.directory / "operators" / "scratch"


def checkpoint(settings: Settings) -> Path:
    return settings.directory / "operators" / "checkpoint"


def start(spark: SparkSession, settings: Settings) -> Any:
    """Start the query, from its checkpoint if there is one."""
    identity = claim(checkpoint(settings), settings.shards)
    relocate(checkpoint(settings))
    reaching = _reaching(settings.brokers)
    # A task for each core, not for each topic partition. Where all goes to one shard, one task for both stages, which
    # leaves Spark nothing to shuffle.
    tasks = spark.sparkContext.defaultParallelism if settings.shards > 1 else 1
    look_every = min(LOOK_EVERY, settings.trigger_ms)
    source = (
        spark.readStream.format("kafka")
        .options(**reaching)
        .option("subscribePattern", topics.OPERATORS_PATTERN)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.metadata.max.age.ms", "2000")
        # A consumer asks ahead at the end of each batch, and has to see that answered before it can ask anew.
        .option("kafka.fetch.max.wait.ms", "10")
        .option("maxOffsetsPerTrigger", settings.batch_messages)
        # Less than that waits for more, until the next look falls on the time since the micro-batch before, or nearly.
        .option("minOffsetsPerTrigger", settings.batch_messages)
        .option("maxTriggerDelay", f"{settings.trigger_ms - look_every // 2}ms")
        .load()
        .selectExpr(*INPUT)
        .coalesce(tasks)
    )
    if settings.shards > 1:
        parcels = source.mapInArrow(stage1(settings.brokers, settings.shards), OUTPUT_DDL)
    else:  # nothing to split: stage 2 takes the messages as they are, and all rows pass through Python once less
        parcels = source.selectExpr(*INPUT, "partition * 0 AS shard")  # a literal would be optimised away
    processor = stage2.ShardProcessor(settings, checkpoint(settings), identity)
    reports = parcels.groupBy("shard").transformWithStateInPandas(processor, stage2.OUTPUT_DDL, "Append", "None")
    return (
        _messages(reports)
        .writeStream.format("kafka")
        .options(**reaching)
        .option("kafka.max.request.size", str(kafka.MAX_MESSAGE))
        .option("kafka.buffer.memory", str(8 * kafka.MAX_MESSAGE))
        .option("kafka.compression.type", "lz4")
        .option("checkpointLocation", str(checkpoint(settings)))
        .outputMode("append")
        .trigger(processingTime=f"{look_every} milliseconds")
        .queryName("stairwise")
        .start()
    )


def _reaching(brokers: str) -> dict[str, str]:
    """Where Kafka is, and how it is spoken to, as the connector's options."""
    settings = {"bootstrap.servers": brokers, **KafkaSecurity.from_environment().java()}
    return {f"kafka.{name}": value for name, value in settings.items()}


def _messages(reports: DataFrame) -> DataFrame:
    """Reports as Kafka's sink takes them: the header columns gathered into one array."""
    pairs = [
        F.struct(F.lit(name).alias("key"), F.col(name).cast("binary").alias("value")) for name in stage2.HEADER_NAMES
    ]
    return reports.select("topic", "partition", "key", "value", F.array(*pairs).alias("headers"))
