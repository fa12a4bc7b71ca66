"""What the lookups tell about themselves."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.metrics import CallbackOptions, Observation

from services.lookups.holdings import Holdings
from stairwise.platform.telemetry import meter
from stairwise.schema import DAWN

rows = meter.create_counter("stairwise.lookups.rows", "{row}", "rows taken in, by stream")
batches = meter.create_counter("stairwise.lookups.batches", "{batch}", "batches by stream and outcome: taken, repeated")
lookups = meter.create_counter("stairwise.lookups.lookups", "{lookup}", "lookups by stream, keys counted one by one")
reports = meter.create_counter("stairwise.lookups.reports", "{report}", "reports of standing filters, by query")
rebalances = meter.create_counter("stairwise.lookups.rebalances", "{rebalance}", "assignments of partitions")


def observe(holdings: Holdings) -> None:
    """Report the watermark and the state of every partition that is held, whenever metrics are collected."""

    def watermarks(_: CallbackOptions) -> Iterable[Observation]:
        for (_topic, number), partition in list(holdings):
            if partition.watermark > DAWN:
                labels: dict[str, str | int] = {"stream": partition.stream.name, "partition": number}
                yield Observation(partition.watermark / 1000, labels)

    def ready(_: CallbackOptions) -> Iterable[Observation]:
        held = [partition for _, partition in list(holdings)]
        yield Observation(sum(p.is_ready for p in held), {"state": "ready"})
        yield Observation(sum(not p.is_ready for p in held), {"state": "catching_up"})

    def memory(_: CallbackOptions) -> Iterable[Observation]:
        for (_topic, number), partition in list(holdings):
            yield Observation(partition.history.size_bytes, {"stream": partition.stream.name, "partition": number})

    meter.create_observable_gauge("stairwise.lookups.memory", [memory], "By", "rows and structures by partition")
    meter.create_observable_gauge("stairwise.lookups.watermark", [watermarks], "s", "event time by partition")
    meter.create_observable_gauge("stairwise.lookups.partitions", [ready], "{partition}", "held partitions by state")
