"""Times in any unit become milliseconds, and one that is likely in another unit than milliseconds asks for it."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.local.sources import FileSource
from stairwise.schema import EARLIEST, LATEST, Column, Stream, Type, Unit
from stairwise.streams.messages import ENOUGH_OBJECTS, MessageDecoder
from stairwise.streams.reason_codes import Code

STREAM = Stream("s", (Column("ts", Type.TIMESTAMP, nullable=False), Column("n", Type.BIGINT)), timestamp_by="ts")
NOW = 1_700_000_000
"""In seconds: 14 November 2023."""
SECONDS = (946_684_800, 4_102_444_800)
"""The years 2000 to 2099."""


def arrow(times: pa.Array) -> bytes:
    batch = pa.record_batch({"ts": times, "n": pa.array(range(len(times)), pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def decode(stream: Stream, values: list[bytes]) -> tuple[list[tuple[int, int]], list[tuple[Code, str]]]:
    """The rows as (time, n), and the reasons of the others."""
    blocks = list(MessageDecoder(stream).decode(values, None, lambda _: None))
    rows = [(row["ts"], row["n"]) for block in blocks for row in block.rows.to_pylist()]
    return rows, [(bad.reason.code, bad.reason.message) for block in blocks for bad in block.bad]


def objects(times: list[int]) -> list[bytes]:
    return [json.dumps({"ts": time, "n": n}).encode() for n, time in enumerate(times)]


def lines(times: list[int]) -> list[bytes]:
    return [b"\n".join(objects(times))]


def columns(times: list[int]) -> list[bytes]:
    """Enough to be read without an object for each row."""
    return objects([*times, *[times[-1]] * ENOUGH_OBJECTS])


def batch(times: list[int]) -> list[bytes]:
    return [arrow(pa.array(times, pa.int64()))]


FORMATS: list[Callable[[list[int]], list[bytes]]] = [objects, lines, columns, batch]


@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize(
    ("unit", "times", "expected"),
    [
        (Unit.SECONDS, [NOW, 0, -1], [NOW * 1000, 0, -1000]),
        (Unit.MILLISECONDS, [NOW, 5, -1], [NOW, 5, -1]),
        (Unit.MICROSECONDS, [NOW * 10**6 + 1_999, -1, -1000], [NOW * 1000 + 1, -1, -1]),
        (Unit.NANOSECONDS, [NOW * 10**9 + 1_999_999, -1, 2**63 - 1], [NOW * 1000 + 1, -1, 9_223_372_036_854]),
        (None, [NOW * 1000, 5, -1], [NOW * 1000, 5, -1]),
    ],
)
def test_a_named_unit_is_counted_in_every_format(
    unit: Unit | None, times: list[int], expected: list[int], written: Callable[[list[int]], list[bytes]]
) -> None:
    rows, bad = decode(replace(STREAM, unit=unit), written(times))
    assert not bad
    assert rows[: len(times)] == list(zip(expected, range(len(times)), strict=True))


@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize(
    ("time", "unit"), [(NOW, Unit.SECONDS), (NOW * 10**6, Unit.MICROSECONDS), (NOW * 10**9, Unit.NANOSECONDS)]
)
def test_a_time_that_is_likely_in_another_unit_asks_and_shows_the_clause(
    time: int, unit: Unit, written: Callable[[list[int]], list[bytes]]
) -> None:
    rows, bad = decode(STREAM, written([NOW * 1000, time, NOW * 1000 + 1]))
    assert [n for _, n in rows][:2] == [0, 2]
    ((code, reason),) = bad
    assert code is Code.UNIT
    assert f'which unit is it? Declare TIMESTAMP BY "ts" IN {unit.value}' in reason
    assert f"2023-11-14 in {unit.value.lower()}" in reason
    assert ("IN MILLISECONDS" in reason) == (unit is Unit.SECONDS), "beyond the year 9999 it cannot be that"


@pytest.mark.parametrize("unit", list(Unit))
def test_who_names_the_unit_is_not_asked(unit: Unit) -> None:
    _, bad = decode(replace(STREAM, unit=unit), objects([0, 1, *SECONDS, NOW]))
    assert not bad


def test_what_a_named_unit_cannot_be_is_a_bad_row_that_says_what_it_looks_like() -> None:
    stream = replace(STREAM, unit=Unit.SECONDS)
    _, bad = decode(stream, [*objects([NOW * 1000, 2**63 - 1, -(2**63)]), arrow(pa.array([2**62], pa.timestamp("s")))])
    assert [code for code, _ in bad] == [Code.OUT_OF_RANGE] * 4
    assert '2023-11-14 in milliseconds; the stream says TIMESTAMP BY "ts" IN SECONDS' in bad[0][1]
    assert f"{2**63 - 1} seconds lies outside the years 1 to 9999" in bad[1][1]
    (text,) = decode(stream, [b'{"ts":"x","n":1}'])[1]
    assert "expected integer seconds or an RFC 3339 string" in text[1]


def test_texts_and_arrow_timestamps_say_their_own_unit_and_are_never_asked() -> None:
    early = datetime.datetime(1970, 1, 20, tzinfo=datetime.UTC)
    values = [
        b'{"ts":"1970-01-20T00:00:00Z","n":0}',
        b'{"ts":5,"n":1}',
        *(arrow(pa.array([early], pa.timestamp(unit, "UTC"))) for unit in ("s", "ms", "us", "ns")),
    ]
    expected = 19 * 86_400_000
    for unit in (None, Unit.SECONDS, Unit.NANOSECONDS):
        rows, bad = decode(replace(STREAM, unit=unit), values)
        assert not bad
        assert [time for time, _ in rows[:1] + rows[2:]] == [expected] * 5


@given(
    st.lists(
        st.integers(-(2**63), 2**63 - 1)
        | st.integers(-10, 10).map(lambda d: SECONDS[0] + d)
        | st.integers(-10, 10).map(lambda d: SECONDS[1] + d)
        | st.integers(0, 5_000_000_000)
        | st.sampled_from([EARLIEST, EARLIEST - 1, LATEST, LATEST + 1]),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([None, *Unit]),
)
def test_each_row_is_judged_by_itself_and_by_the_definition(times: list[int], unit: Unit | None) -> None:
    stream = replace(STREAM, unit=unit)
    expected = []
    for n, number in enumerate(times):
        time = number * 1000 // (unit or Unit.MILLISECONDS).per_second
        is_asked = unit is None and SECONDS[0] <= number < SECONDS[1]
        if EARLIEST <= time <= LATEST and not is_asked:
            expected.append((time, n))
    for written in (objects, lines, batch):
        rows, bad = decode(stream, written(times))
        assert rows == expected
        assert len(bad) <= len(times) - len(expected)
    alone = [decode(stream, [value])[0] for value in objects(times)]
    assert [row for rows in alone for row in rows] == expected


def parquet(times: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"ts": times, "n": range(len(times))}), sink)
    return sink.getvalue()


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "mixed.csv", "rows.parquet"])
def test_files_count_the_unit_ask_for_it_and_refuse_sentinels(tmp_path: Path, name: str) -> None:
    sentinel = 253_402_214_400
    """9999-12-31, in seconds."""
    times = [NOW, sentinel, NOW + 1]
    content = {
        "rows.jsonl": b"\n".join(objects(times)),
        "rows.csv": b"ts,n\n" + b"".join(b"%d,%d\n" % (time, n) for n, time in enumerate(times)),
        "mixed.csv": b"ts,n\n%d,0\n9999-12-31T00:00:00Z,1\n%d,2\n" % (NOW, NOW + 1),
        "rows.parquet": parquet(pa.array(times)),
    }[name]
    path = tmp_path / name
    path.write_bytes(content)

    def read(stream: Stream) -> tuple[list[int], list[Code]]:
        chunks = list(FileSource(stream, str(path)).chunks())
        rows = np.concatenate([chunk.rows.column("ts").to_numpy() for chunk in chunks]).tolist()
        return rows, [bad.code for chunk in chunks for bad in chunk.rejected]

    year = 365 * 86_400_000
    now = NOW * 1000
    assert read(replace(STREAM, unit=Unit.SECONDS, future=year)) == ([now, now + 1000], [Code.FUTURE])
    assert read(replace(STREAM, unit=Unit.SECONDS)) == ([now, sentinel * 1000, now + 1000], [])
    assert read(STREAM)[1][0] is Code.UNIT


TWO = replace(STREAM, columns=(*STREAM.columns, Column("due", Type.TIMESTAMP)))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_instants_with_nanoseconds_are_floored_in_every_kind_of_file(tmp_path: Path, name: str) -> None:
    texts = ["2026-01-31T12:00:00.999999999Z", "2026-01-31T12:00:00.9990004Z", "1969-12-31T23:59:59.9999999Z"]
    counts = pa.array([1_769_860_800_999_999_999, 1_769_860_800_999_000_400, -100], pa.timestamp("ns"))
    sink = io.BytesIO()
    pq.write_table(pa.table({"ts": counts, "n": range(3), "due": counts}), sink)
    content = {
        "rows.jsonl": "".join(json.dumps({"ts": t, "n": n, "due": t}) + "\n" for n, t in enumerate(texts)).encode(),
        "rows.csv": ("ts,n,due\n" + "".join(f"{t},{n},{t}\n" for n, t in enumerate(texts))).encode(),
        "rows.parquet": sink.getvalue(),
    }[name]
    path = tmp_path / name
    path.write_bytes(content)
    (chunk,) = FileSource(TWO, str(path)).chunks()
    expected = [1_769_860_800_999, 1_769_860_800_999, -1]
    assert chunk.rows.column("ts").to_pylist() == expected
    assert chunk.rows.column("due").to_pylist() == expected


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_any_instant_of_a_row_lies_in_the_years_1_to_9999(tmp_path: Path, name: str) -> None:
    due = [LATEST, LATEST + 1, None, EARLIEST - 1, EARLIEST]
    times = [NOW * 1000 + n for n in range(len(due))]
    sink = io.BytesIO()
    pq.write_table(pa.table({"ts": times, "n": range(len(due)), "due": pa.array(due, pa.int64())}), sink)
    rows = list(enumerate(zip(times, due, strict=True)))
    content = {
        "rows.jsonl": "".join(json.dumps({"ts": t, "n": n, "due": d}) + "\n" for n, (t, d) in rows).encode(),
        "rows.csv": ("ts,n,due\n" + "".join(f"{t},{n},{'' if d is None else d}\n" for n, (t, d) in rows)).encode(),
        "rows.parquet": sink.getvalue(),
    }[name]
    path = tmp_path / name
    path.write_bytes(content)
    (chunk,) = FileSource(TWO, str(path)).chunks()
    assert chunk.rows.column("n").to_pylist() == [0, 2, 4]
    assert [(bad.code, bad.field) for bad in chunk.rejected] == [(Code.OUT_OF_RANGE, "due")] * 2
    assert "years 1 to 9999" in chunk.rejected[0].message
