"""Small queries and streams for the tests of operators."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from stairwise.algebra.query import Query
from stairwise.cql.script import Catalogue
from stairwise.reports.contract import Batch, Operator
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import Instant, Stream
from stairwise.streams.rows import RowDecoder

STREAMS = """
CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT, d DOUBLE) TIMESTAMP BY ts LATENESS 5 SECONDS;
CREATE STREAM t (ts TIMESTAMP, k STRING, x BIGINT, d DOUBLE) TIMESTAMP BY ts LATENESS 5 SECONDS;
"""
WINDOWED = (
    "SELECT k, x FROM s WHERE x > 0",
    "SELECT k, COUNT(*), SUM(x) FROM s [RANGE 10s SLIDE 3s] GROUP BY k",
    "SELECT COUNT(*), MAX(d) FROM s [RANGE 90s SLIDE 2s LAG 1s OFFSET 1s]",
    "SELECT k, MEDIAN(x) FROM s [RANGE 100s SLIDE 3s] GROUP BY k EMIT CHANGES",
    "SELECT DISTINCT k FROM s [RANGE 10s SLIDE 3s]",
    "SELECT k, AVG(d) FROM s [FROM 20000 SLIDE 4s] GROUP BY k",
    "SELECT SUM(x) FROM s [UNTIL 70000 SLIDE 4s]",
    "SELECT k, x FROM s [FROM 20000 SLIDE 4s RETAIN 7 ROWS]",
    "SELECT SUM(x), FIRST(k) FROM s [ROWS 7 SLIDE 3]",
    "SELECT k, x FROM s [ROWS 7 SLIDE 3s] WHERE x > 1",
    "SELECT k, x FROM s [PARTITION BY k ROWS 2 SLIDE 3s]",
    "SELECT k, SUM(x) FROM s [RANGES 28s, 6s, 2s SLIDES 4s, 3s, 1s] GROUP BY k",
    "SELECT SUM(x) FROM s [RANGES 28s, 6s, 2s SLIDES 4s, 3s, 1s WEIGHTED BY (1, 0.5, 0.1)]",
    "SELECT a.k, a.x, b.x AS y FROM s [RANGE 8s SLIDE 2s] a JOIN t [RANGE 5s SLIDE 3s] b ON a.k = b.k",
    "SELECT k, x FROM s [RANGE 8s SLIDE 2s] EXCEPT SELECT k, x FROM t [ROWS 9 SLIDE 2s]",
    "SELECT k FROM s [RANGE 8s SLIDE 2s] UNION ALL SELECT MAX(k) FROM t [FROM 0 SLIDE 3s]",
)
"""One SELECT, at least, for every kind of window and every algorithm."""

Message = dict[str, Any]


def query_of(select: str) -> Query:
    catalogue = Catalogue()
    catalogue.execute(STREAMS + select + ";")
    return catalogue.queries["q1"]


def batch(stream: Stream, messages: Sequence[Message], first: int = 0, partition: int = 0) -> Batch:
    """On-time rows of one partition, numbered from ``first``."""
    decoded = RowDecoder(stream).decode([json.dumps(message).encode() for message in messages])
    assert not decoded.bad
    times = decoded.rows.column(stream.time_column).to_numpy()
    numbers = np.arange(first, first + len(messages))
    return Batch(stream.name, partition, decoded.rows, numbers, int(times.min()), int(times.max()))


def shown(operator: Operator, expansion: Expansion, watermark: Instant) -> Iterator[Message]:
    """The lines that a watermark makes final."""
    for block in operator.advance(watermark):
        yield from line_dicts(expansion.query.name, expansion.expand_block(block))
