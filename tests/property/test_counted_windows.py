"""Queries over windows of the last rows share one operator and say what the oracle says."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stairwise.cql.script import Catalogue
from stairwise.sharing.build import shared_signature
from stairwise.sharing.counted import CountedSignature
from tests.oracle.script import run
from tests.unit.local.lines import engine_lines

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts LATENESS 3ms;"
SELECTS = (
    "SELECT DISTINCT k FROM s [{}]",
    "SELECT DISTINCT x, k FROM s [{}] WHERE x > -1",
    "SELECT DISTINCT ts FROM s [{}]",
    "SELECT k, x FROM s [{}] WHERE x > -1",
    "SELECT ts, x + 1 AS y FROM s [{}]",
    "SELECT k, COUNT(*), SUM(x), FIRST(x), LAST(ts) FROM s [{}] WHERE x < 2 GROUP BY k",
    "SELECT COUNT(*), MEDIAN(x), MAX(ts) FROM s [{}]",
    "SELECT TOP(k, 2) FROM s [{}]",
)
EMITS = ("ISTREAM", "DSTREAM", "CHANGES")
rows = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-3, 12),
            "k": st.sampled_from(["a", "b", "a value that is longer than two words", None]),
            "x": st.none() | st.integers(-2, 2),
        }
    ),
    max_size=30,
)
windows = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 7), st.sampled_from(EMITS)), min_size=1, max_size=4)


@given(rows, windows, st.sampled_from(SELECTS), st.booleans(), st.randoms(use_true_random=False))
def test_windows_of_rows_give_the_oracles_lines(
    rows: list[dict[str, Any]],
    windows: list[tuple[int, int, str]],
    select: str,
    remake: bool,
    chance: Any,
) -> None:
    queries = [f"{select.format(f'ROWS {n} SLIDE {m}')} EMIT {emit};" for n, m, emit in windows]
    script = STREAM + "".join(queries)
    messages = {"s": sorted(rows, key=lambda row: row["ts"] // 4)}
    catalogue = Catalogue()
    catalogue.execute(script)
    (signature,) = {shared_signature(query) for query in catalogue.queries.values()}
    assert isinstance(signature, CountedSignature)
    assert engine_lines(script, messages, chance=chance, remake=remake) == run(script, messages)
