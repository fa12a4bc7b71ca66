"""The golden cases as subscribers see them, of queries that have reports of their own: all of the way but Kafka."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from services.results.alone_feed import AloneFeed
from services.results.cursor import Cursor
from services.results.encoding import Encoding
from services.results.feed import Feed
from services.results.journal import Journal
from services.results.rendition import Renditions
from services.results.report_message import ReportMessage
from services.results.selection import Selection
from services.results.update_stream import UpdateStream
from stairwise.algebra.query import Emit
from stairwise.client.receiver import Receiver
from stairwise.reports.lines import line_dicts
from stairwise.state.store import MemoryStore
from stairwise.v1 import results_pb2 as pb
from stairwise.wire.plans import PlanLog, Registered
from stairwise.wire.reports import encode_report
from tests.golden.cases import GoldenCase, golden_cases
from tests.plans import plan_log
from tests.shard_lines import written
from tests.unit.results.small_reports import ListedHistory, Topic, released


def alone(plans: PlanLog) -> list[Registered]:
    queries = plans.newest.queries.values()
    return [registered for registered in queries if registered.shared is None and not registered.query.by_lookups]


CASES = [case for case in golden_cases() if alone(plan_log(case.script))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_subscription_shows_the_expected_lines(case: GoldenCase) -> None:
    plans = plan_log(case.script, partitions=1)
    topics = {registered.signature: Topic(registered) for registered in alone(plans)}
    for outgoing in written(plans, case.messages, random.Random(5), MemoryStore()):
        for out in outgoing:
            if (topic := topics.get(out.headers.signature)) is not None:
                value = b"" if out.report is None else encode_report(out.report)
                topic.messages.append(ReportMessage(out.headers, value, len(topic.messages)))
    for topic in topics.values():
        name = topic.registered.query.name
        assert asyncio.run(_lines(topic)) == [line for line in case.expected if line["query"] == name]


async def _lines(topic: Topic) -> list[dict[str, Any]]:
    registered = topic.registered
    query, journal = registered.query, Journal()
    journal.extend(released(topic.messages))
    feed = AloneFeed(Feed(journal, ListedHistory(topic), registered.signature), query)
    receiver, found = Receiver(query.name, "latest", None, "values"), []
    with Renditions().use(registered, Encoding.VALUES, Selection()) as rendition:
        async for sending in UpdateStream(rendition, Cursor(snapshot=query.emit is Emit.CHANGES), feed).messages():
            update = receiver.take(pb.SubscribeResponse.FromString(sending.message))
            if update is not None:
                found += line_dicts(query.name, update.emission())
    return found
