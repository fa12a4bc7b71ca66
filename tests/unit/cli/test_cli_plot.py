"""A plot shows the values of a column over time, a line for each group."""

from __future__ import annotations

import pytest
from rich.console import Console

from stairwise.algebra.query import Emit
from stairwise.cli.plot import MOST_LINES, Plot
from stairwise.client import Change, Update
from stairwise.errors import NotFoundError, StairwiseError
from stairwise.schema import Column, Type

COLUMNS = (Column("k", Type.STRING), Column("n", Type.BIGINT), Column("x", Type.DOUBLE))


def update(time: int, **values: float | None) -> Update:
    rows = [Change(1, {"k": key, "n": 1, "x": value}) for key, value in values.items()]
    return Update("q", time, rows, b"", COLUMNS)


def drawn(plot: Plot, width: int = 40) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(plot)
    return captured.get().splitlines()


def test_a_rising_value_rises_from_the_lower_left_to_the_upper_right() -> None:
    plot = Plot("q", "x")
    for step in range(11):
        plot.apply(update(1000 * step, a=10.0 * step), Emit.RSTREAM)
    title, *picture, legend = drawn(plot)
    assert title.startswith("q.x  1970-01-01 00:00:10.000Z  report 11")
    assert picture[0].startswith("100 ")
    assert picture[-1].lstrip().startswith("0 ")
    places = [len(row.rstrip()) for row in picture]
    assert places == sorted(places, reverse=True)
    assert max(map(len, picture)) <= 40
    assert legend == "━ a 100"


def test_every_group_has_a_line_and_the_smallest_are_left_out() -> None:
    plot = Plot("q", "x")
    for time in (1000, 2000):
        plot.apply(update(time, **{f"g{i}": float(i) for i in range(MOST_LINES + 2)}), Emit.RSTREAM)
    lines = drawn(plot)
    assert [line for line in lines if line.startswith("━")] == [f"━ g{i} {i}" for i in range(MOST_LINES + 1, 1, -1)]
    assert lines[-1] == "… and 2 more"


def test_without_a_name_the_first_number_is_drawn_and_nulls_leave_gaps() -> None:
    plot = Plot("q")
    plot.apply(update(1000, a=None), Emit.RSTREAM)
    assert drawn(plot)[0].startswith("q.n ")
    plot = Plot("q", "x")
    plot.apply(update(1000, a=None), Emit.RSTREAM)
    assert len(drawn(plot)) == 1


def test_a_constant_and_a_single_report_can_be_drawn() -> None:
    plot = Plot("q", "x")
    plot.apply(update(1000, a=5.0), Emit.RSTREAM)
    assert any("⠀" < c <= "⣿" for line in drawn(plot) for c in line)


def test_what_is_no_number_is_refused_with_the_nearest_that_is_one() -> None:
    with pytest.raises(NotFoundError, match="no column of numbers 'k'"):
        Plot("q", "k").apply(update(1000, a=1.0), Emit.RSTREAM)
    with pytest.raises(StairwiseError, match="no column that is a number"):
        Plot("q").apply(Update("q", 1, [], b"", COLUMNS[:1]), Emit.RSTREAM)
