"""Every operator over every kind of window on either side: it says what the oracle says, or why it is not defined.

               RANGE   TUMBLE   ROWS   PARTITION BY   RANGES   FROM   none   table
    DISTINCT     =       =       =          =            =       !       !      !        = the oracle's lines
    join         =       =       =          =            !       =       !      =        ! an error with place and hint
    ...

Rows are random, but the same in every run. One in so many pairs of windows is looked at, others from one operator to
the next; ``make test-long`` looks at all of them. Every driver is looked at: the local engine, and shards that start
again from their stores on the way.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from stairwise.cql.script import Catalogue
from stairwise.errors import StatementError
from tests.oracle import run
from tests.shard_lines import place_in, shard_lines
from tests.unit.local.lines import engine_lines

STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts LATENESS 3ms GRANULE 2ms;\n"
    for name in "stu"
)
TABLES = "".join(
    f"CREATE TABLE {name} (ts TIMESTAMP, k STRING, x BIGINT) KEY (k) TIMESTAMP BY ts{meaning};\n"
    for name, meaning in (("r", ""), ("n", " NON RETROACTIVE"))
)
WINDOWS = {
    "range": "[RANGE 12ms SLIDE 4ms]",
    "lag and offset": "[RANGE 9ms SLIDE 3ms LAG 2ms OFFSET 1ms]",
    "default slide": "[RANGE 8ms]",
    "gaps": "[RANGE 2ms SLIDE 5ms]",
    "wider than the data": "[RANGE 1h SLIDE 7ms]",
    "tumble": "[TUMBLE 6ms]",
    "now": "[NOW]",
    "from": "[FROM 3 SLIDE 5ms]",
    "from until": "[FROM 3 UNTIL 20 SLIDE 4ms]",
    "retain": "[FROM 3 SLIDE 5ms RETAIN 3 ROWS]",
    "rows": "[ROWS 3]",
    "rows by rows": "[ROWS 4 SLIDE 2]",
    "rows by time": "[ROWS 3 SLIDE 4ms]",
    "partition": "[PARTITION BY k ROWS 2 SLIDE 4ms]",
    "partition by two": "[PARTITION BY x, k ROWS 1]",
    "levels": "[RANGES 12ms, 4ms SLIDES 4ms, 2ms]",
    "horizon": "[RANGES 12ms, 4ms SLIDES 4ms, 2ms CONTINUOUS HORIZON 8ms]",
    "none": "",
}
UNARY = {
    "rows": "SELECT k, x FROM s {0} WHERE x > -2",
    "distinct": "SELECT DISTINCT k FROM s {0} WHERE x < 2",
    "distinct of two": "SELECT DISTINCT x, k FROM s {0}",
    "bare groups": "SELECT k, x FROM s {0} GROUP BY k, x",
    "groups": "SELECT k, COUNT(*), SUM(x), FIRST(x), LAST(x) FROM s {0} GROUP BY k",
    "sums": "SELECT x, k, COUNT(*), SUM(x), AVG(x), VARIANCE(x) FROM s {0} WHERE x > -2 GROUP BY k, x",
    "global": "SELECT MIN(x), MAX(x), COUNT(DISTINCT k) FROM s {0} WHERE x <> 1",
    "having": "SELECT k, AVG(x) FROM s {0} GROUP BY k HAVING COUNT(*) > 1",
    "distinct of groups": "SELECT DISTINCT COUNT(*) FROM s {0} GROUP BY k",
    "frequent": "SELECT FREQUENT(k, 0.3) FROM s {0}",
    "approximately frequent": "SELECT APPROX_FREQUENT(k, 2) FROM s {0}",
    "top": "SELECT TOP(k, 2) FROM s {0}",
    "recurring": "SELECT RECURRING(k) FROM s {0}",
}
BINARY = {
    "join": "SELECT a.x, b.x AS y FROM s {0} a JOIN t {1} b ON a.k = b.k",
    "join with more": "SELECT a.k, b.x FROM s {0} a JOIN t {1} b ON a.k = b.k AND a.x < b.x WHERE a.x + b.x > -2",
    "band": "SELECT a.k, b.x FROM s {0} a, t {1} b WHERE CAST(a.ts AS DOUBLE) - CAST(b.ts AS DOUBLE) BETWEEN -2 AND 3",
    "theta": "SELECT a.k, b.x FROM s {0} a, t {1} b WHERE a.x < b.x",
    "self join": "SELECT a.x, b.x AS y FROM s {0} a JOIN s {1} b ON a.k = b.k",
    "three": "SELECT a.x, c.x AS y FROM s {0} a, t {1} b, u {0} c WHERE a.k = b.k AND b.k = c.k AND a.x <= c.x",
    "groups of a join": "SELECT a.k, COUNT(*), SUM(b.x), LAST(a.x) FROM s {0} a JOIN t {1} b ON a.k = b.k GROUP BY a.k",
    "sums of a join": "SELECT b.k, SUM(a.x), COUNT(*) FROM s {0} a, t {1} b WHERE a.k = b.k AND b.x > 0 GROUP BY b.k",
    "distinct of a join": "SELECT DISTINCT a.k FROM s {0} a JOIN t {1} b ON a.k = b.k",
    "relation": "SELECT a.x, r.x AS y FROM s {0} a, t {1} b, r WHERE a.k = r.k AND b.k = r.k",
    "fixed relation": "SELECT a.x, n.x AS y FROM s {0} a, t {1} b, n WHERE a.k = n.k AND b.k = n.k",
    "union": "SELECT k, x FROM s {0} UNION ALL SELECT k, x FROM t {1} WHERE x > 0",
    "except": "SELECT k FROM s {0} EXCEPT SELECT k FROM t {1}",
    "except of distinct": "SELECT DISTINCT k FROM s {0} EXCEPT SELECT k FROM t {1} WHERE x > 0",
    "union of groups": "SELECT k, SUM(x) AS y FROM s {0} GROUP BY k UNION ALL SELECT MAX(k), COUNT(*) FROM t {1}",
    "except of joins": "SELECT a.k FROM s {0} a JOIN t {1} b ON a.k = b.k EXCEPT SELECT DISTINCT k FROM u {1}",
    "union of groups of joins": "SELECT a.k, COUNT(*) AS y FROM s {0} a JOIN t {1} b ON a.k = b.k GROUP BY a.k"
    " UNION ALL SELECT k, MEDIAN(x) FROM u {0} GROUP BY k",
    "slopes": "SELECT REGR_INTERCEPT(x) AS y FROM s {0} EXCEPT SELECT REGR_SLOPE(x) FROM t {1}",
    "union of except": "SELECT k FROM s {0} EXCEPT SELECT k FROM t {1} UNION ALL SELECT k FROM u {0}",
}
EMITS = ("RSTREAM", "ISTREAM", "DSTREAM", "CHANGES")
EVERY = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 16


Lines = list[dict[str, Any]]
Messages = dict[str, list[dict[str, Any]]]


def on_the_local_engine(script: str, messages: Messages, chance: random.Random) -> tuple[Lines, Lines]:
    """Its lines, and those that the oracle has."""
    remake, sharing = chance.random() < 0.5, chance.random() < 0.7
    lines = engine_lines(script, messages, chance=chance, remake=remake, sharing=sharing)
    return lines, run(script, messages)


def on_shards(script: str, messages: Messages, chance: random.Random) -> tuple[Lines, Lines]:
    partitions, shards = chance.choice((1, 2, 3)), chance.choice((1, 3))
    lines = shard_lines(script, messages, chance=chance, partitions=partitions, shards=shards)
    return lines, run(script, messages, place=place_in(partitions))


Driver = Callable[[str, Messages, random.Random], tuple[Lines, Lines]]
DRIVERS: dict[str, Driver] = {"local": on_the_local_engine, "shards": on_shards}


def answered(select: str, seed: str, driver: str) -> bool:
    """Does a driver give the oracle's lines? False where the statement says what is wrong with it."""
    chance = random.Random(zlib.crc32(seed.encode()))
    script = f"{STREAMS}{TABLES}{select} EMIT {chance.choice(EMITS)};"
    error = refusal(script)
    if error is not None:
        assert (error.line, bool(error.column)) == (6, True), f"{select}: {error}"
        assert error.message, f"{select}: {error}"
        assert error.hint, f"{select}: {error}"
        return False
    messages = {name: drawn(chance, 14 if name in "stu" else 5, nulls=name in "stu") for name in "sturn"}
    lines, expected = DRIVERS[driver](script, messages, chance)
    assert lines == expected, script
    return True


def refusal(script: str) -> StatementError | None:
    try:
        Catalogue().execute(script)
    except StatementError as error:
        return error
    return None


def drawn(chance: random.Random, count: int, *, nulls: bool) -> list[dict[str, Any]]:
    """Rows of a stream, some of them out of order, on time or late."""
    keys = ["a", "b", "c", None] if nulls else ["a", "b", "c"]
    times = sorted(chance.randint(-4, 30) for _ in range(count))
    return [
        {"ts": time - chance.choice((0, 0, 0, 2, 6)), "k": chance.choice(keys), "x": chance.choice((None, -2, 0, 1, 2))}
        for time in times
    ]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("operator", UNARY)
def test_operators_over_one_window(operator: str, driver: str) -> None:
    for name, window in WINDOWS.items():
        answered(UNARY[operator].format(window), f"{operator} {name}", driver)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("operator", BINARY)
def test_operators_over_two_windows(operator: str, driver: str) -> None:
    pairs = [(first, second) for first in WINDOWS for second in WINDOWS]
    turn = zlib.crc32(operator.encode()) % EVERY
    found = [
        answered(BINARY[operator].format(WINDOWS[first], WINDOWS[second]), f"{operator} {first} {second}", driver)
        for first, second in pairs[turn::EVERY]
    ]
    assert any(found)
