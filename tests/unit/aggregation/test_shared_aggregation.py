"""The shared operator over large batches, where slices are kept in registers, and over many queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stairwise.aggregation.operator import SharedAggregation
from stairwise.aggregation.stair_expansion import SharedExpansion
from stairwise.algebra.query import Query
from stairwise.cql.script import Catalogue
from stairwise.plan.parts import operator_for
from stairwise.plan.signature import signature_of
from stairwise.reports.contract import Batch, Joined, Left
from stairwise.reports.expansion import Expansion
from stairwise.reports.lines import line_dicts
from stairwise.schema import DUSK, Stream
from stairwise.state.store import MemoryStore

LIMIT = 2**63 - 1
ROWS = 3_000
LATENESS = 50
ALL = "COUNT(*), COUNT(x), SUM(x), AVG(x), MIN(x), MAX(x), SUM(y), MIN(y), MAX(y)"


def declared(selects: Sequence[str]) -> tuple[Stream, list[Query]]:
    catalogue = Catalogue()
    catalogue.execute(
        "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT, y DOUBLE)"
        f" TIMESTAMP BY ts LATENESS {LATENESS} MILLISECONDS;"
    )
    for i, select in enumerate(selects):
        catalogue.execute(f"CREATE QUERY q{i} AS {select};")
    return catalogue.streams["s"], list(catalogue.queries.values())


def batches(stream: Stream, keys: int, count: int, *, nulls: bool = True) -> list[Batch]:
    """Batches that cover 600 ms each, out of order inside the lateness bound."""
    chance = np.random.default_rng(keys)
    names = [f"k{i}" if i % 7 else f"a longer name for key {i}" for i in range(keys - 1)] + [None]
    found: list[Batch] = []
    for number in range(count):
        times = np.sort(chance.integers(0, 600, ROWS)) + 600 * number
        times -= chance.integers(0, LATENESS, ROWS) * (chance.random(ROWS) < 0.2)
        times = np.maximum(times, 600 * number - LATENESS + 1)
        x = [int(v) for v in chance.choice([LIMIT, -LIMIT - 1, 0, 1, -1, 7], ROWS)]
        y = chance.choice(
            [1e300, -1e300, 1e-300, np.nan, np.inf, 0.1, -0.0], ROWS, p=[0.2, 0.2, 0.2, 0.01, 0.01, 0.3, 0.08]
        )
        gone = chance.random(ROWS) < (0.1 if nulls else 0)
        columns = [
            pa.array(times),
            pa.array([names[i] for i in chance.integers(0, keys, ROWS)], pa.string()),
            pa.array([None if g else v for v, g in zip(x, gone, strict=True)], pa.int64()),
            pa.array(y, mask=gone[::-1]),
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=stream.arrow_schema)
        sequence = np.arange(number * ROWS, (number + 1) * ROWS)
        found.append(Batch("s", 0, rows, sequence, int(times.min()), int(times.max())))
    return found


def alone(query: Query, given: Sequence[Batch]) -> list[dict[str, Any]]:
    operator, expansion = operator_for(query, MemoryStore()), Expansion(query)
    lines: list[dict[str, Any]] = []
    for batch in given:
        operator.insert(batch)
        for block in operator.advance(batch.highest - LATENESS - 1):
            lines += line_dicts(query.name, expansion.expand_block(block))
    for block in operator.advance(DUSK):
        lines += line_dicts(query.name, expansion.expand_block(block))
    return lines


@pytest.mark.parametrize("keys", [1, 40, 2_000])
@pytest.mark.parametrize("grouping", ["GROUP BY k", ""])
def test_large_batches_in_registers_give_the_same_bits(keys: int, grouping: str) -> None:
    shown = "k, " if grouping else ""
    windows = [
        "RANGE 900 MILLISECONDS SLIDE 300 MILLISECONDS",
        "RANGE 1 SECOND SLIDE 400 MILLISECONDS",
        "TUMBLE 2 SECONDS",
    ]
    stream, queries = declared([f"SELECT {shown}{ALL} FROM s [{window}] {grouping}" for window in windows])
    given = batches(stream, keys, 6)
    signature = signature_of(queries[0])
    assert signature is not None
    store = MemoryStore()
    operator = SharedAggregation(signature, queries, store)
    expansions = [SharedExpansion(query, operator.life(query.name)) for query in queries]
    lines: list[list[dict[str, Any]]] = [[] for _ in queries]
    for number, batch in enumerate([*given, None]):
        if batch is not None:
            operator.insert(batch)
        for stair in operator.advance(DUSK if batch is None else batch.highest - LATENESS - 1):
            for expansion, mine in zip(expansions, lines, strict=True):
                emitted = expansion.expand(stair)
                if emitted is not None:
                    mine += line_dicts(expansion.query.name, emitted)
        if number == 3:
            operator.flush()
            operator = SharedAggregation(signature, queries, store)
    for query, mine in zip(queries, lines, strict=True):
        assert repr(mine) == repr(alone(query, given))  # NaN is not equal to itself


def test_a_thousand_queries_that_come_and_go_change_nothing_and_leave_nothing() -> None:
    selects = ["SELECT k, SUM(x) AS total FROM s [RANGE 1 SECOND SLIDE 300 MILLISECONDS] GROUP BY k"]
    selects += [
        f"SELECT k, {('MAX(y)', 'COUNT(*)', 'MEDIAN(x)')[i % 3]} FROM s"
        f" [RANGE {400 + i * 7} MILLISECONDS SLIDE {100 + i % 250} MILLISECONDS] GROUP BY k"
        for i in range(1_000)
    ]
    stream, (steady, *passing) = declared(selects)
    given = batches(stream, 5, 4, nulls=False)
    signature = signature_of(steady)
    assert signature is not None
    operator = SharedAggregation(signature, [steady], MemoryStore())
    beside = SharedAggregation(signature, [steady], MemoryStore())
    expansion = SharedExpansion(steady, operator.life(steady.name))
    lines: list[dict[str, Any]] = []
    for number, batch in enumerate([*given, None]):
        if number == 1:
            for query in passing:
                operator.plan(Joined(query, given[0].highest - LATENESS - 1))
        if number == 2:
            for query in passing:
                operator.plan(Left(query.name, given[1].highest - LATENESS - 1))
        if batch is None:
            assert operator.nbytes == beside.nbytes
        else:
            operator.insert(batch)
            beside.insert(batch)
        watermark = DUSK if batch is None else batch.highest - LATENESS - 1
        list(beside.advance(watermark))
        for stair in operator.advance(watermark):
            emitted = expansion.expand(stair)
            if emitted is not None:
                lines += line_dicts(steady.name, emitted)
    assert lines == alone(steady, given)
    assert operator.queries == [steady]


def test_a_query_on_known_slices_sees_what_is_retained() -> None:
    stream, (wide, narrow) = declared(
        [
            "SELECT k, SUM(x) FROM s [RANGE 6 SECONDS SLIDE 300 MILLISECONDS] GROUP BY k",
            "SELECT k, SUM(x) FROM s [RANGE 900 MILLISECONDS SLIDE 600 MILLISECONDS] GROUP BY k",
        ]
    )
    given = batches(stream, 5, 5)
    signature = signature_of(wide)
    assert signature is not None
    operator = SharedAggregation(signature, [wide], MemoryStore())
    for batch in given[:3]:
        operator.insert(batch)
        list(operator.advance(batch.highest - LATENESS - 1))
    joined_at = given[2].highest - LATENESS - 1
    operator.plan(Joined(narrow, joined_at))
    assert operator.life(narrow.name).horizon < joined_at - 900
    expansion = SharedExpansion(narrow, operator.life(narrow.name))
    lines: list[dict[str, Any]] = []
    for batch in [*given[3:], None]:
        if batch is not None:
            operator.insert(batch)
        for stair in operator.advance(DUSK if batch is None else batch.highest - LATENESS - 1):
            emitted = expansion.expand(stair)
            if emitted is not None:
                lines += line_dicts(narrow.name, emitted)
    assert lines == [line for line in alone(narrow, given) if line["time"] > joined_at]
    assert lines


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_new_cuts_hold_above_the_highest_watermark_and_lateness_whatever_has_come(seen: int) -> None:
    stream, (coarse, fine) = declared(
        [
            "SELECT k, SUM(x) FROM s [TUMBLE 1 SECOND] GROUP BY k",
            "SELECT k, SUM(x) FROM s [RANGE 350 MILLISECONDS SLIDE 70 MILLISECONDS] GROUP BY k",
        ]
    )
    given = batches(stream, 5, 5)
    signature = signature_of(coarse)
    assert signature is not None
    operator = SharedAggregation(signature, [coarse], MemoryStore())
    for batch in given[:seen]:
        operator.insert(batch)
        list(operator.advance(batch.highest - LATENESS - 1))
    highest = given[1].highest - LATENESS - 1  # perhaps of another partition, whose rows go to another shard
    horizon = highest + LATENESS + 1
    by_itself, own = operator_for(fine, MemoryStore()), Expansion(fine)
    for one in (operator, by_itself):
        one.plan(Joined(fine, highest, horizon))
        for batch in given[2:]:
            one.insert(batch)
    assert operator.life(fine.name).horizon == horizon
    expansion = SharedExpansion(fine, operator.life(fine.name))
    lines: list[dict[str, Any]] = []
    for stair in operator.advance(DUSK):
        emitted = expansion.expand(stair)
        if emitted is not None:
            lines += line_dicts(fine.name, emitted)
    expected = [e for block in by_itself.advance(DUSK) for e in line_dicts(fine.name, own.expand_block(block))]
    assert lines == expected
    assert lines


def test_a_plan_change_that_is_told_too_late_is_refused() -> None:
    stream, (first, second) = declared(
        ["SELECT SUM(x) FROM s [TUMBLE 1 SECOND]", "SELECT SUM(x) FROM s [TUMBLE 70 MILLISECONDS]"]
    )
    signature = signature_of(first)
    assert signature is not None
    operator = SharedAggregation(signature, [first], MemoryStore())
    for batch in batches(stream, 5, 2):
        operator.insert(batch)
    with pytest.raises(ValueError, match="rows up to"):
        operator.plan(Joined(second, 400))


@pytest.mark.parametrize("rows_of_a_key", [1, 4])
def test_groups_that_have_vanished_leave_nothing_behind(rows_of_a_key: int) -> None:
    stream, (query,) = declared(["SELECT k, SUM(x) FROM s [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY k"])
    signature = signature_of(query)
    assert signature is not None
    given: list[Batch] = []
    for second in range(24):  # every second has keys of its own
        names = [f"{second}.{i // rows_of_a_key}" for i in range(ROWS)]
        columns = [np.arange(ROWS) * 1000 // ROWS + 1000 * second, names, np.arange(ROWS), np.zeros(ROWS)]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, stream.arrow_schema, strict=True)]
        rows = pa.RecordBatch.from_arrays(arrays, schema=stream.arrow_schema)
        sequence = np.arange(ROWS) + ROWS * second
        given.append(Batch("s", 0, rows, sequence, 1000 * second, 1000 * second + 999))
    operator = SharedAggregation(signature, [query], MemoryStore())
    expansion = SharedExpansion(query, operator.life(query.name))
    lines: list[dict[str, Any]] = []
    sizes: list[int] = []
    for batch in given:
        operator.insert(batch)
        for stair in operator.advance(batch.highest - LATENESS - 1):
            emitted = expansion.expand(stair)
            if emitted is not None:
                lines += line_dicts(query.name, emitted)
        sizes.append(operator.nbytes)
    assert lines == [line for line in alone(query, given) if line["time"] <= lines[-1]["time"]]
    assert max(sizes[15:]) <= 1.2 * max(sizes[5:15])
    assert len(operator._slices.keys) <= 8 * ROWS // rows_of_a_key
