"""Streams and columns as messages: what plans, listings and the headers of subscriptions describe them by."""

from __future__ import annotations

from stairwise.schema import Column, Stream, Type, Unit
from stairwise.v1 import streams_pb2

_UNITS: dict[streams_pb2.TimeUnit.ValueType, Unit | None] = {
    streams_pb2.TIME_UNIT_UNSPECIFIED: None,
    streams_pb2.TIME_UNIT_SECONDS: Unit.SECONDS,
    streams_pb2.TIME_UNIT_MILLISECONDS: Unit.MILLISECONDS,
    streams_pb2.TIME_UNIT_MICROSECONDS: Unit.MICROSECONDS,
    streams_pb2.TIME_UNIT_NANOSECONDS: Unit.NANOSECONDS,
}


def stream_to_proto(stream: Stream, *, sealed: bool = False) -> streams_pb2.Stream:
    return streams_pb2.Stream(
        name=stream.name,
        columns=[column_to_proto(c) for c in stream.columns],
        timestamp_by=stream.timestamp_by or "",
        lateness_ms=stream.lateness,
        idle_after_ms=stream.idle_after,
        partition_by=stream.partition_by or "",
        partitions=stream.partitions,
        granule_ms=stream.granule,
        live=stream.live,
        incarnation=stream.incarnation,
        sealed=sealed,
        future_ms=stream.future,
        reject_unknown_fields=stream.reject_unknown,
        retain_ms=stream.retain_time,
        retain_bytes=stream.retain_bytes,
        keys=stream.keys,
        non_retroactive=not stream.retroactive,
        time_unit=next(value for value, unit in _UNITS.items() if unit is stream.unit),
    )


def stream_from_proto(message: streams_pb2.Stream) -> Stream:
    return Stream(
        name=message.name,
        columns=tuple(column_from_proto(c) for c in message.columns),
        timestamp_by=message.timestamp_by or None,
        lateness=message.lateness_ms,
        idle_after=message.idle_after_ms if message.HasField("idle_after_ms") else None,
        partition_by=message.partition_by or None,
        partitions=message.partitions,
        granule=message.granule_ms,
        live=message.live,
        incarnation=message.incarnation,
        future=message.future_ms if message.HasField("future_ms") else None,
        reject_unknown=message.reject_unknown_fields,
        retain_time=message.retain_ms if message.HasField("retain_ms") else None,
        retain_bytes=message.retain_bytes if message.HasField("retain_bytes") else None,
        keys=tuple(message.keys),
        retroactive=not message.non_retroactive,
        unit=_UNITS[message.time_unit],
    )


def column_to_proto(column: Column) -> streams_pb2.Column:
    kind = streams_pb2.Type.Value(f"TYPE_{column.type.value}")
    return streams_pb2.Column(name=column.name, type=kind, nullable=column.nullable)


def column_from_proto(message: streams_pb2.Column) -> Column:
    kind = Type(streams_pb2.Type.Name(message.type).removeprefix("TYPE_"))
    return Column(message.name, kind, message.nullable)
