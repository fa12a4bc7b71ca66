"""What a shard keeps of tables: enough for whoever joins, and no more than it must."""

from __future__ import annotations

import pyarrow as pa
import pytest

from services.operators import table_updates
from services.operators.parcel import Parcel
from services.operators.shard import Shard
from services.operators.stage1 import SequencedMessage, parcels_of
from services.operators.table_updates import TableUpdates
from stairwise.schema import DAWN, EARLIEST
from stairwise.state.store import MemoryStore
from stairwise.wire.batches import BatchHeaders, decode_rows, encode_rows
from stairwise.wire.reports import Mark
from tests.plans import plan_log

PLANS = plan_log(
    "CREATE STREAM s (ts TIMESTAMP, k STRING) TIMESTAMP BY ts PARTITIONS 1;CREATE TABLE t (k STRING, v BIGINT) KEY (k)",
    "CREATE QUERY q AS SELECT s.ts, t.v FROM s [TUMBLE 10ms] JOIN t ON s.k = t.k",
    "DROP TABLE t",
)
TABLE = PLANS.at(2).streams["t"]


def updated(offset: int, version: int, *rows: tuple[str, int]) -> Parcel:
    """A batch of the table, whose rows are numbered by tens."""
    columns = [pa.array(column) for column in zip(*((k, v, EARLIEST) for k, v in rows), strict=True)]
    value = encode_rows(pa.RecordBatch.from_arrays(columns, schema=TABLE.arrow_schema)) if rows else b""
    headers = BatchHeaders(version, 10 * offset, len(rows), DAWN, DAWN, EARLIEST, EARLIEST)
    ((_, parcel),) = parcels_of([SequencedMessage("t.t.1", 0, offset, value, headers)], PLANS, 1)
    return parcel


def kept(found: TableUpdates, before: int | None = None) -> list[tuple[int, str, int]]:
    rows = []
    for parcel in found.before("t.t.1/0", before):
        batch = parcel.batch(parcel.portions[0], TABLE)
        some = decode_rows(parcel.portions[0].rows, TABLE).to_pylist()
        rows += [(int(n), row["k"], row["v"]) for n, row in zip(batch.sequence, some, strict=True)]
    return rows


def test_the_last_update_of_each_key_stays_under_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_updates, "FEW", 3)
    store = MemoryStore()
    found = TableUpdates(store)
    found.add(updated(0, 1, ("a", 1), ("b", 2)), TABLE, may_compact=True)
    found.add(updated(1, 1, ("a", 3)), TABLE, may_compact=True)
    assert kept(found) == [(0, "a", 1), (1, "b", 2), (10, "a", 3)]
    found.add(updated(2, 1, ("c", 4), ("a", 5)), TABLE, may_compact=True)
    assert kept(found) == [(1, "b", 2), (20, "c", 4), (21, "a", 5)]
    assert kept(TableUpdates(store), before=2) == [(1, "b", 2)]
    found.forget("t.t.1/0")
    assert not list(store.scan(b""))


def test_what_stands_before_a_query_that_joins_is_not_given_up_for_what_comes_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_updates, "FEW", 0)
    store = MemoryStore()
    shard = Shard(0, 1, store)
    shard.take(updated(0, 1, ("a", 1)), PLANS)
    shard.take(updated(1, 2, ("a", 2)), PLANS)  # the stream has not come to the query's version yet
    shard.take(updated(2, 2, ("a", 3)), PLANS)
    assert kept(TableUpdates(store), before=1) == [(0, "a", 1)]
    shard.take(updated(3, 3), PLANS)
    assert kept(TableUpdates(store), before=1) == [(0, "a", 1)], "the table is gone, but not for the query"
    for offset, version in enumerate((1, 3)):
        message = SequencedMessage("s.s.1", 0, offset, b"", BatchHeaders(version, 0, 0, DAWN, DAWN))
        ((_, parcel),) = parcels_of([message], PLANS, 1)
        shard.take(parcel, PLANS)
    assert [out.headers.mark for out in shard.advance(PLANS)] == [Mark.LEFT]
    assert kept(TableUpdates(store)) == []
