"""Keyframes: they say what stood, are as rare as they are long, and come again after what is of before them."""

from __future__ import annotations

import random

import pytest

from services.operators.shard import ShardReport
from stairwise.state.store import MemoryStore, Within
from stairwise.wire.plans import PlanLog
from tests.plans import plan_log
from tests.shard_lines import whole_reports, written

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts"
SELECTS = {
    "with ends": "SELECT k, v FROM s [RANGE 60 SECONDS SLIDE 1 SECOND] EMIT CHANGES",
    "without": "SELECT k, v FROM s [ROWS 600 SLIDE 1 SECOND] EMIT CHANGES",
}
ROWS = {"s": [{"ts": n * 100, "k": "x", "v": n} for n in range(3_000)]}


def reports(select: str, store: MemoryStore, rows: dict[str, list[dict[str, object]]] = ROWS) -> list[ShardReport]:
    plans: PlanLog = plan_log(f"{STREAM}; CREATE QUERY q AS {select}", partitions=1)
    made = [out for outgoing in written(plans, rows, random.Random(8), store) for out in outgoing]
    return [out for out in made if out.report is not None]


@pytest.mark.parametrize("select", SELECTS.values(), ids=list(SELECTS))
def test_keyframes_are_no_longer_than_what_lies_between_them(select: str) -> None:
    found = [out.report for out in reports(select, MemoryStore()) if out.report is not None]
    moved = sum(report.rows.num_rows for report in found)
    stood = [report.before.num_rows for report in found if report.before is not None]
    assert len(found) == 301
    assert 3_000 <= moved <= 2 * 3_000
    assert 4 < len(stood) < 60
    assert sum(stood) <= moved + 32 * len(found)
    assert sum(stood) > 1_000, "answers of 600 rows are said now and then"


@pytest.mark.parametrize("select", SELECTS.values(), ids=list(SELECTS))
def test_from_a_state_of_whole_answers_keyframes_come_until_one_is_sure_to_be_read(select: str) -> None:
    """Readers may have all that is made first from such a state, as whole answers; a second time they pass it over."""
    plans = plan_log(f"{STREAM}; CREATE QUERY q AS {select}", partitions=1)
    (registered,) = plans.newest.queries.values()
    page = Within(store := MemoryStore(), b"q/" + registered.signature.encode() + b"/")
    told, batches = [], []
    for outgoing in written(plans, ROWS, random.Random(8), store):
        made = [out.report for out in outgoing if out.report is not None]
        batches += [made] if made else []
        told += made
        if len(batches) == 1:
            page.delete(b"keyframe")
    assert [len(batch) for batch in batches] == [152, 148, 1]
    assert not all(report.before is not None for report in batches[0])
    assert all(report.before is not None for report in batches[1] + batches[2])
    assert len(list(whole_reports(registered, told))) == 301, "each keyframe is what stood"
