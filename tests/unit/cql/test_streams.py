"""CREATE STREAM: what it declares, its defaults, and what is refused."""

from __future__ import annotations

import itertools

import pytest

from stairwise.cql import ast
from stairwise.cql.parser import parse_script
from stairwise.cql.resolve import resolve_stream
from stairwise.schema import Column, Stream, Type, Unit
from tests.unit.cql.market import expect_refusal


def declare(text: str, incarnation: int = 1) -> Stream:
    (statement,) = parse_script(text)
    assert isinstance(statement, ast.CreateStream)
    return resolve_stream(statement, incarnation)


def test_a_stream_with_everything() -> None:
    assert declare(
        """CREATE STREAM trades
             (ts TIMESTAMP, ticker STRING NOT NULL, price double, "ok?" Boolean, qty BIGINT)
           TIMESTAMP BY ts LATENESS 2 SECONDS IDLE AFTER 5s
           PARTITION BY ticker PARTITIONS 8 GRANULE 10 ms LIVE FUTURE 1 HOUR REJECT UNKNOWN FIELDS
           RETAIN 2 HOURS AT MOST 512 MB""",
        incarnation=3,
    ) == Stream(
        "trades",
        (
            Column("ts", Type.TIMESTAMP, nullable=False),
            Column("ticker", Type.STRING, nullable=False),
            Column("price", Type.DOUBLE),
            Column("ok?", Type.BOOLEAN),
            Column("qty", Type.BIGINT),
        ),
        timestamp_by="ts",
        lateness=2_000,
        idle_after=5_000,
        partition_by="ticker",
        partitions=8,
        granule=10,
        live=True,
        incarnation=3,
        future=3_600_000,
        reject_unknown=True,
        retain_time=7_200_000,
        retain_bytes=512_000_000,
    )


def test_a_stream_without_options_has_kafkas_time_and_is_live() -> None:
    stream = declare("CREATE STREAM s (a BIGINT)")
    assert stream == Stream(
        "s",
        (Column("a", Type.BIGINT),),
        timestamp_by=None,
        lateness=0,
        partitions=4,
        granule=1_000,
        live=True,
    )


def test_a_stream_with_its_own_time_is_not_live_and_its_time_is_never_null() -> None:
    stream = declare("CREATE STREAM s (at TIMESTAMP, until TIMESTAMP) TIMESTAMP BY at LATENESS 0s")
    assert not stream.live
    assert stream.future == 365 * 86_400_000
    assert stream.unit is None
    assert [c.nullable for c in stream.columns] == [False, True]


def test_the_unit_of_the_time_and_an_unlimited_future_can_be_said() -> None:
    stream = declare("CREATE STREAM s (at TIMESTAMP) TIMESTAMP BY at in seconds FUTURE UNLIMITED")
    assert (stream.unit, stream.future) == (Unit.SECONDS, None)
    stream = declare("CREATE STREAM s (at TIMESTAMP) FUTURE 2 DAYS TIMESTAMP BY at IN NANOSECONDS LATENESS 1s")
    assert (stream.unit, stream.future, stream.lateness) == (Unit.NANOSECONDS, 2 * 86_400_000, 1_000)


def test_options_stand_in_any_order() -> None:
    options = ["TIMESTAMP BY t", "LATENESS 1s", "IDLE AFTER 2s", "PARTITION BY a", "PARTITIONS 2", "LIVE"]
    declared = {
        declare(f"CREATE STREAM s (t TIMESTAMP, a STRING) {' '.join(order)} GRANULE 5s")
        for order in itertools.permutations(options, len(options))
        if order[0] in ("LIVE", "PARTITIONS 2", "TIMESTAMP BY t")
    }
    assert len(declared) == 1


@pytest.mark.parametrize(
    ("said", "time", "size"),
    [
        ("RETAIN 10m", 600_000, None),
        ("RETAIN AT MOST 4 MiB", None, 4 << 20),
        ("retain 1.5 days at most 0.5gb", 129_600_000, 500_000_000),
        ("RETAIN 1 MILLISECOND AT MOST 4194304 BYTES", 1, 4 << 20),
        ("", None, None),
    ],
)
def test_a_stream_says_what_lookups_keep_of_it(said: str, time: int | None, size: int | None) -> None:
    stream = declare(f"CREATE STREAM s (at TIMESTAMP, most STRING) {said} TIMESTAMP BY at PARTITION BY most")
    assert (stream.retain_time, stream.retain_bytes) == (time, size)


COLUMNS = ", ".join(f"c{i} BIGINT" for i in range(1_000))

REFUSED = [
    # statement with the offending text marked, message, hint
    ("CREATE STREAM s (a BIGINT, «a» STRING)", "two columns are called 'a'", "another name"),
    ("CREATE STREAM s (a «BIGINTT»)", "no type 'BIGINTT'", "did you mean 'BIGINT'?"),
    ("CREATE STREAM s (a «INT»)", "no type 'INT'", "write BIGINT"),
    ("CREATE STREAM s (a «VARCHAR»)", "no type 'VARCHAR'", "write STRING"),
    ("CREATE STREAM s (a «HUGEINT»)", "no type 'HUGEINT'", "write BIGINT"),
    ("CREATE STREAM s («_time» TIMESTAMP)", "cannot be called '_time'", ""),
    ("CREATE STREAM s (a BIGINT) TIMESTAMP BY «b»", "no column 'b'", "known: a"),
    ("CREATE STREAM s (price BIGINT) PARTITION BY «prise»", "no column 'prise'", "did you mean 'price'?"),
    ("CREATE STREAM s (a BIGINT) «TIMESTAMP BY a»", "of type BIGINT", "a TIMESTAMP"),
    ("CREATE STREAM s (a BIGINT) LIVE «LIVE»", "LIVE is given twice", "leave one"),
    ("CREATE STREAM s (a BIGINT) LATENESS 1s «LATENESS 1s»", "given twice", "leave one"),
    ("CREATE STREAM s (a BIGINT) PARTITIONS «0»", "PARTITIONS cannot be 0", ""),
    ("CREATE STREAM s (a BIGINT) PARTITIONS «5000»", "PARTITIONS cannot be 5000", ""),
    ("CREATE STREAM s (a BIGINT) GRANULE «0s»", "GRANULE cannot be zero", ""),
    ("CREATE STREAM s (a BIGINT) IDLE AFTER «0s»", "IDLE cannot be zero", ""),
    ("CREATE STREAM s (a BIGINT) FUTURE «0s»", "FUTURE cannot be zero", ""),
    ("CREATE STREAM s (a BIGINT) REJECT UNKNOWN FIELDS «REJECT» UNKNOWN FIELDS", "REJECT is given twice", ""),
    ("CREATE STREAM s (a BIGINT) RETAIN «0s»", "RETAIN cannot be zero", ""),
    ("CREATE STREAM s (a BIGINT) RETAIN 1h «RETAIN AT MOST 8 MB»", "RETAIN is given twice", "leave one"),
    ("CREATE STREAM s (a BIGINT) RETAIN AT MOST «4 MB»", "4,000,000 bytes is too little for PARTITIONS 4", ""),
    ("CREATE STREAM s (a BIGINT) RETAIN AT MOST «0.1 BYTES»", "not a whole number of bytes", ""),
    ("CREATE STREAM s (a BIGINT) RETAIN AT MOST «2000000 GB»", "more than 1024 TiB", ""),
    ("CREATE STREAM s (a BIGINT) RETAIN 5 «ROWS»", "does not fit here", "say the unit"),
    ("CREATE STREAM s (a BIGINT) RETAIN AT MOST 5 «HOURS»", "does not fit here", "say the unit: BYTES"),
    ('CREATE STREAM «"a b"» (a BIGINT)', "cannot be called 'a b'", ""),
    ('CREATE STREAM «"a.b.c"» (a BIGINT)', "cannot be called 'a.b.c'", ""),
    (f"CREATE STREAM «{'s' * 101}» (a BIGINT)", "cannot be called", ""),
    (f"CREATE STREAM s ({COLUMNS}, «x» BIGINT)", "at most 1,000 columns", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "hint"), REFUSED)
def test_a_stream_that_makes_no_sense_is_refused(text: str, message: str, hint: str) -> None:
    expect_refusal(text, message, hint, resolve=declare)
