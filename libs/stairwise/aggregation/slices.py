"""Partial aggregates by slice and key: what slice stores and landmarks keep instead of rows.

slice    key    partials
17       0      count 3, sum 12.5        one row for each slice and key that has rows,
17       2      count 1, sum 4.0         sorted by slice, then by key
18       0      count 2, sum 7.0
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from stairwise.expressions.views import Ints


class Combining(Protocol):
    """What can combine partials that lie side by side in columns."""

    def combine(self, partials: list[pa.Array], codes: Ints, groups: int) -> list[pa.Array]: ...


@dataclass(frozen=True)
class Slices:
    number: Ints
    """Of the slice."""
    key: Ints
    """Of the key, in a ``KeyTable``."""
    columns: list[pa.Array]
    """The partials."""

    def __len__(self) -> int:
        return len(self.number)

    def take(self, at: Ints) -> Slices:
        index = pa.array(at)
        return Slices(self.number[at], self.key[at], [c.take(index) for c in self.columns])

    def slice(self, start: int, stop: int) -> Slices:
        columns = [c.slice(start, stop - start) for c in self.columns]
        return Slices(self.number[start:stop], self.key[start:stop], columns)

    def upto(self, number: int) -> Slices:
        """Those with numbers up to one, where they are in order."""
        return self.slice(0, int(np.searchsorted(self.number, number, side="right")))

    def renumbered(self, number: Ints) -> Slices:
        return Slices(number, self.key, self.columns)

    @property
    def nbytes(self) -> int:
        return sum(int(column.nbytes) for column in self.columns)


def no_slices(schema: pa.Schema) -> Slices:
    return Slices(np.zeros(0, np.int64), np.zeros(0, np.int64), [pa.array([], f.type) for f in schema])


def joined(parts: Iterable[Slices]) -> Slices:
    """One behind the other; there must be at least one."""
    parts = list(parts)
    if len(parts) > 1:
        parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    return Slices(
        np.concatenate([part.number for part in parts]),
        np.concatenate([part.key for part in parts]),
        [pa.concat_arrays(columns) for columns in zip(*(part.columns for part in parts), strict=True)],
    )


def dense(number: Ints, key: Ints, keys: int) -> tuple[Ints, Ints, Ints]:
    """Numbers 0, 1, 2, ... for the pairs (slice, key) in their order: one for each row, and what each stands for."""
    if not len(number):
        return number, number, key
    low = int(number.min())
    width = int(number.max()) - low + 1
    if width * keys <= 4 * len(number) + 1024:  # few enough to have a place for each
        pair = (number - low) * keys + key
        present = np.zeros(width * keys, bool)
        present[pair] = True
        found = np.flatnonzero(present)
        place = np.cumsum(present) - 1
        return place[pair], found // keys + low, found % keys
    slices, at = np.unique(number, return_inverse=True)
    found, codes = np.unique(at * keys + key, return_inverse=True)
    return codes, slices[found // keys], found % keys


def in_order(slices: Slices) -> Slices:
    """Sorted by slice, then by key: keys may have been numbered anew."""
    order = np.lexsort([slices.key, slices.number])
    return slices if np.all(np.diff(order) == 1) else slices.take(order)


def merged(slices: Slices, partials: Combining, keys: int) -> Slices:
    """One row for each slice and key, in order."""
    codes, number, key = dense(slices.number, slices.key, keys)
    if len(number) == len(slices):
        return slices if np.all(np.diff(codes) > 0) else slices.take(np.argsort(codes))
    return Slices(number, key, partials.combine(slices.columns, codes, len(number)))
