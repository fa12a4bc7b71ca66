"""The life of a service process: settings, telemetry, signals, and an end that says why."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable

from confluent_kafka import KafkaException

from stairwise.errors import StairwiseError
from stairwise.platform import telemetry
from stairwise.platform.config import Settings

log = logging.getLogger(__name__)


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
        body(settings, stopping)
    except StairwiseError as error:
        log.error("%s", error)
        raise SystemExit(1) from None
    except KafkaException:
        log.exception("Kafka")
        raise SystemExit(1) from None
    finally:
        telemetry.stop()
