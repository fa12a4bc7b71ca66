"""Joins of streams with tables say what the oracle says, whatever comes when."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import run
from tests.property.forgetting import forgetful
from tests.unit.local.lines import engine_lines

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts LATENESS 3ms GRANULE 10ms;"
TABLE = "CREATE TABLE c (k STRING, v BIGINT, since TIMESTAMP) KEY (k) TIMESTAMP BY since"
WINDOWS = ("RANGE 30ms SLIDE 10ms", "RANGE 7ms SLIDE 3ms LAG 2ms", "ROWS 3", "TUMBLE 20ms", "PARTITION BY k ROWS 1")
SELECTS = (
    "SELECT s.k, s.x, c.v FROM s [{0}] s JOIN c ON s.k = c.k",
    "SELECT c.v, COUNT(*), LAST(s.x) FROM s [{0}] s JOIN c ON s.k = c.k AND s.x < c.v GROUP BY c.v",
    "SELECT s.x + c.v AS y FROM s [{0}] s, c WHERE c.v > 0 EMIT RSTREAM",
    "SELECT s.x, t.x AS z, c.v FROM s [{0}] s, s [{1}] t, c WHERE s.k = c.k AND t.k = s.k",
)
times = st.integers(-20, 60)
keys = st.sampled_from(["a", "b", "c"])
values = st.none() | st.integers(-2, 2)
rows = st.lists(st.fixed_dictionaries({"ts": times, "k": keys | st.none(), "x": values}), max_size=20)
updates = st.lists(st.fixed_dictionaries({"k": keys, "v": values, "since": times}), max_size=12)


@given(
    rows,
    updates,
    st.sampled_from(SELECTS),
    st.sampled_from(WINDOWS),
    st.sampled_from(WINDOWS),
    st.sampled_from(["", " NON RETROACTIVE"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_joins_with_tables_give_the_oracles_lines(
    rows: list[dict[str, Any]],
    updates: list[dict[str, Any]],
    select: str,
    first: str,
    second: str,
    retroactive: str,
    remake: bool,
    chance: Any,
) -> None:
    script = f"{STREAM}{TABLE}{retroactive};{select.format(first, second)};"
    messages = {"s": sorted(rows, key=lambda row: row["ts"] // 4), "c": updates}
    with forgetful():
        lines = engine_lines(script, messages, chance=chance, remake=remake)
    assert lines == run(script, messages)
