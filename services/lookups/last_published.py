"""What was published last of each filter: where its reports go on after a start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from stairwise.platform import kafka
from stairwise.wire import topics
from stairwise.wire.message_pieces import MessagePiece
from stairwise.wire.reports import ReportHeaders

TIMEOUT = 10.0
FIRST_LOOK = 1_000
"""Messages at the end of a partition that are read first; then four times as many, and so on."""


def last_published(brokers: str, since: Mapping[str, int]) -> dict[str, ReportHeaders]:
    """The last report or mark of each signature, where there is one; none was written before its instant ``since``."""
    by_partition: dict[int, dict[str, int]] = defaultdict(dict)
    for signature, instant in since.items():
        by_partition[topics.results_partition(signature)][signature] = instant
    reader = kafka.consumer(brokers, "stairwise-lookups-published", enable_partition_eof=True)
    try:
        found: dict[str, ReportHeaders] = {}
        for partition, wanted in by_partition.items():
            found |= _search(reader, partition, wanted)
        return found
    finally:
        reader.close()


def _search(reader: Consumer, partition: int, wanted: Mapping[str, int]) -> dict[str, ReportHeaders]:
    """Reads backwards from the end, further each time."""
    _, end = kafka.bounds(reader, TopicPartition(topics.RESULTS, partition), TIMEOUT)
    asked = TopicPartition(topics.RESULTS, partition, min(wanted.values()))
    (floor,) = reader.offsets_for_times([asked], timeout=TIMEOUT)
    lowest = end if floor.offset < 0 else floor.offset
    found: dict[str, ReportHeaders] = {}
    start, distance = end, FIRST_LOOK
    while start > lowest and len(found) < len(wanted):
        start = max(lowest, end - distance)
        for message in kafka.read_to_end(reader, [TopicPartition(topics.RESULTS, partition, start)], TIMEOUT):
            headers = kafka.headers_of(message)
            if headers.get("signature", b"").decode() in wanted:
                said, piece = ReportHeaders.decode(headers), MessagePiece.decode(headers)
                if piece is None or piece.is_last:  # else it may have been given up in the middle
                    found[said.signature] = said
        distance *= 4
    return found
