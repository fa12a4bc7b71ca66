"""Every window clause: what it means, with its defaults, and what makes no sense."""

from __future__ import annotations

import pytest

from stairwise.algebra.spelling import spell_window
from stairwise.windows.spec import LandmarkWindow, Level, MultiWindow, PartitionedWindow, RowsWindow, TimeWindow, Window
from tests.unit.cql.market import expect_refusal, select, window

S, M, H, D = 1_000, 60_000, 3_600_000, 86_400_000

CLAUSES: list[tuple[str, Window]] = [
    ("[RANGE 60 SECONDS SLIDE 10 SECONDS]", TimeWindow(60 * S, 10 * S)),
    ("[RANGE 60 SECONDS]", TimeWindow(60 * S, S)),
    ("[range 1 minute slide 10 second]", TimeWindow(M, 10 * S)),
    ("[RANGE 10ms SLIDE 5 ms]", TimeWindow(10, 5)),
    ("[RANGE 250 MILLISECONDS SLIDE 1 MILLISECOND]", TimeWindow(250, 1)),
    ("[RANGE 2h SLIDE 5m]", TimeWindow(2 * H, 5 * M)),
    ("[RANGE 1 HOUR SLIDE 1 DAY]", TimeWindow(H, D)),
    ("[RANGE 2 DAYS SLIDE 3 HOURS]", TimeWindow(2 * D, 3 * H)),
    ("[RANGE 1d SLIDE 90s]", TimeWindow(D, 90 * S)),
    ("[RANGE 0.5 SECONDS SLIDE 0.25s]", TimeWindow(500, 250)),
    ("[RANGE 1m SLIDE 30s LAG 5s OFFSET 2s]", TimeWindow(M, 30 * S, lag=5 * S, offset=2 * S)),
    ("[RANGE 1m OFFSET 500ms LAG 1h]", TimeWindow(M, S, lag=H, offset=500)),
    ("[RANGE 1m LAG 0s]", TimeWindow(M, S)),
    ("[TUMBLE 60 SECONDS]", TimeWindow(M, M)),
    ("[TUMBLE 1m OFFSET 15s LAG 1s]", TimeWindow(M, M, lag=S, offset=15 * S)),
    ("[NOW]", TimeWindow(S, S)),
    ("[FROM 1700000000000]", LandmarkWindow(1_700_000_000_000, None, S)),
    ("[FROM '1970-01-01T00:01:00Z' SLIDE 1 MINUTE]", LandmarkWindow(M, None, M)),
    ("[FROM -5 UNTIL 5 SLIDE 1s]", LandmarkWindow(-5, 5, S)),
    ("[UNTIL TIMESTAMP '1970-01-01T01:00:00.5+01:00']", LandmarkWindow(None, 500, S)),
    ("[UNTIL 7 SLIDE 10ms]", LandmarkWindow(None, 7, 10)),
    ("[FROM 5 UNTIL 5]", LandmarkWindow(5, 5, S)),
    ("[ROWS 100]", RowsWindow(100, 1)),
    ("[ROWS 100 SLIDE 10]", RowsWindow(100, 10)),
    ("[ROWS 100 SLIDE 10 SECONDS]", RowsWindow(100, None, 10 * S)),
    ("[PARTITION BY ticker ROWS 5]", PartitionedWindow(("ticker",), 5, S)),
    ("[PARTITION BY ticker, odd ROWS 5 SLIDE 10 SECONDS]", PartitionedWindow(("ticker", "odd"), 5, 10 * S)),
    (
        "[RANGES 1 HOUR, 10 MINUTES, 1 MINUTE SLIDES 10 MINUTES, 1 MINUTE, 1 MINUTE]",
        MultiWindow((Level(M, M), Level(10 * M, M), Level(H, 10 * M))),
    ),
    ("[RANGES 4s SLIDES 2s]", MultiWindow((Level(4 * S, 2 * S),))),
    (
        "[RANGES 1h, 1m SLIDES 1m, 1s CONTINUOUS HORIZON 10m]",
        MultiWindow((Level(M, S), Level(H, M)), horizon=10 * M),
    ),
    (
        "[RANGES 1h, 1m SLIDES 1m, 1s WEIGHTED BY (1, 0.5)]",
        MultiWindow((Level(M, S), Level(H, M)), weights=(1.0, 0.5)),
    ),
]


@pytest.mark.parametrize(("clause", "meant"), CLAUSES)
def test_a_window_clause_means(clause: str, meant: Window) -> None:
    assert window(clause) == meant


@pytest.mark.parametrize(("clause", "meant"), CLAUSES)
def test_a_window_spelled_out_means_the_same(clause: str, meant: Window) -> None:
    assert window(spell_window(meant)) == meant


def test_the_default_slide_is_the_granule_of_its_stream() -> None:
    for clause, meant in [
        ("[RANGE 1s]", TimeWindow(1_000, 100)),
        ("[NOW]", TimeWindow(100, 100)),
        ("[FROM 0 RETAIN 9 ROWS]", LandmarkWindow(0, None, 100, retain=9)),
        ("[PARTITION BY ticker ROWS 2]", PartitionedWindow(("ticker",), 2, 100)),
        ("[RANGES 2s, 1s SLIDES 1s, 1s]", MultiWindow((Level(S, S), Level(2 * S, S)), granule=100)),
    ]:
        assert select(f"SELECT ticker FROM quotes {clause}").inputs[0].window == meant


REFUSED = [
    # clause with the offending text marked, message, hint
    ("[RANGE «0 SECONDS»]", "cannot be zero", ""),
    ("[TUMBLE «0s»]", "cannot be zero", ""),
    ("[RANGE 5s SLIDE «0s»]", "SLIDE cannot be zero", ""),
    ("[RANGE «1.5 ms»]", "not a whole number of milliseconds", ""),
    ("[RANGE «0.99999999999999999999999999999s»]", "not a whole number of milliseconds", ""),
    ("[RANGE «1000001 DAYS»]", "longer than a million days", ""),
    ("[RANGE «99999999999999999999999999999999 s»]", "longer than a million days", ""),
    ("[RANGE 5s SLIDE 1s «SLIDE 2s»]", "SLIDE is given twice", "leave one"),
    ("[RANGE 5s LAG 1s «LAG 1s»]", "LAG is given twice", "leave one"),
    ("[RANGE 10s SLIDE 4s «OFFSET 5s»]", "shorter than the slide of 4 SECONDS", "OFFSET 1 SECOND"),
    ("[TUMBLE 1m «OFFSET 1m»]", "shorter than the slide", "OFFSET 0 MILLISECONDS"),
    ("[FROM 10 UNTIL «9»]", "ends before it begins", "exchange"),
    ("[FROM «9223372036854775807»]", "out of reach", ""),
    ("[FROM «9223372036854775808»]", "does not fit into 64 bits", ""),
    ("[FROM «'yesterday'»]", "'yesterday' is no instant", ""),
    ("[FROM «'2026-02-30T00:00:00Z'»]", "is no instant", ""),
    ("[FROM «'2026-01-31T12:00:00'»]", "is no instant", ""),
    ("[FROM 5 SLIDE 1s «SLIDE 1s»]", "SLIDE is given twice", ""),
    ("«[FROM 5 RETAIN 5 ROWS]»", "RETAIN keeps rows", "leave RETAIN out"),
    ("[ROWS «0»]", "ROWS cannot be 0", ""),
    ("[ROWS «10000001»]", "ROWS cannot be 10000001", ""),
    ("[ROWS 5 SLIDE «0»]", "SLIDE cannot be 0", ""),
    ("[ROWS 5 SLIDE «0s»]", "SLIDE cannot be zero", ""),
    ("[PARTITION BY «tiker» ROWS 5]", "stream 'trades' has no column 'tiker'", "did you mean 'ticker'?"),
    ("[PARTITION BY odd, «odd» ROWS 5]", "names 'odd' twice", ""),
    ("[RANGES 2s, 1s SLIDES «1s»]", "2 RANGES need as many SLIDES, not 1", ""),
    ("[RANGES 1s, «2s» SLIDES 1s, 1s]", "does not lie inside", "widest to the narrowest"),
    ("[RANGES 2s, «2s» SLIDES 1s, 1s]", "does not lie inside", "widest to the narrowest"),
    ("[RANGES 4s, 2s SLIDES 1s, «2s»]", "follows a shorter one", "never grow"),
    ("[RANGES 5s, 1s SLIDES «2s», 1s]", "no multiple of its slide", "divides"),
    ("[RANGES 4s SLIDES 2s CONTINUOUS HORIZON «5s»]", "beyond the widest range", "widen"),
    ("[RANGES 4s SLIDES 2s CONTINUOUS HORIZON «1500ms»]", "multiple of the stream's granule", ""),
    ("[RANGES 4s, 2s SLIDES 2s, 1s WEIGHTED BY («1»)]", "2 levels need as many weights", "narrowest"),
    ("[RANGES 4s SLIDES 2s WEIGHTED BY («-1»)]", "negative", ""),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "message", "hint"), REFUSED)
def test_a_window_that_makes_no_sense_is_refused(clause: str, message: str, hint: str) -> None:
    expect_refusal(f"SELECT COUNT(*) AS n\n FROM trades {clause}", message, hint)
