"""However a stair is made, by a walk, by a sweep or from the tree, its steps hold the same partials."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregates.contract import Rows
from stairwise.cql.query import Field, Select
from stairwise.cql.script import Catalogue
from stairwise.operators.slices import Slices, dense
from stairwise.sharing.partials import SharedPartials
from stairwise.sharing.slices import SliceStore
from stairwise.sharing.sweep import swept
from stairwise.sharing.walk import Found, combined, walked

AGGREGATES = "COUNT(*), COUNT(x), SUM(x), MIN(x), MAX(y), AVG(y), STDDEV(y), REGR_SLOPE(x), MAX(k)"

rows_drawn = st.lists(
    st.tuples(
        st.integers(1, 30),
        st.integers(0, 3),
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9)),
        st.one_of(st.none(), st.floats(), st.floats(-9, 9)),
    ),
    max_size=60,
)
steps_drawn = st.lists(st.tuples(st.integers(-2, 32), st.integers(0, 32)), min_size=1, max_size=12)


def store_of(rows: list[tuple[int, int, int | None, float | None]], keys: int) -> SliceStore:
    """Closed slices of one instant each."""
    catalogue = Catalogue()
    catalogue.execute("CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT, y DOUBLE) TIMESTAMP BY ts;")
    catalogue.execute(f"CREATE QUERY q AS SELECT {AGGREGATES} FROM s [TUMBLE 1 SECOND];")
    select = catalogue.queries["q"].relation
    assert isinstance(select, Select)
    partials = SharedPartials(select.aggregates)
    store = SliceStore([pa.int64()] if keys > 1 else [], partials)
    if not rows:
        return store
    time, key, x, y = zip(*rows, strict=True)
    at, number = np.array(time), np.array(key) % keys
    args = {"x": pa.array(x, pa.int64()), "y": pa.array(y, pa.float64()), "k": pa.array([str(v) for v in x])}
    columns = [args[("ts", "k", "x", "y")[arg.index]] for arg in partials.args if isinstance(arg, Field)]
    number = store.keys.numbers([pa.array(number)], len(at)) if keys > 1 else number
    codes, end, of = dense(at, number, len(store.keys))
    places = Rows(at, np.zeros(len(at), np.int32), np.arange(len(at)))
    store.append(Slices(end, of, partials.lift(columns, places, codes, len(end))))
    return store


def steps_of(found: Found) -> list[list[dict[str, str]]]:
    """What the steps hold, in a form that compares, NaN included."""
    columns = {"key": pa.array(found.key), **{str(i): column for i, column in enumerate(found.columns)}}
    rows = [{name: repr(value) for name, value in row.items()} for row in pa.table(columns).to_pylist()]
    return [rows[start:stop] for start, stop in zip(found.start.tolist(), found.stop.tolist(), strict=True)]


@given(rows_drawn, steps_drawn, st.sampled_from([1, 4]))
def test_walk_sweep_and_tree_find_the_same(
    rows: list[tuple[int, int, int | None, float | None]], steps: list[tuple[int, int]], keys: int
) -> None:
    store = store_of(rows, keys)
    rear, front = (np.array(bound) for bound in zip(*steps, strict=True))
    first, last = store.between(np.minimum(rear, front), front)
    assert steps_of(swept(store, first, last)) == steps_of(combined(store, first, last))
    one_front = np.full(len(last), last[0])
    assert steps_of(walked(store, first, int(last[0]))) == steps_of(combined(store, first, one_front))
