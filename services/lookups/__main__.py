"""Start the lookups service: ``python -m services.lookups``."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading

import pyarrow as pa

from services.lookups.service import Lookups
from stairwise.platform import memory, process
from stairwise.platform.config import Settings

SWITCH_EVERY = 0.0005
"""Seconds for which a thread keeps the interpreter: a lookup should not wait for those that read Kafka."""
KEPT_BYTES = 64 << 20
"""How much freed memory is kept: columns of every batch come and go."""


def serve(settings: Settings, stopping: threading.Event) -> None:
    memory.keep(KEPT_BYTES)
    sys.setswitchinterval(SWITCH_EVERY)
    pa.array([1]).to_numpy()  # the first time imports pandas, which would stall the loop for seconds
    gc.freeze()  # what is loaded stays: looking through all of it for garbage would stall the loop
    asyncio.run(_serve(settings, stopping))


async def _serve(settings: Settings, stopping: threading.Event) -> None:
    await Lookups(settings).run(stopping)


if __name__ == "__main__":
    process.run("lookups", serve)
