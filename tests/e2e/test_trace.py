"""One published event's trace reaches from publish to the subscriber, edge by edge."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Receiver, Span, System, wait_for

pytestmark = pytest.mark.jvm

START = 1_700_000_000_000
PATH = [
    ("stairwise-cli", "publish"),
    ("stairwise-ingest", "ingest batch"),
    ("stairwise-operators", "operators report"),
    ("stairwise-results", "results deliver"),
    ("stairwise-cli", "subscriber receive"),
]


def test_the_spans_of_one_event_are_a_chain_from_publish_to_subscriber(system: System, receiver: Receiver) -> None:
    system.sql(
        "CREATE STREAM traced (ts TIMESTAMP, qty BIGINT) TIMESTAMP BY ts PARTITIONS 1;"
        "CREATE QUERY traced_count AS SELECT COUNT(*) AS n FROM traced [TUMBLE 10 SECONDS]"
    )
    system.publish("traced", [{"ts": START + 1000, "qty": 1}], "--seal")
    assert [line["row"] for line in system.lines("traced_count")] == [{"n": 1}]

    def chain() -> list[Span] | None:
        """The spans of the event's trace, from its publication on, each the parent of the next."""
        spans = [s for s in list(receiver.spans) if s.name == "ingest batch"]
        for ingest in spans:
            trace = receiver.trace(ingest.trace_id)
            by_step = [next((s for s in trace if (s.service, s.name) == step), None) for step in PATH]
            if all(by_step):
                return [s for s in by_step if s is not None]
        return None

    spans = wait_for(chain, "the whole trace", within=120)
    assert [s.parent_id for s in spans[1:]] == [s.span_id for s in spans[:-1]]
