"""A stream that ingest cannot go on with is set aside with its reason, and tried again when its plans change."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from services.ingest.dispatch import Dispatch
from services.ingest.failures import Failures, StreamError, blaming
from services.ingest.lane import Lane
from services.ingest.partition_state import PartitionState
from stairwise.schema import Column, Stream, Type
from stairwise.v1 import plans_pb2
from stairwise.wire import topics
from stairwise.wire.batches import BatchHeaders
from stairwise.wire.incarnations import Incarnation
from stairwise.wire.plans import PlanLog
from stairwise.wire.schemas import stream_to_proto

UNREADABLE = Stream("bad", (Column("ts", Type.TIMESTAMP), Column("n", Type.HUGEINT)), timestamp_by="ts")


def version(number: int, **change: object) -> plans_pb2.PlanVersion:
    return plans_pb2.PlanVersion(number=number, changes=[plans_pb2.Change(**change)])  # type: ignore[arg-type]


def test_what_goes_wrong_is_the_streams_fault_unless_it_is_kafkas_or_memory_is_short() -> None:
    with pytest.raises(StreamError, match="ZeroDivisionError: division by zero") as caught, blaming("a"):
        1 / 0  # noqa: B018
    assert caught.value.stream == "a"
    for other in (KafkaException(KafkaError(KafkaError._FENCED)), MemoryError(), KeyboardInterrupt()):
        with pytest.raises(type(other)), blaming("a"):
            raise other


def test_a_failed_stream_is_told_and_tried_again_once_its_own_plans_have_changed() -> None:
    told: list[tuple[str, bool]] = []
    failures, plans = Failures(lambda *said: told.append(said)), PlanLog()
    for number, name in enumerate(("bad", "good"), 1):
        stream = plans_pb2.Change.CreateStream(stream=stream_to_proto(Stream(name, UNREADABLE.columns, "ts")))
        plans.add(version(number, create_stream=stream))
    failures.add(StreamError("bad", ValueError("no")), plans)
    assert dict(failures.reasons) == {"bad": "ValueError: no"}
    plans.add(version(3, drop_stream=plans_pb2.Change.DropStream(name="good", incarnation=1)))
    assert not failures.take_changed(plans)
    plans.add(version(4, drop_stream=plans_pb2.Change.DropStream(name="bad", incarnation=1)))
    assert failures.take_changed(plans) == {"bad"}
    assert not failures.reasons
    assert told == [("bad", False), ("bad", True)]


def test_a_stream_that_cannot_be_read_can_still_be_ended() -> None:
    lane = Lane(0, Incarnation(UNREADABLE, 1, gone=3, dropped=True), PartitionState(1), 0, 1_000)
    assert BatchHeaders.decode(dict(lane.mark(3).headers)).version == 3
    lane.take([Message(topic="in.bad", partition=0, offset=0, value=b"{}", timestamp=(2, 5))])
    with pytest.raises(KeyError):
        list(lane.write(3, 0))


def test_a_partition_that_cannot_be_fetched_is_its_streams_fault() -> None:
    broken = Message(topic="in.bad", partition=0, offset=0, error=KafkaError(KafkaError._BAD_COMPRESSION))
    with pytest.raises(StreamError) as caught:
        Dispatch({}).take([broken])
    assert caught.value.stream == "bad"
    with pytest.raises(KafkaException):
        Dispatch({}).take([Message(topic="in.a", partition=0, error=KafkaError(KafkaError._ALL_BROKERS_DOWN))])


@pytest.mark.parametrize(
    "topic", ["in.a-b_1", "late.a-b_1", "dlq.a-b_1", topics.sequenced(Stream("a-b_1", ())), "t.a-b_1.12"]
)
def test_the_stream_of_a_topic_is_known_by_its_name(topic: str) -> None:
    assert topics.stream_of(topic) == "a-b_1"
    assert topics.stream_of(topics.PLANS) == ""
