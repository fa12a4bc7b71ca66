"""The order in which a join probes its inputs, on the examples of seed 001 section 5.3."""

from __future__ import annotations

import pytest

from stairwise.join.order import Key, Load, best_order, by_selectivity

TABLES = {
    "5.3": ([10, 1, 1, 3], [100, 100, 200, 100], [500, 50, 40, 5]),
    "5.5": ([10, 1, 1, 1], [100, 100, 100, 100], [40, 100, 8, 5]),  # printed with a rate of 100; its costs are these
    "5.6": ([11, 10, 1, 1], [100, 100, 100, 100], [200, 100, 65, 20]),
}


def load_of(table: str) -> Load:
    """Rates, lengths of windows and numbers of values of four streams; nested loops over one common attribute."""
    rates, lengths, values = TABLES[table]
    rows = [rate * length for rate, length in zip(rates, lengths, strict=True)]
    return Load(rates, rows, [Key(dict(enumerate(values)))], has_tables=False)


@pytest.mark.parametrize(
    ("table", "order", "cost"),
    [
        ("5.3", [0, 1, 2, 3], 16_000),
        ("5.5", [1, 0, 2, 3], 16_200),
        ("5.5", [0, 1, 2, 3], 21_000),
        ("5.5", [1, 2, 3, 0], 42_600),
        ("5.6", [2, 3, 0, 1], 49_542),
        ("5.6", [2, 0, 3, 1], 47_977),
        ("5.6", [2, 0, 1, 3], 51_954),
        ("5.6", [0, 1, 2, 3], 68_200),
        ("5.6", [1, 0, 2, 3], 79_000),
    ],
)
def test_orders_cost_what_the_seed_says(table: str, order: list[int], cost: float) -> None:
    assert load_of(table).cost(order) == pytest.approx(cost, rel=0.002)


@pytest.mark.parametrize(("table", "order"), [("5.3", [0, 1, 2, 3]), ("5.5", [1, 2, 3, 0]), ("5.6", [2, 3, 0, 1])])
def test_the_most_selective_join_comes_first(table: str, order: list[int]) -> None:
    assert by_selectivity(load_of(table)) == order


@pytest.mark.parametrize(("table", "order"), [("5.5", [1, 0, 2, 3]), ("5.6", [2, 0, 3, 1])])
def test_fast_inputs_move_up(table: str, order: list[int]) -> None:
    assert best_order(load_of(table)) == order


def test_an_input_without_a_link_comes_last() -> None:
    load = Load([1, 1, 1], [1000, 10, 1000], [Key({0: 100, 2: 100})])
    assert load.next([1, 0, 2], [0]) == 2
    assert best_order(load)[0] in (0, 1, 2)
    assert load.next(best_order(load), [0]) == 2
