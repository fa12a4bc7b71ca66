"""A row whose time leaps by decades stops nobody: neither its own queries nor those over other streams."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import System

pytestmark = pytest.mark.jvm

EARLY, LATE = 1_700_000_000, 1_700_000_000_000
"""A second of 2023 in seconds, which in milliseconds is a day of 1970, and the same in milliseconds."""


def test_a_leap_of_56_years_leaves_every_query_its_lines(system: System) -> None:
    system.sql(
        "CREATE STREAM leap (ts TIMESTAMP, k STRING, v BIGINT) TIMESTAMP BY ts IN MILLISECONDS PARTITIONS 1;"
        "CREATE QUERY leap_groups AS SELECT k, COUNT(*) AS n FROM leap [TUMBLE 1 SECOND] GROUP BY k;"
        "CREATE QUERY leap_all AS SELECT COUNT(*) AS n FROM leap [TUMBLE 1 SECOND];"
        "CREATE QUERY leap_changes AS SELECT k, v FROM leap [RANGE 60 SECONDS SLIDE 1 SECOND] EMIT CHANGES;"
        "CREATE QUERY leap_hours AS SELECT DISTINCT k FROM leap [TUMBLE 1 HOUR] EMIT CHANGES;"
        "CREATE QUERY leap_landmark AS SELECT COUNT(*) AS n FROM leap [FROM 0 SLIDE 1 SECOND] EMIT CHANGES;"
        "CREATE QUERY leap_pairs AS SELECT x.k, y.v FROM leap [RANGE 60 SECONDS] x JOIN leap [TUMBLE 10 SECONDS] y"
        " ON x.k = y.k;"
        "CREATE STREAM beside_leap (ts TIMESTAMP, k STRING) TIMESTAMP BY ts PARTITIONS 1;"
        "CREATE QUERY beside_leap_counts AS SELECT k, COUNT(*) AS n FROM beside_leap [TUMBLE 1 SECOND] GROUP BY k"
    )
    system.publish("leap", [{"ts": EARLY, "k": "a", "v": 1}, {"ts": LATE, "k": "a", "v": 2}])
    system.publish("beside_leap", [{"ts": LATE + second * 1_000, "k": "b"} for second in range(3)], "--seal")
    assert [line["time"] - LATE for line in system.lines("beside_leap_counts")] == [0, 1_000, 2_000]

    def lines(query: str, *options: str) -> list[tuple[int, int, dict[str, object]]]:
        return [(line["time"], line["diff"], line["row"]) for line in system.lines(query, *options)]

    assert lines("leap_all", "--limit", "3") == [(EARLY + i * 1_000, 1, {"n": int(not i)}) for i in range(3)]
    system.sql("DROP QUERY leap_all")  # while one and a half billion of its lines are unread
    system.publish("leap", [], "--seal")
    assert lines("leap_groups") == [(time, 1, {"k": "a", "n": 1}) for time in (EARLY, LATE)]
    gone = [(EARLY, 1, 1), (EARLY + 60_000, -1, 1), (LATE, 1, 2)]
    assert lines("leap_changes") == [(time, diff, {"k": "a", "v": v}) for time, diff, v in gone]
    hour = 3_600_000
    early, late = EARLY // hour * hour + hour, LATE // hour * hour + hour
    assert lines("leap_hours") == [(t, diff, {"k": "a"}) for t, diff in [(early, 1), (early + hour, -1), (late, 1)]]
    assert lines("leap_landmark") == [
        (EARLY, 1, {"n": 1}),
        (LATE, -1, {"n": 1}),
        (LATE, 1, {"n": 2}),
    ]
    assert lines("leap_pairs") == [
        (EARLY, 1, {"k": "a", "v": 1}),
        (EARLY + 10_000, -1, {"k": "a", "v": 1}),
        (LATE, 1, {"k": "a", "v": 2}),
    ]
