"""What standing filters report is what the oracle says, whoever runs them, however often they are killed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.lookups.filter_driver import FilterDriver
from services.operators.stage1 import SequencedMessage
from stairwise.reports.contract import Report
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import DUSK
from stairwise.wire.batches import decode_rows
from stairwise.wire.plans import PlanLog, Registered
from stairwise.wire.reports import Mark, ReportHeaders
from tests.oracle import evaluate
from tests.plans import as_script, plan_log
from tests.property.test_runs import leaping, short  # noqa: F401
from tests.property.test_shard import (
    DECLARED,
    PARTITIONS,
    Written,
    first_watermark,
    oracle_rows,
    partitions,
    reached_before,
)

SCRIPTS = (
    f"{DECLARED} LATENESS 3 SECONDS PARTITIONS {PARTITIONS};"
    "CREATE QUERY many AS SELECT k, COUNT(*) AS n FROM s [RANGE 10s SLIDE 2s] GROUP BY k HAVING COUNT(*) > 1"
    " EMIT CHANGES USING LOOKUPS",
    "CREATE QUERY much AS SELECT k, SUM(v) AS total, MAX(v) AS most FROM s [RANGE 9s SLIDE 4s LAG 1s OFFSET 1s]"
    " WHERE v IS NOT NULL GROUP BY k HAVING SUM(v) >= 3 EMIT CHANGES USING LOOKUPS;"
    "CREATE QUERY not_ours AS SELECT k, COUNT(*) AS n FROM s [RANGE 10s] GROUP BY k HAVING COUNT(*) > 1 EMIT CHANGES",
    "ALTER STREAM s SET LATENESS 9s; DROP QUERY many;"
    "CREATE QUERY middling AS SELECT k, MEDIAN(v) AS m FROM s [RANGE 20s SLIDE 5s] GROUP BY k"
    " HAVING COUNT(v) > 1 EMIT CHANGES USING LOOKUPS",
    "CREATE QUERY many AS SELECT k, MAX(v) AS most FROM s [TUMBLE 3s] WHERE k IN ('x', 'y') GROUP BY k"
    " HAVING MAX(v) > 0 AND COUNT(*) < 9 EMIT CHANGES USING LOOKUPS",
    "DROP QUERY much; ALTER STREAM s SET LATENESS 1s",
)
PLANS: PlanLog = plan_log(*SCRIPTS)
STREAM = PLANS.newest.streams["s"]
FILTERS = [registered for registered in PLANS.registered("s", 0, len(SCRIPTS)) if registered.query.by_lookups]
DROPPED = {"many@1": 3, "much@2": 5}


class Topic:
    """What was published, without what results drops as a repeat; nothing is skipped."""

    def __init__(self) -> None:
        self.last: dict[str, ReportHeaders] = {}
        self.reports: dict[str, list[Report]] = {registered.signature: [] for registered in FILTERS}

    def take(self, headers: ReportHeaders, report: Report | None) -> None:
        last = self.last.get(headers.signature)
        if last is not None and (headers.end <= last.end or last.mark is not Mark.REPORT):
            return
        self.last[headers.signature] = headers
        if report is not None:
            self.reports[headers.signature].append(report)

    def lines(self, registered: Registered) -> list[dict[str, object]]:
        expansion = Expansion(registered.query)
        reports = self.reports[registered.signature]
        return [line for report in reports for line in line_dicts(registered.query.name, expansion.expand(report))]


def interleaved(queues: list[list[SequencedMessage]], random) -> list[SequencedMessage]:
    waiting, found = [list(queue) for queue in queues], []
    while any(waiting):
        found.append(random.choice([queue for queue in waiting if queue]).pop(0))
    return found


@given(
    partitions() | leaping(),
    st.randoms(use_true_random=False),
    st.lists(st.integers(1, 25), max_size=3),
    st.lists(st.booleans(), min_size=1, max_size=5),
)
def test_filters_say_what_the_oracle_says_through_any_kills(
    written: list[Written], random, kills: list[int], steps: list[bool]
) -> None:
    queues = [w.messages() for w in written]
    topic = Topic()
    for length in [*kills, None]:  # each run replays from the start and dies after so many messages
        driver = FilterDriver(STREAM, FILTERS, topic.last)
        for number, message in enumerate(interleaved(queues, random)[:length]):
            driver.take(message.partition, message.headers, decode_rows(message.value, STREAM), PLANS)
            if steps[number % len(steps)]:
                for out in driver.advance():
                    topic.take(out.headers, out.report)
    for out in driver.advance():
        topic.take(out.headers, out.report)

    rows = {"s": [row for queue in queues for message in queue for row in oracle_rows(message)]}
    for registered in FILTERS:
        after = max(first_watermark(queue, registered.version) for queue in queues)
        horizon = reached_before(queues, registered.version, after)
        dropped = DROPPED.get(registered.identity)
        until = DUSK if dropped is None else min(first_watermark(queue, dropped) for queue in queues)
        told = evaluate(as_script(DECLARED, registered.query), rows, after=after, horizon=horizon)
        assert topic.lines(registered) == [line for line in told if line["time"] <= until]
        assert driver.has_ended(registered)
        expected = Mark.SEALED if dropped is None else Mark.LEFT
        assert topic.last[registered.signature].mark is expected
