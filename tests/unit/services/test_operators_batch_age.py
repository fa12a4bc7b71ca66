"""A micro-batch that never ends is noticed; many that end, or none, are not."""

from __future__ import annotations

from services.operators.batch_age import BatchAge, Verdict


def test_a_micro_batch_that_does_not_end_is_slow_and_then_stuck() -> None:
    age = BatchAge(10.0)
    verdicts = [age.look(7, is_active=True, now=float(now)) for now in range(12)]
    assert verdicts == [Verdict.WELL] * 6 + [Verdict.SLOW] * 5 + [Verdict.STUCK]
    assert age.look(8, is_active=True, now=12.0) is Verdict.WELL


def test_micro_batches_that_end_and_waiting_for_one_are_well() -> None:
    age = BatchAge(10.0)
    assert {age.look(number, is_active=True, now=6.0 * number) for number in range(20)} == {Verdict.WELL}
    assert {age.look(20, is_active=now % 4 > 0, now=200.0 + now) for now in range(100)} == {Verdict.WELL}
