"""The join of what windows hold, cell by cell: inputs are matched by equalities, written or not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from stairwise.algebra.query import Select
from stairwise.cql.script import Catalogue
from stairwise.expressions.faults import Faults
from stairwise.recompute import cell_join
from stairwise.recompute.cell_join import Join

STREAMS = "".join(f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;" for name in "sun")


@pytest.mark.parametrize(
    "where",
    ["s.k = u.k AND u.k = n.k", "s.k = n.k AND u.k = n.k", "n.k = s.k AND n.k = u.k", "s.k = u.k AND s.k = n.k"],
)
def test_equalities_that_follow_from_others_are_keys(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are written, no more pairs are looked at than come out: nothing is joined with everything."""
    catalogue = Catalogue()
    catalogue.execute(STREAMS)
    catalogue.execute(f"CREATE QUERY q AS SELECT s.k FROM s [ROWS 9] s, u [ROWS 9] u, n [ROWS 9] n WHERE {where}")
    select = catalogue.queries["q"].relation
    assert isinstance(select, Select)
    looked_at: list[int] = []
    match = cell_join.match

    def counted(*args: object) -> tuple[np.ndarray, np.ndarray]:
        found = match(*args)  # type: ignore[arg-type]
        looked_at.append(len(found[0]))
        return found

    monkeypatch.setattr(cell_join, "match", counted)
    keys = np.arange(100)
    columns = [pa.array(column) for _ in range(3) for column in (keys, keys)]
    of, at = Join(select).pairs([np.zeros(100, np.int64)] * 3, columns, Faults())
    assert len(of) == 100
    assert all(rows.tolist() == at[0].tolist() for rows in at)
    assert looked_at == [100, 100]
