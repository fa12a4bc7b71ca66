"""Rows that go when others of their partition come, and rows by key that come and go."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np
import pyarrow as pa
import pytest

from stairwise.state import key_index
from stairwise.state.key_index import KeyIndex
from stairwise.state.key_table import KeyTable
from stairwise.state.last_rows import LastRows


@pytest.mark.parametrize("rows", [1, 2, 5, 64])
def test_a_row_goes_when_the_nth_after_it_comes(rows: int) -> None:
    chance = np.random.default_rng(rows)
    last, held = LastRows(rows), defaultdict[int, deque[int]](deque)
    number = 0
    for _ in range(60):
        partition = chance.integers(0, chance.integers(1, 9), chance.integers(0, 40))
        numbers = np.arange(number, number + len(partition))
        number += len(partition)
        expected = []
        for place, (part, row) in enumerate(zip(partition.tolist(), numbers.tolist(), strict=True)):
            held[part].append(row)
            if len(held[part]) > rows:
                expected.append((held[part].popleft(), place))
        goes, for_whom = last.push(partition, numbers)
        assert sorted(zip(goes.tolist(), for_whom.tolist(), strict=True)) == sorted(expected)
        assert sorted(last.numbers().tolist()) == sorted(row for part in held.values() for row in part)


def test_rows_that_are_hidden_keep_their_places_when_others_get_new_numbers() -> None:
    last = LastRows(2)
    last.push(np.zeros(2, np.int64), np.array([7, -1]))
    last.renumber(np.arange(8) + 100)
    goes, _ = last.push(np.zeros(2, np.int64), np.array([1, 2]))
    assert goes.tolist() == [107, -1]


def test_an_index_finds_the_rows_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "_MANY", 8)
    chance = np.random.default_rng(1)
    index, there = KeyIndex([pa.int64()]), dict[int, int | None]()
    number = 0
    for turn in range(80):
        keys = [None if key == 0 else int(key) + turn // 4 for key in chance.integers(0, 9, 7)]
        rows = np.arange(number, number + len(keys))
        number += len(keys)
        index.add([pa.array(keys, pa.int64())], rows)
        there.update(zip(rows.tolist(), keys, strict=True))
        left = [row for row in there if chance.random() < 0.3]
        index.remove(np.array(left, np.int64))
        for row in left:
            del there[row]
        if turn % 10 == 9:
            renumbered = np.full(number, -1, np.int64)
            renumbered[sorted(there)] = np.arange(len(there))
            index.renumber(renumbered)
            there, number = {int(renumbered[row]): key for row, key in there.items()}, len(there)
        asked = [None, 3, *range(turn // 4, turn // 4 + 9)]
        found = index.probe([pa.array(asked, pa.int64())], len(asked))
        expected = [
            (i, row) for i, key in enumerate(asked) for row, own in there.items() if key is not None and key == own
        ]
        assert sorted(zip(*(column.tolist() for column in found), strict=True)) == sorted(expected)


def test_a_table_gives_a_few_of_its_keys_as_it_gives_all() -> None:
    table, keys = KeyTable([pa.int64(), pa.string()]), dict[int, int]()
    for start in range(0, 3_000, 50):
        new = list(range(start, start + 50))
        found = table.numbers([pa.array(new), pa.array([f"key{i}" for i in new])], 50)
        keys.update(zip(found.tolist(), new, strict=True))
        few = np.array([found[-1], 0, found[0], 0])
        expected = [keys[number] for number in few.tolist()]
        assert [c.to_pylist() for c in table.columns(few)] == [expected, [f"key{i}" for i in expected]]
    assert table.all_columns()[0].to_pylist() == [keys[number] for number in range(3_000)]
