"""What ingest counts. Rows are counted when they are committed: in = on_time + late + dead, at every moment."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from opentelemetry.metrics import CallbackOptions, Observation

from services.ingest.failures import Failures
from services.ingest.lane import Lane, Outcome
from services.ingest.recovery import Key
from stairwise.platform import telemetry
from stairwise.schema import DAWN

MOST_OF_REASON = 200
"""How many characters of a reason a label shows."""

_rows = telemetry.meter.create_counter("stairwise.ingest.rows", "{row}", "rows by stream and outcome")
_rows_in = telemetry.meter.create_counter("stairwise.ingest.rows.in", "{row}", "rows read, by stream")
_batch_rows = telemetry.meter.create_histogram("stairwise.ingest.batch.rows", "{row}", "rows of a batch")
_transaction = telemetry.meter.create_histogram("stairwise.ingest.transaction.duration", "s", "a transaction")
_aborted = telemetry.meter.create_counter("stairwise.ingest.transactions.aborted", "{transaction}", "taken back")
_held = telemetry.meter.create_gauge("stairwise.ingest.held", "1", "1 while ingest pauses because its volume is full")


def committed(stream: str, outcome: Outcome) -> None:
    attributes = {"stream": stream}
    _rows_in.add(outcome.rows + outcome.late + outcome.dead, attributes)
    for name, count in (("on_time", outcome.rows), ("late", outcome.late), ("dead", outcome.dead)):
        if count:
            _rows.add(count, {**attributes, "outcome": name})


def batch(stream: str, rows: int) -> None:
    _batch_rows.record(rows, {"stream": stream})


def transaction(seconds: float) -> None:
    _transaction.record(seconds)


def aborted() -> None:
    _aborted.add(1)


def hold(is_low: bool) -> None:
    """Ingest pauses for lack of room, or goes on."""
    _held.set(int(is_low))


def watch_failures(failures: Failures) -> None:
    """Report the streams that ingest cannot go on with, each with the reason."""

    def failed(_: CallbackOptions) -> Iterable[Observation]:
        for stream, reason in failures.reasons.items():
            yield Observation(1, {"stream": stream, "reason": reason[:MOST_OF_REASON]})

    gauge = telemetry.meter.create_observable_gauge
    gauge("stairwise.ingest.stream.failed", [failed], "", "streams whose partitions rest, by reason")


def watch(lanes: Mapping[Key, Lane]) -> None:
    """Report of every lane that is open when somebody asks: its watermark, how far the clock is ahead of that, and what
    waits behind the last message that was written. Tables have no watermark. Nobody is asked: whoever collects metrics
    must not wait for Kafka."""

    def watermarks(_: CallbackOptions) -> Iterable[Observation]:
        for lane in list(lanes.values()):
            if lane.watermark > DAWN and not lane.stream.is_table:
                yield Observation(lane.watermark, {"stream": lane.stream.name, "partition": lane.partition})

    def lags(_: CallbackOptions) -> Iterable[Observation]:
        clock = time.time()
        for lane in list(lanes.values()):
            if lane.watermark > DAWN and not lane.stream.is_table:
                labels: dict[str, str | int] = {"stream": lane.stream.name, "partition": lane.partition}
                yield Observation(clock - lane.watermark / 1000, labels)

    def waiting(_: CallbackOptions) -> Iterable[Observation]:
        for lane in list(lanes.values()):
            if lane.end_told >= 0 and lane.written_upto >= 0:
                labels: dict[str, str | int] = {"stream": lane.stream.name, "partition": lane.partition}
                yield Observation(max(0, lane.end_told - lane.written_upto), labels)

    _aborted.add(0)  # so that it can be seen to grow
    _held.set(0)
    telemetry.meter.create_observable_gauge("stairwise.ingest.lag", [waiting], "{message}", "messages not yet written")
    telemetry.meter.create_observable_gauge("stairwise.ingest.watermark", [watermarks], "ms", "by partition")
    telemetry.meter.create_observable_gauge("stairwise.ingest.watermark.lag", [lags], "s", "clock − watermark")
