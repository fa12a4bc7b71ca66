"""A walk where every key has rows in every slice: the columns of the slices are tables already, slices by keys.

    keys     a    b    c                                  accumulated from below    steps that begin there
    slice 7  3    1    4          oldest                  11   9   18   ◀─────────  slices 7 to 10
    slice 8  1    5    9                                   8   8   14
    slice 9  2    6    5                                   7   3    5   ◀─────────  slices 9 and 10
    slice 10 5   −3    0          newest                   5  −3    0

    answers        the partials of steps with one front, all of which hold something, by key
    aggregates     sums and counts of any kind, and extremes
    lookup         O(n k) for n slices and k keys
    space          n k
    order          none
    from           seed 000 sections 2.3 and 4 (Fig. 8)

That is the usual case of a busy stream, and it needs neither scattering nor a look at which key is where. Where steps
begin far apart, runs of slices between them are added up first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from stairwise.aggregates import grouped, limbs
from stairwise.aggregates.extremes import Extreme
from stairwise.aggregates.ranks import rank
from stairwise.aggregation.partials import Kept
from stairwise.expressions import huge
from stairwise.expressions.views import Ints, Words, decimal_words, from_numpy, from_words, int64_view

CLOSE = 4
"""Up to so many slices for each step are walked one by one; beyond, they are added up between the steps first."""

NARROW = 16
"""Up to so many keys all slices are walked one by one: it costs less than the calls to add them up between steps."""

_LOW_HALF = np.int64(0xFFFF_FFFF)


def walked_tables(spans: Sequence[Sequence[pa.Array]], kept: Sequence[Kept], keys: int, begins: Ints) -> list[pa.Array]:
    """The columns of steps that begin with these slices, counted from the oldest; the shortest step comes first."""
    walk = _Walk(keys, begins)
    columns: list[pa.Array] = []
    for partial in kept:
        own = [[span[place] for span in spans] for place in range(partial.start, partial.stop)]
        if isinstance(partial.algebra, Extreme):
            columns.append(walk.extremes(_joined(own[0]), partial.algebra))
        else:
            columns += [walk.sums(parts) for parts in own]
    return columns


def exact_words(words: list[Words], total: Callable[[list[Ints]], Ints]) -> Words:
    """128-bit sums, by sums of what fits in 64 bits: ``total`` makes them."""
    low = [w[:, 0].view(np.int64) for w in words]
    reach = max((grouped.reach(part) for part in low), default=0)
    if all(huge.fits_int64(w) for w in words) and reach * sum(len(part) for part in low) < 2**63:
        return huge.from_int64(total(low))
    first = huge.from_int64(total([part & _LOW_HALF for part in low]))
    second = huge.from_int64(total([part >> 32 & _LOW_HALF for part in low]))
    high = total([np.ascontiguousarray(w[:, 1]).view(np.int64) for w in words])
    third = np.stack([np.zeros(len(high), np.uint64), high.view(np.uint64)], axis=-1)
    return huge.wrapping_add(huge.wrapping_add(huge.shift_half(second), first), third)


@dataclass(frozen=True)
class _Walk:
    keys: int
    begins: Ints
    """Ascending, from 0."""

    def sums(self, parts: list[pa.Array]) -> pa.Array:
        dtype = parts[0].type
        if pa.types.is_int64(dtype):
            return from_numpy(self._total([int64_view(part) for part in parts]))
        if pa.types.is_decimal(dtype):
            return from_words(exact_words([decimal_words(part) for part in parts], self._total))
        column = _joined(parts)
        digits = limbs.Accumulator(len(column))
        digits.add_lists(column, np.arange(len(column)))
        return digits.mapped(len(self.begins) * self.keys, lambda values: self._down(np.add, values)).to_lists()

    def extremes(self, column: pa.Array, algebra: Extreme) -> pa.Array:
        better, nothing = (np.maximum, grouped.INT64_MIN) if algebra.largest else (np.minimum, grouped.INT64_MAX)
        ranks = rank(column)
        if ranks.valid is None:
            return ranks.values(self._down(better, ranks.keys), None)
        best = self._down(better, np.where(ranks.valid, ranks.keys, nothing))
        return ranks.values(best, self._down(np.maximum, ranks.valid.astype(np.int64)) > 0)

    def _total(self, parts: list[Ints]) -> Ints:
        return self._down(np.add, parts[0] if len(parts) == 1 else np.concatenate(parts))

    def _down(self, ufunc: np.ufunc, values: Ints) -> Ints:
        """Accumulated from the newest slice down to the first one of each step."""
        table = values.reshape(-1, self.keys)
        slices, steps = len(table), len(self.begins)
        if steps == 1:
            return np.asarray(ufunc.reduce(table, axis=0))
        if slices > CLOSE * steps and self.keys > NARROW:
            ends = [*self.begins[1:].tolist(), slices]
            table = np.stack([ufunc.reduce(table[b:e], axis=0) for b, e in zip(self.begins, ends, strict=True)])
            return np.asarray(ufunc.accumulate(table[::-1], axis=0)).reshape(-1)
        every = ufunc.accumulate(table[::-1], axis=0)
        return np.asarray(every if slices == steps else every[slices - 1 - self.begins[::-1]]).reshape(-1)


def _joined(parts: list[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
