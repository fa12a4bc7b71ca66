"""EXPLAIN ANALYZE: what a running query's operator has cost, as the shards of operators tell on the topic ``costs``.

measured: over 12 minutes, by 1 shard, for all 3 queries of trades.1:b805bb501aa60c3e
  rows in      1,203,000
  rows out         4,500 in 300 reports
  CPU             1.25 s, 1.04 s a million rows
  state           2.1 MB
  behind             0 s
"""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import TopicPartition

from stairwise.platform import kafka
from stairwise.schema import DUSK
from stairwise.wire import topics
from stairwise.wire.costs import Cost, ShardCosts, total
from stairwise.wire.plans import PlanCatalogue, Registered


def measured(brokers: str, registered: Registered, catalogue: PlanCatalogue) -> str:
    """What a query's signature costs all shards together."""
    if registered.query.by_lookups:
        return "measured: not by operators: lookups evaluates this query"
    told = [costs for costs in _told(brokers) if registered.signature in costs.costs]
    if not told:
        return "measured: nothing yet: operators tells of a query a few seconds after its first rows"
    sharers = sum(other.signature == registered.signature for other in catalogue.queries.values())
    return "\n".join(_lines(registered, told, sharers))


def _lines(registered: Registered, told: list[ShardCosts], sharers: int) -> Iterator[str]:
    cost = total(costs.costs[registered.signature] for costs in told)
    shards = "1 shard" if len(told) == 1 else f"{len(told)} shards"
    whose = f"for all {sharers} queries of {registered.signature}" if sharers > 1 else "for this query alone"
    yield f"measured: over {_span(max(costs.seconds for costs in told))}, by {shards}, {whose}"
    a_million = f", {cost.cpu * 1e6 / cost.rows:.2f} s a million rows" if cost.rows else ""
    yield f"  rows in   {cost.rows:>14,}"
    yield f"  rows out  {cost.answer_rows:>14,} in {cost.reports:,} reports"
    yield f"  CPU       {f'{cost.cpu:.2f} s':>14}{a_million}"
    yield f"  state     {_size(cost.state):>14}"
    yield f"  behind    {_behind(cost):>14}"


def _behind(cost: Cost) -> str:
    """How much of event time lies between what has come and what is reported."""
    return "0 s" if cost.watermark >= DUSK else f"{max(0, cost.watermark - cost.reported) / 1000:g} s"


def _span(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _told(brokers: str) -> list[ShardCosts]:
    consumer = kafka.consumer(brokers, "stairwise-windows-costs", enable_partition_eof=True)
    try:
        messages = kafka.read_to_end(consumer, [TopicPartition(topics.COSTS, 0, 0)])
        latest = {message.key(): message.value() for message in messages}
    finally:
        consumer.close()
    return [ShardCosts.decode(value) for value in latest.values()]
