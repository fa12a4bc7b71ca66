"""Spark's reports of progress: each counted once, and what waits by stream."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry.metrics import CallbackOptions

from services.operators.metrics import StreamingProgress


class Report:
    """A report of progress as it comes from the JVM."""

    def __init__(self, batch: int, **more: Any) -> None:
        self._said = {"batchId": batch, "numInputRows": 1, "durationMs": {"addBatch": 5}, "sink": {}, **more}

    def batchId(self) -> int:
        return int(self._said["batchId"])

    def json(self) -> str:
        return json.dumps(self._said)


def test_what_waits_is_summed_over_the_partitions_of_a_stream() -> None:
    source = {
        "latestOffset": {"s.trades.1": {"0": 10, "1": 7}, "s.quotes.2": {"0": 3}},
        "endOffset": {"s.trades.1": {"0": 8, "1": 7}, "s.quotes.2": {"0": 3}},
    }
    progress = StreamingProgress()
    progress.take([Report(0, sources=[source])])
    lags = {o.attributes["stream"]: o.value for o in progress.lags(CallbackOptions()) if o.attributes}
    assert lags == {"trades": 2, "quotes": 0}


def test_the_last_report_tells_the_state_and_older_ones_change_nothing() -> None:
    def state(pages: int) -> list[dict[str, int]]:
        return [{"numRowsTotal": pages, "memoryUsedBytes": 100 * pages}]

    progress = StreamingProgress()
    progress.take([Report(0, stateOperators=state(1)), Report(1, stateOperators=state(5))])
    progress.take([Report(0, stateOperators=state(9))])
    assert [o.value for o in progress.pages(CallbackOptions())] == [5]
    assert [o.value for o in progress.state_bytes(CallbackOptions())] == [500]


def test_before_the_first_batch_there_is_nothing_to_tell() -> None:
    assert list(StreamingProgress().lags(CallbackOptions())) == []
