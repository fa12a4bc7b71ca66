"""What ingest counts agrees with what the topics hold: in = on time + late + dead."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from services.ingest.loop import Ingest
from stairwise.platform.config import Settings
from tests.integration.ingest_numbers import event
from tests.integration.ingest_system import IngestSystem, ingest_system, wait_for

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IngestSystem]:
    with ingest_system(tmp_path_factory.mktemp("ingest-metrics")) as system:
        yield system


def points(reader: InMemoryMetricReader) -> dict[str, list[tuple[dict[str, object], object]]]:
    """By name of the metric, its points: attributes and the point."""
    data = reader.get_metrics_data()
    return {
        metric.name: [(dict(point.attributes or {}), point) for point in metric.data.data_points]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def test_every_row_that_came_in_is_counted_once_where_it_went(system: IngestSystem) -> None:
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    stream = system.declare("PARTITIONS 2", "ts TIMESTAMP, n BIGINT NOT NULL, v DOUBLE")
    stopping = threading.Event()
    ingest = Ingest(Settings(brokers=system.brokers))
    ingest.start()
    running = threading.Thread(target=ingest.run, args=(stopping,))
    running.start()
    try:
        count = 5_000
        system.publish(stream, [b"\n".join(map(event, range(n, n + 50))) for n in range(0, count, 50)], 0)
        system.publish(stream, [event(n) for n in range(count)], 1)
        wait_for(lambda: system.lag(stream) == 0, "everything is read")
        watched = points(reader)
    finally:
        stopping.set()
        running.join(30)
    counted = points(reader)
    ((_, rows_in),) = counted["stairwise.ingest.rows.in"]
    outcomes = {a["outcome"]: point.value for a, point in counted["stairwise.ingest.rows"]}
    held = {
        "on_time": sum(len(system.rows(stream, p)) for p in (0, 1)),
        "late": sum(int(h["rows"]) for p in (0, 1) for _, h in system.late(stream, p)),
        "dead": sum(int(h["rows"]) for p in (0, 1) for _, h in system.dead(stream, p)),
    }
    assert outcomes == held
    assert rows_in.value == sum(held.values()) == 2 * count
    assert held["late"]
    assert held["dead"]
    assert sum(point.sum for _, point in counted["stairwise.ingest.batch.rows"]) == held["on_time"]
    assert counted["stairwise.ingest.transaction.duration"][0][1].count > 0
    partitions = {a["partition"]: point.value for a, point in watched["stairwise.ingest.watermark"]}
    assert partitions == {p: system.sequenced(stream, p)[-1].headers.watermark for p in (0, 1)}
    assert len(watched["stairwise.ingest.watermark.lag"]) == 2
