"""However a stair is made, from running sums, by a walk, by a sweep or from the tree, its steps hold the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from stairwise.aggregates.contract import Rows
from stairwise.aggregation.found_partials import Found
from stairwise.aggregation.partials import Partials
from stairwise.aggregation.slice_store import SliceStore
from stairwise.aggregation.slices import Slices, dense
from stairwise.aggregation.sweep import swept
from stairwise.aggregation.walk import combined, walked
from stairwise.algebra.query import Select
from stairwise.cql.script import Catalogue
from stairwise.expressions.tree import Field

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
Row = tuple[int, int, int | None, float | None]
steps_drawn = st.lists(st.tuples(st.integers(-2, 32), st.integers(0, 32)), min_size=1, max_size=12)


def store_of(rows: list[Row], keys: int, aggregates: str = AGGREGATES) -> SliceStore:
    """Closed slices of one instant each."""
    catalogue = Catalogue()
    catalogue.execute("CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT, y DOUBLE) TIMESTAMP BY ts;")
    catalogue.execute(f"CREATE QUERY q AS SELECT {aggregates} FROM s [TUMBLE 1 SECOND];")
    select = catalogue.queries["q"].relation
    assert isinstance(select, Select)
    store = SliceStore([pa.int64()] if keys > 1 else [], Partials(select.aggregates))
    append(store, rows, keys)
    return store


def append(store: SliceStore, rows: list[Row], keys: int) -> None:
    """Rows behind all that are there."""
    if not rows:
        return
    partials = store.partials
    time, key, x, y = zip(*rows, strict=True)
    at, number = np.array(time), np.array(key) % keys
    args = {"x": pa.array(x, pa.int64()), "y": pa.array(y, pa.float64()), "k": pa.array([str(v) for v in x])}
    columns = [args[("ts", "k", "x", "y")[arg.index]] for arg in partials.args if isinstance(arg, Field)]
    number = store.keys.numbers([pa.array(number)], len(at)) if keys > 1 else number
    codes, end, of = dense(at, number, len(store.keys))
    places = Rows(at, np.zeros(len(at), np.int32), np.arange(len(at)))
    store.append(Slices(end, of, partials.lift(columns, places, codes, len(end))))


def steps_of(found: Found) -> list[list[dict[str, str]]]:
    """What the steps hold, in a form that compares, NaN included."""
    columns = {"key": pa.array(found.key), **{str(i): column for i, column in enumerate(found.columns)}}
    rows = [{name: repr(value) for name, value in row.items()} for row in pa.table(columns).to_pylist()]
    return [rows[start:stop] for start, stop in zip(found.start.tolist(), found.stop.tolist(), strict=True)]


@given(rows_drawn, steps_drawn, st.sampled_from([1, 4]))
def test_walk_sweep_and_tree_find_the_same(rows: list[Row], steps: list[tuple[int, int]], keys: int) -> None:
    store = store_of(rows, keys)
    rear, front = (np.array(bound) for bound in zip(*steps, strict=True))
    first, last = store.between(np.minimum(rear, front), front)
    assert steps_of(swept(store, first, last)) == steps_of(combined(store, first, last))
    one_front = np.full(len(last), last[0])
    assert steps_of(walked(store, first, int(last[0]))) == steps_of(combined(store, first, one_front))


@given(
    rows_drawn,
    st.lists(
        st.tuples(st.integers(0, 32), st.integers(0, 4), st.lists(st.integers(0, 32), min_size=1, max_size=6)),
        max_size=5,
    ),
    st.sampled_from(["SUM(x)", "SUM(x), AVG(x), COUNT(*)", "COUNT(x)"]),
    st.sampled_from([1, 4]),
)
def test_running_sums_follow_the_slices(
    rows: list[Row], asked: list[tuple[int, int, list[int]]], aggregates: str, keys: int
) -> None:
    store = store_of([], keys, aggregates)
    reached = 0
    for front, lag, ranges in sorted(asked):
        append(store, [row for row in rows if reached < row[0] <= front], keys)
        if keys > 1:
            store.keys.numbers([pa.array([100 + front])], 1)  # a key that has only rows in open slices
        reached = max(reached, front)
        rear = front - lag - np.sort(ranges)
        first, last = store.between(rear, np.full(len(rear), front - lag))
        found = store.running.between(first, int(last[0]), store)
        if found is not None:
            assert answers_of(store, found) == answers_of(store, combined(store, first, last))
        else:
            assert not len(store.keys) or any(x is not None and abs(x) > 9 for _, _, x, _ in rows)
        store.evict(int(rear[0]) - 8)


def answers_of(store: SliceStore, found: Found) -> list[list[dict[str, str]]]:
    answers = store.partials.lower(found.columns, np.zeros(1, np.int64))
    return steps_of(replace(found, columns=list(answers)))
