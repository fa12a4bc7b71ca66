"""Columns, streams and queries of any name that the registry takes go through the whole system, in every format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stairwise.schema import quoted
from tests.e2e.conftest import System, wait_for

pytestmark = pytest.mark.jvm

START = 1_700_000_000_000
TS, KEY, VALUE = 'the "time"\\', "k\n\t\x01'--", "é😀 /*"
"""The time, the column by which rows are spread and looked up, and one with a value."""
STREAMS = ["odd-1_", "plans", "results"]


FORMATS = ["json", "ndjson", "arrow"]


def rows(format_: str) -> list[dict[str, Any]]:
    first = START + 10_000 * FORMATS.index(format_)
    return [{TS: first + 1_000 * i, KEY: f'{format_} "{i % 2}"', VALUE: i} for i in range(4)]


@pytest.mark.parametrize("stream", STREAMS)
def test_what_comes_out_is_called_what_went_in_is_called(system: System, stream: str) -> None:
    ts, key, value, name = map(quoted, (TS, KEY, VALUE, stream))
    system.sql(
        f"CREATE STREAM {name} ({ts} TIMESTAMP, {key} STRING, {value} BIGINT)"
        f" TIMESTAMP BY {ts} PARTITION BY {key} PARTITIONS 1;"
        f"CREATE QUERY {name} AS SELECT {key}, SUM({value}) AS {value} FROM {name} [TUMBLE 1 MINUTE] GROUP BY {key};"
        f'CREATE QUERY "{stream}-rows" AS SELECT {value}, {key} FROM {name} [ROWS 1] WHERE {value} = 3 EMIT ISTREAM'
    )
    for format_ in FORMATS[:-1]:
        system.publish(stream, rows(format_), "--format", format_)
    asked = (
        f"SELECT {key}, MAX({value}) AS {value} FROM {name} [RANGE 1 MINUTE] WHERE {key} = 'json \"1\"' GROUP BY {key}"
    )
    wait_for(lambda: '": 3' in system.run("lookup", asked).stdout, "the rows can be looked up")
    assert json.loads(system.ok("lookup", asked))["row"] == {KEY: 'json "1"', VALUE: 3}
    assert system.ok("explain", stream)
    wrong = {TS: START, KEY: 7, VALUE: 0}
    system.publish(stream, [*rows("arrow"), wrong], "--format", "arrow", "--seal", "--allow-rejects")
    answers = [line["row"] for line in system.lines(stream)]
    assert answers == [{KEY: f'{f} "{odd}"', VALUE: 2 + 2 * odd} for f in sorted(FORMATS) for odd in (0, 1)]
    last = [line["row"] for line in system.lines(f"{stream}-rows")]
    assert last == [{VALUE: 3, KEY: f'{f} "1"'} for f in FORMATS]
    (letter,) = map(json.loads, system.ok("dlq", "show", stream).splitlines())
    assert (letter["code"], letter["field"]) == ("WRONG_TYPE", KEY)
