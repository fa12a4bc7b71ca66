"""The incarnations of a stream name as the plans tell them."""

from __future__ import annotations

from stairwise.schema import Column, Stream, Type
from stairwise.v1.plans_pb2 import Change, PlanVersion
from stairwise.wire.incarnations import Incarnation
from stairwise.wire.plans import PlanLog
from stairwise.wire.schemas import stream_to_proto


def stream(incarnation: int) -> Stream:
    return Stream("s", (Column("a", Type.BIGINT),), partitions=2, incarnation=incarnation)


def created(incarnation: int, *starts: int) -> Change:
    return Change(create_stream=Change.CreateStream(stream=stream_to_proto(stream(incarnation)), starts=starts))


def log(*versions: list[Change]) -> PlanLog:
    plans = PlanLog()
    for number, changes in enumerate(versions, 1):
        plans.add(PlanVersion(number=number, changes=changes))
    return plans


SEALED = Change(seal_stream=Change.SealStream(name="s", ends=[5, 7]))
DROPPED = Change(drop_stream=Change.DropStream(name="s"))


def test_a_sealed_stream_that_is_reopened_is_two_lives_and_the_first_ends_before_the_second() -> None:
    first, second = log([created(1)], [SEALED], [], [created(2, 6, 8)]).incarnations("s")
    assert first == Incarnation(stream(1), created=1, sealed=2, ends=(5, 7), gone=4)
    assert second == Incarnation(stream(2), created=4, starts=(6, 8))
    assert [first.version(v) for v in (1, 2, 3, 4, 9)] == [1, 2, 3, 3, 3]
    assert [first.start(1), second.start(1)] == [0, 8]


def test_a_script_may_drop_and_create_in_one_version() -> None:
    first, second = log([created(1)], [DROPPED, created(2, 3, 3)]).incarnations("s")
    assert (first.gone, first.dropped) == (2, True)
    assert (second.created, second.gone) == (2, None)


def test_a_name_that_was_dropped_is_remembered() -> None:
    plans = log([created(1)], [DROPPED])
    assert plans.stream_names() == ["s"]
    assert [incarnation.dropped for incarnation in plans.incarnations("s")] == [True]
    assert plans.incarnations("other") == ()
