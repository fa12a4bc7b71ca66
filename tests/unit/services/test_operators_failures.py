"""A fault stays at home: a signature whose operator raises is set aside, and the others neither stop nor change."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.operators import shard as shards
from services.operators.evaluation import Alignment, Evaluation
from services.operators.memory import UNLIMITED
from services.operators.shard import Shard, ShardReport
from services.operators.stage1 import SequencedMessage, parcels_of, runs
from services.operators.work_mark import WorkMark, count_deaths
from stairwise.errors import LimitError
from stairwise.reports.contract import Batch, Report
from stairwise.schema import DAWN, Instant
from stairwise.state.store import MemoryStore
from stairwise.wire.plans import PlanLog, Turn
from stairwise.wire.reports import LifeRecord, Mark
from tests.plans import plan_log
from tests.unit.services.test_operators_shard import Partition

STREAM = "CREATE STREAM s (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts PARTITIONS 2"
INNOCENT = "CREATE QUERY innocent AS SELECT COUNT(*) AS n FROM s [TUMBLE 1 SECOND]"
CULPRIT = "CREATE QUERY culprit AS SELECT v, COUNT(*) AS n FROM s [TUMBLE 1 SECOND] WHERE v > 5 GROUP BY v"
PLANS = plan_log(f"{STREAM}; {INNOCENT}; {CULPRIT}", "CREATE QUERY later AS SELECT MAX(v) AS m FROM s [NOW]")


class Breaking:
    """The culprit's evaluation, of which one method raises once time has come so far."""

    def __init__(self, evaluation: Evaluation, method: str) -> None:
        self._evaluation, self._method = evaluation, method
        self._watermark = DAWN

    def __getattr__(self, name: str) -> object:
        return getattr(self._evaluation, name)

    def _break(self, method: str) -> None:
        if self._method == method:
            raise ZeroDivisionError("by zero")

    def insert(self, batch: Batch) -> None:
        if batch.highest >= 3_000:
            self._break("insert")
        self._evaluation.insert(batch)

    def advance(self, watermark: Instant) -> Iterator[Report]:
        self._watermark = watermark
        for report in self._evaluation.advance(watermark):
            if report.time >= 3_000:
                self._break("advance")
            yield report

    def turn(self, turn: Turn, at: Alignment) -> dict[str, LifeRecord]:
        self._break("turn")
        return self._evaluation.turn(turn, at)

    def flush(self) -> None:
        if self._watermark >= 3_000:
            self._break("flush")
        self._evaluation.flush()


def broken(monkeypatch: pytest.MonkeyPatch, method: str, query: str = "culprit") -> None:
    made = shards.evaluation_of

    def evaluation_of(registered, members, store) -> Evaluation:
        evaluation = made(registered, members, store)
        return Breaking(evaluation, method) if registered.query.name == query else evaluation

    monkeypatch.setattr(shards, "evaluation_of", evaluation_of)


Batches = list[list[SequencedMessage]]


def batches(versions: tuple[int, ...] = (1, 1, 1, 2, 2)) -> Batches:
    """Micro-batches of rows of both partitions, one a second."""
    partitions = Partition(0), Partition(1)
    return [
        [p.batch(version, [1_000 * second + 100, 1_000 * second + 900]) for p in partitions]
        for second, version in enumerate(versions, 1)
    ]


def said(
    given: Batches,
    plans: PlanLog = PLANS,
    *,
    again: Callable[[int], bool] = lambda _: False,
    store=None,
    query_bytes: int = UNLIMITED,
    mark: WorkMark | None = None,
) -> list[ShardReport]:
    """All that a shard says; ``again`` says which micro-batches are tried twice, from the state before."""
    store = MemoryStore() if store is None else store
    shard = Shard(0, 1, store, query_bytes)
    if mark is not None:
        shard.note_work(mark)
    out: list[ShardReport] = []
    for number, messages in enumerate(given):
        attempts = 2 if again(number) else 1
        kept = dict(store._pages)
        for attempt in range(attempts):
            if attempt:
                store._pages = dict(kept)
                shard = Shard(0, 1, store, query_bytes)
            found = []
            for run in runs(messages):
                for _, parcel in parcels_of(run, plans, 1):
                    shard.take(parcel, plans)
            found = list(shard.advance(plans))
            shard.flush()
        out += found
    return out


def of(out: list[ShardReport], query: str, plans: PlanLog = PLANS) -> list[ShardReport]:
    signature = plans.newest.queries[query].signature
    return [each for each in out if each.headers.signature == signature]


def shown(out: list[ShardReport]) -> list[tuple[object, ...]]:
    """What is said by each signature: who comes first is left to what they cost."""
    by_signature = sorted(out, key=lambda each: each.headers.signature)
    return [(e.headers, None if e.report is None else e.report.rows.to_pylist(), e.failure) for e in by_signature]


@pytest.mark.parametrize("method", ["insert", "advance", "turn", "flush"])
def test_what_fails_is_set_aside_and_the_others_report_the_same(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = said(batches())
    broken(monkeypatch, method)
    out = said(batches())
    for query in ("innocent", "later"):
        assert shown(of(out, query)) == shown(of(whole, query))
    *reports, mark = of(out, "culprit")
    assert shown(reports) == shown(of(whole, "culprit")[: len(reports)]), "what was reported before stands"
    assert all(each.headers.mark is not Mark.FAILED for each in reports)
    assert mark.headers.mark is Mark.FAILED
    assert mark.failure is not None
    assert mark.failure.reason == "ZeroDivisionError: by zero"


@pytest.mark.parametrize("method", ["insert", "advance", "turn", "flush"])
def test_a_failure_is_the_same_when_a_micro_batch_is_tried_again(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, method)
    assert shown(said(batches(), again=lambda number: number % 2 == 0)) == shown(said(batches()))


def test_a_signature_that_was_set_aside_keeps_nothing_and_is_forgotten_when_it_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans = plan_log(f"{STREAM}; {INNOCENT}; {CULPRIT}", "DROP QUERY culprit")
    signature = plans.at(1).queries["culprit"].signature
    broken(monkeypatch, "insert")
    store = MemoryStore()
    first = batches((1, 1, 1, 1, 2))
    said(first[:4], plans, store=store)
    assert not [key for key in store.keys(b"q/") if signature.encode() in key]
    assert signature.encode() in store.get(shards.HEADER)
    out = said(first[4:], plans, store=store)
    assert signature.encode() not in store.get(shards.HEADER)
    assert not [each for each in out if each.headers.signature == signature], "its end was told before"


def test_an_error_of_ours_speaks_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Breaking, method: str) -> None:
        if method == "insert":
            raise LimitError("needs more than 1 MB", hint="make it narrower")

    monkeypatch.setattr(Breaking, "_break", refuse)
    broken(monkeypatch, "insert")
    *_, mark = of(said(batches()), "culprit")
    assert mark.failure is not None
    assert mark.failure.reason == "needs more than 1 MB"


POISON = "SELECT {0} FROM s [RANGE 1 HOUR] x, s [RANGE 1 HOUR] y WHERE {1}"


@pytest.mark.parametrize(
    "select",
    [
        POISON.format("COUNT(*) AS n", "x.v > y.v"),
        POISON.format("x.v, y.v AS w", "x.v > y.v"),
        POISON.format("x.v, y.v AS w", "x.v % 2 = y.v % 2"),
        "SELECT COUNT(*) AS n FROM s [ROWS 20000] x, s [ROWS 20000 SLIDE 1 SECOND] y WHERE x.v > y.v",
    ],
)
def test_what_does_not_fit_is_not_made(select: str) -> None:
    plans = plan_log(f"{STREAM}; {INNOCENT}; CREATE QUERY poison AS {select}")
    partitions = Partition(0), Partition(1)
    given = [[p.batch(1, list(range(begin, begin + 10_000))) for p in partitions] for begin in (0, 10_000, 20_000)]
    whole = said(given, plan_log(f"{STREAM}; {INNOCENT}"))
    out = said(given, plans, query_bytes=512 << 20)
    assert shown(of(out, "innocent", plans)) == shown(whole)
    *_, mark = of(out, "poison", plans)
    assert mark.failure is not None
    assert mark.failure.reason.startswith("it needs more than 537 MB of memory")


def killed_at(signature: str, checkpoint: Path, stamp: str) -> None:
    """A worker dies at work: its process ends with the note as it stands."""
    if os.fork() == 0:
        WorkMark(checkpoint, 0, stamp).begin(signature)
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()


def test_a_signature_at_which_workers_were_killed_twice_is_set_aside(tmp_path: Path) -> None:
    culprit = PLANS.newest.queries["culprit"].signature
    assert count_deaths(tmp_path) == []
    for stamp in ("before", "now", "now"):
        killed_at(culprit, tmp_path, stamp)
        beside = WorkMark(tmp_path, 1, stamp)
        beside.begin("another")
        beside.end()
        assert count_deaths(tmp_path) == [culprit]
    assert count_deaths(tmp_path) == [], "each death counts once"
    out = said(batches(), mark=WorkMark(tmp_path, 0, "now"))
    (mark,) = of(out, "culprit")
    assert mark.failure is not None
    assert mark.failure.reason.startswith("its worker was lost 2 times")
    assert shown(of(out, "innocent")) == shown(of(said(batches()), "innocent"))


def test_deaths_in_different_micro_batches_condemn_nobody(tmp_path: Path) -> None:
    culprit = PLANS.newest.queries["culprit"].signature
    for stamp in ("one", "two", "three"):
        killed_at(culprit, tmp_path, stamp)
        count_deaths(tmp_path)
    assert shown(said(batches(), mark=WorkMark(tmp_path, 0, "three"))) == shown(said(batches()))
