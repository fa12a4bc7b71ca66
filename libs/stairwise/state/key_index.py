"""The rows of an input by a key, which come and go in any order.

    key        a            b                  a row that goes stays in its bag until half of it is gone; it is known by
    bag        0  2̶  5      1  3               having no key any more, and no probe finds it

    answers        for many probes at once, the rows with an equal key
    update         O(1) amortised a row
    lookup         O(matches)
    space          about six numbers for each row, and the keys
    order          none
    from           seed 002 section 4.2 (a hash table for each input of a symmetric hash join)

A NULL equals nothing, so a row with one is not here. Without columns there is one key, which all rows have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Bools, Ints
from stairwise.state.bags import Bags
from stairwise.state.key_table import KeyTable

_NONE = -1

_MANY = 4096
"""Up to so many keys are not looked through for those that no row has."""


class KeyIndex:
    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = list(types)
        self._keys = KeyTable(types)
        self._bags = Bags()
        self._key_of = np.zeros(0, np.int64)
        """By row, the number of its key; none where it is not here."""
        self._gone = np.zeros(0, np.int64)
        """By key, how many rows in its bag have gone."""
        self._kept = 0

    def add(self, keys: Sequence[pa.Array], rows: Ints) -> None:
        valid = _valid(keys, len(rows))
        rows, number = rows[valid], self._numbers(keys, valid)
        if not len(rows):
            return
        self._key_of = _grown(self._key_of, int(rows.max()) + 1, _NONE)
        self._key_of[rows] = number
        self._bags.add(number, rows)

    def probe(self, keys: Sequence[pa.Array], length: int) -> tuple[Ints, Ints]:
        """All (probe, row) with the key of the probe."""
        valid = _valid(keys, length)
        whose, rows = self._bags.of_each(self._numbers(keys, valid))
        here = self._key_of[rows] != _NONE
        return np.flatnonzero(valid)[whose[here]], rows[here]

    def _numbers(self, keys: Sequence[pa.Array], valid: Bools) -> Ints:
        mask = pa.array(valid)
        number = self._keys.numbers([key.filter(mask) for key in keys], int(valid.sum()))
        self._gone = _grown(self._gone, len(self._keys), 0)
        return number

    def remove(self, rows: Ints) -> None:
        """Rows go, each of them once; some of them may never have been here."""
        rows = rows[rows < len(self._key_of)]
        key = self._key_of[rows]
        self._key_of[rows] = _NONE
        touched, count = np.unique(key[key != _NONE], return_counts=True)
        self._gone[touched] += count
        self._tidy(touched[2 * self._gone[touched] > self._bags.sizes(touched)])
        if len(self._keys) > 2 * self._kept + _MANY and self._types:
            self._forget_keys()

    def _tidy(self, keys: Ints) -> None:
        """Take those out of the bags of some keys that have gone."""
        whose, rows = self._bags.take(keys)
        here = self._key_of[rows] != _NONE
        self._bags.put(keys, whose[here], rows[here])
        self._gone[keys] = 0

    def _forget_keys(self) -> None:
        """Forget keys that no row has: probes leave such behind."""
        every = np.arange(len(self._keys))
        self._tidy(every)
        used = every[self._bags.sizes(every) > 0]
        numbers = self._keys.keep(used)
        self._bags.keep(used, numbers[used])
        here = self._key_of != _NONE
        self._key_of[here] = numbers[self._key_of[here]]
        self._gone = np.zeros(len(used), np.int64)
        self._kept = len(used)

    def renumber(self, numbers: Ints) -> None:
        """Give every row the new number of its old one."""
        self._tidy(np.arange(len(self._keys)))
        self._bags.renumber(numbers)
        here = np.flatnonzero(self._key_of != _NONE)
        key_of = np.full(len(numbers), _NONE, np.int64)
        key_of[numbers[here]] = self._key_of[here]
        self._key_of = key_of


def _valid(keys: Sequence[pa.Array], length: int) -> Bools:
    """Which rows have no NULL in their key."""
    valid = np.ones(length, bool)
    for key in keys:
        if key.null_count:
            valid &= key.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _grown(numbers: Ints, length: int, value: int) -> Ints:
    """The same with room for so many, at least."""
    if length <= len(numbers):
        return numbers
    return np.concatenate([numbers, np.full(2 * length - len(numbers), value, np.int64)])
