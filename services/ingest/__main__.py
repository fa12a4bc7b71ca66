"""Start the ingest service: ``python -m services.ingest``."""

from __future__ import annotations

import gc
import threading

import pyarrow as pa

from services.ingest.loop import Ingest
from stairwise.platform import kafka, memory, process
from stairwise.platform.config import Settings
from stairwise.platform.server_thread import ServerThread
from stairwise.wire import topics

KEPT_BYTES = 64 << 20
"""How much freed memory stays for the next transactions."""


def serve(settings: Settings, stopping: threading.Event) -> None:
    pa.array(["the first array imports pandas, which takes a while: do it before the transaction timer runs"])
    memory.keep(KEPT_BYTES)
    with ServerThread(settings.listen, security=settings.security) as server:
        _ingest(settings, stopping, server)


def _ingest(settings: Settings, stopping: threading.Event, server: ServerThread) -> None:
    topics.ensure(kafka.admin(settings.brokers), {topics.PLANS: 1}, topics.FOREVER)
    ingest = Ingest(settings, lambda stream, is_well: server.tell(f"stream/{stream}", is_well=is_well))
    ingest.start()
    # Messages come and go by the hundred thousand and make no cycles: looking for some at every 700 costs a tenth.
    gc.collect()
    gc.freeze()
    gc.set_threshold(400_000, 50, 100)
    server.ready()
    ingest.run(stopping)


if __name__ == "__main__":
    process.run("ingest", serve)
