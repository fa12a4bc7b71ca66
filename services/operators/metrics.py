"""What operators tells about itself: each micro-batch as Spark reports it, the state, and what holds it.

Spark keeps its last reports of progress; the driver takes those that it has not seen. Nothing is asked of a batch that
runs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from opentelemetry.metrics import CallbackOptions, Observation

from services.operators.segments import stored_bytes
from stairwise.platform import telemetry
from stairwise.wire import topics

_meter = telemetry.meter
_batches = _meter.create_counter("stairwise.operators.batches", "{batch}", "micro-batches")
_messages = _meter.create_counter("stairwise.operators.messages", "{message}", "messages of s.* taken in")
_reports = _meter.create_counter("stairwise.operators.reports", "{report}", "messages written to results")
_duration = _meter.create_histogram("stairwise.operators.batch.duration", "s", "a micro-batch, from trigger to commit")
_phases = _meter.create_counter("stairwise.operators.phase.time", "s", "time spent in each phase of micro-batches")


class StreamingProgress:
    """Follows one streaming query."""

    def __init__(self) -> None:
        self._seen = -1
        self._last: dict[str, Any] = {}

    def take(self, recent: Iterable[Any]) -> None:
        """Count Spark's reports (Java objects, oldest first) that are new."""
        for report in recent:
            if report.batchId() > self._seen:
                self._count(json.loads(report.json()))

    def _count(self, batch: dict[str, Any]) -> None:
        self._seen = batch["batchId"]
        self._last = batch
        durations: dict[str, int] = batch["durationMs"]
        _batches.add(1)
        _messages.add(batch["numInputRows"])
        _reports.add(max(0, batch["sink"].get("numOutputRows", 0)))
        _duration.record(durations.get("triggerExecution", 0) / 1000)
        for phase, milliseconds in durations.items():
            if phase != "triggerExecution":
                _phases.add(milliseconds / 1000, {"phase": phase})

    @property
    def done(self) -> int:
        """The last micro-batch that has ended; -1 where none has."""
        return self._seen

    @property
    def taken(self) -> dict[str, Mapping[str, int]]:
        """The offsets behind the last micro-batch, by topic and partition."""
        ends = (_offsets(source.get("endOffset")) for source in self._last.get("sources", []))
        return {topic: partitions for source in ends for topic, partitions in source.items()}

    def lags(self, _: CallbackOptions) -> Iterable[Observation]:
        """What each stream had in ``s.*`` beyond the last micro-batch."""
        behind: dict[str, int] = {}
        for source in self._last.get("sources", []):
            latest, taken = _offsets(source.get("latestOffset")), _offsets(source.get("endOffset"))
            for topic, ends in latest.items():
                if topic == topics.CARRIED:
                    continue
                stream, _incarnation = topics.parse_sequenced(topic)
                waiting = sum(end - taken.get(topic, {}).get(partition, 0) for partition, end in ends.items())
                behind[stream] = behind.get(stream, 0) + max(0, waiting)
        return [Observation(messages, {"stream": stream}) for stream, messages in behind.items()]

    def pages(self, _: CallbackOptions) -> Iterable[Observation]:
        return [Observation(state["numRowsTotal"]) for state in self._last.get("stateOperators", [])[:1]]

    def state_bytes(self, _: CallbackOptions) -> Iterable[Observation]:
        return [Observation(state["memoryUsedBytes"]) for state in self._last.get("stateOperators", [])[:1]]


def watch(progress: StreamingProgress, jvm: Any, checkpoint: Path) -> None:
    """Report the state, the heap of Spark's driver, and the volume that the checkpoint is on."""

    def heap(read: str) -> Any:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            runtime = jvm.java.lang.Runtime.getRuntime()
            figure = runtime.maxMemory() if read == "limit" else runtime.totalMemory() - runtime.freeMemory()
            return [Observation(figure, {"jvm.memory.type": "heap"})]

        return observe

    def volume(_: CallbackOptions) -> Iterable[Observation]:
        usage = shutil.disk_usage(checkpoint.parent)
        return [Observation(usage.used, {"state": "used"}), Observation(usage.free, {"state": "free"})]

    def segments(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(stored_bytes(checkpoint))]

    gauge = _meter.create_observable_gauge
    gauge("stairwise.operators.lag", [progress.lags], "{message}", "messages of s.* not yet taken in, by stream")
    gauge("stairwise.operators.state.pages", [progress.pages], "{page}", "pages of window state")
    gauge("stairwise.operators.state.size", [progress.state_bytes], "By", "memory of Spark's state store")
    gauge("stairwise.operators.state.segments", [segments], "By", "files of large pages beside Spark's state")
    gauge("stairwise.operators.volume", [volume], "By", "the volume of the checkpoint")
    gauge("jvm.memory.used", [heap("used")], "By", "memory of Spark's driver in use")
    gauge("jvm.memory.limit", [heap("limit")], "By", "what it may take")


def _offsets(said: Any) -> Mapping[str, Mapping[str, int]]:
    """Offsets by topic and partition: Spark tells them as JSON, or as text that holds it."""
    found = json.loads(said) if isinstance(said, str) else said
    return found if isinstance(found, dict) else {}
