"""The page that Prometheus scrapes: what OpenTelemetry measures, under the names that its conventions give there.

    stairwise.ingest.rows, {row}                  ─▶  stairwise_ingest_rows_total{stream="trades", outcome="late"}
    stairwise.ingest.transaction.duration, s      ─▶  stairwise_ingest_transaction_duration_seconds_bucket{le="0.1"}

The process itself (memory, CPU, open files) comes with it.
"""

from __future__ import annotations

import logging

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from prometheus_client import start_http_server

from stairwise.errors import ConfigError
from stairwise.platform.variables import host_and_port

log = logging.getLogger(__name__)


def serve(address: str) -> PrometheusMetricReader:
    """Listen there, in a thread that ends with the process; the reader is what the page reads from."""
    host, port = host_and_port(address)
    reader = PrometheusMetricReader(scope_info_enabled=False)
    try:
        server, _ = start_http_server(port, host)
    except OSError as error:
        raise ConfigError(
            f"cannot serve metrics on {address}: {error.strerror}",
            hint="is the port taken? set STAIRWISE_METRICS to another, or to none",
        ) from error
    log.info("metrics on http://%s:%d/metrics", host, server.server_port)
    return reader
