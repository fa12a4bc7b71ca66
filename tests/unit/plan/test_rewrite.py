"""Rewrites: each one keeps every answer where it is applied, and would change one where it is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stairwise.plan import logical
from stairwise.plan.logical import Plan, logical_plan
from stairwise.plan.rewrite import Rule, Step, rewrite
from tests.unit.cql.market import relation
from tests.unit.plan.plan_states import Data, answer


def steps(text: str) -> tuple[Step, ...]:
    return rewrite(logical_plan(relation(text))).steps


def outcome(text: str, rule: Rule) -> list[tuple[bool, str]]:
    return [(step.applied, step.subject) for step in steps(text) if step.rule is rule]


# ── legality: the same answers, whatever the data ──────────────────────────────────────────────────────

EQUIVALENT = [
    "SELECT qty FROM trades [RANGE 5ms] WHERE price > 2",
    "SELECT qty FROM trades [RANGE 5ms LAG 3ms] WHERE price > 2 AND odd",
    "SELECT ticker FROM trades [FROM 3 UNTIL 9 RETAIN 2 ROWS] WHERE qty > 1",
    "SELECT ticker, COUNT(*) FROM trades [FROM 3 UNTIL 9] WHERE qty > 1 GROUP BY ticker",
    "SELECT ticker, COUNT(*) FROM trades [ROWS 3] WHERE qty > 1 GROUP BY ticker HAVING COUNT(*) > 1",
    "SELECT qty FROM trades [PARTITION BY ticker, odd ROWS 2] WHERE qty > 1",
    "SELECT DISTINCT ticker FROM trades [RANGE 4ms]",
    "SELECT DISTINCT ticker, qty % 2 AS x FROM trades [RANGE 4ms] WHERE price > 1",
    "SELECT DISTINCT ticker FROM trades [RANGE 4ms LAG 3ms]",
    "SELECT DISTINCT ticker FROM trades [FROM 2 UNTIL 6 RETAIN 9 ROWS]",
    "SELECT DISTINCT ticker FROM trades [ROWS 2]",
    "SELECT DISTINCT ticker FROM trades [ROWS 2] WHERE odd",
    "SELECT DISTINCT a.ticker FROM trades [RANGE 4ms] a, quotes [RANGE 3ms] b WHERE a.qty = b.level",
    "SELECT a.qty, b.level FROM trades [RANGE 4ms] a, quotes [ROWS 3] b "
    "WHERE a.ticker = b.ticker AND a.qty > 1 AND b.level > 0 AND a.price > b.price AND TRUE",
    "SELECT a.qty FROM trades [ROWS 2] a, trades [RANGE 5ms] b, halted [RANGE 9ms] c "
    "WHERE a.ticker = c.ticker AND c.ticker = b.ticker AND b.odd",
    "SELECT a.qty FROM trades [RANGE 2ms] a, quotes [RANGE 2ms] b, halted [RANGE 5ms] c WHERE c.ticker = a.ticker",
    "SELECT ticker FROM trades [RANGE 4ms] WHERE odd UNION ALL SELECT ticker FROM quotes [RANGE 4ms SLIDE 1s]",
    "SELECT ticker FROM trades [RANGE 4ms SLIDE 1s] UNION ALL SELECT ticker FROM halted [RANGE 4ms] "
    "UNION ALL SELECT ticker FROM quotes [RANGE 4ms SLIDE 1s] WHERE level > 1",
    "SELECT ticker FROM trades [RANGE 4ms] UNION ALL SELECT ticker FROM halted [RANGE 5ms]",
    "SELECT ticker FROM trades [ROWS 2] UNION ALL SELECT ticker FROM halted [ROWS 2]",
    "SELECT DISTINCT ticker FROM trades [RANGE 4ms] UNION ALL SELECT ticker FROM halted [RANGE 4ms]",
    "SELECT ticker FROM trades [RANGE 4ms] EXCEPT SELECT ticker FROM halted [RANGE 5ms] WHERE ticker <> 'a'",
    "SELECT qty + 1 AS x FROM trades WHERE odd UNION ALL SELECT level FROM quotes",
    "SELECT DISTINCT qty FROM trades [RANGE 4ms] UNION ALL SELECT price FROM quotes [RANGE 4ms]",
    "SELECT qty FROM trades [RANGE 4ms] EXCEPT SELECT level FROM quotes [RANGE 5ms] "
    "UNION ALL SELECT price FROM trades [NOW]",
]

TICKERS = st.sampled_from(["a", "b", "c"])
SMALL = st.none() | st.integers(0, 3)
TIMES = st.integers(0, 12)
DATA = st.fixed_dictionaries(
    {
        "trades": st.lists(st.tuples(TIMES, TICKERS, SMALL, SMALL, st.none() | st.booleans()), max_size=8),
        "quotes": st.lists(st.tuples(TIMES, st.none() | TICKERS, SMALL, SMALL), max_size=6),
        "halted": st.lists(st.tuples(TIMES, st.none() | TICKERS), max_size=6),
    }
)


PLANS = {text: logical_plan(relation(text)) for text in EQUIVALENT}
REWRITTEN = {text: rewrite(plan).plan for text, plan in PLANS.items()}


@given(data=DATA, tau=st.integers(0, 18))
def test_a_rewritten_plan_holds_the_same_at_every_instant(data: Data, tau: int) -> None:
    for text, plan in PLANS.items():
        assert answer(REWRITTEN[text], data, tau) == answer(plan, data, tau), text


# ── what is applied, what is refused ───────────────────────────────────────────────────────────────────

OUTCOMES = [
    # selection: by time, not by number of rows
    ("SELECT qty FROM trades [RANGE 5s] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT qty FROM trades [RANGE 5s LAG 1s] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT qty FROM trades [TUMBLE 5s] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT qty FROM trades [NOW] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT COUNT(*) FROM trades [FROM 5] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT qty FROM trades [RANGES 2s SLIDES 1s] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT qty FROM trades [ROWS 5] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(False, "trades")]),
    ("SELECT qty FROM trades [ROWS 5 SLIDE 1s] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(False, "trades")]),
    ("SELECT qty FROM trades [PARTITION BY qty ROWS 5] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(False, "trades")]),
    ("SELECT qty FROM trades [FROM 5 RETAIN 9 ROWS] WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(False, "trades")]),
    ("SELECT qty FROM trades WHERE odd", Rule.SELECTION_BELOW_WINDOW, []),
    # selection through a join: to the input it is about, and no further than its window lets it
    ("SELECT a.qty FROM trades [NOW] a, quotes [NOW] b WHERE odd", Rule.SELECTION_BELOW_JOIN, [(True, "a")]),
    ("SELECT a.qty FROM trades [ROWS 5] a, quotes [NOW] b WHERE odd", Rule.SELECTION_BELOW_JOIN, [(True, "a")]),
    ("SELECT a.qty FROM trades [ROWS 5] a, quotes [NOW] b WHERE odd", Rule.SELECTION_BELOW_WINDOW, [(False, "a")]),
    ("SELECT a.qty FROM trades [NOW] a, quotes [NOW] b WHERE qty = level", Rule.SELECTION_BELOW_JOIN, []),
    ("SELECT a.qty FROM trades [NOW] a, quotes [NOW] b WHERE 1 = 1", Rule.SELECTION_BELOW_JOIN, []),
    # projection: through every window, but the keys of a partitioned one stay
    ("SELECT qty FROM trades [RANGE 5s]", Rule.PROJECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT qty FROM trades [ROWS 5]", Rule.PROJECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT qty FROM trades [PARTITION BY qty ROWS 5]", Rule.PROJECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT qty FROM trades [PARTITION BY odd ROWS 5]", Rule.PROJECTION_BELOW_WINDOW,
     [(False, "trades"), (True, "trades")]),
    ("SELECT COUNT(*) FROM trades [NOW]", Rule.PROJECTION_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT * FROM trades [NOW]", Rule.PROJECTION_BELOW_WINDOW, [(False, "trades")]),
    # duplicate elimination: only where the latest appearance is in sight
    ("SELECT DISTINCT qty FROM trades [RANGE 5s]", Rule.DISTINCT_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT DISTINCT qty FROM trades [TUMBLE 5s OFFSET 1s] WHERE odd", Rule.DISTINCT_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT DISTINCT qty FROM trades [RANGES 2s SLIDES 1s]", Rule.DISTINCT_BELOW_WINDOW, [(True, "trades")]),
    ("SELECT DISTINCT qty FROM trades [RANGE 5s LAG 1s]", Rule.DISTINCT_BELOW_WINDOW, [(False, "trades")]),
    ("SELECT DISTINCT qty FROM trades [FROM 1 RETAIN 5 ROWS]", Rule.DISTINCT_BELOW_WINDOW, [(False, "trades")]),
    ("SELECT DISTINCT qty FROM trades [ROWS 5]", Rule.DISTINCT_BELOW_WINDOW, [(False, "trades")]),
    ("SELECT DISTINCT qty FROM trades [ROWS 5] WHERE odd", Rule.DISTINCT_BELOW_WINDOW, [(False, "trades")]),
    ("SELECT DISTINCT qty FROM trades [PARTITION BY odd ROWS 5]", Rule.DISTINCT_BELOW_WINDOW, [(False, "trades")]),
    ("SELECT DISTINCT a.qty FROM trades [NOW] a, quotes [NOW] b", Rule.DISTINCT_BELOW_WINDOW, [(False, "a, b")]),
    ("SELECT DISTINCT COUNT(*) FROM trades [NOW] GROUP BY qty", Rule.DISTINCT_BELOW_WINDOW, [(False, "trades")]),
    # difference: never
    ("SELECT ticker FROM trades [NOW] EXCEPT SELECT ticker FROM halted [NOW]", Rule.DIFFERENCE_BELOW_WINDOW,
     [(False, "trades, halted")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rule", "expected"), OUTCOMES)
def test_a_rule_is_applied_or_refused(text: str, rule: Rule, expected: list[tuple[bool, str]]) -> None:
    assert outcome(text, rule) == expected


def test_every_step_gives_its_reason() -> None:
    for text, _, _ in OUTCOMES:
        assert all(step.reason for step in steps(text))


# ── refusals: what the refused rewrite would have answered ─────────────────────────────────────────────


def below(text: str, data: Data, tau: int) -> tuple[Any, Any]:
    """The answer, and the answer after moving what stands right above the window below it all the same."""
    plan = logical_plan(relation(text))
    return answer(plan, data, tau), answer(_forced(plan), data, tau)


def _forced(plan: Plan) -> Plan:
    match plan:
        case logical.Select(logical.Window() as window, condition):
            return replace(window, input=logical.Select(window.input, condition))
        case logical.Distinct(logical.Project(logical.Window() as window) as project):
            return replace(window, input=logical.Distinct(replace(project, input=window.input)))
        case logical.Project() | logical.Distinct():
            return replace(plan, input=_forced(plan.input))
    raise AssertionError(f"nothing to move in {plan}")


def trades(*rows: tuple[int, str, bool]) -> Data:
    return {"trades": [(ts, ticker, 1.0, 1, odd) for ts, ticker, odd in rows]}


def test_a_filter_below_a_count_window_would_let_older_rows_in() -> None:
    data = trades((1, "a", True), (2, "b", False), (3, "c", True))
    right, wrong = below("SELECT ticker FROM trades [ROWS 2] WHERE odd", data, 5)
    assert (set(right), set(wrong)) == ({("c",)}, {("a",), ("c",)})


def test_a_filter_below_a_partitioned_window_would_let_older_rows_in() -> None:
    data = trades((1, "a", True), (2, "a", False), (3, "b", True))
    right, wrong = below("SELECT ticker FROM trades [PARTITION BY ticker ROWS 1] WHERE odd", data, 5)
    assert (set(right), set(wrong)) == ({("b",)}, {("a",), ("b",)})


def test_a_filter_below_a_landmark_that_retains_rows_would_let_older_rows_in() -> None:
    data = trades((1, "a", True), (2, "b", False), (3, "c", True))
    right, wrong = below("SELECT ticker FROM trades [FROM 0 RETAIN 2 ROWS] WHERE odd", data, 5)
    assert (set(right), set(wrong)) == ({("c",)}, {("a",), ("c",)})


def test_duplicate_elimination_below_a_lagging_window_would_lose_a_value() -> None:
    data = trades((1, "a", True), (5, "a", True))
    right, wrong = below("SELECT DISTINCT ticker FROM trades [RANGE 3ms LAG 3ms]", data, 5)
    assert (set(right), set(wrong)) == ({("a",)}, set())


def test_duplicate_elimination_below_until_would_lose_a_value() -> None:
    data = trades((1, "a", True), (5, "a", True))
    right, wrong = below("SELECT DISTINCT ticker FROM trades [UNTIL 3 RETAIN 9 ROWS]", data, 5)
    assert (set(right), set(wrong)) == ({("a",)}, set())


def test_duplicate_elimination_below_a_count_window_would_find_older_values() -> None:
    data = trades((1, "b", True), (2, "a", True), (3, "a", True))
    right, wrong = below("SELECT DISTINCT ticker FROM trades [ROWS 2]", data, 5)
    assert (set(right), set(wrong)) == ({("a",)}, {("a",), ("b",)})


def test_a_difference_below_windows_would_cancel_rows_that_are_not_there() -> None:
    """Without windows b cancels b for ever; with them halted's b has left when trades' b is still held."""
    text = "SELECT ticker FROM trades [RANGE 9ms] EXCEPT SELECT ticker FROM halted [RANGE 2ms]"
    data = {**trades((3, "b", True)), "halted": [(1, "b")]}
    plan = logical_plan(relation(text))
    assert set(answer(plan, data, 5)) == {("b",)}
    unwindowed = logical.Except(*(_without_window(side) for side in (plan.left, plan.right)))  # type: ignore[union-attr]
    assert set(answer(unwindowed, data, 5)) == set()


def _without_window(plan: Plan) -> Plan:
    if isinstance(plan, logical.Window):
        return plan.input
    assert isinstance(plan, logical.Project)
    return replace(plan, input=_without_window(plan.input))


def test_dropping_the_key_of_a_partitioned_window_would_leave_nothing_to_partition_by() -> None:
    plan = rewrite(logical_plan(relation("SELECT qty FROM trades [PARTITION BY ticker ROWS 1]"))).plan
    assert isinstance(plan, logical.Project)
    assert isinstance(plan.input, logical.Window)
    narrow = plan.input.input
    assert isinstance(narrow, logical.Narrow)
    blind = replace(plan, input=replace(plan.input, input=replace(narrow, fields=narrow.fields[1:])))
    with pytest.raises(KeyError):
        answer(blind, trades((1, "a", True)), 5)
