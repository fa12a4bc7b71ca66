"""Every answer equals the oracle's at its watermark: any window, any key, in any number of partitions."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.cql.script import Catalogue
from stairwise.errors import StairwiseError, StatementError
from stairwise.lookups.answer import put_in_order
from stairwise.lookups.gather import held_at, look_up, look_up_each
from stairwise.lookups.homes import homes
from stairwise.lookups.last_rows import among_the_last, last_of_all
from stairwise.lookups.partition_history import PartitionHistory, Retain
from stairwise.lookups.partition_parts import OutOfReachError, aligned
from stairwise.lookups.statement import Lookup, read_lookup
from stairwise.reports.lines import _plain
from stairwise.schema import DAWN, Column, Stream, Type
from tests.oracle import OracleRow, answer

COLUMNS = (
    Column("ts", Type.TIMESTAMP, nullable=False),
    Column("k", Type.STRING),
    Column("n", Type.BIGINT),
    Column("x", Type.DOUBLE),
)
STREAM = Stream("s", COLUMNS, timestamp_by="ts", lateness=3)
AT_EVERY_INSTANT = "CREATE STREAM s (ts TIMESTAMP, k STRING, n BIGINT, x DOUBLE) TIMESTAMP BY ts GRANULE 1 MILLISECOND"
"""As the oracle reads it: a lookup may be asked for any instant, so its window has a state at each."""
FOREVER = Retain(2**60, 2**60)

SELECTS = [
    "k, COUNT(*), SUM(n), AVG(x), MAX(n), MIN(x)",
    "k, COUNT(n), SUM(x), VARIANCE(n)",
    "k, COUNT(*), COUNT(n), 2 * SUM(n), AVG(n)",
    "k, FIRST(n), LAST(x), MEDIAN(n), COUNT(DISTINCT n)",
]
WINDOWS = [
    "[RANGE 7 ms]",
    "[RANGE 40 ms]",
    "[RANGE 9 ms LAG 4 ms]",
    "[FROM 10]",
    "[FROM 5 UNTIL 20]",
    "[UNTIL 12]",
    "[ROWS 5]",
    "[ROWS 4 LAG 3]",
]
OF_EACH = ["[PARTITION BY k ROWS 2]", "[PARTITION BY k ROWS 3 LAG 1]"]
"""Told where the rows of a key are in one partition."""
WHERES = ["", "WHERE n > 0", "WHERE k = 'a'", "WHERE k IN ('a', 'c') AND x > 0"]
HAVINGS = [
    "",
    "HAVING COUNT(*) > 2",
    "HAVING SUM(n) >= 5 AND COUNT(*) < 9",
    "HAVING MAX(n) > 1",
    "HAVING MIN(x) < 0.5",
    "HAVING SUM(x) > 1.5",
    "HAVING 3 <= COUNT(n)",
]
KEYS = st.sampled_from(["a", "b", "c", None])
NUMBERS = st.none() | st.integers(0, 4) | st.sampled_from([-1, 2**40, 2**63 - 1])
DOUBLES = st.none() | st.sampled_from([0.1, 0.5, 2.0, 1e16, 0.0]) | st.sampled_from([-1.5, float("inf")])
GOOD = st.none() | st.integers(0, 4)


@dataclass(frozen=True)
class History:
    """The on-time rows of each partition in their batches."""

    batches: list[tuple[int, list[tuple[Any, ...]]]]
    partitions: int
    is_tidy: bool = False
    """Does PARTITION BY k say truly where rows are?"""


@st.composite
def histories(draw: st.DrawFn) -> History:
    partitions = draw(st.sampled_from([1, 3, 4, 16]))
    numbers = draw(st.sampled_from([NUMBERS, GOOD]))
    is_tidy = draw(st.booleans())
    at_home: dict[int, list[str | None]] = {}
    for key in ("a", "b", "c", None):
        at_home.setdefault(int(homes(pa.array([key], pa.string()), partitions)[0]), []).append(key)
    highest = [0] * partitions
    batches = []
    for _ in range(draw(st.integers(1, 6))):
        partition = draw(st.sampled_from(sorted(at_home)) if is_tidy else st.integers(0, partitions - 1))
        keys = st.sampled_from(at_home[partition]) if is_tidy else KEYS
        rows = []
        for _ in range(draw(st.integers(0, 8))):
            ts = highest[partition] + draw(st.integers(-3, 6))
            highest[partition] = max(highest[partition], ts)
            rows.append((ts, draw(keys), draw(numbers), draw(DOUBLES)))
        batches.append((partition, rows))
    return History(batches, partitions, is_tidy)


class Held:
    """Partitions as a worker holds them, and the same rows for the oracle."""

    def __init__(self, history: History, retain: Retain = FOREVER) -> None:
        self.stream = replace(STREAM, partitions=history.partitions, partition_by="k" if history.is_tidy else None)
        self.histories = {number: PartitionHistory(self.stream, number, retain) for number in range(history.partitions)}
        self.rows: list[OracleRow] = []
        self._highest = dict.fromkeys(self.histories, -(10**6))
        self._sequence = dict.fromkeys(self.histories, 0)

    def take(self, partition: int, rows: list[tuple[Any, ...]]) -> None:
        for row in rows:
            self.rows.append(OracleRow(row[0], partition, self._sequence[partition], row))
            self._sequence[partition] += 1
        self._highest[partition] = max([self._highest[partition], *(row[0] for row in rows)])
        columns = [pa.array([row[i] for row in rows], c.type.arrow) for i, c in enumerate(COLUMNS)]
        batch = pa.RecordBatch.from_arrays(columns, schema=STREAM.arrow_schema)
        self.histories[partition].take(batch, self._highest[partition] - STREAM.lateness - 1)

    def read(self, text: str) -> Lookup:
        return read_lookup(text, {"s": self.stream})

    @property
    def watermark(self) -> int:
        return min(history.watermark for history in self.histories.values())

    def expected(self, text: str, at: int) -> list[dict[str, Any]]:
        """The oracle's answer at an instant."""
        return answer(f"{AT_EVERY_INSTANT}; {text}", {"s": self.rows}, at)


def as_dicts(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    columns = [_plain(column) for column in rows.columns]
    return [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


@st.composite
def statements(draw: st.DrawFn, windows: list[str] = WINDOWS) -> str:
    select, group = draw(st.sampled_from(SELECTS)), " GROUP BY k"
    having = draw(st.sampled_from(HAVINGS))
    if draw(st.booleans()) and not having:
        select, group = select.removeprefix("k, "), ""
    window = draw(st.sampled_from(windows))
    return f"SELECT {select} FROM s {window} {draw(st.sampled_from(WHERES))}{group} {having}"


@given(history=histories(), data=st.data())
def test_an_answer_is_the_oracles_at_its_watermark(history: History, data: st.DataObject) -> None:
    held = Held(history)
    lookups = [held.read(text) for text in data.draw(st.lists(statements(), min_size=1, max_size=2))]
    for partition, rows in history.batches:
        held.take(partition, rows)
        at = held.watermark - data.draw(st.sampled_from([0, 0, 3]))
        expected = [held.expected(lookup.text, at) for lookup in lookups]
        for lookup, rows in zip(lookups * 2, expected * 2, strict=True):  # the second time from an index, if it can
            assert as_dicts(look_up(lookup, at, held.histories)) == rows, lookup.text


@given(history=histories(), data=st.data())
def test_the_last_rows_of_each_key_are_the_oracles(history: History, data: st.DataObject) -> None:
    keep = data.draw(st.sampled_from([20, 2**60]))
    held = Held(history, Retain(keep, 2**60))
    lookup = held.read(data.draw(statements(OF_EACH)))
    for partition, rows in history.batches:
        held.take(partition, rows)
        at = held.watermark
        if history.partitions > 1 and not history.is_tidy:
            with pytest.raises(StairwiseError, match="in several partitions"):
                look_up(lookup, at, held.histories)
            continue
        try:
            found = as_dicts(look_up(lookup, at, held.histories))
        except OutOfReachError:
            assert any(kept.horizon > DAWN for kept in held.histories.values())
            continue
        assert found == held.expected(lookup.text, at), lookup.text


def test_a_filter_counts_what_every_partition_has_also_when_one_makes_its_structure_halfway() -> None:
    """A key that is below the bound in each partition and above it over both."""
    rows = [[(time, "a", 1, 0.5) for time in range(start, start + 10)] for start in (0, 100)]
    held = Held(History([], 2))
    for partition in (0, 1):
        for batch in rows:
            held.take(partition, batch)
            held.take(partition, [(batch[-1][0] + 50, None, None, None)])
    at = held.watermark
    lookup = held.read("SELECT k, COUNT(*) FROM s [FROM 90] GROUP BY k HAVING COUNT(*) > 15")
    for _ in range(6):
        assert as_dicts(look_up(lookup, at, held.histories)) == held.expected(lookup.text, at) != []


@given(history=histories(), data=st.data())
def test_keys_that_are_asked_one_by_one_are_answered_in_their_order(history: History, data: st.DataObject) -> None:
    held = Held(history)
    best = data.draw(st.sampled_from([", MAX(n) AS m", ""]))
    window = data.draw(st.sampled_from(WINDOWS))
    where = data.draw(st.sampled_from(WHERES[:2]))
    text = f"SELECT k, COUNT(*) AS c, SUM(n) AS s{best} FROM s {window} {where} GROUP BY k"
    lookup = held.read(text)
    asked = data.draw(st.lists(st.sampled_from(["a", "b", "c", "z", None]), min_size=1, max_size=6))
    length = st.integers(1, 60) if "RANGE" in window else st.nothing()
    ranges = data.draw(st.none() | st.lists(length, min_size=len(asked), max_size=len(asked)))
    keys = pa.RecordBatch.from_arrays([pa.array(asked, pa.string())], names=["k0"])
    each = None if ranges is None else np.array(ranges)
    for partition, batch in history.batches:
        held.take(partition, batch)
        at = held.watermark
        found = as_dicts(look_up_each(lookup, at, held.histories, keys, each))
        apart = [
            aligned([one], lookup, keys, each).partials(lookup.needs) for one in held_at(lookup, at, held.histories)
        ]
        assert as_dicts(put_in_order(lookup, at, keys, apart)) == found
        for place, (key, row) in enumerate(zip(asked, found, strict=True)):
            other = text if ranges is None else re.sub(r"RANGE \d+", f"RANGE {ranges[place]}", text)
            rows = {r["k"]: r for r in held.expected(other, at)}
            nothing = {"k": key, "c": 0, "s": None} | ({"m": None} if best else {})
            assert row == rows.get(key, nothing), other


@given(history=histories(), count=st.integers(0, 60), data=st.data())
def test_partitions_agree_which_rows_are_the_last_of_all(history: History, count: int, data: st.DataObject) -> None:
    held = Held(history, Retain(data.draw(st.sampled_from([10, 2**60])), 2**60))
    for partition, batch in history.batches:
        held.take(partition, batch)
    at = held.watermark
    times = {number: kept.last_times(at, count) for number, kept in held.histories.items()}
    assert last_of_all(held.histories, at, count) == among_the_last(times, count)


@given(history=histories(), keep=st.integers(1, 40), text=statements())
def test_what_is_no_longer_kept_is_an_error_and_never_a_wrong_answer(history: History, keep: int, text: str) -> None:
    held = Held(history, Retain(keep, 2**60))
    lookup = held.read(text)
    for partition, rows in history.batches:
        held.take(partition, rows)
        at = held.watermark
        try:
            found = as_dicts(look_up(lookup, at, held.histories))
        except OutOfReachError:
            assert any(kept.horizon > DAWN for kept in held.histories.values())
            continue
        assert found == held.expected(lookup.text, at)


def test_memory_is_bounded_by_bytes_too() -> None:
    stream = replace(STREAM, partitions=1)
    kept = PartitionHistory(stream, 0, Retain(2**60, 200_000))
    lookup = read_lookup("SELECT k, SUM(n) FROM s [RANGE 50 ms] GROUP BY k", {"s": stream})
    for start in range(0, 200_000, 1000):
        times = np.arange(start, start + 1000)
        columns = [pa.array(times), pa.array(["k"] * 1000), pa.array(times), pa.array(times * 0.5)]
        kept.take(pa.RecordBatch.from_arrays(columns, schema=STREAM.arrow_schema), start + 999)
        assert kept.size_bytes <= 200_000 + 64_000
        assert as_dicts(look_up(lookup, start + 999, {0: kept})) == [
            {"k": "k", "SUM(n)": sum(range(start + 950, start + 1000))}
        ]
    assert kept.horizon > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT n FROM s [RANGE 5 ms]", "aggregates"),
        ("SELECT DISTINCT COUNT(*) FROM s [RANGE 5 ms]", "aggregates"),
        ("SELECT TOP(n, 3) FROM s [RANGE 5 ms]", "aggregates"),
        ("SELECT COUNT(*) FROM s", "needs a window"),
        ("SELECT COUNT(*) FROM s [TUMBLE 5 ms]", "windows of this kind"),
        ("SELECT COUNT(*) FROM s [RANGE 5 ms SLIDE 5 ms]", "no SLIDE"),
        ("SELECT COUNT(*) FROM s [ROWS 10 SLIDE 5]", "no SLIDE"),
        ("SELECT COUNT(*) FROM s [ROWS 10 SLIDE 5 ms]", "no SLIDE"),
        ("SELECT COUNT(*) FROM s [NOW]", "no NOW"),
        ("SELECT COUNT(*) FROM s [RANGE 5 ms] EMIT CHANGES", "no EMIT"),
        ("SELECT COUNT(*) FROM s [RANGE 5 ms], s [RANGE 5 ms] b", "one stream"),
        ("SELECT COUNT(*) FROM s [RANGE 5 ms] UNION ALL SELECT COUNT(*) FROM s [RANGE 9 ms]", "no UNION"),
        ("DROP STREAM s", "a lookup is a SELECT"),
        ("SELECT COUNT(*) FROM s [RANGE 5 ms]; SELECT COUNT(*) FROM s [RANGE 5 ms]", "2 statements"),
        ("SELECT COUNT(*) FROM t [RANGE 5 ms]", "no stream"),
    ],
)
def test_what_a_lookup_cannot_say_gets_a_clear_error(text: str, message: str) -> None:
    with pytest.raises(StairwiseError, match=message):
        read_lookup(text, {"s": STREAM})


def test_a_registered_query_has_no_lag_of_rows() -> None:
    with pytest.raises(StatementError, match="only a lookup has a LAG of rows"):
        Catalogue().execute(f"{AT_EVERY_INSTANT}; SELECT COUNT(*) FROM s [ROWS 10 LAG 5];")
