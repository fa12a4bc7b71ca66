"""EXPLAIN of a query that runs: the plan that is executed, and what it costs."""

from __future__ import annotations

import re
from itertools import count

import pytest

from tests.e2e.conftest import System, wait_for
from tests.e2e.test_flow import declare, trade

pytestmark = pytest.mark.jvm


def test_explain_analyze_says_what_a_running_query_costs(system: System) -> None:
    declare(system, "dear", partitions=1)
    system.sql(
        "CREATE QUERY dear_n AS SELECT ticker, COUNT(*) AS n FROM dear [TUMBLE 10 SECONDS] GROUP BY ticker;"
        "CREATE QUERY dear_wide AS SELECT ticker, SUM(qty) AS v FROM dear [RANGE 1m SLIDE 10s] GROUP BY ticker"
    )
    seconds = count()

    def rows_in() -> int:
        system.publish("dear", [trade(next(seconds), "A", 1) for _ in range(25)])
        found = re.search(r"  rows in +([\d,]+)\n  rows out +([\d,]+) in", system.ok("explain", "dear_n", "--analyze"))
        return int(found[1].replace(",", "")) if found else 0

    wait_for(lambda: rows_in() >= 50, "what dear_n costs")
    said = system.ok("explain", "dear_n", "--analyze")
    assert re.search(r"Group agg0 = COUNT\(\*\) BY ticker +WK +slices and stair", said)
    assert re.search(r"measured: over \d+ seconds, by \d shards?, for all 2 queries of dear\.1:", said)
    assert re.search(r"  CPU +\d+\.\d\d s, ", said)
    assert re.search(r"  state +[\d.]+ [KM]?B\n  behind +0 s", said)
    assert "measured" not in system.ok("explain", "dear_n")


def test_explain_takes_one_statement(system: System) -> None:
    declare(system, "lone", partitions=1)
    system.sql("CREATE QUERY lone_n AS SELECT COUNT(*) AS n FROM lone [TUMBLE 10 SECONDS]")
    refused = system.run("explain", "SELECT COUNT(*) AS n FROM lone [NOW]; DROP QUERY lone_n")
    assert refused.returncode == 1
    assert "not 2 statements" in refused.stderr
    assert "lone_n" in system.ok("explain", "lone_n")
