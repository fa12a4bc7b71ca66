"""The plans in figures: who shares a stair, how many groups and steps that makes."""

from __future__ import annotations

from services.windows.draft import draft, drafting, records_of
from services.windows.metrics import Census, census
from stairwise.cql.parser import parse_script
from stairwise.v1 import plans_pb2
from stairwise.wire.plans import PlanCatalogue, fold

STREAM = "CREATE STREAM trades (ts TIMESTAMP, ticker STRING, qty BIGINT) TIMESTAMP BY ts;"


def declared(script: str) -> PlanCatalogue:
    catalogue = PlanCatalogue()
    drafted = [draft(state, s) for state in [drafting(catalogue)] for s in parse_script(STREAM + script)]
    return fold(catalogue, plans_pb2.PlanVersion(number=1, changes=records_of(drafted)))


def test_without_queries_there_is_no_stair() -> None:
    assert census(declared("")) == Census(1, 1, 0, 0, 0, 0, 0, 0)


def test_queries_that_differ_in_the_window_alone_stand_on_one_stair() -> None:
    select = "AS SELECT ticker, SUM(qty) FROM trades"
    counted = census(
        declared(
            f"CREATE QUERY a {select} [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY ticker;"
            f"CREATE QUERY b {select} [RANGE 90 SECONDS SLIDE 10 SECONDS] GROUP BY ticker;"
            f"CREATE QUERY c {select} [RANGE 90 SECONDS SLIDE 30 SECONDS] GROUP BY ticker;"
            f"CREATE QUERY d {select} [RANGE 60 SECONDS SLIDE 10 SECONDS] WHERE qty > 1 GROUP BY ticker;"
            "CREATE QUERY e AS SELECT ticker FROM trades [RANGE 60 SECONDS]"
        )
    )
    assert (counted.queries, counted.alone, counted.stairs, counted.widest) == (5, 1, 2, 3)
    # c rides on b: of the same range, it reports at every third of its reports.
    assert (counted.groups, counted.steps) == (2, 3)


def test_distinct_queries_and_joins_share_as_well() -> None:
    counted = census(
        declared(
            "CREATE QUERY a AS SELECT DISTINCT ticker FROM trades [RANGE 60 SECONDS];"
            "CREATE QUERY b AS SELECT DISTINCT ticker FROM trades [RANGE 90 SECONDS SLIDE 10 SECONDS];"
            "CREATE QUERY c AS SELECT DISTINCT ticker, qty FROM trades [RANGE 90 SECONDS SLIDE 10 SECONDS];"
            "CREATE QUERY d AS SELECT x.qty FROM trades [NOW] x JOIN trades [RANGE 9s] y ON x.ticker = y.ticker;"
            "CREATE QUERY e AS SELECT x.qty FROM trades [RANGE 5s] x JOIN trades [NOW] y ON x.ticker = y.ticker;"
            "CREATE QUERY f AS SELECT COUNT(*) FROM trades [NOW] x JOIN trades [NOW] y ON x.ticker = y.ticker"
        )
    )
    assert (counted.queries, counted.alone, counted.stairs, counted.widest) == (6, 1, 3, 2)
    assert (counted.groups, counted.steps) == (2, 3)


def test_every_level_of_a_window_is_a_step() -> None:
    levels = "[RANGES 1 HOUR, 10 MINUTES, 1 MINUTE SLIDES 10 MINUTES, 1 MINUTE, 10 SECONDS]"
    counted = census(declared(f"CREATE QUERY a AS SELECT COUNT(*) FROM trades {levels}"))
    assert (counted.stairs, counted.groups, counted.steps) == (1, 1, 3)
