"""Start the windows service: ``python -m services.windows``."""

from __future__ import annotations

import threading
from functools import partial

from services.windows import metrics
from services.windows.registry import Registry
from services.windows.servicer import NAME, RegistryServicer
from stairwise.platform import process
from stairwise.platform.config import Settings
from stairwise.platform.server_thread import ServerThread
from stairwise.v1 import registry_pb2_grpc


def serve(settings: Settings, stopping: threading.Event) -> None:
    registry = Registry(settings.brokers, settings.scrape, settings.most_pairs)
    metrics.watch(lambda: registry.catalogue, registry.failed_queries)
    servicer = RegistryServicer(registry)
    register = partial(registry_pb2_grpc.add_RegistryServicer_to_server, servicer)
    with ServerThread(settings.listen, register, [NAME], security=settings.security) as server:
        server.ready()
        while not stopping.wait(0.2) and not registry.failed.is_set():
            pass
    if registry.failed.is_set():
        raise SystemExit(1)


if __name__ == "__main__":
    process.run("windows", serve)
