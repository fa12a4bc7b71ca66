"""A shared operator made anew from its store says what one that was never torn down says."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from stairwise.aggregation.operator import SharedAggregation
from stairwise.aggregation.stair_expansion import SharedExpansion
from stairwise.cql.script import Catalogue
from stairwise.plan.signature import signature_of
from stairwise.reports.contract import Batch, Left
from stairwise.state.store import MemoryStore
from tests.oracle import run
from tests.unit.local.lines import engine_lines

SCRIPT = """
CREATE STREAM s (ts TIMESTAMP, k STRING) TIMESTAMP BY ts LATENESS 10 SECONDS;
SELECT k, COUNT(*) AS n FROM s [RANGE 6 SECONDS SLIDE 1 SECOND] GROUP BY ts, k;
"""
TIMES = [*range(1000, 8000, 1000), 7000, -2001, *[8000] * 4, -1001, *range(9000, 15000, 1000)]


@pytest.mark.parametrize("seed", range(20))
def test_a_slice_that_closed_after_its_page_was_written_counts_once(seed: int) -> None:
    messages = {"s": [{"ts": ts, "k": "a"} for ts in TIMES]}
    lines = engine_lines(SCRIPT, messages, chance=random.Random(seed), remake=True)
    assert lines == run(SCRIPT, messages)


def test_pages_from_before_a_query_left_are_read_beside_those_from_after() -> None:
    """MAX(x) came first and stays for another query: made anew, the operator keeps SUM(x) before it."""
    catalogue = Catalogue()
    catalogue.execute(
        "CREATE STREAM s (ts TIMESTAMP, x BIGINT) TIMESTAMP BY ts;"
        "CREATE QUERY a AS SELECT MAX(x) FROM s [RANGE 100 SECONDS SLIDE 1 SECOND];"
        "CREATE QUERY b AS SELECT SUM(x) FROM s [RANGE 100 SECONDS SLIDE 1 SECOND];"
        "CREATE QUERY c AS SELECT MAX(x) FROM s [RANGE 50 SECONDS SLIDE 1 SECOND];"
    )
    queries, store = list(catalogue.queries.values()), MemoryStore()
    signature = signature_of(queries[0])
    assert signature is not None
    operator = SharedAggregation(signature, queries, store)
    for second in range(30):
        times = np.array([second * 1000 + 500])
        rows = pa.RecordBatch.from_arrays(
            [pa.array(times).cast(catalogue.streams["s"].arrow_schema.field("ts").type), pa.array([second])],
            schema=catalogue.streams["s"].arrow_schema,
        )
        operator.insert(Batch("s", 0, rows, np.array([second]), int(times[0]), int(times[0])))
        list(operator.advance(int(times[0]) - 1))
        if second == 10:
            operator.plan(Left("a", int(times[0]) - 1))
        operator.flush()
        operator = SharedAggregation(signature, operator.queries, store)
    expansion = SharedExpansion(catalogue.queries["b"], operator.life("b"))
    (stair,) = operator.advance(30_000)
    emitted = expansion.expand(stair)
    assert emitted is not None
    assert emitted.rows.column(0).to_pylist() == [sum(range(30))]
