"""A flow that keeps its history keeps about what its windows hold, and no more, however long it runs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stairwise.cql.script import Catalogue
from stairwise.flow import kept_rows
from stairwise.flow.expansion import FlowExpansion
from stairwise.flow.operator import SharedFlow
from stairwise.plan.signature import flow_signature_of
from stairwise.reports.contract import Batch
from stairwise.state.store import MemoryStore

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT) TIMESTAMP BY ts;"
KEYS = 5
HELD = {
    "RANGE 40ms SLIDE 10ms": 40,
    "RANGE 20ms SLIDE 10ms LAG 15ms": 40,
    "ROWS 30 SLIDE 10ms": 30,
    "PARTITION BY k ROWS 6 SLIDE 10ms": 6 * KEYS,
}
"""How many rows each window holds, or will hold, where one row comes every millisecond."""


@pytest.mark.parametrize("window", HELD)
def test_a_new_expansion_shows_the_rows_that_the_window_holds(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_rows, "_MANY", 10)
    catalogue = Catalogue()
    catalogue.execute(f"{STREAM} CREATE QUERY q AS SELECT k, x FROM s [{window}] EMIT CHANGES;")
    query = catalogue.queries["q"]
    signature, store = flow_signature_of(query), MemoryStore()
    assert signature is not None
    operator = SharedFlow(signature, [query], store, keeps_history=True)
    standing: list[tuple[object, ...]] = []
    expansion = FlowExpansion(query, operator.life("q"))
    for time in range(500):
        rows = pa.RecordBatch.from_pylist(
            [{"ts": time, "k": f"k{time % KEYS}", "x": time}], schema=catalogue.streams["s"].arrow_schema
        )
        operator.insert(Batch("s", 0, rows, np.array([time]), time, time))
        for block in operator.advance(time - 1):
            for row, diff in _changes(expansion, block):
                standing.append(row) if diff > 0 else standing.remove(row)
        if time % 37 == 0:
            operator.flush()
            operator = SharedFlow(signature, [query], store, keeps_history=True)
            again = FlowExpansion(query, operator.life("q"))
            assert sorted(row for row, _ in _changes(again, operator.history("q"))) == sorted(standing)
            expansion = again
        (kept,) = operator.history("q").flows
        assert len(kept.places.time) <= 2 * (HELD[window] + 10) + 20


def _changes(expansion: FlowExpansion, block: object) -> list[tuple[tuple[object, ...], int]]:
    emitted = expansion.expand(block)  # type: ignore[arg-type]
    if emitted is None:
        return []
    return [(tuple(r.values()), d) for r, d in zip(emitted.rows.to_pylist(), emitted.diff.tolist(), strict=True)]
