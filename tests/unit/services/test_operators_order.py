"""Who comes first in a micro-batch, and who waits for whom."""

from __future__ import annotations

import pytest

from services.operators import costs, shard
from services.operators.costs import Costs
from services.operators.shard import Shard
from services.operators.stage1 import parcels_of, runs
from stairwise.state.store import MemoryStore
from tests.unit.services.test_operators_failures import PLANS, Breaking, batches, shown


class Clock:
    """CPU time as a test lets it pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(costs.time, "process_time", lambda: self.now)


def work(counted: Costs, clock: Clock, signature: str, seconds: float) -> None:
    def made():
        clock.now += seconds
        yield signature

    list(counted.making(signature, made(), lambda _: 1))


def test_the_cheap_come_first_and_the_dear_each_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, counted = Clock(monkeypatch), Costs()
    for signature, seconds in {"dear": 3.0, "a": 0.001, "dearer": 5.0, "b": 0.002, "c": 0.003}.items():
        work(counted, clock, signature, seconds)
    order = list(counted.rounds(["dear", "a", "dearer", "new", "b", "c"]))
    assert order == [["new", "a", "b", "c"], ["dear"], ["dearer"]]
    for _ in range(20):
        work(counted, clock, "dear", 0.001)
    assert list(counted.rounds(["dear", "a", "dearer"])) == [["a", "dear"], ["dearer"]]


def test_reports_are_handed_on_before_a_dear_signature_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    culprit, begun = PLANS.newest.queries["culprit"].signature, []
    made = shard.evaluation_of

    class Dear(Breaking):
        def advance(self, watermark):
            begun.append(watermark)
            clock.now += 1.0
            return super().advance(watermark)

    def evaluation_of(registered, members, store):
        evaluation = made(registered, members, store)
        return Dear(evaluation, "") if registered.signature == culprit else evaluation

    whole, out = Shard(0, 1, MemoryStore()), []
    plain = []
    for messages in batches():
        for run in runs(messages):
            for _, parcel in parcels_of(run, PLANS, 1):
                whole.take(parcel, PLANS)
        plain += whole.advance(PLANS)
    monkeypatch.setattr(shard, "evaluation_of", evaluation_of)
    slowed = Shard(0, 1, MemoryStore())
    for number, messages in enumerate(batches()):
        for run in runs(messages):
            for _, parcel in parcels_of(run, PLANS, 1):
                slowed.take(parcel, PLANS)
        begun.clear()
        for round_ in slowed.rounds(PLANS):
            said = list(round_)
            if number > 1 and begun:
                assert {report.headers.signature for report in said} == {culprit}
            out += said

    assert shown(out) == shown(plain), "who comes when changes nothing that is said"
