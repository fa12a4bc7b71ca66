"""Which rows are on time: row by row and partition by partition."""

from __future__ import annotations

from tests.oracle import OracleRow, on_time


def arriving(*times: int, partition: int = 0) -> list[OracleRow]:
    return [OracleRow(t, partition, i, (t,)) for i, t in enumerate(times)]


def kept(*times: int, lateness: int) -> list[int]:
    return [row.ts for row in on_time(arriving(*times), lateness)[0]]


def test_without_lateness_rows_equal_to_the_highest_are_on_time() -> None:
    assert kept(5, 5, 4, 5, 6, lateness=0) == [5, 5, 5, 6]


def test_the_drawing_in_the_docs() -> None:
    rows, late = on_time(arriving(5, 9, 7, 3, 9, 12), 3)
    assert [row.ts for row in rows] == [5, 9, 7, 9, 12]
    assert [row.ts for row in late] == [3]


def test_the_edge_of_lateness_is_on_time() -> None:
    assert kept(10, 7, lateness=3) == [10, 7]
    assert kept(10, 6, lateness=3) == [10]


def test_partitions_are_late_by_themselves_and_number_their_own_rows() -> None:
    rows, late = on_time([*arriving(10, 4), *arriving(4, 10, partition=1)], 0)
    assert [(row.partition, row.sequence, row.ts) for row in rows] == [(0, 0, 10), (1, 0, 4), (1, 1, 10)]
    assert [(row.partition, row.ts) for row in late] == [(0, 4)]
