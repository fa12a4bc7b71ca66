"""Joined rows that come and go together are put together once, for all queries that group and aggregate alike."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stairwise.algebra.query import Query, Select
from stairwise.cql.script import Catalogue
from stairwise.join import operator as join_operator
from stairwise.join.expansion import JoinExpansion
from stairwise.join.operator import SharedJoin
from stairwise.join.pair_slices import granules_of, is_sliced
from stairwise.plan.signature import join_signature_of
from stairwise.reports.contract import Batch
from stairwise.schema import DUSK
from stairwise.state.store import MemoryStore
from stairwise.windows.spec import TimeWindow

STREAMS = "".join(f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, x BIGINT) TIMESTAMP BY ts;" for name in "ab")


def queries_of(*selects: str) -> list[Query]:
    catalogue = Catalogue()
    catalogue.execute(STREAMS + "".join(f"CREATE QUERY q{i} AS {select};" for i, select in enumerate(selects)))
    return list(catalogue.queries.values())


def test_slices_end_where_windows_have_edges() -> None:
    one = [TimeWindow(4_000, 2_000), TimeWindow(9_000, 3_000)]
    other = [TimeWindow(7_000, 1_000), TimeWindow(6_000, 3_000, lag=1_500)]
    assert granules_of([one]) == (2_000, 3_000)
    assert granules_of([one, other]) == (1_000, 1_500)
    assert granules_of([[TimeWindow(DUSK, 500), TimeWindow(10, 10, offset=4)]])[1] == 2


def test_what_is_calculated_is_not_put_together() -> None:
    grouped = "SELECT a.k, SUM({}) FROM a [RANGE 9s SLIDE 3s] JOIN b [RANGE 9s SLIDE 3s] ON a.k = b.k GROUP BY a.k"
    plain, calculated = queries_of(grouped.format("b.x"), grouped.format("a.x * b.x"))
    assert isinstance(plain.relation, Select)
    assert isinstance(calculated.relation, Select)
    assert is_sliced(plain.relation)
    assert not is_sliced(calculated.relation)


def test_queries_that_group_alike_take_the_same_partials(monkeypatch: pytest.MonkeyPatch) -> None:
    grouped = "SELECT a.k, SUM(b.x) FROM a [RANGE {}ms SLIDE 10ms] JOIN b [RANGE {}ms SLIDE 10ms] ON a.k = b.k"
    queries = queries_of(*(f"{grouped.format(r, 50 - r)} GROUP BY a.k EMIT CHANGES" for r in (10, 20, 30)))
    signature = join_signature_of(queries[0])
    assert signature is not None
    operator = SharedJoin(signature, queries, MemoryStore())
    rows = np.arange(400)
    for stream in "ab":
        columns = [pa.array(rows // 4), pa.array(rows % 2), pa.array(rows)]
        batch = pa.RecordBatch.from_arrays(columns, names=["ts", "k", "x"])
        operator.insert(Batch(stream, 0, batch, rows, 0, 99))
    found: list[int] = []
    really = join_operator.sliced

    def counting(*args: object) -> object:
        made = really(*args)  # type: ignore[arg-type]
        found.append(len(made.columns[0]))
        return made

    monkeypatch.setattr(join_operator, "sliced", counting)
    expansions = [JoinExpansion(query, operator.life(query.name)) for query in queries]
    (block,) = operator.advance(DUSK)
    for expansion in expansions:
        assert expansion.expand(block) is not None
    assert len(found) == 1
    assert found[0] <= 10 * 10 * 2, "a partial for each key and pair of slices"
