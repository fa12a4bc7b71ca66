"""Start the results service: ``python -m services.results``."""

from __future__ import annotations

import asyncio
import threading

import pyarrow as pa

from services.results import service
from stairwise.platform import process
from stairwise.platform.config import Settings


def serve(settings: Settings, stopping: threading.Event) -> None:
    pa.array([1]).to_numpy()  # the first time imports pandas, which would stall the loop for seconds
    asyncio.run(service.run(settings, stopping))


if __name__ == "__main__":
    process.run("results", serve)
