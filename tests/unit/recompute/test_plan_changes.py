"""A query that joins while its streams flow, and one that leaves."""

from __future__ import annotations

import pytest

from stairwise.plan.parts import operator_for
from stairwise.reports.contract import Joined, Left
from stairwise.reports.expansion import Expansion
from stairwise.schema import DUSK
from stairwise.state.store import MemoryStore
from tests.oracle import evaluate, from_json, read
from tests.unit.recompute.feeding import STREAMS, WINDOWED, Message, batch, query_of, shown

MESSAGES: list[Message] = [{"ts": 700 * i, "k": "abc"[i * 7 % 3], "x": i % 4, "d": i / 8} for i in range(1, 120)]


def oracle_lines(select: str, **late: int) -> list[Message]:
    streams = read(STREAMS).streams
    rows = {name: [from_json(s, m, sequence=i) for i, m in enumerate(MESSAGES)] for name, s in streams.items()}
    return evaluate(STREAMS + select, rows, **late)


@pytest.mark.parametrize("select", WINDOWED)
@pytest.mark.parametrize(("after", "horizon"), [(30_000, 30_000), (30_000, 20_500), (31_000, 36_001)])
def test_a_query_that_joins_late_reports_above_its_point_and_sees_rows_above_its_horizon(
    select: str, after: int, horizon: int
) -> None:
    query = query_of(select)
    if "[" not in select:
        horizon = min(horizon, after)  # without a window, a row at or below the horizon is reported by nobody
    operator, expansion = operator_for(query, MemoryStore()), Expansion(query)
    operator.plan(Joined(query, after, horizon))
    lines = []
    for start in range(0, len(MESSAGES), 10):
        part = MESSAGES[start : start + 10]
        for stream in query.streams:
            operator.insert(batch(stream, part, first=start))
        lines += shown(operator, expansion, part[-1]["ts"] - 1)
    lines += shown(operator, expansion, DUSK)
    assert lines == oracle_lines(select, after=after, horizon=horizon)


@pytest.mark.parametrize("select", [s for s in WINDOWED if "ROWS 7 SLIDE 3]" in s])
def test_rows_are_numbered_from_the_streams_first_even_if_an_operator_sees_only_later_ones(select: str) -> None:
    query = query_of(select)
    operator, expansion = operator_for(query, MemoryStore()), Expansion(query)
    joined = 40
    point = MESSAGES[joined - 1]["ts"]
    operator.plan(Joined(query, after=point, horizon=point, before={"s": joined}))
    operator.insert(batch(query.streams[0], MESSAGES[joined:], first=joined))
    assert list(shown(operator, expansion, DUSK)) == oracle_lines(select, after=point, horizon=point)


@pytest.mark.parametrize("select", WINDOWED)
def test_a_query_that_leaves_reports_up_to_its_last_point(select: str) -> None:
    query = query_of(select)
    operator, expansion = operator_for(query, MemoryStore()), Expansion(query)
    lines = []
    for start in (0, 60):
        for stream in query.streams:
            operator.insert(batch(stream, MESSAGES[start : start + 60], first=start))
        lines += shown(operator, expansion, MESSAGES[start + 59 if start == 0 else -1]["ts"] - 1)
        operator.plan(Left(query.name, after=50_000))
    assert lines == [line for line in oracle_lines(select) if line["time"] <= 50_000]


@pytest.mark.parametrize("select", WINDOWED[:2])
def test_a_late_query_goes_on_from_its_store(select: str) -> None:
    query, store = query_of(select), MemoryStore()
    operator, expansion = operator_for(query, store), Expansion(query)
    operator.plan(Joined(query, 30_000, 20_500))
    operator.insert(batch(query.streams[0], MESSAGES[:60]))
    lines = list(shown(operator, expansion, MESSAGES[59]["ts"] - 1))
    operator.flush()
    again = operator_for(query, store)
    again.insert(batch(query.streams[0], MESSAGES[60:], first=60))
    lines += shown(again, expansion, DUSK)
    assert lines == oracle_lines(select, after=30_000, horizon=20_500)
