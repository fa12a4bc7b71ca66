"""Frequent items by sub-windows say what the oracle says, and never more of an item than there is."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import run
from tests.unit.local.lines import engine_lines

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts LATENESS 3ms;"
WINDOWS = ("RANGE 30ms SLIDE 10ms", "RANGE 6ms SLIDE 3ms LAG 2ms", "TUMBLE 20ms", "RANGE 20ms SLIDE 5ms OFFSET 1ms")
rows = st.lists(
    st.fixed_dictionaries(
        {"ts": st.integers(-20, 60), "k": st.sampled_from(["a", "b", None]), "x": st.none() | st.integers(0, 4)}
    ),
    max_size=40,
)


@given(
    rows,
    st.sampled_from(WINDOWS),
    st.integers(1, 3),
    st.sampled_from(["", "k"]),
    st.sampled_from(["RSTREAM", "CHANGES"]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_frequent_items_by_sub_windows_are_the_oracles(
    rows: list[dict[str, Any]], window: str, most: int, key: str, emit: str, remake: bool, chance: Any
) -> None:
    keys, grouping = (f"{key}, ", f"GROUP BY {key}") if key else ("", "")
    script = f"{STREAM}SELECT {keys}APPROX_FREQUENT(x, {most}) FROM s [{window}] {grouping} EMIT {emit};"
    messages = {"s": sorted(rows, key=lambda row: row["ts"] // 3)}
    lines = engine_lines(script, messages, chance=chance, remake=remake, sharing=True)
    assert lines == run(script, messages)
    total = Counter(row["x"] for row in rows)
    assert all(line["row"]["count"] <= total[line["row"]["item"]] for line in lines)
