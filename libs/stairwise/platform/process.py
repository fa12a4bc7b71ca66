"""The life of a service process: settings, telemetry, signals, and an end that says why."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable
from typing import Literal, NoReturn

from confluent_kafka import KafkaException

from stairwise.errors import StairwiseError
from stairwise.platform import kafka, telemetry
from stairwise.platform.config import Settings
from stairwise.platform.server_thread import ServerThread

log = logging.getLogger(__name__)

ASK_FOR = 3.0
"""How long Kafka is given for its first answer before it is said to be away, in seconds; then it is asked again."""


def run(service: str, body: Callable[[Settings, threading.Event], None]) -> None:
    """Run a service's body, which returns soon after the event is set (by SIGTERM or SIGINT).

    What the service cannot go on from is logged and ends the process with exit code 1: who started it starts it
    again, and everything that counts is in Kafka or in the state directory.
    """
    telemetry.start_logs(service)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        settings = Settings.from_environment(os.environ, service=service)
        telemetry.start(service, settings.metrics)
        _await_kafka(settings, stopping)
        if not stopping.is_set():
            body(settings, stopping)
    except StairwiseError as error:
        log.error("%s", error)
        _end()
    except KafkaException:
        log.exception("Kafka")
        _end()
    finally:
        telemetry.stop()


def stop_on_signals(stopping: threading.Event) -> asyncio.Task[Literal[True]]:
    """For a body with a loop: a task that ends when the process is told to stop, or was told before the loop ran."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    if stopping.is_set():
        told.set()
    return asyncio.create_task(told.wait())


def _end() -> NoReturn:
    """End with exit code 1, whatever other threads do: one may wait for an answer of Kafka's that never comes."""
    telemetry.stop()
    logging.shutdown()
    os._exit(1)


def _await_kafka(settings: Settings, stopping: threading.Event) -> None:
    """Return when Kafka answers, or when told to stop. Until then health can be asked, and says NOT_SERVING."""
    admin = kafka.admin(settings.brokers)
    server: ServerThread | None = None
    while not stopping.is_set():
        try:
            admin.list_topics(timeout=ASK_FOR)
            break
        except KafkaException as error:
            log.warning("Kafka at %s does not answer: %s; trying again", settings.brokers, error.args[0].str())
        if server is None:
            server = ServerThread(settings.listen, security=settings.security)
    if server is not None:
        server.stop(grace=0)  # the service has its own, on the same port
