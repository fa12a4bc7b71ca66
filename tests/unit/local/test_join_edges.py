"""Joins at their edges: nothing matches, everything does, NULL keys, windows wider than the data."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import run
from tests.unit.local.lines import engine_lines

STREAMS = "".join(f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, x BIGINT) TIMESTAMP BY ts;" for name in "ab")
KEYS = {
    "no row matches": lambda stream, i: i if stream == "a" else -i - 1,
    "all rows match": lambda stream, i: 7,
    "one long chain among short ones": lambda stream, i: 7 if i % 2 else i,
    "no row has a key": lambda stream, i: None,
    "some rows have no key": lambda stream, i: None if i % 3 == 0 else i % 5,
}


def messages(case: str) -> dict[str, list[dict[str, Any]]]:
    return {s: [{"ts": 100 * i, "k": KEYS[case](s, i), "x": i} for i in range(40)] for s in "ab"}


@pytest.mark.parametrize("case", KEYS)
@pytest.mark.parametrize(
    "window",
    ["RANGE 1 SECOND SLIDE 500ms", "RANGE 1000 DAYS SLIDE 1 SECOND", "TUMBLE 2 SECONDS", "RANGE 1000000 DAYS"],
)
def test_joins_at_their_edges_give_the_oracles_lines(case: str, window: str) -> None:
    script = (
        f"{STREAMS} SELECT a.k, a.x, b.x AS y FROM a [{window}] JOIN b [{window}] ON a.k = b.k;"
        f"SELECT COUNT(*) FROM a [{window}] a JOIN a [{window}] b ON a.k = b.k AND a.x < b.x;"
        f"SELECT x FROM a [{window}] EXCEPT SELECT k AS x FROM b [{window}];"
        f"SELECT DISTINCT k FROM a [{window}];"
    )
    assert engine_lines(script, messages(case)) == run(script, messages(case))
