"""Traces, metrics and logs: OpenTelemetry, exported by OTLP where the standard variables say where to.

Metrics can be scraped by Prometheus as well, traces can go to Zipkin itself. What is not asked for is not recorded.

A trace follows an event through Kafka by a W3C ``traceparent`` header:

    publish ─▶ ingest: batch ─▶ operators: report ─▶ results: deliver ─▶ subscriber: receive

A batch has many events and a report many batches. Each takes the only context as its parent when there is one;
of several it keeps the first eight as links.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter

MAX_LINKS = 8
TRACEPARENT = "traceparent"

_propagator = TraceContextTextMapPropagator()


SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""The buckets of a duration, as OpenTelemetry's conventions have them."""


def start(service: str, scraped_at: str | None = None) -> None:
    """Set up logs, and traces and metrics as far as somebody takes them. Called once, at a process's start.

    ``scraped_at`` is the address of a page for Prometheus.
    """
    start_logs(service)
    exporters, readers = _exporters(), _readers(scraped_at)
    if not exporters and not readers:
        return
    from opentelemetry.sdk.resources import Resource

    resource = Resource.create({"service.name": f"stairwise-{service}", "service.namespace": "stairwise"})
    if exporters:
        _start_traces(resource, exporters)
    if readers:
        _start_metrics(resource, readers)


def is_traced() -> bool:
    """Do the standard variables say where spans go?"""
    return _is_sent("TRACES") or bool(os.environ.get("OTEL_EXPORTER_ZIPKIN_ENDPOINT"))


def _is_sent(signal: str) -> bool:
    return any(os.environ.get(f"OTEL_EXPORTER_OTLP_{name}ENDPOINT") for name in ("", f"{signal}_"))


def _exporters() -> list[SpanExporter]:
    exporters: list[SpanExporter] = []
    if _is_sent("TRACES"):
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        exporters.append(OTLPSpanExporter())
    if os.environ.get("OTEL_EXPORTER_ZIPKIN_ENDPOINT"):
        from opentelemetry.exporter.zipkin.json import ZipkinExporter

        exporters.append(ZipkinExporter())
    return exporters


def _readers(scraped_at: str | None) -> list[MetricReader]:
    readers: list[MetricReader] = []
    if _is_sent("METRICS"):
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
    if scraped_at is not None:
        from stairwise.platform import scrape

        readers.append(scrape.serve(scraped_at))
    return readers


def _start_traces(resource: Resource, exporters: Iterable[SpanExporter]) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=500))
    trace.set_tracer_provider(provider)


def _start_metrics(resource: Resource, readers: list[MetricReader]) -> None:
    from opentelemetry.sdk.metrics import Histogram, MeterProvider
    from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View

    durations = View(
        instrument_type=Histogram, instrument_unit="s", aggregation=ExplicitBucketHistogramAggregation(SECONDS)
    )
    metrics.set_meter_provider(MeterProvider(resource=resource, metric_readers=readers, views=[durations]))


def stop() -> None:
    """Send what is still waiting to be exported."""
    for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        shutdown = getattr(provider, "shutdown", None)
        if shutdown is not None:
            shutdown()


tracer = trace.get_tracer("stairwise")
meter = metrics.get_meter("stairwise")


def traceparent(span: trace.Span | None = None) -> str:
    """The span (or the current one) as a ``traceparent``; empty where nothing is recorded."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, trace.set_span_in_context(span) if span is not None else None)
    return carrier.get(TRACEPARENT, "")


def header(span: trace.Span) -> list[tuple[str, bytes]]:
    """The span as Kafka headers: one, or none."""
    value = traceparent(span)
    return [(TRACEPARENT, value.encode())] if value else []


def context_of(traceparent: str) -> Context:
    return _propagator.extract({TRACEPARENT: traceparent}, Context())


def begin(name: str, contexts: Iterable[str], attributes: Mapping[str, Any], kind: trace.SpanKind) -> trace.Span:
    """A span that follows from the given ``traceparent``s: child of the only one, linked to several."""
    distinct = list(dict.fromkeys(c for c in contexts if c))
    if len(distinct) == 1:
        return tracer.start_span(name, context=context_of(distinct[0]), attributes=dict(attributes), kind=kind)
    links = [trace.Link(trace.get_current_span(context_of(c)).get_span_context()) for c in distinct[:MAX_LINKS]]
    return tracer.start_span(name, context=Context(), attributes=dict(attributes), links=links, kind=kind)


class _JsonLines(logging.Formatter):
    """One JSON object a line, with the trace that it belongs to."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        span = trace.get_current_span().get_span_context()
        if span.is_valid:
            entry["trace_id"] = trace.format_trace_id(span.trace_id)
            entry["span_id"] = trace.format_span_id(span.span_id)
        entry.update(getattr(record, "fields", {}))
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


def start_logs(service: str) -> None:
    """Logs alone: what a process has to say before its configuration is known to be good."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines(service))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(os.environ.get("STAIRWISE_LOG", "INFO").upper())
    for chatty in ("py4j", "kafka", "faust", "mode", "aiokafka"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def fields(**values: Any) -> dict[str, dict[str, Any]]:
    """Structured fields for a log line: ``log.info("dropped", extra=fields(stream="trades"))``."""
    return {"fields": values}
