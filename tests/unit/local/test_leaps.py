"""A leap of event time brings as many lines as it must, one piece at a time, and is told with the row that made it."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa

from stairwise.cql.script import Catalogue
from stairwise.local.engine import Engine, Leap
from stairwise.windows.schedule import Grid, count_due, first_of_each

EARLY, LATE = 1_700_000_000, 1_700_000_000_000


def engine(select: str, leaps: list[Leap]) -> Engine:
    catalogue = Catalogue()
    catalogue.execute("CREATE STREAM s (ts TIMESTAMP, k STRING) TIMESTAMP BY ts IN MILLISECONDS;")
    catalogue.execute(f"CREATE QUERY q AS {select};")
    made = Engine(list(catalogue.streams.values()), list(catalogue.queries.values()), tell=leaps.append)
    schema = catalogue.streams["s"].arrow_schema
    made.feed("s", pa.RecordBatch.from_arrays([pa.array([EARLY, LATE]), pa.array(["a", "b"])], schema=schema))
    made.seal("s")
    return made


def test_a_billion_lines_are_made_as_they_are_read_and_told_of_once() -> None:
    leaps: list[Leap] = []
    pieces = islice(engine("SELECT COUNT(*) AS n FROM s [TUMBLE 1 SECOND]", leaps).advance(), 3)
    lines = [line for piece in pieces for part in piece for line in part.lines.times.tolist()]
    assert lines[:3] == [EARLY, EARLY + 1_000, EARLY + 2_000]
    assert len(lines) < 1_000_000
    (leap,) = leaps
    assert (leap.stream, leap.row) == ("s", {"ts": LATE, "k": "b"})
    assert 1_690_000_000 < leap.run.lines < 1_700_000_000


def test_what_shows_nothing_in_between_is_not_told_of() -> None:
    leaps: list[Leap] = []
    counted = engine("SELECT k, COUNT(*) AS n FROM s [TUMBLE 1 SECOND] GROUP BY k", leaps)
    lines = [time for piece in counted.advance() for part in piece for time in part.lines.times.tolist()]
    assert lines == [EARLY, LATE]
    assert not leaps
    ((_, counts, _),) = counted.query_counts()
    assert counts.reports == (LATE - EARLY) // 1_000 + 1


def test_the_first_report_of_each_grid_is_found_in_a_stretch() -> None:
    grids = [Grid(10), Grid(25, 5), Grid(1_000)]
    assert first_of_each(grids, 0, 100).tolist() == [5, 10]
    assert count_due(grids, 0, 100) == 10 + 2  # 30 and 80 are in both


def test_a_leap_after_everything_was_reported_is_passed_over_as_well() -> None:
    """The rows before it have left their windows, and the reports stand at a report time, when the next row comes."""
    catalogue = Catalogue()
    catalogue.execute("CREATE STREAM s (ts TIMESTAMP, k STRING) TIMESTAMP BY ts IN MILLISECONDS;")
    catalogue.execute("CREATE STREAM t (ts TIMESTAMP, k STRING) TIMESTAMP BY ts IN MILLISECONDS;")
    catalogue.execute(
        "CREATE QUERY q AS SELECT k FROM s [TUMBLE 1 SECOND] UNION ALL SELECT k FROM t [TUMBLE 1 SECOND];"
    )
    made = Engine(list(catalogue.streams.values()), list(catalogue.queries.values()))
    seen: list[int] = []
    for times in ([1_000, 1_500], [400_001], [LATE]):
        for name, stream in catalogue.streams.items():
            rows = [pa.array(times), pa.array(["a"] * len(times))]
            made.feed(name, pa.RecordBatch.from_arrays(rows, schema=stream.arrow_schema))
        seen += [time for piece in made.advance() for part in piece for time in part.lines.times.tolist()]
    # An equal row takes the place of the first in each stream at 2,000: nothing changes by value.
    assert seen == [1_000, 1_000, 3_000, 3_000, 401_000, 401_000, 402_000, 402_000]
