"""Start the operators service: ``python -m services.operators``."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

from services.operators import metrics, pipeline
from services.operators.batch_age import BatchAge, Verdict
from services.operators.committed_position import CommittedPosition
from services.operators.work_mark import count_deaths
from stairwise.platform import process, telemetry
from stairwise.platform.config import Settings
from stairwise.platform.server_thread import ServerThread

log = logging.getLogger("services.operators")

WORKER_DIED = "Python worker exited unexpectedly"
"""What Spark says of a worker that was killed."""
MEASURE_EVERY = 1.0
"""How often Spark's reports of progress are taken, in seconds; Spark keeps as many as can come in between."""
STOP_WITHIN = 5.0
"""How long to wait for the end of a micro-batch when told to stop, in seconds."""


def serve(settings: Settings, stopping: threading.Event) -> None:
    with ServerThread(settings.listen, security=settings.security) as server:
        _evaluate(settings, stopping, server)


def _evaluate(settings: Settings, stopping: threading.Event, server: ServerThread) -> None:
    pipeline.make_topics(settings)
    spark = pipeline.session(settings)
    query = pipeline.start(spark, settings)
    progress = metrics.StreamingProgress()
    metrics.watch(progress, spark.sparkContext._jvm, pipeline.checkpoint(settings))
    position = CommittedPosition(settings.brokers)
    server.ready()
    measured, age = time.monotonic(), BatchAge(settings.batch_limit_ms / 1000)
    while not stopping.wait(0.2):
        if time.monotonic() - measured >= MEASURE_EVERY:
            measured = time.monotonic()
            progress.take(query._jsq.recentProgress())
            position.say(progress.taken)
            verdict = age.look(progress.done, is_active=query.status["isTriggerActive"], now=measured)
            server.tell("", is_well=verdict is Verdict.WELL)
            if verdict is Verdict.STUCK:
                log.error("a micro-batch has been running for %.0f s: operators ends, to be started again", age.age)
                _blame(settings)
                os._exit(1)  # an orderly end would wait for it
        if not query.isActive:
            reason = str(query.exception())
            log.error("the streaming query ended: %s", reason)
            if WORKER_DIED in reason:
                _blame(settings)
            raise SystemExit(1)
    _await_batch(query)
    progress.take(query._jsq.recentProgress())
    position.say(progress.taken)
    position.close()
    query.stop()
    spark.stop()


def _blame(settings: Settings) -> None:
    """A Python worker was killed, or hangs: count that for the signatures that were worked on."""
    for signature in count_deaths(pipeline.checkpoint(settings)):
        log.error("a worker was lost at work on a signature", extra=telemetry.fields(signature=signature))


def _await_batch(query: Any) -> None:
    """Wait for the end of the running micro-batch: to cut it off frees memory that its tasks still use."""
    deadline = time.monotonic() + STOP_WITHIN
    while query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(0.02)


if __name__ == "__main__":
    process.run("operators", serve)
