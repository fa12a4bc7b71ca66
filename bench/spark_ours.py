"""Operators in a process of its own, over a backlog or over what comes.

    python -m bench.spark_ours BROKERS DIRECTORY MESSAGES MESSAGES_PER_BATCH [SECONDS]

Prints as JSON how each micro-batch went, messages taken and milliseconds; with SECONDS, for which it then runs, the
milliseconds of each phase of a micro-batch, on average.
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
    seconds = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0
    until = time.monotonic() + seconds
    taken: dict[int, int] = {}
    spent: dict[int, dict[str, int]] = {}
    while sum(taken.values()) < messages or time.monotonic() < until:
        if not query.isActive:
            raise SystemExit(str(query.exception()))
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                taken[progress["batchId"]] = progress["numInputRows"]
                spent[progress["batchId"]] = progress["durationMs"]
        time.sleep(0.2)
    if seconds:
        late = sorted(spent)[len(spent) // 2 :]
        print(json.dumps({phase: sum(spent[n].get(phase, 0) for n in late) / len(late) for phase in spent[late[-1]]}))
    else:
        print(json.dumps([(taken[number], spent[number]["triggerExecution"]) for number in sorted(taken)]))
    while query.status["isTriggerActive"]:
        time.sleep(0.02)
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main()
