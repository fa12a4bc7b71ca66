"""Operators over a backlog, in a process of its own: prints how each micro-batch went, as JSON.

python -m tests.bench.spark_ours BROKERS DIRECTORY MESSAGES MESSAGES_PER_BATCH
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from services.operators import pipeline
from stairwise.platform.config import Settings


def main() -> None:
    brokers, directory, messages, per_batch = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    settings = Settings(brokers=brokers, directory=directory, batch_messages=per_batch)
    pipeline.make_topics(settings)
    spark = pipeline.session(settings)
    query = pipeline.start(spark, settings)
    batches: dict[int, tuple[int, int]] = {}
    while sum(taken for taken, _ in batches.values()) < messages:
        if not query.isActive:
            raise SystemExit(str(query.exception()))
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                spent = progress["durationMs"]["triggerExecution"]
                batches[progress["batchId"]] = progress["numInputRows"], spent
        time.sleep(0.2)
    print(json.dumps([batches[number] for number in sorted(batches)]))
    while query.status["isTriggerActive"]:
        time.sleep(0.02)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
