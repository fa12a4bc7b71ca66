"""BIGINT, DOUBLE and exact sums beside each other: compared as they are, widened where they become one column.

Values stand around 2^53, from where on not every integer is a DOUBLE.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import run
from tests.unit.local.lines import engine_lines

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, x BIGINT, d DOUBLE) TIMESTAMP BY ts;"
INTEGERS = [0, 1, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, 0.5, 1.0, 2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**63, -(2.0**63), "NaN", "-Infinity"]


def streams(integers: list[Any], doubles: list[Any], least: int = 0) -> st.SearchStrategy[list[dict[str, Any]]]:
    x, d = st.sampled_from([*integers, None]), st.sampled_from([*doubles, None])
    row = st.fixed_dictionaries({"ts": st.integers(1, 12), "k": st.sampled_from("ab"), "x": x, "d": d})
    return st.lists(row, min_size=least, max_size=10).map(lambda rows: sorted(rows, key=lambda row: row["ts"]))


ROWS = streams(INTEGERS, DOUBLES)
FEW = streams([2**53, 2**53 + 1], [2.0**53, 0.5], least=4)
"""Rows whose values meet often."""
LITERALS = [*map(str, INTEGERS), "0.5", "1.0", "9007199254740992.0", "-9007199254740992.0", "1e30", "NULL"]
COMPARED = st.sampled_from(["x", "d", "x + 1", *LITERALS])
SUMMED = st.sampled_from(["SUM(x)", "MAX(d)", "AVG(x)", "COUNT(*)", "MIN(x)", *LITERALS])


def conditions(operands: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    listed = st.lists(st.sampled_from(LITERALS) | operands, min_size=1, max_size=4).map(", ".join)
    compared = st.builds("{} {} {}".format, operands, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), operands)
    between = st.builds("{} {}BETWEEN {} AND {}".format, operands, st.sampled_from(["", "NOT "]), operands, operands)
    chosen = st.builds("{} {}IN ({})".format, operands, st.sampled_from(["", "NOT "]), listed)
    return compared | between | chosen | compared.map("NOT {}".format)


@st.composite
def relations(draw: st.DrawFn, depth: int = 2) -> str:
    """UNION ALL and EXCEPT over columns of every type of number."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        distinct = draw(st.sampled_from(["DISTINCT ", ""]))
        shown = draw(st.sampled_from(["x", "d", "x", "d", "NULL", "SUM(x)"]))
        grouped = " GROUP BY k" if shown.endswith(")") else ""
        window = draw(st.sampled_from(["TUMBLE 12ms", "RANGE 12ms SLIDE 4ms", "ROWS 9 SLIDE 4ms", "ROWS 9"]))
        return f"SELECT {distinct}{shown} AS n FROM s [{window}]{grouped}"
    operator = draw(st.sampled_from(["UNION ALL", "EXCEPT"]))
    return f"({draw(relations(depth - 1))}) {operator} ({draw(relations(depth - 1))})"


def check(script: str, rows: list[dict[str, Any]], chance: Any) -> None:
    assert engine_lines(script, {"s": rows}, chance=chance) == run(script, {"s": rows})


@given(ROWS, st.lists(conditions(COMPARED), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_numbers_compare_as_they_are(rows: list[dict[str, Any]], asked: list[str], chance: Any) -> None:
    shown = ", ".join(f"{condition} AS c{i}" for i, condition in enumerate(asked))
    check(f"{STREAM} SELECT {shown} FROM s; SELECT ts FROM s [TUMBLE 4ms] WHERE {asked[0]};", rows, chance)


@given(ROWS, conditions(SUMMED), st.randoms(use_true_random=False))
def test_aggregates_compare_as_they_are(rows: list[dict[str, Any]], asked: str, chance: Any) -> None:
    grouped = "FROM s [RANGE 9ms SLIDE 4ms] GROUP BY k"
    check(f"{STREAM} SELECT k, {asked} AS c {grouped}; SELECT k {grouped} HAVING {asked};", rows, chance)


@given(ROWS, st.sampled_from(["=", "<", ">="]), st.randoms(use_true_random=False))
def test_numbers_join_as_they_are(rows: list[dict[str, Any]], op: str, chance: Any) -> None:
    sides = "s [RANGE 9ms SLIDE 4ms] a, s [RANGE 6ms SLIDE 4ms] b"
    check(f"{STREAM} SELECT a.x, b.d FROM {sides} WHERE a.x {op} b.d EMIT RSTREAM;", rows, chance)


@pytest.mark.parametrize("emit", ["RSTREAM", "CHANGES"])
@given(FEW, relations(), st.randoms(use_true_random=False))
def test_a_set_operation_widens_its_own_two_sides(
    emit: str, rows: list[dict[str, Any]], relation: str, chance: Any
) -> None:
    check(f"{STREAM} {relation} EMIT {emit};", rows, chance)
