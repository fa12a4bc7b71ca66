"""Update patterns: Table 1 of seed 002 operator by operator, the rules of seed 001, and the propositions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stairwise.plan import logical
from stairwise.plan.logical import logical_plan
from stairwise.plan.patterns import Pattern, pattern, window_pattern
from stairwise.plan.rewrite import rewrite
from stairwise.windows import spec
from tests.unit.cql.market import relation, window

MONOTONIC, WKS, WK, STR = Pattern

SLIDING, COUNT, TUMBLING, PARTITIONED = "[RANGE 5s SLIDE 1s]", "[ROWS 5]", "[TUMBLE 5s]", "[PARTITION BY ticker ROWS 5]"
RETAINED = "[FROM 0 RETAIN 5 ROWS]"

WINDOWS = [
    (SLIDING, WKS),
    ("[RANGE 5s LAG 1s]", WKS),
    (TUMBLING, WK),
    ("[NOW]", WK),
    ("[RANGE 1s SLIDE 5s]", WK),
    (COUNT, WKS),
    ("[ROWS 5 SLIDE 10s]", WKS),
    (PARTITIONED, WK),
    ("[FROM 0]", MONOTONIC),
    ("[UNTIL 9]", MONOTONIC),
    ("[FROM 0 UNTIL 9]", MONOTONIC),
    ("[RANGES 4s, 2s SLIDES 2s, 1s]", WKS),
    ("[RANGES 4s, 1s SLIDES 2s, 1s]", WK),
    ("[RANGES 4s, 1s SLIDES 2s, 1s CONTINUOUS HORIZON 3s]", WKS),
]


@pytest.mark.parametrize(("clause", "expected"), WINDOWS)
def test_the_pattern_of_a_window(clause: str, expected: Pattern) -> None:
    found = window(clause)
    assert found is not None
    assert window_pattern(found) is expected


SELECTION = "SELECT * FROM trades {w} WHERE odd"
PROJECTION = "SELECT qty + 1 AS x FROM trades {w}"
UNION = "SELECT ticker FROM trades {w} UNION ALL SELECT ticker FROM halted {w}"
DISTINCT = "SELECT DISTINCT ticker FROM trades {w}"
JOIN = "SELECT a.qty FROM trades {w} a, quotes {w} b WHERE a.ticker = b.ticker"
AGGREGATE = "SELECT ticker, COUNT(*) FROM trades {w} GROUP BY ticker"
DIFFERENCE = "SELECT ticker FROM trades {w} EXCEPT SELECT ticker FROM halted {w}"

TABLE_1 = [
    # operator, then over a sliding, tumbling, partitioned window
    (SELECTION, WKS, WK, WK),
    (PROJECTION, WKS, WK, WK),
    (UNION, WKS, WK, WK),
    (DISTINCT, WK, WK, WK),
    (JOIN, WK, WK, STR),
    (AGGREGATE, WK, WK, WK),
    (DIFFERENCE, STR, STR, STR),
]


@pytest.mark.parametrize(("text", "sliding", "tumbling", "partitioned"), TABLE_1)
def test_windowed_operators_have_the_patterns_of_table_1_but_for_joins_that_count(
    text: str, sliding: Pattern, tumbling: Pattern, partitioned: Pattern
) -> None:
    for clause, expected in [(SLIDING, sliding), (TUMBLING, tumbling), (PARTITIONED, partitioned)]:
        plan = logical_plan(relation(text.format(w=clause)))
        assert pattern(plan) is expected


def test_rewrites_do_not_make_patterns_stronger() -> None:
    for text, *_ in TABLE_1:
        for clause in (SLIDING, TUMBLING, PARTITIONED, COUNT):
            plan = logical_plan(relation(text.format(w=clause)))
            assert pattern(rewrite(plan).plan) <= pattern(plan)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT qty FROM trades WHERE odd", MONOTONIC),
        ("SELECT ticker FROM trades UNION ALL SELECT ticker FROM halted", MONOTONIC),
        # Aggregates replace what they said, over landmarks too.
        ("SELECT COUNT(*) FROM trades [FROM 0]", WK),
        ("SELECT COUNT(*) FROM trades [ROWS 5]", WK),
        # A landmark that retains the last n rows is a count window.
        (SELECTION.format(w=RETAINED), WKS),
        (DISTINCT.format(w=RETAINED), WK),
        # Proposition 8: difference, also over count windows and landmarks.
        (DIFFERENCE.format(w=COUNT), STR),
        (DIFFERENCE.format(w=RETAINED), STR),
        # Proposition 9: the stronger side rules.
        ("SELECT ticker FROM trades [RANGE 5s] UNION ALL SELECT ticker FROM halted [TUMBLE 5s]", WK),
        # Nobody can tell which row of a window that counts rows leaves when.
        ("SELECT a.qty FROM trades [FROM 0 RETAIN 5 ROWS] a, quotes [RANGE 5s] b", STR),
        (JOIN.format(w=COUNT), STR),
        (DIFFERENCE.format(w="[NOW]") + " UNION ALL SELECT word FROM words [NOW]", STR),
        # Rows that live unequally long do not leave in the order in which they came.
        ("SELECT ticker FROM trades [RANGE 5s] UNION ALL SELECT ticker FROM halted [RANGE 9s]", WK),
        ("SELECT ticker FROM trades [ROWS 5] UNION ALL SELECT ticker FROM halted [ROWS 5]", WK),
        ("SELECT ticker FROM trades [RANGE 5s] UNION ALL SELECT ticker FROM halted [RANGE 5s]", WKS),
        # HAVING and DISTINCT over groups keep the pattern of the groups.
        ("SELECT DISTINCT COUNT(*) FROM trades [NOW] GROUP BY ticker HAVING COUNT(*) > 1", WK),
    ],
)  # fmt: skip
def test_patterns_propagate_through_a_plan(text: str, expected: Pattern) -> None:
    assert pattern(logical_plan(relation(text))) is expected


def test_a_landmark_lets_rows_duplicates_and_joins_stay_monotonic() -> None:
    """Proposition 7, on plans that the language itself would ask to RETAIN rows."""
    for text in (SELECTION, PROJECTION, UNION, DISTINCT, JOIN):
        plan = logical_plan(relation(text.format(w=RETAINED)))
        assert pattern(_unbounded(plan)) is MONOTONIC


def _unbounded(plan: logical.Plan) -> logical.Plan:
    match plan:
        case logical.Window(window=spec.LandmarkWindow()):
            return replace(plan, window=replace(plan.window, retain=None))
        case logical.Join() | logical.Union() | logical.Except():
            return replace(plan, left=_unbounded(plan.left), right=_unbounded(plan.right))
        case logical.Scan():
            return plan
        case _:
            return replace(plan, input=_unbounded(plan.input))
