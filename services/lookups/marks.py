"""Passing over the marks of an idle partition, of which only the last counts.

    offset     7      8     9    10   ...   90,310   90,311    90,312
               rows   mark  mark  mark  ...  mark     rows      mark
                                  └─ read so far      └─ the next to read

Row numbers never go back along a partition, so where the next row stands is found by halves: some twenty questions,
however long nothing came.
"""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from services.lookups.holdings import Key
from stairwise.platform import kafka
from stairwise.platform.batches import BatchHeaders

WORTH = 5_000
"""So many offsets are worth the questions: that is how much is read meanwhile."""
SURE = 256
"""After so many marks in a row more of them are expected."""
TIMEOUT = 5.0
FETCH_BYTES = 16 << 10


def next_rows(brokers: str, key: Key, start: int, target: int, sequence: int) -> int:
    """The offset up to which nothing but marks follows behind row number ``sequence``, at most that of the target."""
    reader = kafka.consumer(
        brokers, "stairwise-lookups-marks", enable_partition_eof=True, fetch_message_max_bytes=FETCH_BYTES
    )
    try:
        low, high = start, target
        while low < high:
            middle = (low + high) // 2
            found = _first(reader, key, middle)
            if found is None or _rows_upto(found) > sequence:
                high = middle
            else:
                low = int(found.offset()) + 1
        return low
    finally:
        reader.close()


def _rows_upto(message: Message) -> int:
    headers = BatchHeaders.decode(kafka.headers_of(message))
    return headers.sequence + headers.rows


def _first(reader: Consumer, key: Key, offset: int) -> Message | None:
    """The first committed batch at or behind an offset."""
    reader.assign([TopicPartition(*key, offset)])
    message = reader.poll(TIMEOUT)
    if message is None or (message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF):
        return None
    return kafka.checked(message)
