"""A stream that is spelled back to CQL declares the same stream."""

from __future__ import annotations

import pytest

from stairwise.algebra.spelling import spell_stream
from stairwise.cql.script import Catalogue


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE STREAM a (x BIGINT)",
        "CREATE STREAM a (ts TIMESTAMP, x DOUBLE NOT NULL) TIMESTAMP BY ts",
        'CREATE STREAM "a-b" (ts TIMESTAMP, "odd ""name""" STRING, "select" BOOLEAN) TIMESTAMP BY ts '
        'LATENESS 1500 MILLISECONDS IDLE AFTER 5 SECONDS PARTITION BY "odd ""name""" PARTITIONS 7 '
        "GRANULE 2 MINUTES LIVE FUTURE 3 HOURS REJECT UNKNOWN FIELDS",
        "CREATE STREAM a (x BIGINT) RETAIN 90 SECONDS AT MOST 5 MiB",
        "CREATE STREAM a (x BIGINT) RETAIN AT MOST 7.5MB PARTITIONS 7",
        "CREATE STREAM a (x BIGINT) LATENESS 1 DAY FUTURE 1 MILLISECOND",
        'CREATE STREAM a ("a ""t""\\" TIMESTAMP) TIMESTAMP BY "a ""t""\\" IN SECONDS FUTURE UNLIMITED',
        "CREATE TABLE a (k STRING, t TIMESTAMP) KEY (k) TIMESTAMP BY t IN MICROSECONDS",
        "CREATE TABLE a (x BIGINT, y STRING) KEY (x)",
        'CREATE TABLE a (x BIGINT, "of" TIMESTAMP, y STRING) KEY (y, x) TIMESTAMP BY "of" NON RETROACTIVE PARTITIONS 2'
        " REJECT UNKNOWN FIELDS",
    ],
)
def test_a_spelled_stream_is_the_stream(statement: str) -> None:
    first, again = Catalogue(), Catalogue()
    first.execute(statement)
    (stream,) = first.streams.values()
    again.execute(spell_stream(stream))
    assert again.streams == first.streams
