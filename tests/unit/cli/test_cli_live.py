"""The answer on a terminal follows what the query emits."""

from __future__ import annotations

import pytest
from rich.console import Console

from stairwise.algebra.query import Emit
from stairwise.cli.live import MOST_ROWS, LiveAnswer, cell_text, clock
from stairwise.client import Change, Update
from stairwise.schema import Column, Type

COLUMNS = (Column("k", Type.STRING), Column("n", Type.BIGINT))


def update(time: int, *changes: tuple[int, str], snapshot: bool = False) -> Update:
    rows = [Change(diff, {"k": key, "n": 1}) for diff, key in changes]
    return Update("q", time, rows, b"", COLUMNS, snapshot)


def keys(answer: LiveAnswer) -> list[str]:
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(answer)
    return [line.split()[0] for line in captured.get().splitlines()[2:] if line.strip()]


def test_rstream_shows_the_last_report() -> None:
    answer = LiveAnswer("q")
    answer.apply(update(10, (1, "a"), (1, "b")), Emit.RSTREAM)
    answer.apply(update(20, (1, "c")), Emit.RSTREAM)
    assert keys(answer) == ["c"]
    answer.apply(update(30), Emit.RSTREAM)
    assert keys(answer) == []
    assert answer.reports == 3


def test_changes_add_up_to_the_answer() -> None:
    answer = LiveAnswer("q")
    answer.apply(update(10, (1, "a"), (1, "b"), snapshot=True), Emit.CHANGES)
    answer.apply(update(20, (-1, "a"), (1, "c"), (1, "c")), Emit.CHANGES)
    assert keys(answer) == ["b", "c", "c"]
    answer.apply(update(30, (1, "z"), snapshot=True), Emit.CHANGES)
    assert keys(answer) == ["z"]


def test_dstream_shows_what_left_last() -> None:
    answer = LiveAnswer("q")
    answer.apply(update(10, (-1, "a")), Emit.DSTREAM)
    answer.apply(update(20), Emit.DSTREAM)
    assert keys(answer) == ["a"]


def test_a_long_answer_is_cut_and_says_so() -> None:
    answer = LiveAnswer("q")
    answer.apply(update(10, *((1, f"k{i}") for i in range(MOST_ROWS + 5))), Emit.RSTREAM)
    assert len(keys(answer)) == MOST_ROWS + 1


@pytest.mark.parametrize(
    ("value", "text"), [(None, "NULL"), (True, "true"), (1234567, "1,234,567"), (0.5, "0.5"), ("x", "x")]
)
def test_cells(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_times_that_no_calendar_has_are_numbers() -> None:
    assert clock(1700000000123) == "2023-11-14 22:13:20.123Z"
    assert clock(2**62) == str(2**62)
