"""Group keys as small numbers that stay the same from batch to batch.

    number   key
    0        ("AB", 1)        a batch's keys are looked up all at once in a hash table;
    1        ("CD", 1)        what is new gets the next numbers
    2        (NULL, 7)

Numbers come in order of appearance, which depends on the batches; ``rank`` gives the order of the keys themselves,
which does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from stairwise.expressions.codes import encode
from stairwise.expressions.order import sort_indices
from stairwise.expressions.views import Ints, Words
from stairwise.state.pages import take
from stairwise.state.word_table import WordTable, is_short, short_words, words_of

_LONG_BYTES = 300
"""About what a key with a long string takes as a Python value."""
_FEW = 8
"""Less than one key in so many is taken from the chunks as they are."""


class KeyTable:
    """The distinct keys seen so far. Without columns there is one key, number 0.

    A key whose strings are short is a few machine words and is found in a ``WordTable``; one with a longer string
    is found by its Python value, once for each distinct key of a batch.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = list(types)
        self._chunks: list[list[pa.Array]] = [[pa.array([], t)] for t in types]
        """The keys by number, each column in chunks: those of a batch are put behind the others."""
        self._words = WordTable(self._types)
        self._long: dict[tuple[object, ...], int] = {}
        self._count = 0
        self._rank: Ints | None = None

    def __len__(self) -> int:
        return self._count if self._types else 1

    def numbers(self, columns: Sequence[pa.Array], length: int, words: list[Words] | None = None) -> Ints:
        """The number of each row's key. ``words`` are those of the columns (``short_words``), if they are known."""
        if not self._types:
            return np.zeros(length, np.int64)
        if words is None:
            words = short_words(columns)
        if words is not None:
            return self._short_numbers(columns, words)
        codes, first = encode(columns)
        distinct = _taken(columns, first)
        short = is_short(distinct)
        numbers = np.empty(len(first), np.int64)
        mine = _taken(distinct, np.flatnonzero(short))
        numbers[short] = self._short_numbers(mine, words_of(mine))
        numbers[~short] = self._long_numbers(_taken(distinct, np.flatnonzero(~short)))
        return numbers[codes]

    @property
    def size_bytes(self) -> int:
        columns: int = sum(chunk.nbytes for chunks in self._chunks for chunk in chunks)
        return columns + self._words.size_bytes + _LONG_BYTES * len(self._long)

    def find(self, columns: Sequence[pa.Array], length: int, words: list[Words] | None = None) -> Ints:
        """The number of each row's key, −1 where it never came; the table stays as it is."""
        if not self._types:
            return np.zeros(length, np.int64)
        if words is None:
            words = short_words(columns)
        if words is not None:
            return self._words.find(words)
        short = is_short(columns)
        found = np.empty(length, np.int64)
        found[short] = self._words.find(words_of(_taken(columns, np.flatnonzero(short))))
        long = zip(*(_comparable(column) for column in _taken(columns, np.flatnonzero(~short))), strict=True)
        found[~short] = [self._long.get(key, -1) for key in long]
        return found

    def _short_numbers(self, columns: Sequence[pa.Array], words: list[Words]) -> Ints:
        numbers, new_rows = self._words.numbers(words, self._count)
        if len(new_rows):
            self._append(_taken(columns, new_rows))
        return numbers

    def _long_numbers(self, columns: Sequence[pa.Array]) -> Ints:
        keys = list(zip(*(_comparable(column) for column in columns), strict=True))
        new = [row for row, key in enumerate(keys) if key not in self._long]
        for number, row in enumerate(new, self._count):
            self._long[keys[row]] = number
        if new:
            self._append(_taken(columns, np.array(new, np.int64)))
        return np.array([self._long[key] for key in keys], np.int64)

    def _append(self, columns: Sequence[pa.Array]) -> None:
        for chunks, column in zip(self._chunks, columns, strict=True):
            chunks.append(column)
        self._count += len(columns[0])
        self._rank = None

    def all_columns(self) -> list[pa.Array]:
        """All keys, by number."""
        self._chunks = [[c[0] if len(c) == 1 else pa.concat_arrays(c)] for c in self._chunks]
        return [chunks[0] for chunks in self._chunks]

    def columns(self, numbers: Ints) -> list[pa.Array]:
        """The keys of these numbers: where they are few, the others are not laid end to end for them."""
        if not self._types or _FEW * len(numbers) >= self._count:
            return _taken(self.all_columns(), numbers)
        sizes = self._join_chunks()
        if len(sizes) == 1:
            return _taken([chunks[0] for chunks in self._chunks], numbers)
        names = [str(i) for i in range(len(self._types))]
        batches = [pa.RecordBatch.from_arrays([*row], names=names) for row in zip(*self._chunks, strict=True)]
        return list(take(np.cumsum([0, *sizes[:-1]]), batches, numbers).columns)

    def _join_chunks(self) -> list[int]:
        """Join the last chunks until each is more than twice as long as those behind it; gives their lengths."""
        sizes = [len(chunk) for chunk in self._chunks[0]]
        start, joined = len(sizes) - 1, sizes[-1]
        while start and sizes[start - 1] <= 2 * joined:
            start -= 1
            joined += sizes[start]
        if start < len(sizes) - 1:
            for chunks in self._chunks:
                chunks[start:] = [pa.concat_arrays(chunks[start:])]
        return [*sizes[:start], joined]

    def rank(self) -> Ints:
        """For each number, the place of its key among all keys in order."""
        if self._rank is None:
            order = sort_indices(self.all_columns()) if self._types else np.zeros(1, np.int64)
            self._rank = np.empty(len(order), np.int64)
            self._rank[order] = np.arange(len(order))
        return self._rank

    def keep(self, used: Ints) -> Ints:
        """Forget all keys but these numbers; gives the new number of each old one (−1: forgotten)."""
        renumbered = np.full(len(self), -1, np.int64)
        kept = self.columns(used)
        self.__init__(self._types)  # type: ignore[misc]
        renumbered[used] = self.numbers(kept, len(used))
        return renumbered


def _comparable(column: pa.Array) -> list[object]:
    """Python values of which a NaN equals another."""
    values: list[object] = column.to_pylist()
    return [_NAN if value != value else value for value in values] if pa.types.is_floating(column.type) else values


_NAN = object()


def _taken(columns: Sequence[pa.Array], at: Ints) -> list[pa.Array]:
    index = pa.array(at)
    return [column.take(index) for column in columns]
