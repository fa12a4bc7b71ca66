"""Which queries show changes from the rows that move, and that it is these rows that are looked at and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stairwise.algebra.query import Query
from stairwise.changes.changing_groups import ChangingGroups
from stairwise.changes.copies import Copies
from stairwise.cql.script import Catalogue
from stairwise.flow.expansion import FlowExpansion
from stairwise.flow.operator import SharedFlow
from stairwise.join.moving_join import MovingJoin
from stairwise.plan.shared import shared_expansion, shared_operator, shared_signature
from stairwise.reports.contract import Batch
from stairwise.state.bags import Bags
from stairwise.state.calendar_queue import CalendarQueue
from stairwise.state.key_table import KeyTable
from stairwise.state.last_rows import LastRows
from stairwise.state.regions import Regions
from stairwise.state.row_log import RowLog
from stairwise.state.store import MemoryStore

STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, x BIGINT) TIMESTAMP BY ts GRANULE 1ms;" for name in "st"
)
ROWS = (
    "SELECT k, x FROM s [{}] WHERE x > 0",
    "SELECT DISTINCT x FROM s [{}]",
    "SELECT k FROM s [{}] EXCEPT SELECT k FROM t [RANGE 10ms SLIDE 5ms]",
)
GROUPS = (
    "SELECT k, COUNT(*), SUM(x) FROM s [{}] GROUP BY k",
    "SELECT AVG(x), VARIANCE(x) FROM s [{}]",
    "SELECT x, MAX(x), k FROM s [{}] GROUP BY k, x HAVING COUNT(*) > 1",
)
JOINS = (
    "SELECT a.x, b.x AS y FROM s [{}] a JOIN t [RANGE 10ms SLIDE 5ms] b ON a.k = b.k",
    "SELECT a.k, COUNT(*) FROM s [{}] a JOIN t [PARTITION BY x ROWS 3] b ON a.k = b.k GROUP BY a.k",
    "SELECT a.x FROM s [{}] a JOIN t [ROWS 3 SLIDE 2] b ON a.k = b.k",
)
WHOLE = (
    "SELECT TOP(k, 2) FROM s [{}]",
    "SELECT DISTINCT COUNT(*) FROM s [{}] GROUP BY k",
    "SELECT COUNT(*) FROM s [{}] GROUP BY k",
    "SELECT REGR_INTERCEPT(x) FROM s [{}]",
    "SELECT a.k, MAX(b.x) FROM s [{}] a JOIN t [RANGE 10ms SLIDE 5ms] b ON a.k = b.k GROUP BY a.k",
)
COUNTED = ("PARTITION BY k ROWS 2 SLIDE 5ms", "PARTITION BY k, x ROWS 2", "ROWS 3 SLIDE 5ms")


def query_of(select: str, emit: str = "CHANGES") -> Query:
    catalogue = Catalogue()
    catalogue.execute(f"{STREAMS} CREATE QUERY q AS {select} EMIT {emit};")
    return catalogue.queries["q"]


def shown_by(query: Query) -> FlowExpansion:
    signature = shared_signature(query)
    assert signature is not None
    operator = shared_operator(signature, [query], MemoryStore())
    assert isinstance(operator, SharedFlow)
    expansion = shared_expansion(signature, query, operator.life("q"))
    assert isinstance(expansion, FlowExpansion)
    return expansion


@pytest.mark.parametrize("window", COUNTED)
def test_changes_over_windows_that_count_rows_come_from_rows_that_move(window: str) -> None:
    for emit in ("ISTREAM", "DSTREAM", "CHANGES"):
        for select in ROWS:
            assert isinstance(shown_by(query_of(select.format(window), emit))._shown, Copies)
        for select in GROUPS:
            assert isinstance(shown_by(query_of(select.format(window), emit))._shown, ChangingGroups)
    rows, groups, slid = (shown_by(query_of(select.format(window)))._shown for select in JOINS)
    assert isinstance(slid, Copies)
    assert isinstance(rows, Copies)
    assert isinstance(groups, ChangingGroups)
    assert isinstance(rows._sides[0].passage, MovingJoin)
    assert isinstance(groups._passage, MovingJoin)


@pytest.mark.parametrize("select", WHOLE)
def test_what_moves_do_not_tell_is_taken_from_whole_answers(select: str) -> None:
    assert shared_signature(query_of(select.format(COUNTED[0]))) is None


@pytest.mark.parametrize("select", [*ROWS, *GROUPS, *JOINS])
def test_whole_answers_are_asked_for_by_rstream(select: str) -> None:
    assert shared_signature(query_of(select.format(COUNTED[0]), "RSTREAM")) is None


# ── how much is looked at ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows, values and places every part has been asked for, one number for each call."""
    counted: list[int] = []

    def count(owner: type, name: str, size: Callable[..., int]) -> None:
        original = getattr(owner, name)

        def counting(*args: Any, **more: Any) -> Any:
            found = original(*args, **more)
            counted.append(size(found, *args))
            return found

        monkeypatch.setattr(owner, name, counting)

    count(CalendarQueue, "pop", lambda found, *_: len(found[0]))
    count(CalendarQueue, "push", lambda _, queue, times, numbers: len(times))
    count(KeyTable, "numbers", lambda found, *_: len(found))
    count(KeyTable, "columns", lambda _, table, numbers: len(numbers))
    count(KeyTable, "keep", lambda found, *_: len(found))
    count(RowLog, "append", lambda found, *_: len(found))
    count(RowLog, "take", lambda found, *_: found.num_rows)
    count(RowLog, "keep", lambda found, *_: len(found))
    count(LastRows, "push", lambda _, last, partition, numbers: len(partition))
    count(LastRows, "numbers", lambda found, *_: len(found))
    count(Regions, "at", lambda found, *_: len(found))
    count(Bags, "of_each", lambda found, *_: len(found[0]))
    return counted


def work_a_report(query: Query, partitions: int, looked_at: list[int], reports: int = 30) -> float:
    """What is looked at for each report with ten rows of either stream, when the windows are full."""
    operator = shared_operator(shared_signature(query), [query], MemoryStore())  # type: ignore[arg-type]
    expansion = shared_expansion(operator.signature, query, operator.life("q"))  # type: ignore[attr-defined]
    chance = np.random.default_rng(1)
    sequence = 0

    def feed(keys: np.ndarray, time: int) -> int:
        nonlocal sequence
        for stream in "st":
            columns = [np.full(len(keys), time), keys, chance.integers(1, 5, len(keys)) + 10 * keys]
            rows = pa.RecordBatch.from_arrays([pa.array(c) for c in columns], names=["ts", "k", "x"])
            operator.insert(Batch(stream, 0, rows, np.arange(sequence, sequence + len(keys)), time, time))
        sequence += len(keys)
        lines = 0
        for block in operator.advance(time):
            emitted = expansion.expand(block)
            lines += 0 if emitted is None else emitted.rows.num_rows
        return lines

    for time in range(10, 40, 10):
        feed(np.arange(partitions), time)
    looked_at.clear()
    lines = sum(feed(chance.integers(0, partitions, 10), 40 + 10 * i) for i in range(reports))
    assert lines > reports
    return sum(looked_at) / reports


@pytest.mark.parametrize(
    "select",
    [
        "SELECT k, x FROM s [{}] WHERE x > 11",
        "SELECT DISTINCT x FROM s [{}]",
        "SELECT k, x FROM s [{0}] EXCEPT SELECT k, x FROM t [{0}]",
        "SELECT k, COUNT(*), SUM(x) FROM s [{}] GROUP BY k",
        "SELECT SUM(x), AVG(x) FROM s [{}]",
        "SELECT k, MIN(x), LAST(x) FROM s [{}] GROUP BY k",
        "SELECT a.x, b.x AS y FROM s [{0}] a JOIN t [{0}] b ON a.k = b.k",
        "SELECT a.k, SUM(b.x) FROM s [{0}] a JOIN t [{0}] b ON a.k = b.k GROUP BY a.k",
    ],
)
def test_changes_cost_what_moves_however_many_partitions_there_are(select: str, looked_at: list[int]) -> None:
    query = query_of(select.format("PARTITION BY k ROWS 3 SLIDE 10ms"))
    few, many = (work_a_report(query, partitions, looked_at) for partitions in (300, 10_000))
    assert many < 2 * few
    assert many < 3_000


def test_changes_cost_what_moves_however_many_rows_a_window_has(looked_at: list[int]) -> None:
    few, many = (
        work_a_report(query_of(f"SELECT k, SUM(x) FROM s [ROWS {rows} SLIDE 10ms] GROUP BY k"), 10_000, looked_at)
        for rows in (100, 20_000)
    )
    assert many < 2 * few
